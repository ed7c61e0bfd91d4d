"""Second pass: how many cells lie at each positive's key and between two neighbours."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.counting.cells import CellCounts
from oddslip.counting.positives import DistinctKeys, Ints, PositiveKeys
from oddslip.kernels.isotonic import COUNT, GAPS, LARGEST, fill_buckets, place_cells
from oddslip.kernels.keys import LIMITS, largest_key
from oddslip.panels import Kind, Panel
from oddslip.sources.source import Source


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
    wanted = [max((2 * m).bit_length(), min((8 * m).bit_length(), 15)) for m in n_keys.tolist()]
    excess = [s.bit_length() - w for s, w in zip(spans.tolist(), wanted, strict=True)]
    shifts = np.maximum(excess, 0).astype(np.uint64)
    sizes = np.where(n_keys > 0, (spans >> shifts).astype(np.int64) + 1, 0)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    entries = np.empty(int(indptr[-1]), np.uint32)
    steps = np.empty(n_keys.size, np.uint64)
    fill_buckets(distinct.indptr, distinct.keys, low, high, indptr, shifts, entries, steps)
    return _Buckets(low, high, indptr, entries, shifts, steps)


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

    ROOM = 2**32 - 1  # cells that float32's slots, two 32-bit numbers each, can surely count

    def __init__(
        self,
        distinct: DistinctKeys,
        kind: Kind,
        *,
        pooled: bool = False,
        _buckets: _Buckets | None = None,
    ) -> None:
        self.distinct, self.kind, self.pooled = distinct, kind, pooled
        self._buckets = _buckets or _make_buckets(distinct, kind)
        n_labels = distinct.indptr.size - 1
        n_slots = 2 * distinct.keys.size + n_labels
        self._slots = np.zeros((n_slots, 2), distinct.keys.dtype)
        self._kept: Ints | None = None
        self._unkept = 0
        limit = LIMITS[distinct.keys.dtype, kind]
        self._lowest = np.full(n_labels, limit, distinct.keys.dtype)
        self._n_rows = self._n_cells = 0

    def fresh(self) -> Self:
        """An empty tally of the same kind; the tables are shared."""
        return type(self)(self.distinct, self.kind, pooled=self.pooled, _buckets=self._buckets)

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        keys = panel.keys()
        if largest_key(keys) > panel.limit:
            keys = panel.mended().keys()
        n_columns = panel.n_labels
        n_cells = panel.n_rows * (n_columns if self.pooled else 1)
        self._make_room(n_cells)
        place_cells(
            keys,
            np.zeros(n_columns, np.int64) if self.pooled else np.arange(n_columns),
            self.distinct.indptr,
            self.distinct.keys,
            *self._buckets,
            self._slots,
            self._lowest,
        )
        self._n_rows += panel.n_rows
        self._n_cells += n_cells

    def _make_room(self, n_cells: int) -> None:
        """Move the counts to wider numbers before so many more cells might overflow them."""
        if self._unkept + n_cells > self.ROOM:
            self._kept = self._counts()
            self._slots[:, COUNT] = 0
            self._unkept = 0
        self._unkept += n_cells

    def _counts(self) -> Ints:
        recent = self._slots[:, COUNT].astype(np.int64)
        return recent if self._kept is None else recent + self._kept

    def merge(self, other: Self) -> None:
        """Take over what another tally has counted."""
        self._make_room(other._unkept)
        self._slots[:, COUNT] += other._slots[:, COUNT]
        if other._kept is not None:
            self._kept = other._kept.copy() if self._kept is None else self._kept + other._kept
        largest = self._slots[:, LARGEST]
        np.maximum(largest, other._slots[:, LARGEST], out=largest)
        np.minimum(self._lowest, other._lowest, out=self._lowest)
        self._n_rows += other._n_rows
        self._n_cells += other._n_cells

    def result(self) -> CellCounts:
        """Counts of the negatives: those of all cells less the positives' own."""
        indptr, keys, positives = self.distinct
        n_labels = indptr.size - 1
        counts = self._counts()
        is_key = np.zeros(counts.size, np.bool_)
        is_key[2 * np.arange(keys.size) + 1 + np.repeat(np.arange(n_labels), np.diff(indptr))] = 1
        return CellCounts(
            indptr=indptr,
            keys=keys,
            positives=positives,
            negatives_at=counts[is_key] - positives,
            negatives_between=counts[~is_key],
            largest_between=self._slots[~is_key, LARGEST],
            lowest=self._lowest.copy(),
            n_rows=self._n_rows,
            n_cells=self._n_cells,
            kind=self.kind,
        )


def count_cells(
    source: Source,
    pooled: bool = False,
    threads: int | None = None,
    among: DistinctKeys | None = None,
) -> CellCounts:
    """Count the negatives of every label between its positives, in two passes over the source.

    Parameters
    ----------
    source : Source
        With labels; see `open_source`.
    pooled : bool
        Treat the cells of all labels as those of one.
    threads : int, optional
        As many as there are cores unless told.
    among : DistinctKeys, optional
        Count among these keys, which may be more than the source's own. Folds counted among the
        positives of all of them can be merged: see `CellCounts.merge`.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> scores = [[0.1], [0.4], [0.4], [0.8], [0.9]]
    >>> counts = count_cells(open_source(scores, [[0], [0], [1], [1], [0]]))
    >>> counts.negatives_between, counts.negatives_at
    (array([1, 0, 1]), array([1, 0]))
    >>> counts.auc()
    array([0.58333333])
    >>> indptr, x, y = counts.isotonic_knots()
    >>> x, y
    (array([0.1, 0.4, 0.9]), array([0. , 0.5, 0.5]))
    """
    first = PositiveKeys(source.n_labels, source.dtype, pooled=pooled)
    distinct = source.run(first, threads=threads, what="positives").result()
    if among is not None:
        distinct = distinct.among(among)
    second = IntervalCounts(distinct, source.kind, pooled=pooled)
    return source.run(second, threads=threads, what="cells").result()
