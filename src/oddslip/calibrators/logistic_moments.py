"""What logistic fits need to know about the cells: ranges, a summary, and sums at given parameters.

Each is one pass over a source. The summary cuts every label's log-odds into bins and keeps the
first three moments of each; two points per bin have the same moments. So the likelihood over
hundreds of points stands in for the one over all rows, and its optimum is nearly the true one.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput
from oddslip.kernels.logistic import CLIP, N_MOMENTS, add_moments, add_positives, range_rows
from oddslip.panels import Kind, Panel
from oddslip.sources.source import BLOCK_BYTES

Floats = NDArray[np.float64]

MOST_BINS, LEAST_BINS = 256, 32
BINS_IN_ALL = 1 << 20  # at most this many bins together, as long as each label has a few
FARTHEST = 1e100  # margins beyond it would overflow when squared


def log_odds(scores: Floats, kind: Kind) -> Floats:
    """Log-odds of scores: margins as they are, probabilities clipped."""
    if kind == "margin":
        return scores
    s = np.clip(scores, CLIP, 1 - CLIP)
    return np.asarray(np.log(s) - np.log1p(-s))


def beta_features(z: Floats) -> tuple[Floats, Floats]:
    """ln s and -ln(1 - s) at log-odds z."""
    tail = np.log1p(np.exp(-np.abs(z)))
    return np.minimum(z, 0) - tail, np.maximum(z, 0) + tail


class Ranges:
    """Lowest and highest score of each label's negatives and positives. Checks every cell."""

    def __init__(self, n_labels: int) -> None:
        self.found = _empty_ranges(n_labels)
        self.n_positives = np.zeros(n_labels, np.int64)

    def fresh(self) -> Self:
        """Empty ranges of as many labels."""
        return type(self)(self.found.shape[1])

    def add(self, panel: Panel) -> None:
        """Take one block of rows; refuses it if a cell is not valid."""
        positives = panel.positives()
        found = _empty_ranges(panel.n_labels)
        range_rows(np.ascontiguousarray(panel.scores), *positives, found)
        low, high = _outer(found)
        if np.isnan(found[4]).any() or (
            panel.kind == "probability" and (low.min() < 0 or high.max() > 1)
        ):
            panel.mended()
        if max(-low.min(), high.max()) > FARTHEST:
            raise InvalidInput(
                f"margins must lie within {FARTHEST:g} of 0, got one beyond that in the rows "
                f"from {panel.first_row}. Check that scores are log-odds."
            )
        self._widen(found)
        self.n_positives += np.bincount(positives.indices, minlength=panel.n_labels)

    def merge(self, other: Self) -> None:
        """Widen by another's ranges."""
        self._widen(other.found)
        self.n_positives += other.n_positives

    def _widen(self, found: Floats) -> None:
        self.found[0:4:2] = np.minimum(self.found[0:4:2], found[0:4:2])
        self.found[1:4:2] = np.maximum(self.found[1:4:2], found[1:4:2])

    def result(self) -> Floats:
        """Four rows: low and high of the negatives, then of the positives. Empty: inf, -inf."""
        return self.found[:4]


def _empty_ranges(n_labels: int) -> Floats:
    found = np.zeros((5, n_labels))
    found[0:4:2], found[1:4:2] = np.inf, -np.inf
    return found


def _outer(found: Floats) -> tuple[Floats, Floats]:
    return np.minimum(found[0], found[2]), np.maximum(found[1], found[3])


