"""Counting the cells of all folds in one pass, so that leaving one out is a subtraction.

The cells of every fold are counted among the positives of all rows. Counts against the same keys
add up, so the fit without a fold, and the fit on all rows, need no pass of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.counting import CellCounts, IntervalCounts
from oddslip.counting.positives import DistinctKeys, Ints
from oddslip.kernels.keys import UNSIGNED, keys_of
from oddslip.labels import Positives
from oddslip.panels import Panel
from oddslip.selection.folds import Folds, take_rows
from oddslip.sources import Source


class PositiveCells(NamedTuple):
    """True labels of all rows, and the key of each of these cells."""

    positives: Positives
    keys: NDArray[Any]


class PositiveCellTally:
    """Collects the positives of all rows with their keys, and looks at every cell on the way.

    Later passes read rows of folds, whose numbers are no longer those of the user's rows. So a
    cell that is not valid is found here, where its row has its name.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._parts: list[tuple[int, Ints, NDArray[np.int32], NDArray[Any]]] = []

    def fresh(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(self.dtype)

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        panel = panel.checked()
        indptr, labels = panel.positives()
        counts = np.diff(indptr)
        cells = panel.scores[np.repeat(np.arange(panel.n_rows), counts), labels]
        keys = keys_of(np.ascontiguousarray(cells[None]), panel.kind)[0]
        self._parts.append((panel.first_row, counts, labels, keys))

    def merge(self, other: Self) -> None:
        """Take over the rows of another tally."""
        self._parts += other._parts

    def result(self) -> PositiveCells:
        """The positives of all rows, in row order."""
        parts = sorted(self._parts, key=lambda part: part[0])
        counts = np.concatenate([[0], *(part[1] for part in parts)])
        labels = np.concatenate([np.empty(0, np.int32), *(part[2] for part in parts)])
        keys = np.concatenate([np.empty(0, UNSIGNED[self.dtype]), *(part[3] for part in parts)])
        return PositiveCells(Positives(np.cumsum(counts, dtype=np.int64), labels), keys)


def find_distinct(
    labels: NDArray[np.int32], keys: NDArray[Any], n_labels: int
) -> tuple[DistinctKeys, Ints]:
    """The distinct keys of every label, counted as none yet, and the place of each cell's key."""
    # Short numbers are sorted by radix.
    order = np.argsort(labels.astype(np.min_scalar_type(max(n_labels - 1, 0))), kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))])
    for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        cells = order[start:stop]
        order[start:stop] = cells[np.argsort(keys[cells])]
    ordered = keys[order]
    is_first = np.ones(keys.size + 1, np.bool_)  # one more, so that each run has an end
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1 : keys.size])
    is_first[ends] = True
    firsts = np.flatnonzero(is_first)[:-1]
    places = np.empty(keys.size, np.int64)
    places[order] = np.cumsum(is_first[:-1]) - 1
    indptr = np.searchsorted(firsts, ends)
    return DistinctKeys(indptr, ordered[firsts], np.zeros(firsts.size, np.int64)), places


class FoldTally:
    """Several counts of each fold, all in one pass: a row goes to the tallies of its fold."""

    def __init__(self, folds: Folds, n_folds: int, empty: Sequence[IntervalCounts]) -> None:
        self.folds, self.n_folds, self.empty = folds, n_folds, empty
        self.parts = [[tally.fresh() for tally in empty] for _ in range(n_folds)]

    def fresh(self) -> Self:
        """An empty tally of the same kind; the look-up tables are shared."""
        return type(self)(self.folds, self.n_folds, self.empty)

    def add(self, panel: Panel) -> None:
        """Deal the rows of one block to their folds."""
        here = self.folds[panel.first_row : panel.first_row + panel.n_rows]
        for fold, tallies in enumerate(self.parts):
            rows = np.flatnonzero(here == fold)
            if rows.size:
                part = take_rows(panel, rows)
                for tally in tallies:
                    tally.add(part)

    def merge(self, other: Self) -> None:
        """Take over the counts of another tally, fold by fold."""
        for tallies, others in zip(self.parts, other.parts, strict=True):
            for tally, another in zip(tallies, others, strict=True):
                tally.merge(another)

    def result(self) -> list[list[CellCounts]]:
        """All cells of each fold at and between the keys, as if none were positive."""
        return [[tally.result() for tally in tallies] for tallies in self.parts]


class FoldCounts:
    """Counts of the rows outside one fold, or of all rows, per label or pooled.

    Parameters
    ----------
    cells : list of CellCounts
        One per fold, as if no cell were positive.
    positives : ndarray of shape (n_folds, n_keys)
        Positives of each fold at each key.
    """

    def __init__(self, cells: Sequence[CellCounts], positives: Ints) -> None:
        self.cells, self.positives = cells, positives

    def without(self, left_out: int | None) -> CellCounts:
        """Counts of all rows but those of one fold; None leaves out none."""
        kept = [fold for fold in range(len(self.cells)) if fold != left_out]
        cells = [self.cells[fold] for fold in kept]
        positives = self.positives[kept].sum(axis=0)
        at: Ints = np.sum([each.negatives_at for each in cells], axis=0)
        return replace(
            cells[0],
            positives=positives,
            negatives_at=at - positives,
            negatives_between=np.sum([each.negatives_between for each in cells], axis=0),
            largest_between=np.maximum.reduce([each.largest_between for each in cells]),
            lowest=np.minimum.reduce([each.lowest for each in cells]),
            n_rows=sum(each.n_rows for each in cells),
            n_cells=sum(each.n_cells for each in cells),
        )


class FoldCounter:
    """Counts the folds of a source, per label or pooled; what does not depend on the folds is kept.

    Parameters
    ----------
    source : Source
    cells : PositiveCells
        Of all its rows.
    pooled : sequence of bool
        The counts wanted: per label (False), of all labels as one (True), or both.
    """

    def __init__(self, source: Source, cells: PositiveCells, pooled: Sequence[bool]) -> None:
        self.source, self.cells = source, cells
        self._places: list[Ints] = []
        self._empty: list[IntervalCounts] = []
        labels = cells.positives.indices
        for as_one in pooled:
            own = np.zeros_like(labels) if as_one else labels
            distinct, places = find_distinct(own, cells.keys, 1 if as_one else source.n_labels)
            self._places.append(places)
            self._empty.append(IntervalCounts(distinct, source.kind, pooled=as_one))

    def count(
        self, folds: Folds, n_folds: int, *, threads: int | None = None
    ) -> dict[bool, FoldCounts]:
        """Counts of every fold, pooled (True) or not, all in one pass."""
        if not self._empty:
            return {}
        tally = FoldTally(folds, n_folds, self._empty)
        counts = self.source.run(tally, threads=threads, what="cells of folds").result()
        fold_of = np.repeat(folds.astype(np.int64), self.cells.positives.counts)
        found = {}
        for at, places in enumerate(self._places):
            cells = [fold[at] for fold in counts]
            size = cells[0].keys.size
            hits = np.bincount(fold_of * size + places, minlength=n_folds * size)
            found[self._empty[at].pooled] = FoldCounts(cells, hits.reshape(n_folds, size))
        return found
