"""Isotonic fits of all labels: rare ones by their positives, the others by buckets of scores.

`cell_counts` sorts the positives of a label, which is cheap where they are few. Where they are
many, cells are counted in buckets, and only the cells of buckets that may hold a knot are collected
and sorted: see `kernels.buckets`. Both ways give the same knots to the bit, for any blocks, order
and threads.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.core.panel import Kind, Panel
from oddslip.core.passes import Passes
from oddslip.core.tally import MergeableTally, TallyGroup
from oddslip.core.types import Array, Bools, Floats, Ints
from oddslip.errors import InvalidInput
from oddslip.kernels.buckets import (
    MAX_BUCKETS,
    collect_cells,
    count_buckets,
    fold_probabilities,
    group_cells,
    join_hull,
    mark_buckets,
    sort_groups,
)
from oddslip.sources.base import Source
from oddslip.tallies.cell_counts import IntervalCounts, Knots, count_cells
from oddslip.tallies.positive_keys import PositiveKeys

N_SAMPLED_ROWS = 1024  # rows from which labels and ranges of buckets are chosen
MIN_ROWS = 8192  # below, buckets do not pay
MIN_SHARE = 0.015  # share of positives; below, sorting them is cheaper
MIN_DISTINCT = 0.25  # share of distinct sampled scores; ties make few keys of many positives
MAX_GATHERED = 0.25  # share of a label's cells; above, its buckets fit badly: count it exactly
MAX_ROWS = 2**31 - 1


class Buckets(NamedTuple):
    """Labels that are counted in buckets, and their buckets: see `count_buckets`."""

    labels: Ints
    number_of: NDArray[np.int32]
    low: Floats
    high: Floats
    scale: Floats
    starts: Ints
    kind: Kind

    @property
    def ranges(self) -> tuple[Any, ...]:
        """Arguments of the kernels."""
        return self.kind == "margin", self.number_of, self.low, self.high, self.scale, self.starts


def choose_buckets(
    scores: Array,
    truths: NDArray[np.uint8],
    kind: Kind,
    *,
    n_rows: int,
    least_share: float = MIN_SHARE,
    least_distinct: float = MIN_DISTINCT,
) -> Buckets:
    """Buckets for the labels that have many positives among these rows. No choice changes a knot.

    Parameters
    ----------
    scores, truths : ndarray of shape (n_sampled, n_labels)
    kind : {"probability", "margin"}
    n_rows : int
        Total number of rows. The hull turns about every n_rows ** (2 / 3) cells, which says how
        fine buckets must be to be worth it.
    least_share : float
        Smallest share of positives of a label that is counted in buckets.
    least_distinct : float
        Smallest share of distinct scores of such a label.
    """
    share = truths.mean(axis=0)
    labels = np.flatnonzero(share >= least_share)
    columns = np.ascontiguousarray(scores[:, labels].T)
    if kind == "margin":
        inside = np.isfinite(columns)
        placed = columns.astype(np.float64)
    else:
        inside = (columns > 0) & (columns < 1)
        placed = np.empty(columns.shape)
        fold_probabilities(columns.reshape(-1), placed.reshape(-1))
    ordered = np.sort(columns, axis=1)
    distinct = (ordered[:, 1:] != ordered[:, :-1]).mean(axis=1) if len(scores) > 1 else 0.0
    low = np.where(inside, placed, np.inf).min(axis=1, initial=np.inf)
    high = np.where(inside, placed, -np.inf).max(axis=1, initial=-np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        width = high - low
    usable = (width > 0) & np.isfinite(width) & (distinct >= least_distinct)
    labels, low, high, width = labels[usable], low[usable], high[usable], width[usable]
    fine = 12 * n_rows ** (2 / 3) * np.sqrt(share[labels])
    n_buckets = np.clip(np.minimum(fine, n_rows / 4), 1, MAX_BUCKETS).astype(np.int64)
    number_of = np.full(share.size, -1, np.int32)
    number_of[labels] = np.arange(labels.size)
    starts = np.concatenate([[0], np.cumsum(2 * (n_buckets + 2))])
    # Half a bucket less, so that rounding never leads beyond the last bucket.
    return Buckets(labels, number_of, low, high, (n_buckets - 0.5) / width, starts, kind)


def sample_buckets(source: Source) -> Buckets | None:
    """Buckets as the rows of a source's first block suggest; none for few rows."""
    if not source.ordered or not MIN_ROWS <= source.n_rows <= MAX_ROWS:
        return None
    panel = next(iter(source.blocks()))
    rng = np.random.default_rng(DEFAULT_SEED)  # every n-th row might follow a pattern of the data
    rows = np.sort(rng.choice(panel.n_rows, min(panel.n_rows, N_SAMPLED_ROWS), replace=False))
    return choose_buckets(
        panel.scores[rows], panel.truths()[rows], source.kind, n_rows=source.n_rows
    )


