"""Comparison of served rows with the calibration rows, without labels.

Every comparison is a test of two counts of rows, with a p-value (chance). The distribution of the
smallest of all chances on quiet days is estimated by resampling: days are drawn from the pooled
counts of both sides, as if nothing had changed. A comparison is reported if its chance is below the
smallest chance of `FAMILY` of the quiet days, and if the odds changed by at least `MATERIAL_NAT`,
or a shift by `MATERIAL_SHIFT`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from oddslip import DEFAULT_SEED
from oddslip.core.proportions import odds_apart, rate_chances, smallest_chance
from oddslip.core.types import Array, Bools, Floats, Ints
from oddslip.diagnosis.thresholds import MATERIAL
from oddslip.repairs.fingerprint import NOT_RANKED, Fingerprint, probabilities_of
from oddslip.repairs.maps import LabelMaps
from oddslip.repairs.prior_shift import (
    MATERIAL_NAT,
    PriorShift,
    count_above,
    cut_places,
    find_prior_shift,
)
from oddslip.shifts.realized import match_counts
from oddslip.tallies.logodds_histogram import edges_of

FAMILY = 0.02  # share of quiet days on which any comparison is reported
DRAWS = 200  # simulated quiet days
# Nat. If a prevalence doubles, the mean of the label's scores changes by far less than its odds.
MATERIAL_SHIFT = 0.1
COARSER = 0.5  # a smaller ratio of distinct scores, now to before, is reported


class Day(NamedTuple):
    """One side of all comparisons: counts per label among the ``n_cells`` rows that have it.

    ``bins`` holds the cells between cuts, ``crowded`` those in the fullest bin of both sides.
    ``tied`` is one number, of ``n_rows`` rows, and ``precision`` the mean probability of the top k.
    """

    n_rows: int
    n_cells: Ints
    bins: Floats
    crowded: Floats
    saturated: Floats
    slots: Floats
    tied: Floats
    precision: float
    precision_error: float

    def total(self, name: str) -> Ints:
        """The number of rows of which these are counts."""
        nothing = not getattr(self, name).size
        return np.asarray(self.n_rows if name == "tied" or nothing else self.n_cells)


COUNTS = ("crowded", "saturated", "slots", "tied")


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationComparison:
    """Significant differences between the served rows and the calibration rows.

    Attributes
    ----------
    calibrated, now : Fingerprint
        The calibration rows and the served rows.
    level : float
        The chance below which a comparison is significant.
    scores_moved, shifted, slots_moved, saturated, coarser : numpy.ndarray of bool
        Labels whose scores, label-free shift or share of slots changed, and those with more
        saturated cells or fewer distinct scores.
    ties, precision_moved : bool
        Whether ties decide more rows, and whether the expected precision changed.
    shift_before, shift_now : numpy.ndarray
        Label-free shift of each label, in nat.
    furthest : tuple of numpy.ndarray
        For each label the log-odds of the cut with the most significant change, and the share of
        rows above it before and now.
    prior_shift : PriorShift or None
        Whether changed prevalences explain it; None if nothing changed.
    """

    calibrated: Fingerprint
    now: Fingerprint
    level: float
    scores_moved: Bools
    shifted: Bools
    slots_moved: Bools
    saturated: Bools
    coarser: Bools
    ties: bool
    precision_moved: bool
    shift_before: Floats
    shift_now: Floats
    furthest: tuple[Floats, Floats, Floats]
    prior_shift: PriorShift | None

    @property
    def drifted(self) -> Bools:
        """Labels whose scores changed."""
        return self.scores_moved | self.shifted

    def label_columns(self) -> dict[str, Array]:
        """Columns with one value per label."""
        columns: dict[str, Array] = {
            "scores_moved": self.scores_moved,
            "shift_before": self.shift_before,
            "shift_now": self.shift_now,
            "shift_moved": self.shifted,
            "saturated_before": self.calibrated.per_cell(self.calibrated.saturated),
            "saturated_now": self.now.per_cell(self.now.saturated),
            "distinct_before": self.calibrated.distinct,
            "distinct_now": self.now.distinct,
        }
        if self.now.k is not None:
            columns |= {
                "slots_before": self.calibrated.per_cell(self.calibrated.slots),
                "slots_now": self.now.per_cell(self.now.slots),
                "slots_moved": self.slots_moved,
            }
        return columns


def compare_with_calibration(
    calibrated: Fingerprint,
    now: Fingerprint,
    maps: LabelMaps,
    prior: Floats,
    *,
    seed: int = DEFAULT_SEED,
) -> CalibrationComparison:
    """Compare served rows with the calibration rows.

    Parameters
    ----------
    calibrated, now : Fingerprint
        Fingerprints of the same labels in the same order.
    maps : LabelMaps
        Maps of the repair.
    prior : numpy.ndarray
        Prior of each label, which label-free shifts match.
    seed : int
        Seed of the simulated quiet days.

    Returns
    -------
    CalibrationComparison
    """
    if calibrated.k is None:  # then the top k cannot be compared
        now = replace(now, **NOT_RANKED)
    mapped = probabilities_of(maps)
    both = calibrated.per_cell(calibrated.counts) + now.per_cell(now.counts)
    places, crowd = cut_places(both), both.argmax(axis=1)
    variance = _precision_variance(calibrated, now)
    first, second = (_side(each, places, crowd, variance) for each in (calibrated, now))
    weights = _bin_weights(both, mapped, places)
    level = quiet_level(first, second, weights, seed)
    chances = rate_chances(*_above(first), *_above(second))
    distance = odds_apart(*_above(first), *_above(second))
    significant = (chances <= level) & (np.abs(distance) >= MATERIAL_NAT)

    def differ(name: str) -> tuple[Bools, Floats]:
        pair = _count_pair(first, second, name)
        distance = odds_apart(*pair)
        return (rate_chances(*pair) <= level) & (np.abs(distance) >= MATERIAL_NAT), distance

    possible = np.clip(prior, 1e-9, 1 - 1e-9)
    before, after = (match_counts(each.counts, each.kind, possible) for each in (calibrated, now))
    shift_significant = rate_chances(*_weighted_pair(first, second, weights)) <= level
    crowded, more_crowded = differ("crowded")
    saturated, more_saturated = differ("saturated")
    slots_moved, _ = differ("slots")
    tied, more_tied = differ("tied")
    most_significant = np.where(significant, chances, 2.0).argmin(axis=1)[:, None]
    at_cut = np.take_along_axis(places, most_significant, axis=1)[:, 0]
    share_before, share_now = (
        np.take_along_axis(_above(each)[0], most_significant, axis=1)[:, 0]
        / np.maximum(1, each.n_cells)
        for each in (first, second)
    )
    scores_moved = np.asarray(significant.any(axis=1))
    shifted = shift_significant & (np.abs(after - before) >= MATERIAL_SHIFT)
    drifted = (scores_moved | shifted).any()
    return CalibrationComparison(
        calibrated=calibrated,
        now=now,
        level=level,
        scores_moved=scores_moved,
        shifted=shifted,
        slots_moved=slots_moved,
        saturated=saturated & (more_saturated > 0),
        coarser=crowded & (more_crowded > 0) & (now.distinct < COARSER * calibrated.distinct),
        ties=bool((tied & (more_tied > 0)).any()),
        precision_moved=_mean_chance(first, second) <= level
        and abs(second.precision - first.precision) >= MATERIAL * first.precision,
        shift_before=before,
        shift_now=after,
        furthest=(edges_of(now.kind)[at_cut], share_before, share_now),
        prior_shift=find_prior_shift(calibrated, now, mapped) if drifted else None,
    )


def quiet_level(first: Day, second: Day, weights: Floats, seed: int = DEFAULT_SEED) -> float:
    """The chance below which the smallest of all comparisons falls on `FAMILY` of the quiet days.

    It is at least the Bonferroni level, which ignores the dependence between comparisons.
    """
    rng = np.random.default_rng(seed)
    smallest = np.sort([_draw_smallest(first, second, weights, rng) for _ in range(DRAWS)])
    n_comparisons = first.bins.size + 3 * len(first.bins) + first.slots.size + 2
    return max(float(smallest[int(FAMILY * DRAWS)]), FAMILY / n_comparisons)


def _draw_smallest(first: Day, second: Day, weights: Floats, rng: np.random.Generator) -> float:
    """The smallest chance of all comparisons between two days drawn from the pooled rows."""
    shares = (first.bins + second.bins) / np.maximum(1, first.n_cells + second.n_cells)[:, None]

    def rate(name: str) -> Floats:
        one, n_one, two, n_two = _count_pair(first, second, name)
        return np.asarray((one + two) / np.maximum(1, n_one + n_two))

    def draw(day: Day) -> Day:
        counts: dict[str, Any] = {
            name: rng.binomial(day.total(name), rate(name)) for name in COUNTS
        }
        bins: Any = rng.multinomial(day.n_cells, shares)
        error = day.precision_error
        return day._replace(bins=bins, **counts, precision=error * rng.standard_normal())

    one, two = draw(first), draw(second)
    pairs: list[tuple[ArrayLike, ...]] = [
        (*_above(one), *_above(two)),
        _weighted_pair(one, two, weights),
    ]
    pairs += [_count_pair(one, two, name) for name in COUNTS]
    return min(_mean_chance(one, two), *(smallest_chance(*pair) for pair in pairs))


def _precision_variance(*sides: Fingerprint) -> float:
    """Variance over the rows of both sides of the mean probability of the top k."""
    return sum(each.n_rows**2 * each.shown[1] ** 2 for each in sides) / sum(
        each.n_rows for each in sides
    )


def _side(fingerprint: Fingerprint, places: Ints, crowd: Ints, variance: float) -> Day:
    has_k = fingerprint.k is not None
    precision, error = fingerprint.shown[0], float(np.sqrt(variance / fingerprint.n_rows))
    return Day(
        n_rows=fingerprint.n_rows,
        n_cells=fingerprint.n_cells,
        bins=_between(fingerprint.counts, places, fingerprint.n_cells),
        crowded=np.take_along_axis(fingerprint.counts, crowd[:, None], axis=1)[:, 0].astype(
            np.float64
        ),
        saturated=fingerprint.saturated.astype(np.float64),
        slots=fingerprint.slots.astype(np.float64),
        tied=np.array([float(fingerprint.n_tied)] if has_k else []),
        precision=precision,
        precision_error=error,
    )


def _between(counts: Array, places: Ints, totals: Array) -> Floats:
    """Counts between cuts, and beyond the first and the last."""
    ends = totals[:, None].astype(np.float64)
    return -np.diff(np.hstack([ends, count_above(counts, places), np.zeros_like(ends)]), axis=1)


def _above(day: Day) -> tuple[Floats, Ints]:
    """Rows above each cut, and the total."""
    return np.cumsum(day.bins[:, ::-1], axis=1)[:, -2::-1], day.n_cells[:, None]


def _count_pair(first: Day, second: Day, name: str) -> tuple[Floats, Ints, Floats, Ints]:
    """Counts of both sides, each with its total."""
    return getattr(first, name), first.total(name), getattr(second, name), second.total(name)


def _bin_weights(both: Floats, mapped: Floats, places: Ints) -> Floats:
    """Mean calibrated probability between cuts, or its complement if that is smaller."""
    cells, sums = (_between(counts, places, counts.sum(axis=1)) for counts in (both, both * mapped))
    weights = np.clip(sums / np.maximum(cells, 1e-300), 0.0, 1.0)
    common = sums.sum(axis=1) > 0.5 * cells.sum(axis=1)
    return np.where(common[:, None], 1.0 - weights, weights)


def _weighted_pair(
    first: Day, second: Day, weights: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums of probabilities as counts of the effective number of rows."""
    both = first.bins + second.bins
    size = (both * weights).sum(axis=1) / np.maximum((both * weights**2).sum(axis=1), 1e-300)
    size = np.maximum(size, 1.0)
    one, two = ((day.bins * weights).sum(axis=1) * size for day in (first, second))
    # A constant has no distribution to compare.
    flat = np.ptp(weights, axis=1) < 1e-9
    one, two = np.where(flat, 0.0, one), np.where(flat, 0.0, two)
    return one, first.n_cells * size, two, second.n_cells * size


def _mean_chance(first: Day, second: Day) -> float:
    """Chance of a difference in expected precision at least as large."""
    error = math.hypot(first.precision_error, second.precision_error)
    distance = abs(second.precision - first.precision)
    return math.erfc(distance / error / math.sqrt(2)) if error else 1.0
