"""Thresholds that are best for a goal: by probabilities alone, and by true labels.

By probabilities: expected F1 is largest where the threshold is half of it, and the cost is lowest
at a fixed threshold. Expected precision and recall rise and fall with the threshold, which is found
by bisection. By labels: a best threshold is the probability of a positive, so it is enough to count
the cells between positives, see `oddslip.tallies.cell_counts`. All counts are whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from oddslip.core.passes import Passes
from oddslip.core.types import Bools, Floats, Ints
from oddslip.decisions.list_rule import SCALE
from oddslip.decisions.threshold_counts import Counts, GridCounts, ThresholdCounts, grid
from oddslip.kernels.keys import scores_of
from oddslip.tallies.cell_counts import CellCounts, count_cells

Goal = Literal["f1", "micro_f1", "precision", "recall", "cost"]
STEP_BITS = 3  # of the bisection: a pass tries 2**3 - 1 thresholds of each label
MAX_STEPS = 60  # of the search for F1, which ends after a few
CLIP = 1e-12


@dataclass(frozen=True, slots=True)
class Aim:
    """What thresholds are to reach.

    Attributes
    ----------
    goal : {"f1", "micro_f1", "precision", "recall", "cost"}
    target : float or None
        Precision or recall to reach.
    costs : tuple of float
        Of a wrong label and of a missed one.
    common : bool
        Whether all labels share a threshold.
    """

    goal: Goal
    target: float | None = None
    costs: tuple[float, float] = (1.0, 1.0)
    common: bool = False

    def reached(self, counts: Counts) -> Bools:
        """Where the target is reached; everywhere without one."""
        if self.target is None:
            return np.ones(np.shape(counts.shown), np.bool_)
        value = counts.precision() if self.goal == "precision" else counts.recall()
        return np.asarray(value >= self.target)

    def measure(self, counts: Counts) -> Floats:
        """The goal, per label."""
        if self.goal == "cost":
            return counts.cost(self.costs)
        measures = {"precision": counts.precision, "recall": counts.recall}
        return measures.get(self.goal, counts.f1)()


def find_plug_in(n_labels: int, aim: Aim) -> Passes[Floats]:
    """The best threshold of each label by its calibrated probabilities; inf shows nothing."""
    if aim.goal == "cost":
        wrong, missed = aim.costs
        return np.full(n_labels, wrong / (wrong + missed))
    if aim.goal in ("precision", "recall"):
        return (yield from _bisect(n_labels, aim))
    if aim.common and aim.goal == "f1":
        counts: GridCounts = yield GridCounts(n_labels, labelled=False)
        return np.full(n_labels, _best_of_grid(counts.reaching(labelled=False)))
    return (yield from _half_of_f1(n_labels, pooled=aim.common or aim.goal == "micro_f1"))


def _half_of_f1(n_labels: int, pooled: bool) -> Passes[Floats]:
    """Repeat: the threshold is half of the F1 of the last one. It rises to the best F1."""
    thresholds = np.zeros(n_labels)
    for _ in range(MAX_STEPS):
        tally: ThresholdCounts = yield ThresholdCounts(thresholds[None], labelled=False)
        counts = tally.expected()
        half = (counts.pooled() if pooled else counts).f1()[0] / 2
        better = np.maximum(thresholds, half)
        if np.array_equal(better, thresholds):
            break
        thresholds = better
    return np.where(thresholds > 0, thresholds, 0.5)  # where nothing is expected; never above 0.5


def _bisect(n_labels: int, aim: Aim) -> Passes[Floats]:
    """The lowest threshold of the expected precision, or the highest of the expected recall.

    Thresholds are multiples of 2**-32. The tried threshold rises with precision: the lowest that
    does; it falls with recall: so the lowest that does not is found, and the one below is taken.
    """
    falls = aim.goal == "recall"
    n_groups = 1 if aim.common else n_labels
    low, high = np.zeros(n_groups, np.int64), np.full(n_groups, SCALE + 1)
    parts = np.arange(1, 2**STEP_BITS)[:, None]
    while (low < high).any():
        # The answer is in low to high; `middle` ascends from low to below high.
        middle = low + (high - low) * parts // 2**STEP_BITS
        thresholds = np.broadcast_to(middle / SCALE, (len(parts), n_labels))
        tally: ThresholdCounts = yield ThresholdCounts(np.array(thresholds), labelled=False)
        counts = tally.expected()
        counts = counts.pooled() if aim.common else counts
        stop = ~aim.reached(counts) if falls else aim.reached(counts) | (counts.shown == 0)
        first = np.where(stop.any(axis=0), stop.argmax(axis=0), len(parts))
        bounds = np.concatenate([low[None] - 1, middle, high[None]])
        at = np.arange(n_groups)
        low, high = bounds[first, at] + 1, bounds[first + 1, at]
    last = (low - 1) / SCALE if falls else low / SCALE
    tally = yield ThresholdCounts(np.broadcast_to(last, (1, n_labels)).copy(), labelled=False)
    counts = tally.expected().pooled() if aim.common else tally.expected()
    thresholds = np.where((counts.shown[0] == 0) | (last < 0), np.inf, last)
    return np.broadcast_to(thresholds, n_labels).copy()


def find_fitted(rows: Any, aim: Aim) -> Passes[Floats]:
    """The best threshold of each label by the true labels; NaN for a label without any."""
    n_labels = rows.n_labels
    if aim.common and aim.goal == "f1":
        grid_counts: GridCounts = yield GridCounts(n_labels, labelled=True)
        return np.full(n_labels, _best_of_grid(grid_counts.reaching(labelled=True)))
    counts: CellCounts = yield from count_cells(rows, pooled=aim.common)
    curves = [_Curve.of(counts, label) for label in range(counts.n_labels)]
    if aim.goal == "micro_f1" and not aim.common:
        return _joint_f1(curves)
    return np.broadcast_to([curve.best(aim) for curve in curves], n_labels).copy()


def _best_of_grid(counts: Counts) -> float:
    """The level at which the mean F1 of labels is largest; of equal ones the highest."""
    means = counts.f1().mean(axis=1)
    return float(grid()[means.size - 1 - means[::-1].argmax()])


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """Counts of a label at the probability of each of its positives, and at inf; descending."""

    levels: Floats
    counts: Counts

    @classmethod
    def of(cls, counts: CellCounts, label: int) -> _Curve:
        start, stop = counts.indptr[label : label + 2]
        true = np.cumsum(counts.positives[start:stop][::-1])
        above = counts.negatives_between[start + label + 1 : stop + label + 1]
        wrong = np.cumsum((counts.negatives_at[start:stop] + above)[::-1])
        levels = scores_of(counts.keys[start:stop][::-1].copy(), "probability")
        hits, shown = (np.append(0, each).astype(float) for each in (true, true + wrong))
        return cls(np.append(np.inf, levels), Counts(shown, hits, np.full(hits.size, hits[-1])))

    def best(self, aim: Aim) -> float:
        """The best level; of equal ones the highest. NaN without positives."""
        counts = self.counts
        if counts.true[-1] == 0:
            return float("nan")
        if aim.goal == "cost":
            gain = -counts.cost(aim.costs)
        elif aim.goal == "precision":  # most true labels
            gain = np.where(aim.reached(counts), counts.true, -1)
            gain[0] = -0.5
        elif aim.goal == "recall":  # fewest cells
            gain = np.where(aim.reached(counts), -counts.shown, -np.inf)
        else:
            gain = counts.f1()
        return float(self.levels[gain.argmax()])


def _joint_f1(curves: list[_Curve]) -> Floats:
    """Thresholds of all labels that are best for the F1 of all cells (Dinkelbach's method)."""
    f1, positives = 0.0, sum(float(curve.counts.true[-1]) for curve in curves)
    while True:
        best = [int((2 * c.counts.true - f1 * c.counts.shown).argmax()) for c in curves]
        chosen = list(zip(curves, best, strict=True))
        true = sum(float(curve.counts.true[at]) for curve, at in chosen)
        shown = sum(float(curve.counts.shown[at]) for curve, at in chosen)
        better = 2 * true / (shown + positives) if positives else 0.0
        if better <= f1:
            break
        f1 = better
    levels = [float(curve.levels[at]) for curve, at in chosen]
    without = np.array([curve.counts.true[-1] == 0 for curve in curves])
    return np.where(without, np.nan, levels)


def shrink(fitted: Floats, plug_in: Floats, n_positives: Ints, strength: float) -> Floats:
    """Fitted thresholds moved to the plug-in ones where a label has few positives.

    A mean of log-odds, in which the plug-in weighs as much as ``strength`` positives. If one of
    both shows nothing, the heavier is taken.

    Examples
    --------
    >>> shrink(np.array([0.5, 0.5]), np.array([0.1, 0.1]), np.array([90, 0]), 10).round(3)
    array([0.445, 0.1  ])
    """
    share = n_positives / np.maximum(n_positives + strength, 1e-300)
    share = np.where(np.isnan(fitted), 0.0, share)
    odds = _log_odds(fitted), _log_odds(plug_in)
    mixed = 1 / (1 + np.exp(-(share * odds[0] + (1 - share) * odds[1])))
    heavier = np.where(share >= 0.5, fitted, plug_in)
    pure = (share == 0) | (share == 1) | ~(np.isfinite(fitted) & np.isfinite(plug_in))
    return np.where(pure, heavier, mixed)


def _log_odds(thresholds: Floats) -> Floats:
    inside = np.clip(np.nan_to_num(thresholds, posinf=1.0), CLIP, 1 - CLIP)
    return np.asarray(np.log(inside / (1 - inside)))