class BucketCounts(MergeableTally):
    """First pass: negatives and positives in every bucket."""

    JOINED: ClassVar = {"counts": "add"}

    def __init__(self, buckets: Buckets) -> None:
        self.buckets = buckets
        self.counts = np.zeros(int(buckets.starts[-1]), np.uint32)

    def add(self, panel: Panel) -> None:
        """Count one block of rows."""
        panel = panel.checked()
        scores = np.ascontiguousarray(panel.scores)
        count_buckets(scores, panel.truths(), *self.buckets.ranges, self.counts)

    def result(self) -> NDArray[np.uint32]:
        """Counts of all buckets, in pairs."""
        return self.counts


class MarkedCells(MergeableTally):
    """Second pass: the cells in marked buckets.

    Parameters
    ----------
    buckets : Buckets
    dtype : dtype of the scores
    marks, numbers : ndarray
        Which buckets are marked, and the number of each that is.
    sizes : ndarray of shape (n_marked, 2)
        Negatives and positives in each marked bucket, as counted.
    """

    JOINED: ClassVar = {"_cells": "append", "_groups": "append"}

    def __init__(
        self,
        buckets: Buckets,
        dtype: Any,
        marks: NDArray[np.uint8],
        numbers: NDArray[np.int32],
        sizes: NDArray[np.uint32],
    ) -> None:
        self.buckets, self.dtype = buckets, np.dtype(dtype)
        self.marks, self.numbers, self.sizes = marks, numbers, sizes
        self._cells: list[Array] = []
        self._groups: list[NDArray[np.int32]] = []

    def add(self, panel: Panel) -> None:
        """Count one block of rows."""
        size = min(
            int(self.sizes.sum(dtype=np.int64)) + 1, panel.scores.size
        )  # + 1 shows an excess
        cells, groups = np.empty(size, self.dtype), np.empty(size, np.int32)
        scores = np.ascontiguousarray(panel.scores)
        n = collect_cells(
            scores, panel.truths(), *self.buckets.ranges, self.marks, self.numbers, cells, groups
        )
        self._cells.append(cells[:n].copy())
        self._groups.append(groups[:n].copy())

    def result(self) -> Array:
        """Scores bucket by bucket, the negatives and then the positives, each ascending."""
        ends = np.cumsum(self.sizes, dtype=np.int64)
        places = ends - self.sizes.ravel()
        ordered = np.empty(self.sizes.sum(dtype=np.int64), self.dtype)
        n_left = sum(
            group_cells(groups, cells, places, ends, ordered)
            for groups, cells in zip(self._groups, self._cells, strict=True)
        )
        if n_left or not np.array_equal(places, ends):
            raise InvalidInput(
                "a source must give the same cells in every pass, got other cells than were "
                "counted. Was its file changed meanwhile?"
            )
        sort_groups(ends, ordered)
        return ordered


