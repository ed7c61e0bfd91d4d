"""Counting the cells of all folds in one pass, so that leaving one out is a subtraction.

The cells of every fold are counted among the positives of all rows. Counts against the same keys
add up, so the fit without a fold, and the fit on all rows, need no pass of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.counting import CellCounts, IntervalCounts
from oddslip.counting.positives import Ints
from oddslip.panels import Panel
from oddslip.selection.folds import Folds
from oddslip.selection.positive_cells import PositiveCells, find_distinct
from oddslip.sources import Source
from oddslip.sources.source import block_rows


class _Waiting:
    """Rows of one fold from several blocks, counted together: few rows at a time are dear."""

    def __init__(self, tallies: list[IntervalCounts]) -> None:
        self.tallies = tallies
        self._rows: NDArray[Any] | None = None
        self._panel: Panel | None = None
        self._n = 0

    def add(self, panel: Panel, rows: NDArray[np.int64]) -> None:
        """Take these rows of a block."""
        if self._rows is None:
            room = block_rows(panel.n_labels, panel.scores.itemsize)
            self._rows = np.empty((room, panel.n_labels), panel.scores.dtype)
        for start in range(0, rows.size, len(self._rows)):
            some = rows[start : start + len(self._rows)]
            if self._n + some.size > len(self._rows):
                self.count()
            place = self._rows[self._n : self._n + some.size]
            # Row numbers are known to be right; "clip" only spares a copy that "raise" makes.
            np.take(panel.scores, some, axis=0, out=place, mode="clip")
            self._n += some.size
            self._panel = panel

    def count(self) -> None:
        """Count the rows that wait."""
        if self._rows is None or self._panel is None or not self._n:
            return
        together = self._panel.rows(0, 0)
        together.scores = self._rows[: self._n]
        for tally in self.tallies:
            tally.add(together)
        self._panel, self._n = None, 0


class FoldTally:
    """Several counts of each fold, all in one pass: a row goes to the tallies of its fold."""

    def __init__(self, folds: Folds, n_folds: int, empty: Sequence[IntervalCounts]) -> None:
        self.folds, self.n_folds, self.empty = folds, n_folds, empty
        self._waiting = [_Waiting([tally.fresh() for tally in empty]) for _ in range(n_folds)]

    def fresh(self) -> Self:
        """An empty tally of the same kind; the look-up tables are shared."""
        return type(self)(self.folds, self.n_folds, self.empty)

    def add(self, panel: Panel) -> None:
        """Deal the rows of one block to their folds."""
        here = self.folds[panel.first_row : panel.first_row + panel.n_rows]
        for fold, waiting in enumerate(self._waiting):
            waiting.add(panel, np.flatnonzero(here == fold))

    def merge(self, other: Self) -> None:
        """Take over the counts of another tally, fold by fold."""
        for mine, theirs in zip(self.counted(), other.counted(), strict=True):
            for tally, another in zip(mine, theirs, strict=True):
                tally.merge(another)

    def counted(self) -> list[list[IntervalCounts]]:
        """The tallies of every fold, with no row left waiting."""
        for waiting in self._waiting:
            waiting.count()
        return [waiting.tallies for waiting in self._waiting]

    def result(self) -> list[list[CellCounts]]:
        """All cells of each fold at and between the keys, as if none were positive."""
        return [[tally.result() for tally in tallies] for tallies in self.counted()]


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
