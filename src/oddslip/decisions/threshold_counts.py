"""Counts of the cells that reach a threshold of their label."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from oddslip.core.panel import Panel
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Floats
from oddslip.decisions.list_rule import SCALE, units_of
from oddslip.tallies.logodds_histogram import edges_of


class Counts(NamedTuple):
    """Cells that are shown, true ones among them, and all true ones; last axis: labels."""

    shown: Floats
    true: Floats
    positives: Floats

    def pooled(self) -> Counts:
        """The cells of all labels as those of one."""
        return Counts(*(each.sum(axis=-1, keepdims=True) for each in self))

    def precision(self) -> Floats:
        """True share of what is shown; NaN where nothing is."""
        return _ratio(self.true, self.shown)

    def recall(self) -> Floats:
        """Shown share of what is true; NaN where nothing is."""
        return _ratio(self.true, self.positives)

    def f1(self) -> Floats:
        """Harmonic mean of precision and recall; 0 where nothing is true or shown."""
        return np.nan_to_num(_ratio(2 * self.true, self.shown + self.positives))

    def cost(self, costs: tuple[float, float]) -> Floats:
        """Cost of the wrong and of the missed labels."""
        return costs[0] * (self.shown - self.true) + costs[1] * (self.positives - self.true)


def _ratio(part: Floats, whole: Floats) -> Floats:
    part, whole = np.broadcast_arrays(part, whole)
    ratio = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


class ThresholdCounts(MergeableTally):
    """Cells that reach a threshold of their label, expected and real true ones among them.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds, n_labels)
    labelled : bool
        Whether to count true labels.

    Examples
    --------
    >>> tally = ThresholdCounts(np.array([[0.5, 0.5]]), labelled=True)
    >>> tally.add(Panel([[0.75, 0.25]], [[1, 1]]))
    >>> tally.expected().precision(), tally.observed().recall()
    (array([[0.75,  nan]]), array([[1., 0.]]))
    """

    JOINED: ClassVar = dict.fromkeys(("shown", "units", "all_units", "hits", "positives"), "add")

    def __init__(self, thresholds: Floats, labelled: bool) -> None:
        self.thresholds, self.labelled = thresholds, labelled
        self.shown, self.units, self.hits = np.zeros((3, *thresholds.shape), np.int64)
        self.all_units, self.positives = np.zeros((2, thresholds.shape[1]), np.int64)

    def add(self, panel: Panel) -> None:
        """Count one block of rows of probabilities."""
        units = units_of(panel.scores)
        truths = panel.truths().astype(np.bool_) if self.labelled else None
        self.all_units += units.sum(axis=0)
        if truths is not None:
            self.positives += truths.sum(axis=0)
        for at, threshold in enumerate(self.thresholds):
            reach = panel.scores >= threshold  # NaN reaches none
            self.shown[at] += reach.sum(axis=0)
            self.units[at] += np.where(reach, units, 0).sum(axis=0)
            if truths is not None:
                self.hits[at] += (reach & truths).sum(axis=0)

    def result(self) -> ThresholdCounts:
        """The counts."""
        return self

    def expected(self) -> Counts:
        """By the probabilities alone."""
        return Counts(self.shown.astype(float), self.units / SCALE, self.all_units / SCALE)

    def observed(self) -> Counts:
        """By the true labels."""
        return Counts(*(each.astype(float) for each in (self.shown, self.hits, self.positives)))


class GridCounts(MergeableTally):
    """Cells by bin of log-odds, for one threshold that has to suit many labels.

    The bins are those of `oddslip.tallies.logodds_histogram`.

    Parameters
    ----------
    n_labels : int
    labelled : bool
        Whether to count true labels.
    """

    JOINED: ClassVar = dict.fromkeys(("cells", "units", "hits"), "add")

    def __init__(self, n_labels: int, labelled: bool) -> None:
        self.n_labels, self.labelled = n_labels, labelled
        self.cells, self.units, self.hits = np.zeros((3, grid().size, n_labels), np.int64)

    def add(self, panel: Panel) -> None:
        """Count one block of rows of probabilities."""
        there = ~np.isnan(panel.scores)
        columns = np.broadcast_to(np.arange(self.n_labels), there.shape)[there]
        bins = np.searchsorted(grid(), panel.scores[there], side="right") - 1
        places, shape = bins * self.n_labels + columns, self.cells.shape
        size = self.cells.size
        self.cells += np.bincount(places, minlength=size).reshape(shape)
        # Whole numbers below 2**53 add up exactly as floats.
        units = np.bincount(places, units_of(panel.scores[there]), minlength=size)
        self.units += units.astype(np.int64).reshape(shape)
        if self.labelled:
            truths = panel.truths().astype(np.bool_)[there]
            self.hits += np.bincount(places[truths], minlength=size).reshape(shape)

    def result(self) -> GridCounts:
        """The counts."""
        return self

    def reaching(self, labelled: bool) -> Counts:
        """Cells at or above each level of the grid: by the true labels, or as expected."""
        cells = self.cells, self.hits if labelled else self.units
        shown, true = (np.cumsum(each[::-1], axis=0)[::-1].astype(float) for each in cells)
        true = true if labelled else true / SCALE
        return Counts(shown, true, true[0])


def grid() -> Floats:
    """Levels of probability, ascending from 0."""
    with np.errstate(over="ignore"):
        inside = 1 / (1 + np.exp(-edges_of("probability")[1:-1]))
    return np.concatenate([[0.0], inside])