def fit_knots(
    source: Source,
    *,
    minimum_positives: int = 1,
    buckets: Buckets | None = None,
) -> Passes[tuple[Ints, Knots]]:
    """Positives per label, and the knots of the isotonic fit of every label.

    Parameters
    ----------
    source : Source
        With labels; see `open_source`.
    minimum_positives : int
        Labels with fewer positives get no knots, and so does a label without any.
    buckets : Buckets, optional
        Chosen from the first rows by default.

    Examples
    --------
    >>> from oddslip.core.passes import run
    >>> from oddslip.sources import open_source
    >>> source = open_source([[0.1], [0.4], [0.8]], [[0], [1], [0]])
    >>> n_positives, knots = run(source, fit_knots(source))
    >>> n_positives, knots.x, knots.y
    (array([1]), array([0.1, 0.4, 0.8]), array([0. , 0.5, 0.5]))
    """
    if source.sample_weight is not None or source.partial:
        n_positives = source.label_counts()
        counts = yield from count_cells(source)
        return n_positives, counts.isotonic_knots(minimum_positives, n_positives)
    buckets = sample_buckets(source) if buckets is None else buckets
    if buckets is None or not buckets.labels.size:
        counts = yield from count_cells(source)
        return counts.n_positives, counts.isotonic_knots(minimum_positives)
    is_rare = buckets.number_of < 0
    first: Any = BucketCounts(buckets)
    if is_rare.any():
        first = TallyGroup([first, PositiveKeys(source.n_labels, source.dtype, only=is_rare)])
    first_result = (yield first).result()
    in_buckets, distinct = first_result if is_rare.any() else (first_result, None)

    marks = np.empty(in_buckets.size // 2, np.uint8)
    numbers = np.zeros(marks.size, np.int32)
    n_marked = np.empty(buckets.labels.size, np.int64)
    most = int(MAX_GATHERED * source.n_rows)
    mark_buckets(buckets.starts, in_buckets, most, marks, numbers, n_marked)
    is_bad = n_marked < 0
    sizes = in_buckets.reshape(-1, 2)[np.flatnonzero(marks.view(np.bool_))]
    second: Any = MarkedCells(buckets, source.dtype, marks, numbers, sizes)
    if distinct is not None:
        second = TallyGroup([second, IntervalCounts(distinct, source.kind)])
    second_result = (yield second).result()
    cells, of_rare = second_result if distinct is not None else (second_result, None)
    ends = np.concatenate([[0], np.cumsum(np.maximum(n_marked, 0))])

    n_positives = np.zeros(source.n_labels, np.int64)
    n_positives[buckets.labels] = np.add.reduceat(
        in_buckets[1::2].astype(np.int64), buckets.starts[:-1] // 2
    )
    fitted = (n_positives[buckets.labels] >= max(1, minimum_positives)) & ~is_bad
    parts = [_join(buckets, in_buckets, marks, ends, cells, fitted)]
    if of_rare is not None:
        n_positives += of_rare.n_positives
        parts.append(of_rare.isotonic_knots(minimum_positives))
    if is_bad.any():
        only = np.zeros(source.n_labels, np.bool_)
        only[buckets.labels[is_bad]] = True
        counts = yield from count_cells(source, only=only)
        parts.append(counts.isotonic_knots(minimum_positives))
    return n_positives, _merge_knots(parts)


def _join(
    buckets: Buckets,
    counts: NDArray[np.uint32],
    marks: NDArray[np.uint8],
    ends: Ints,
    cells: Array,
    fitted: Bools,
) -> Knots:
    """Knots of the labels in buckets, among those of all labels."""
    n = buckets.labels.size
    indptr = np.empty(n + 1, np.int64)
    x, y = np.empty((2, 2 * cells.size + 4 * n))
    n_knots = join_hull(buckets.starts, counts, marks, ends, cells, fitted, indptr, x, y)
    sizes = np.zeros(buckets.number_of.size, np.int64)
    sizes[buckets.labels] = np.diff(indptr)
    return Knots(np.concatenate([[0], np.cumsum(sizes)]), x[:n_knots].copy(), y[:n_knots].copy())


def _merge_knots(parts: list[Knots]) -> Knots:
    """Knots of all labels, each of which has knots in one part at most."""
    if len(parts) == 1:
        return parts[0]
    sizes = [np.diff(part.indptr) for part in parts]
    labels = np.concatenate([np.repeat(np.arange(size.size), size) for size in sizes])
    order = np.argsort(labels, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.sum(sizes, axis=0))])
    return Knots(
        indptr,
        np.concatenate([part.x for part in parts])[order],
        np.concatenate([part.y for part in parts])[order],
    )
