"""What is served, held against the calibration rows without any label.

Every comparison is one of counts of rows, with the chance that two draws of the same rows lie as
far apart. How small the smallest of all these chances is on a quiet day is found by resampling:
days are drawn from the counts of both sides, as if nothing had changed, with as many rows as there
are. A comparison is worth a word if its chance is below what `FAMILY` of the quiet days reach in
any of them, and if the odds moved by at least `MATERIAL_NAT`, a shift by `MATERIAL_SHIFT`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.calibrators.fingerprint import NOT_RANKED, Fingerprint, probabilities_of
from oddslip.calibrators.maps import LabelMaps
from oddslip.calibrators.prior_shift import (
    MATERIAL_NAT,
    PriorShift,
    count_above,
    cut_places,
    find_prior_shift,
)
from oddslip.core.proportions import odds_apart, rate_chances, smallest_chance
from oddslip.diagnosis.thresholds import MATERIAL
from oddslip.shifts.realized import match_counts
from oddslip.tallies.logodds_histogram import edges_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FAMILY = 0.02  # of quiet days on which any comparison is worth a word
DRAWS = 200  # quiet days that are drawn
# Nat. A prevalence that doubles moves the mean of a label's scores by far less than its own odds.
MATERIAL_SHIFT = 0.1
COARSER = 0.5  # of the scores that a label seemed to have: fewer are worth a word


class Day(NamedTuple):
    """One side of all comparisons: so many of ``n_cells`` rows that have the label, label by label.

    ``bins`` holds the cells between cuts, ``crowded`` those in the bin that most cells of both
    sides share; ``tied`` is one number, of ``n_rows`` rows, ``shown`` the mean probability of what
    is shown.
    """

    n_rows: int
    n_cells: NDArray[np.int64]
    bins: Floats
    crowded: Floats
    saturated: Floats
    slots: Floats
    tied: Floats
    shown: float
    shown_error: float

    def total(self, name: str) -> Any:
        """How many could have been counted."""
        nothing = not getattr(self, name).size
        return self.n_rows if name == "tied" or nothing else self.n_cells


COUNTED = ("crowded", "saturated", "slots", "tied")


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """Both sides, what differs between them beyond chance, and by how much.

    Attributes
    ----------
    calibrated, now : Fingerprint
        The calibration rows, and those that are served.
    level : float
        The chance below which a comparison is no accident.
    moved, shifted, slots_moved, saturated, coarser : numpy.ndarray of bool
        Labels whose scores, label-free shift or share of slots moved, that have more saturated
        cells, or fewer scores.
    ties, shown : bool
        Whether ties decide more rows, and whether the expected precision moved.
    shift_before, shift_now : numpy.ndarray
        Label-free shift of each label, in nat.
    furthest : tuple of numpy.ndarray
        For each label the log-odds at the cut where scores moved most surely, and the share of
        rows above it before and now.
    prior_shift : PriorShift or None
        Whether moved prevalences explain it; None where nothing moved.
    """

    calibrated: Fingerprint
    now: Fingerprint
    level: float
    moved: Bools
    shifted: Bools
    slots_moved: Bools
    saturated: Bools
    coarser: Bools
    ties: bool
    shown: bool
    shift_before: Floats
    shift_now: Floats
    furthest: tuple[Floats, Floats, Floats]
    prior_shift: PriorShift | None

    @property
    def drifted(self) -> Bools:
        """Labels whose scores are not what they were."""
        return self.moved | self.shifted

    def label_columns(self) -> dict[str, Any]:
        """One value per label in each column."""
        columns: dict[str, Any] = {
            "scores_moved": self.moved,
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


def watch(
    calibrated: Fingerprint,
    now: Fingerprint,
    maps: LabelMaps,
    prior: Floats,
    *,
    seed: int = DEFAULT_SEED,
) -> Watch:
    """Compare the rows of now with the calibration rows.

    Parameters
    ----------
    calibrated, now : Fingerprint
        Of the same labels in the same order.
    maps : LabelMaps
        Of the repair.
    prior : numpy.ndarray
        Prior of each label, which label-free shifts match.
    seed : int
        Same seed, same level.
    """
    if calibrated.k is None:  # then nothing that is shown can be compared
        now = replace(now, **NOT_RANKED)
    mapped = probabilities_of(maps)
    both = calibrated.per_cell(calibrated.counts) + now.per_cell(now.counts)
    places, crowd = cut_places(both), both.argmax(axis=1)
    spread = _shown_spread(calibrated, now)
    first, second = (_side(each, places, crowd, spread) for each in (calibrated, now))
    weights = _bin_weights(both, mapped, places)
    level = quiet_level(first, second, weights, seed)
    chances = rate_chances(*_above(first), *_above(second))
    apart = odds_apart(*_above(first), *_above(second))
    sure = (chances <= level) & (np.abs(apart) >= MATERIAL_NAT)

    def differ(name: str) -> tuple[Bools, Floats]:
        pair = _counted(first, second, name)
        apart = odds_apart(*pair)
        return (rate_chances(*pair) <= level) & (np.abs(apart) >= MATERIAL_NAT), apart

    possible = np.clip(prior, 1e-9, 1 - 1e-9)
    before, after = (match_counts(each.counts, each.kind, possible) for each in (calibrated, now))
    shift_sure = rate_chances(*_weighed(first, second, weights)) <= level
    crowded, more_crowded = differ("crowded")
    saturated, more_saturated = differ("saturated")
    slots_moved, _ = differ("slots")
    tied, more_tied = differ("tied")
    gap = second.shown - first.shown
    surest = np.where(sure, chances, 2.0).argmin(axis=1)[:, None]
    at_cut = np.take_along_axis(places, surest, axis=1)[:, 0]
    share_before, share_now = (
        np.take_along_axis(_above(each)[0], surest, axis=1)[:, 0] / np.maximum(1, each.n_cells)
        for each in (first, second)
    )
    moved = np.asarray(sure.any(axis=1))
    shifted = shift_sure & (np.abs(after - before) >= MATERIAL_SHIFT)
    drifted = (moved | shifted).any()
    return Watch(
        calibrated=calibrated,
        now=now,
        level=level,
        moved=moved,
        shifted=shifted,
        slots_moved=slots_moved,
        saturated=saturated & (more_saturated > 0),
        coarser=crowded & (more_crowded > 0) & (now.distinct < COARSER * calibrated.distinct),
        ties=bool((tied & (more_tied > 0)).any()),
        shown=_mean_chance(first, second) <= level and abs(gap) >= MATERIAL * first.shown,
        shift_before=before,
        shift_now=after,
        furthest=(edges_of(now.kind)[at_cut], share_before, share_now),
        prior_shift=find_prior_shift(calibrated, now, mapped) if drifted else None,
    )


def quiet_level(first: Day, second: Day, weights: Floats, seed: int = DEFAULT_SEED) -> float:
    """The chance that the smallest of all comparisons undercuts on `FAMILY` of the quiet days.

    It is never below that of Bonferroni, which knows nothing of how comparisons go together.
    """
    rng = np.random.default_rng(seed)
    smallest = np.sort([_draw_smallest(first, second, weights, rng) for _ in range(DRAWS)])
    n_comparisons = first.bins.size + 3 * len(first.bins) + first.slots.size + 2
    return max(float(smallest[int(FAMILY * DRAWS)]), FAMILY / n_comparisons)


def _draw_smallest(first: Day, second: Day, weights: Floats, rng: np.random.Generator) -> float:
    """The smallest chance of all comparisons between two days drawn from the rows of both."""
    shares = (first.bins + second.bins) / np.maximum(1, first.n_cells + second.n_cells)[:, None]

    def rate(name: str) -> Floats:
        one, n_one, two, n_two = _counted(first, second, name)
        return np.asarray((one + two) / np.maximum(1, n_one + n_two))

    def draw(day: Day) -> Day:
        counted: dict[str, Any] = {
            name: rng.binomial(day.total(name), rate(name)) for name in COUNTED
        }
        bins: Any = rng.multinomial(day.n_cells, shares)
        error = day.shown_error
        return day._replace(bins=bins, **counted, shown=error * rng.standard_normal())

    one, two = draw(first), draw(second)
    pairs = [(*_above(one), *_above(two)), _weighed(one, two, weights)]
    pairs += [_counted(one, two, name) for name in COUNTED]
    return min(_mean_chance(one, two), *(smallest_chance(*pair) for pair in pairs))


def _shown_spread(*sides: Fingerprint) -> float:
    """Variance, over the rows of both sides, of the mean probability of what a row shows."""
    return sum(each.n_rows**2 * each.shown[1] ** 2 for each in sides) / sum(
        each.n_rows for each in sides
    )


def _side(
    counted: Fingerprint, places: NDArray[np.int64], crowd: NDArray[np.int64], spread: float
) -> Day:
    above = count_above(counted.counts, places)
    ends = counted.n_cells[:, None].astype(np.float64)
    bins = -np.diff(np.hstack([ends, above, np.zeros_like(ends)]), axis=1)
    ranked = counted.k is not None
    shown, error = counted.shown[0], float(np.sqrt(spread / counted.n_rows))
    return Day(
        n_rows=counted.n_rows,
        n_cells=counted.n_cells,
        bins=bins,
        crowded=np.take_along_axis(counted.counts, crowd[:, None], axis=1)[:, 0].astype(np.float64),
        saturated=counted.saturated.astype(np.float64),
        slots=counted.slots.astype(np.float64),
        tied=np.array([float(counted.n_tied)] if ranked else []),
        shown=shown,
        shown_error=error,
    )


def _above(day: Day) -> tuple[Floats, NDArray[np.int64]]:
    """Rows above each cut, and of how many."""
    return np.cumsum(day.bins[:, ::-1], axis=1)[:, -2::-1], day.n_cells[:, None]


def _counted(first: Day, second: Day, name: str) -> tuple[Any, Any, Any, Any]:
    """What was counted on both sides, each with how many could have been."""
    return getattr(first, name), first.total(name), getattr(second, name), second.total(name)


def _bin_weights(both: Floats, mapped: Floats, places: NDArray[np.int64]) -> Floats:
    """Mean calibrated probability between cuts, or its complement where that is the smaller."""
    sides = []
    for counts in (both, both * mapped):
        above = count_above(counts, places)
        ends = counts.sum(axis=1, keepdims=True)
        sides.append(-np.diff(np.hstack([ends, above, np.zeros_like(ends)]), axis=1))
    cells, sums = sides
    weights = np.clip(sums / np.maximum(cells, 1e-300), 0.0, 1.0)
    common = sums.sum(axis=1) > 0.5 * cells.sum(axis=1)
    return np.where(common[:, None], 1.0 - weights, weights)


def _weighed(first: Day, second: Day, weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums of probabilities as counts: of so many whole rows as vary as much."""
    both = first.bins + second.bins
    size = (both * weights).sum(axis=1) / np.maximum((both * weights**2).sum(axis=1), 1e-300)
    size = np.maximum(size, 1.0)
    one, two = ((day.bins * weights).sum(axis=1) * size for day in (first, second))
    # A constant is no sample of anything.
    flat = np.ptp(weights, axis=1) < 1e-9
    one, two = np.where(flat, 0.0, one), np.where(flat, 0.0, two)
    return one, first.n_cells * size, two, second.n_cells * size


def _mean_chance(first: Day, second: Day) -> float:
    """Chance that the expected precision differs as much."""
    from math import erfc, hypot, sqrt

    error = hypot(first.shown_error, second.shown_error)
    return erfc(abs(second.shown - first.shown) / error / sqrt(2)) if error else 1.0