class Moments:
    """Every label's log-odds in bins with their moments, and sums over the positives.

    ``low`` and ``high`` are the range of each label's log-odds.
    """

    def __init__(self, low: Floats, high: Floats, kind: Kind) -> None:
        self.low, self.high, self.kind = low, high, kind
        n_bins = int(np.clip(BINS_IN_ALL // low.size, LEAST_BINS, MOST_BINS))
        # Never so narrow that the last digit of a log-odds decides about bins.
        least = 1e-12 * np.maximum(1, np.maximum(np.abs(low), np.abs(high)))
        self.width = np.maximum((high - low) / n_bins, least)
        self.moments = np.zeros((low.size, n_bins, N_MOMENTS))
        # Each feature is measured from where it levels off, so that what is left there is exact.
        self.centers = np.stack([low, beta_features(high)[0], beta_features(low)[1]])
        self.sums = np.zeros((4, low.size))
        # Joining the bins of two groups of blocks should cost little beside filling them.
        self.blocks_apart = max(1, self.moments.nbytes // BLOCK_BYTES)

    def fresh(self) -> Self:
        """Empty bins over the same ranges."""
        return type(self)(self.low, self.high, self.kind)

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        scores, probable = np.ascontiguousarray(panel.scores), self.kind == "probability"
        add_moments(scores, probable, self.low, 1 / self.width, self.moments)
        add_positives(scores, probable, *panel.positives(), self.centers, self.sums)

    def merge(self, other: Self) -> None:
        """Add another's moments and sums."""
        self.moments += other.moments
        self.sums += other.sums

    def result(self) -> tuple[Floats, Floats]:
        """Points and their weights, each (labels, points): two per bin, with its moments."""
        count, first, second, third = np.moveaxis(self.moments, 2, 0)
        n = np.maximum(count, 1)
        mean = first / n
        variance = second / n - mean**2
        lone = variance < 1e-12
        spread = np.sqrt(np.where(lone, 1, variance))
        skew = (third / n - 3 * mean * variance - mean**3) / spread**3
        skew = np.where(lone, 0, skew)
        half = np.hypot(1, skew / 2)
        spread[lone] = 0
        # Whole multiples of 2**-20 add up without rounding, so counts of points stay exact.
        upper = np.rint(count * (0.5 - skew / (4 * half)) * 2**20) / 2**20
        place = np.clip(
            [mean + spread * (skew / 2 - half), mean + spread * (skew / 2 + half)], -0.5, 0.5
        )
        center = np.arange(count.shape[1]) + 0.5
        points = self.low[:, None] + (center + place) * self.width[:, None]
        weights = np.stack([count - upper, upper])
        return _packed(np.concatenate(list(points), 1), np.concatenate(list(weights), 1))

    def positives_about(self, which: int, center: Floats) -> Floats:
        """Sum over each label's positives of log-odds (0), ln s (1) or -ln(1-s) (2) - center."""
        return np.asarray(self.sums[1 + which] + self.sums[0] * (self.centers[which] - center))


def _packed(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Points of positive weight first, and no more columns than the fullest label needs."""
    order = np.argsort(weights <= 0, axis=1, kind="stable")
    most = int((weights > 0).sum(axis=1).max())
    order = order[:, :most]
    weights = np.take_along_axis(weights, order, 1)
    points = np.take_along_axis(points, order, 1)
    return np.where(weights > 0, points, points[:, :1]), weights


class SumsAt:
    """Sums over the cells of some labels at given parameters, by one of the kernels."""

    blocks_apart = 1

    def __init__(
        self, kernel: Any, n_sums: int, columns: NDArray[np.int64], frame: Floats, theta: Floats
    ) -> None:
        self.kernel, self.columns = kernel, columns
        self.frame, self.theta = np.ascontiguousarray(frame), np.ascontiguousarray(theta)
        self.sums = np.zeros((n_sums, columns.size))

    def fresh(self) -> Self:
        """Zero sums at the same parameters."""
        return type(self)(self.kernel, len(self.sums), self.columns, self.frame, self.theta)

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        scores = np.ascontiguousarray(panel.scores)
        probable = panel.kind == "probability"
        self.kernel(scores, probable, self.columns, self.frame, self.theta, self.sums)

    def merge(self, other: Self) -> None:
        """Add another's sums."""
        self.sums += other.sums

    def result(self) -> Floats:
        """The sums, one column per label."""
        return self.sums
