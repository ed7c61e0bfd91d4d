"""Counts of each label's negatives between its positives, from which AUC and isotonic fits follow.

The first pass collects the scores of the positives, which are few. The second places every cell
among them. Negatives are never sorted or stored. Both passes add integers, so the result is the
same to the bit for any blocks, order and threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.core.labels import DenseLabels, Positives
from oddslip.core.panel import Kind, Panel, SparsePanel
from oddslip.core.passes import Passes
from oddslip.core.tally import State, owned
from oddslip.core.types import Array, Bools, Floats, Ints
from oddslip.errors import InvalidInput
from oddslip.kernels.isotonic import (
    GAPS,
    count_pairs,
    fill_buckets,
    place_cells,
    pool_labels,
    split_counts,
    weigh_cells,
)
from oddslip.kernels.keys import LIMITS, keys_of, largest_key, scores_of
from oddslip.sources.base import Source
from oddslip.tallies.positive_keys import DistinctKeys as DistinctKeys
from oddslip.tallies.positive_keys import PositiveKeys as PositiveKeys
from oddslip.tallies.positive_keys import starts_of_runs as starts_of_runs

MAX_POOLED = 2**12  # labels, where rows have weights: their units, 2**50 in all, must not overflow


class Knots(NamedTuple):
    """Label j's knots are ``indptr[j]:indptr[j + 1]`` of the scores x and probabilities y."""

    indptr: Ints
    x: Floats
    y: Floats

    @classmethod
    def in_a_row(cls, parts: Sequence[Knots]) -> Knots:
        """Knots of neighbouring labels as one."""
        sizes = [np.diff(part.indptr) for part in parts]
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        return cls(indptr, *(np.concatenate([part[i] for part in parts]) for i in (1, 2)))


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Where the negatives of every label lie among its positives.

    Label j has the distinct positive keys ``keys[indptr[j]:indptr[j + 1]]``. They cut the scores
    into one more interval than there are keys, the first at ``indptr[j] + j`` in the arrays of
    intervals. The negatives of a label without positives are not counted.

    Attributes
    ----------
    indptr : ndarray of shape (n_labels + 1,)
    keys : ndarray
        Distinct keys of the positives, ascending within a label; `scores_of` gives the scores.
    positives, negatives_at : ndarray
        Cells at each key.
    negatives_between, largest_between : ndarray
        For each interval its number of negatives and their largest key, 0 if there is none.
    lowest : ndarray of shape (n_labels,)
        Lowest key of all cells of the label.
    n_rows : int
    n_cells : int or ndarray
        Cells per label: the rows, or rows x labels if pooled; of each label where some are absent.
    kind : {"probability", "margin"}
    positives_between : ndarray, optional
        Positives in each interval, where ``keys`` does not hold the key of every positive. Knots
        are the same as long as it holds every key at which a block of the fit starts. `auc` is
        undefined then.

    Where rows have weights, cells are counted in units of them: see `SampleWeight`.

    Examples
    --------
    >>> from oddslip.tallies.cell_counts import count_cells
    >>> from oddslip.core.passes import run
    >>> from oddslip.sources import open_source
    >>> source = open_source([[0.2], [0.3], [0.7]], [[0], [1], [0]])
    >>> counts = run(source, count_cells(source))
    >>> counts.n_positives, counts.n_negatives, counts.auc()
    (array([1]), array([2]), array([0.5]))
    """

    indptr: Ints
    keys: Array
    positives: Ints
    negatives_at: Ints
    negatives_between: Ints
    largest_between: Array
    lowest: Array
    n_rows: int
    n_cells: Any
    kind: Kind
    positives_between: Ints | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels; 1 if pooled."""
        return self.indptr.size - 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the counted scores."""
        return np.dtype(np.float32 if self.keys.dtype == np.uint32 else np.float64)

    @property
    def n_positives(self) -> Ints:
        """Positives per label."""
        at_keys = np.add.reduceat(np.append(self.positives, 0), self.indptr[:-1])
        at_keys[self.indptr[:-1] == self.indptr[1:]] = 0
        if self.positives_between is None:
            return at_keys
        starts = self.indptr[:-1] + np.arange(self.n_labels)  # of intervals: one more than keys
        return np.asarray(at_keys + np.add.reduceat(self.positives_between, starts))

    @property
    def n_negatives(self) -> Ints:
        """Negatives per label."""
        return np.asarray(self.n_cells - self.n_positives)

    def auc(self) -> Floats:
        """Chance that a positive outscores a negative, a tie counting one half, per label.

        NaN where a label has no positive or no negative.
        """
        high, low = np.zeros((2, self.n_labels), np.int64)
        count_pairs(
            self.indptr, self.positives, self.negatives_at, self.negatives_between, high, low
        )
        label_counts = zip(self.n_positives.tolist(), self.n_negatives.tolist(), strict=True)
        pairs = [2 * p * n for p, n in label_counts]
        won = [(h << 24) + rest for h, rest in zip(high.tolist(), low.tolist(), strict=True)]
        return np.array(
            [w / p if p else np.nan for w, p in zip(won, pairs, strict=True)], np.float64
        )

    def isotonic_knots(self, minimum_positives: int = 1, n_positives: Ints | None = None) -> Knots:
        """Knots of the isotonic fit of every label: linear between them, constant outside.

        Parameters
        ----------
        minimum_positives : int
            Labels with fewer positives get no knots, and so does a label without any.
        n_positives : ndarray of shape (n_labels,), optional
            Positives of each label, where cells were counted in units of weight.

        Returns
        -------
        indptr : ndarray of shape (n_labels + 1,)
            Label j has the knots from ``indptr[j]`` to ``indptr[j + 1]``.
        x, y : ndarray
            Scores, strictly ascending within a label, and fitted probabilities, ascending.
        """
        size = 2 * (self.keys.size + self.n_labels)
        indptr = np.empty(self.n_labels + 1, np.int64)
        knots, values = np.empty(size, self.keys.dtype), np.empty(size)
        n_knots = pool_labels(
            self.indptr,
            self.keys,
            self.positives,
            self.negatives_at,
            self.negatives_between,
            self.largest_between,
            self.lowest,
            (self.n_positives if n_positives is None else n_positives) >= max(1, minimum_positives),
            indptr,
            knots,
            values,
            self.positives_between,
        )
        scores = scores_of(knots[:n_knots], self.kind).astype(np.float64)
        return Knots(indptr, scores, values[:n_knots].copy())


def count_cells(
    source: Source,
    pooled: bool = False,
    only: Bools | None = None,
) -> Passes[CellCounts]:
    """Count the negatives of every label between its positives, in two passes.

    Parameters
    ----------
    source : Source
        With labels; see `open_source`.
    pooled : bool
        Treat the cells of all labels as those of one.
    only : ndarray of bool, optional
        Labels to count; the others are treated as if they had no positive.

    Examples
    --------
    >>> from oddslip.core.passes import run
    >>> from oddslip.sources import open_source
    >>> scores = [[0.1], [0.4], [0.4], [0.8], [0.9]]
    >>> source = open_source(scores, [[0], [0], [1], [1], [0]])
    >>> counts = run(source, count_cells(source))
    >>> counts.negatives_between, counts.negatives_at
    (array([1, 0, 1]), array([1, 0]))
    >>> counts.auc()
    array([0.58333333])
    >>> indptr, x, y = counts.isotonic_knots()
    >>> x, y
    (array([0.1, 0.4, 0.9]), array([0. , 0.5, 0.5]))
    """
    if pooled and source.sample_weight is not None and source.n_labels > MAX_POOLED:
        raise InvalidInput(
            f"a pooled map takes sample_weight with at most {MAX_POOLED:,} labels, "
            f"got {source.n_labels:,}."
        )
    first = PositiveKeys(source.n_labels, source.dtype, pooled=pooled, only=only)
    distinct = (yield first).result()
    counts: CellCounts = (yield IntervalCounts(distinct, source.kind, pooled=pooled)).result()
    return counts


class IntervalCounts:
    """Second pass: how many cells lie at each positive's key and between two neighbours.

    Parameters
    ----------
    distinct : DistinctKeys
        Result of the first pass over the same rows.
    kind : {"probability", "margin"}
    pooled : bool
        As in the first pass.

    Examples
    --------
    >>> panel = Panel([[0.25], [0.5], [0.75]], [[0], [1], [0]])
    >>> first = PositiveKeys(1, "float64")
    >>> first.add(panel)
    >>> second = IntervalCounts(first.result(), panel.kind)
    >>> second.add(panel)
    >>> second.result().negatives_between
    array([1, 1])
    """

    MAX_UINT16, MAX_UINT32 = 2**16 - 1, 2**32 - 1

    def __init__(
        self,
        distinct: DistinctKeys,
        kind: Kind,
        *,
        pooled: bool = False,
        _buckets: _Buckets | None = None,
    ) -> None:
        self.distinct, self.kind, self.pooled = distinct, kind, pooled
        self._buckets: _Buckets | None = _buckets or _make_buckets(distinct, kind)
        n_labels = distinct.indptr.size - 1
        # One tally per fold is in memory at a time, so counts start as 16-bit integers and become
        # wider before they could overflow.
        self._recent: Array = np.zeros(2 * distinct.keys.size + n_labels, np.uint16)
        self._largest = np.zeros(distinct.keys.size + n_labels, distinct.keys.dtype)
        self._wide_counts: Ints | None = None
        self._n_recent = 0
        limit = LIMITS[distinct.keys.dtype, kind]
        self._lowest = np.full(n_labels, limit, distinct.keys.dtype)
        self._n_rows = 0
        self._n_cells: Any = 0

    @property
    def nbytes(self) -> int:
        """Memory of the counts, without the look-up tables."""
        n_wide_bytes = 0 if self._wide_counts is None else self._wide_counts.nbytes
        return self._recent.nbytes + self._largest.nbytes + self._lowest.nbytes + n_wide_bytes

    def empty_like(self) -> Self:
        """An empty tally of the same kind; the tables are shared."""
        return type(self)(**self.spec(), _buckets=self._buckets)

    def spec(self) -> dict[str, Any]:
        """Constructor arguments; a new tally builds its own tables."""
        return {"distinct": self.distinct, "kind": self.kind, "pooled": self.pooled}

    def state(self) -> State:
        """Counts as 64-bit integers, and the extremes."""
        return {
            "counts": (self._counts(), "add"),
            "largest": (self._largest, "max"),
            "lowest": (self._lowest, "min"),
            "n_rows": (np.array([self._n_rows]), "add"),
            "n_cells": (np.zeros(self._lowest.size, np.int64) + self._n_cells, "add"),
        }

    def restore(self, state: State) -> None:
        """Replace counts and extremes by those of a state."""
        self._wide_counts, self._n_recent = owned(state["counts"][0]), 0
        self._recent[:] = 0
        self._largest = owned(state["largest"][0])
        self._lowest = owned(state["lowest"][0])
        self._n_rows = int(state["n_rows"][0][0])
        n_cells = owned(state["n_cells"][0])  # per label; a single number where all are equal
        equal = n_cells.size > 0 and bool((n_cells == n_cells[0]).all())
        self._n_cells = int(n_cells[0]) if equal else n_cells

    def add(self, panel: Panel) -> None:
        """Count one block of rows."""
        if isinstance(panel, SparsePanel):
            return self._add_sparse(panel)
        if panel.absent is not None:
            return self._add_present(panel)
        keys = panel.keys()
        if largest_key(keys) > panel.limit:
            keys = panel.mended().keys()
        n_columns = panel.n_labels
        owners = np.zeros(n_columns, np.int64) if self.pooled else np.arange(n_columns)
        n_cells = panel.n_rows * (n_columns if self.pooled else 1)
        indptr, own_keys, _ = self.distinct
        if panel.sample_weight is None:
            self._widen(n_cells)
            place_cells(
                keys,
                owners,
                indptr,
                own_keys,
                *self._tables,
                self._recent,
                self._largest,
                self._lowest,
            )
        else:
            units = panel.sample_weight.units
            n_cells = int(units.sum()) * (n_columns if self.pooled else 1)
            if self._wide_counts is None:
                self._wide_counts = np.zeros(len(self._recent), np.int64)
            weigh_cells(
                keys,
                owners,
                units,
                indptr,
                own_keys,
                self._wide_counts,
                self._largest,
                self._lowest,
            )
        self._n_rows += panel.n_rows
        self._n_cells = self._n_cells + n_cells
        return None

    def _add_sparse(self, panel: SparsePanel) -> None:
        """Count the stored cells of a sparse block."""
        labels = np.zeros_like(panel.positions.indices) if self.pooled else panel.positions.indices
        self._weigh(panel, Positives(panel.positions.indptr, labels), panel.cell_keys())

    def _weigh(self, panel: Panel, cells: Positives, keys: Array) -> None:
        """Count cells, each with the weight of its row."""
        indptr, own_keys, _ = self.distinct
        if self._wide_counts is None:
            self._wide_counts = np.zeros(len(self._recent), np.int64)
        owners = cells.indices.astype(np.int64)
        weight = panel.sample_weight
        parts = [(0, keys.size, 1)]
        if weight is not None:
            ends = cells.indptr.tolist()
            parts = list(zip(ends[:-1], ends[1:], weight.units.tolist(), strict=True))
        for start, stop, units in parts:
            weigh_cells(
                np.ascontiguousarray(keys[None, start:stop]),
                owners[start:stop],
                np.full(1, units, np.int64),
                indptr,
                own_keys,
                self._wide_counts,
                self._largest,
                self._lowest,
            )
        each = np.ones(panel.n_rows, np.int64) if weight is None else weight.units
        n_cells = np.zeros(indptr.size - 1, np.int64)
        np.add.at(n_cells, owners, np.repeat(each, cells.counts))
        self._n_rows += panel.n_rows
        self._n_cells = self._n_cells + (int(n_cells[0]) if self.pooled else n_cells)

    def _add_present(self, panel: Panel) -> None:
        """Count a block with absent cells: fill them, count all cells, subtract the filled ones.

        The fill value is a score of the same column, so extremes do not change; those of columns
        without any cell are restored.
        """
        absent = panel.absent
        assert absent is not None
        mostly = 2 * absent.indices.size > panel.n_rows * panel.n_labels
        if panel.sample_weight is not None or self.pooled or mostly:
            there = panel.present()
            assert there is not None
            checked = panel.checked()
            present_cells = DenseLabels(there).positives(0, panel.n_rows)
            keys = checked.keys().reshape(-1)[present_cells.places(panel.n_labels)]
            labels = np.zeros_like(present_cells.indices) if self.pooled else present_cells.indices
            return self._weigh(panel, Positives(present_cells.indptr, labels), keys)
        scores, some, times = panel.filled()
        empty = times == panel.n_rows
        lowest, largest = self._lowest.copy(), self._largest.copy()
        indptr, own_keys, _ = self.distinct
        owners = np.arange(panel.n_labels)
        self._widen(panel.n_rows)
        arguments = (owners, indptr, own_keys, *self._tables)
        ends = self._largest, self._lowest
        place_cells(keys_of(scores, panel.kind), *arguments, self._recent, *ends)
        once = np.zeros_like(self._recent)
        place_cells(keys_of(some, panel.kind), *arguments, once, *(each.copy() for each in ends))
        n_keys = np.diff(indptr)
        self._recent -= once * np.repeat(times, 2 * n_keys + 1).astype(once.dtype)
        if empty.any():
            self._lowest[empty] = lowest[empty]
            of_empty = np.repeat(empty, n_keys + 1)
            self._largest[of_empty] = largest[of_empty]
        self._n_rows += panel.n_rows
        self._n_cells = self._n_cells + (panel.n_rows - times).astype(np.int64)
        return None

    def _widen(self, n_cells: int) -> None:
        """Use wider integers before ``n_cells`` more cells could overflow the counts."""
        if self._n_recent + n_cells > self.MAX_UINT16:
            self._recent = self._recent.astype(np.uint32, copy=False)
        if self._n_recent + n_cells > self.MAX_UINT32:
            self._wide_counts = self._counts()
            self._recent[:] = 0
            self._n_recent = 0
        self._n_recent += n_cells

    def _counts(self) -> Ints:
        counts = self._recent.astype(np.int64)
        if self._wide_counts is not None:
            counts += self._wide_counts
        return counts

    def merge(self, other: Self) -> None:
        """Add the counts of another tally."""
        self._widen(other._n_recent)
        # Counts that were moved to 64 bits restart at zero, so they fit a narrower type.
        self._recent += other._recent.astype(self._recent.dtype, copy=False)
        if other._wide_counts is not None:
            self._wide_counts = (
                other._wide_counts.copy()
                if self._wide_counts is None
                else self._wide_counts + other._wide_counts
            )
        np.maximum(self._largest, other._largest, out=self._largest)
        np.minimum(self._lowest, other._lowest, out=self._lowest)
        self._n_rows += other._n_rows
        self._n_cells = self._n_cells + other._n_cells

    @property
    def _tables(self) -> _Buckets:
        if self._buckets is None:
            self._buckets = _make_buckets(self.distinct, self.kind)
        return self._buckets

    def close(self) -> None:
        """Release the look-up tables, which are larger than the counts, after the last row."""
        self._buckets = None

    def cut(self, first: int, last: int) -> Self:
        """Counts of the labels from ``first`` to before ``last``, as views; takes no more rows."""
        indptr, keys, positives = self.distinct
        start, stop = int(indptr[first]), int(indptr[last])
        slots, gaps = slice(2 * start + first, 2 * stop + last), slice(start + first, stop + last)
        part = copy(self)
        part.distinct = DistinctKeys(
            indptr[first : last + 1] - start, keys[start:stop], positives[start:stop]
        )
        part._recent, part._largest = self._recent[slots], self._largest[gaps]
        part._wide_counts = None if self._wide_counts is None else self._wide_counts[slots]
        part._lowest = self._lowest[first:last]
        if np.ndim(self._n_cells):
            part._n_cells = self._n_cells[first:last]
        return part

    def copy(self) -> Self:
        """The same with counts of its own, to be merged with others."""
        part = copy(self)
        part._recent, part._largest = self._recent.copy(), self._largest.copy()
        part._lowest = self._lowest.copy()
        return part

    def result(self) -> CellCounts:
        """Counts of the negatives: all cells less the positives."""
        indptr, keys, positives = self.distinct
        n_labels = indptr.size - 1
        at, between = np.zeros(keys.size, np.int64), np.zeros(keys.size + n_labels, np.int64)
        for counts in (self._recent, self._wide_counts):
            if counts is not None:
                split_counts(indptr, counts, at, between)
        at -= positives
        return CellCounts(
            indptr=indptr,
            keys=keys,
            positives=positives,
            negatives_at=at,
            negatives_between=between,
            largest_between=self._largest.copy(),
            lowest=self._lowest.copy(),
            n_rows=self._n_rows,
            n_cells=self._n_cells,
            kind=self.kind,
        )


class _Buckets(NamedTuple):
    """Look-up tables over the bits of keys; see `fill_buckets`."""

    low: int
    high: int
    indptr: Ints
    entries: NDArray[np.uint32]
    shifts: NDArray[np.uint64]
    steps: NDArray[np.uint64]


def _make_buckets(distinct: DistinctKeys, kind: Kind) -> _Buckets:
    """About eight buckets per key, fewer where they would outgrow a core's cache."""
    n_keys = np.diff(distinct.indptr)
    alive = np.flatnonzero(n_keys)
    spans = np.zeros(n_keys.size, np.uint64)
    low, high = GAPS[distinct.keys.dtype, kind]
    squeezed = distinct.keys - np.clip(distinct.keys, low, high)  # up to a constant that cancels
    spans[alive] = squeezed[distinct.indptr[alive + 1] - 1] - squeezed[distinct.indptr[alive]]
    bits = [max((2 * m).bit_length(), min((8 * m).bit_length(), 15)) for m in n_keys.tolist()]
    excess = [s.bit_length() - w for s, w in zip(spans.tolist(), bits, strict=True)]
    shifts = np.maximum(excess, 0).astype(np.uint64)
    sizes = np.where(n_keys > 0, (spans >> shifts).astype(np.int64) + 1, 0)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    entries = np.empty(int(indptr[-1]), np.uint32)
    steps = np.empty(n_keys.size, np.uint64)
    fill_buckets(distinct.indptr, distinct.keys, low, high, indptr, shifts, entries, steps)
    return _Buckets(low, high, indptr, entries, shifts, steps)
