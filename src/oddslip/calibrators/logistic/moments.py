"""The loss of logistic fits, and what it needs of the cells: ranges, a summary, and exact sums.

Each of these is one pass over a source. The summary cuts every label's log-odds into bins and
keeps the first three moments of each; two points per bin have the same moments. So the likelihood
over hundreds of points stands in for the one over all rows, and its optimum is nearly the true one.

Ranges and moments of disjoint rows add up. So those of folds, collected in one pass, give a
`Summary` of the rows outside each fold, and fits on it read no row at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.core.labels import LabelTotals, Positives
from oddslip.core.panel import Kind, Panel, SparsePanel
from oddslip.core.tally import MergeableTally, State, Tally, owned
from oddslip.errors import InvalidInput
from oddslip.kernels.logistic import (
    CLIP,
    N_AFFINE,
    N_BETA,
    N_MOMENTS,
    add_affine_sums,
    add_beta_sums,
    add_moments,
    add_positives,
    range_rows,
)
from oddslip.sources import Source
from oddslip.sources.base import BLOCK_BYTES
from oddslip.sources.views import ColumnSource

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MAX_BINS, MIN_BINS = 256, 32
BINS_IN_ALL = 1 << 20  # at most this many bins together, as long as each label has a few
FARTHEST = 1e100  # margins beyond it would overflow when squared
LABELS_AT_ONCE = 4096  # labels whose bins become points at a time
CHUNK = 32  # labels of the summary taken at a time, to stay in cache
MIN_SPREAD = 1e-290  # the inverse of a smaller one would overflow


_PER_LABEL = (
    "label_positives", "positive_weights", "n_positives", "label_low", "label_high",
    "negative_low", "positive_low", "negative_high", "positive_high", "low", "high",
)  # fmt: skip


class Cells:
    """Counts, ranges and summary of some rows, per fit; and further passes over their source.

    A `Summary` in place of a source is all there is: no pass is made, and no sum is exact.
    """

    def __init__(self, source: Source | Summary, shared: bool, threads: int | None) -> None:
        self.source, self.shared, self.threads = source, shared, threads
        self.n_passes = 0
        self.exact = not isinstance(source, Summary)
        self.known = source if isinstance(source, Summary) else getattr(source, "summary", None)
        ranges = self.run(Ranges(source.n_labels)) if self.known is None else self.known.ranges
        self.label_positives = ranges.n_positives
        self.total_weight = source.total_weight
        self.totals = source.totals if isinstance(source, Summary) else source.totals(threads)
        self.positive_weights = ranges.positive_weights
        self.n_positives = self._joined(self.positive_weights, np.sum)
        self.n_cells = self.totals
        if shared:
            each = np.broadcast_to(self.totals, source.n_labels)
            self.n_cells = float(each.sum()) if np.ndim(self.totals) else self.totals * each.size
        ends = log_odds(ranges.result(), source.kind)
        self.label_low, self.label_high = _outer(ends)
        self.negative_low, self.positive_low = (self._joined(ends[k], np.min) for k in (0, 2))
        self.negative_high, self.positive_high = (self._joined(ends[k], np.max) for k in (1, 3))
        self.low = np.minimum(self.negative_low, self.positive_low)
        self.high = np.maximum(self.negative_high, self.positive_high)
        self.n_labels = source.n_labels

    @property
    def seen(self) -> LabelTotals:
        """How often each label was true."""
        return LabelTotals(self.label_positives, self.positive_weights, self.totals)

    @property
    def never_negative(self) -> NDArray[np.bool_]:
        """Labels that are true in every row that has them."""
        if np.ndim(self.totals):
            return np.asarray(self.positive_weights == self.totals)
        return np.asarray(self.label_positives == self.source.n_rows)

    def narrowed(self, labels: Indices) -> Cells:
        """The same of some labels alone, with the same bins: a summary is large, and not all
        labels need one.
        """
        assert isinstance(self.source, Source)
        part = copy(self)
        part.source = ColumnSource(self.source, labels)
        for name in _PER_LABEL:
            setattr(part, name, getattr(self, name)[labels])
        if np.ndim(self.totals):
            part.totals = part.n_cells = self.totals[labels]
        return part

    def run(self, tally: Any) -> Any:
        """One more pass over the source."""
        assert isinstance(self.source, Source)
        self.n_passes += 1
        ready: Tally = tally
        return self.source.run(ready, threads=self.threads)

    def _joined(self, values: Floats, how: Any) -> Floats:
        return np.asarray(how(values, keepdims=True) if self.shared else values)

    def prior_log_odds(self) -> Floats:
        """Log-odds of each fit's prevalence; 0 where it has none."""
        negatives = self.n_cells - self.n_positives
        both = (self.n_positives > 0) & (negatives > 0)
        return np.log(np.where(both, self.n_positives, 1)) - np.log(np.where(both, negatives, 1))

    def summarise(self) -> None:
        """Read the source into points and weights, (fits, points)."""
        if self.known is not None:  # which other fits read too
            self.moments = self.known.moments
            points, weights = self.known.points()
        else:
            assert isinstance(self.source, Source)
            limits = self.label_low, self.label_high
            fineness = weight_scale(self.total_weight / self.source.n_rows)
            self.moments = self.run(
                Moments(*limits, self.source.kind, self.n_labels, scale=fineness)
            )
            points, weights = self.moments.result()
            self.moments.drop_bins()
        if self.shared:
            points, weights = points.reshape(1, -1), weights.reshape(1, -1)
        self.points, self.weights = points, weights

    def positives_about(self, which: int, center: Floats) -> Floats:
        """Sum of a feature over each fit's positives, measured from the fit's center."""
        return self._joined(self.moments.positives_about(which, center), np.sum)


class Model:
    """Loss of every fit at given parameters: its gradient and curvature.

    ``theta`` holds the intercept and one slope per feature. Features are moved by ``center`` and
    divided by ``scale``, so that they lie in [-1, 1] and the intercept hardly depends on slopes.
    """

    def __init__(self, cells: Cells, form: Literal["affine", "beta"], centered: bool) -> None:
        self.cells, self.centered = cells, centered
        self.which: tuple[int, ...]
        ends = np.stack([cells.low, cells.high], axis=1)
        if form == "affine":
            self.kernel, self.n_sums, self.which = add_affine_sums, N_AFFINE, (0,)
            self.plain, self.ends = cells.points[None], ends[None]
        else:
            self.kernel, self.n_sums, self.which = add_beta_sums, N_BETA, (1, 2)
            self.plain = np.stack(beta_features(cells.points))
            self.ends = np.stack(beta_features(ends))
        mean = (self.plain * cells.weights).sum(axis=2) / cells.weights.sum(axis=1)
        self._put(mean if centered else np.zeros_like(mean))

    def _put(self, center: Floats) -> None:
        """Measure the features from here."""
        spread = np.abs(self.ends - center[:, :, None]).max(axis=2)
        self.center, self.scale = center, np.where(spread < MIN_SPREAD, 1, spread)
        self.features = (self.plain - center[:, :, None]) / self.scale[:, :, None]
        positives = [
            self.cells.positives_about(k, m) for k, m in zip(self.which, center, strict=True)
        ]
        self.positives = np.stack(positives) / self.scale

    def recenter(self, theta: Floats, fits: Indices) -> Floats:
        """Measure features from where the curvature lies; the same parameters in these terms.

        A steep fit has its undecided cells at one end of the range. Seen from the middle their
        logits would be small differences of large numbers.
        """
        if not self.centered:
            return theta
        _, curvature = self.summary(theta, fits)
        weight = np.maximum(curvature[0, 0], np.finfo(float).tiny)
        shift = np.clip(curvature[0, 1:] / weight, -1, 1)
        slopes = theta[1:] / self.scale[:, fits]
        center = self.center.copy()
        center[:, fits] += shift * self.scale[:, fits]
        self._put(center)
        return np.vstack([theta[0] + (theta[1:] * shift).sum(axis=0), slopes * self.scale[:, fits]])

    def measure_from_zero(self, fits: Indices) -> None:
        """Measure the features of these fits from 0, or from the end of their range next to it.

        Logits of cells near 0 then keep their digits however far other cells lie.
        """
        nearest = np.clip(0.0, self.cells.low, self.cells.high)
        origin = nearest[None] if self.which == (0,) else np.stack(beta_features(nearest))
        center = self.center.copy()
        center[:, fits] = origin[:, fits]
        self._put(center)

    def identity(self) -> Floats:
        """Parameters that leave the score as it is."""
        return np.vstack([self.center.sum(axis=0), self.scale])

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Slopes of the plain features, and the intercept."""
        slopes = theta[1:] / self.scale
        return slopes, np.asarray(theta[0] - (slopes * self.center).sum(axis=0))

    def parameters(self, slopes: Floats, intercept: Floats) -> Floats:
        """The inverse of `coefficients`."""
        return np.vstack([intercept + (slopes * self.center).sum(axis=0), slopes * self.scale])

    def summary(self, theta: Floats, fits: Indices) -> tuple[Floats, Floats]:
        """Gradient and curvature on the summary."""
        sums = np.empty((self.n_sums, fits.size))
        for start in range(0, fits.size, CHUNK):
            part = slice(start, start + CHUNK)
            chosen = fits[part]
            sums[:, part] = _sum_points(
                self.features[:, chosen], self.cells.weights[chosen], theta[:, part]
            )
        return self._assembled(sums, fits)

    def exact(self, theta: Floats, fits: Indices) -> tuple[Floats, Floats]:
        """Gradient and curvature over every cell: one pass over the source."""
        assert self.cells.exact
        n_labels = self.cells.source.n_labels
        columns = np.arange(n_labels) if self.cells.shared else fits
        frame = np.stack([self.center[:, fits], 1 / self.scale[:, fits]], axis=1)
        frame = frame.reshape(-1, fits.size)
        wide = np.zeros(columns.size)  # all labels take the parameters of the one fit they share
        tally = SumsAt(self.kernel, self.n_sums, columns, frame + wide, theta + wide)
        sums = self.cells.run(tally).result()
        if self.cells.shared:
            sums = sums.sum(axis=1, keepdims=True)
        return self._assembled(sums, fits)

    def _assembled(self, sums: Floats, fits: Indices) -> tuple[Floats, Floats]:
        size = 1 + len(self.which)
        gradient = np.empty((size, fits.size))
        # Whole numbers first: what is left is small where cells saturate, and must stay exact.
        gradient[0] = (sums[0] - self.cells.n_positives[fits]) + sums[1]
        gradient[1:] = sums[2 : 1 + size] - self.positives[:, fits]
        curvature = np.empty((size, size, fits.size))
        for place, (i, k) in enumerate(zip(*np.triu_indices(size), strict=True)):
            curvature[i, k] = curvature[k, i] = sums[1 + size + place]
        return gradient, curvature


class Ranges:
    """Lowest and highest score of each label's negatives and positives. Checks every cell."""

    def __init__(self, n_labels: int) -> None:
        self.ends = _empty_ranges(n_labels)
        self.n_positives = np.zeros(n_labels, np.int64)
        self.positive_units = np.zeros(n_labels, np.int64)  # where rows have weights
        self.unit = 0.0

    def empty_like(self) -> Self:
        """Empty ranges of as many labels."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of fresh ones."""
        return {"n_labels": self.ends.shape[1]}

    def state(self) -> State:
        """Lows, highs and counts."""
        return {
            "lows": (self.ends[0:4:2], "min"),
            "highs": (self.ends[1:4:2], "max"),
            "n_positives": (self.n_positives, "add"),
            "positive_units": (self.positive_units, "add"),
            "unit": (np.array(self.unit), "max"),
        }

    def restore(self, state: State) -> None:
        """Take over lows, highs and counts."""
        self.ends[0:4:2], self.ends[1:4:2] = state["lows"][0], state["highs"][0]
        self.n_positives, self.positive_units = (
            owned(state[name][0]) for name in ("n_positives", "positive_units")
        )
        self.unit = state["unit"][0].item()

    def add(self, panel: Panel) -> None:
        """Take one block of rows; refuses it if a cell is not valid."""
        positives = _positives_of(panel)
        if isinstance(panel, SparsePanel) or panel.absent is not None:
            panel = panel.checked()
            ends = _present_ranges(panel, positives)
        else:
            ends = _empty_ranges(panel.n_labels)
            range_rows(np.ascontiguousarray(panel.scores), *positives, ends)
        low, high = _outer(ends)
        if np.isnan(ends[4]).any() or (
            panel.kind == "probability" and (low.min() < 0 or high.max() > 1)
        ):
            panel.mended()
        if max(-low.min(), high.max()) > FARTHEST:
            raise InvalidInput(
                f"margins must lie within {FARTHEST:g} of 0, got one beyond that in the rows "
                f"from {panel.first_row}. Check that scores are log-odds."
            )
        self._widen(ends)
        self.n_positives += np.bincount(positives.indices, minlength=panel.n_labels)
        if panel.sample_weight is not None:
            self.unit = panel.sample_weight.unit
            each = np.repeat(panel.sample_weight.units, positives.counts)
            np.add.at(self.positive_units, positives.indices, each)

    def merge(self, other: Self) -> None:
        """Widen by another's ranges."""
        self._widen(other.ends)
        self.n_positives += other.n_positives
        self.positive_units += other.positive_units
        self.unit = self.unit or other.unit

    @property
    def positive_weights(self) -> Floats:
        """Weight of each label's positives: their number, where rows count alike."""
        return np.asarray(self.positive_units * self.unit if self.unit else self.n_positives, float)

    def _widen(self, ends: Floats) -> None:
        self.ends[0:4:2] = np.minimum(self.ends[0:4:2], ends[0:4:2])
        self.ends[1:4:2] = np.maximum(self.ends[1:4:2], ends[1:4:2])

    def result(self) -> Floats:
        """Four rows: low and high of the negatives, then of the positives. Empty: inf, -inf.

        A label without any cell has its range at 0.
        """
        ends = self.ends[:4].copy()
        ends[:2, np.isinf(ends).all(axis=0)] = 0.0
        return ends

    def log_odds(self, kind: Kind) -> tuple[Floats, Floats]:
        """Lowest and highest log-odds of all cells of each label."""
        return _outer(log_odds(self.result(), kind))


def count_bins(n_labels: int, share: float = 1.0) -> int:
    """Bins of each label, where there are so many labels; ``share`` makes them fewer."""
    return int(share * np.clip(BINS_IN_ALL // n_labels, MIN_BINS, MAX_BINS))


class Moments(MergeableTally):
    """Every label's log-odds in bins with their moments, and sums over the positives.

    ``low`` and ``high`` are the range of each label's log-odds; bins and the order of additions
    are those of ``n_labels`` labels, of which these may be some. ``share`` makes the bins fewer.
    ``scale`` is about the weight of a row: see `weight_scale`.
    """

    JOINED: ClassVar = {"moments": "add", "sums": "add"}

    def __init__(
        self,
        low: Floats,
        high: Floats,
        kind: Kind,
        n_labels: int,
        *,
        share: float = 1.0,
        scale: float = 1.0,
    ) -> None:
        self.low, self.high, self.kind = low, high, kind
        self.n_labels, self.share, self.scale = n_labels, share, scale
        n_bins = count_bins(n_labels, share)
        # Never so narrow that the last digit of a log-odds decides about bins.
        least = 1e-12 * np.maximum(1, np.maximum(np.abs(low), np.abs(high)))
        self.width = np.maximum((high - low) / n_bins, least)
        self.moments = np.zeros((low.size, n_bins, N_MOMENTS))
        # Each feature is measured from where it levels off, so that what is left there is exact.
        self.centers = np.stack([low, beta_features(high)[0], beta_features(low)[1]])
        self.sums = np.zeros((4, low.size))
        self._filled: tuple[NDArray[Any], Floats] | None = None  # scores, and how often
        # Joining the bins of two groups of blocks should cost little beside filling them.
        self.blocks_apart = max(1, n_labels * n_bins * N_MOMENTS * 8 // BLOCK_BYTES)

    def empty_like(self) -> Self:
        """Empty bins over the same ranges."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        names = ("low", "high", "kind", "n_labels", "share", "scale")
        return {name: getattr(self, name) for name in names}

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        probable, times = self.kind == "probability", _times_of(panel)
        if isinstance(panel, SparsePanel):
            return self._add_listed(panel)
        scores = np.ascontiguousarray(panel.scores)
        if panel.absent is not None:
            known, before = self._filled or (None, 0.0)
            scores, some, more = panel.filled(known)
            self._filled = some, before + more
        add_moments(scores, probable, self.low, 1 / self.width, self.moments, times)
        add_positives(scores, probable, *_positives_of(panel), self.centers, self.sums, times)
        return None

    def _add_listed(self, panel: SparsePanel) -> None:
        """Take the cells that a block lists."""
        labels, times = panel.listed.indices, _cell_times(panel)
        z = log_odds(panel.checked().cells.astype(np.float64), self.kind)
        at = (z - self.low[labels]) / self.width[labels]
        n_bins = self.moments.shape[1]
        bins = np.clip(at, 0.0, n_bins - 0.5).astype(np.int64)
        u = at - bins - 0.5
        place = (labels * n_bins + bins) * N_MOMENTS
        flat = self.moments.reshape(-1)
        for power in range(N_MOMENTS):
            np.add.at(flat, place + power, times * u**power)
        positives = _positives_of(panel)
        own = positives.among(panel.listed, panel.n_labels)
        features = z[own], *beta_features(z[own])
        np.add.at(self.sums[0], positives.indices, times[own])
        for which, feature in enumerate(features):
            moved = feature - self.centers[which][positives.indices]
            np.add.at(self.sums[1 + which], positives.indices, times[own] * moved)

    def settle(self) -> None:
        """Take out what was filled in for absent cells."""
        if self._filled is None:
            return
        some, times = self._filled
        once = np.zeros_like(self.moments)
        add_moments(some, self.kind == "probability", self.low, 1 / self.width, once)
        self.moments -= once * times[:, None, None]
        empty = self.moments[:, :, 0] == 0
        self.moments[empty] = 0.0
        self._filled = None

    def merge(self, other: Self) -> None:
        """Add another's moments and sums."""
        self.settle()
        other.settle()
        super().merge(other)

    def state(self) -> State:
        """Moments and sums."""
        self.settle()
        return super().state()

    def result(self) -> tuple[Floats, Floats]:
        """Points and their weights, each (labels, points): two per bin, with its moments.

        As many points as the fullest label needs; those of a few labels at a time, since what
        leads to them takes several times their memory.
        """
        self.settle()
        starts = range(0, self.low.size, LABELS_AT_ONCE)
        parts = [self._points(slice(start, start + LABELS_AT_ONCE)) for start in starts]
        most = max(weights.shape[1] for _, weights in parts)
        points, weights = np.empty((self.low.size, most)), np.zeros((self.low.size, most))
        for start, (place, weight) in zip(starts, parts, strict=True):
            rows, width = slice(start, start + len(place)), place.shape[1]
            points[rows, :width], weights[rows, :width] = place, weight
            points[rows, width:] = place[:, :1]
        # A label without any cell has a point that weighs hardly anything.
        empty = weights.sum(axis=1) == 0
        points[empty], weights[empty, :1] = 0.0, self.scale * 2**-20
        return points, weights

    def drop_bins(self) -> None:
        """Let go of the bins, once points were made of them."""
        self.moments = self.moments[:0]

    def _points(self, labels: slice) -> tuple[Floats, Floats]:
        count, first, second, third = np.moveaxis(self.moments[labels], 2, 0)
        n = np.where(count > 0, count, 1)
        mean = first / n
        variance = second / n - mean**2
        lone = variance < 1e-12
        spread = np.sqrt(np.where(lone, 1, variance))
        skew = (third / n - 3 * mean * variance - mean**3) / spread**3
        skew = np.where(lone, 0, skew)
        half = np.hypot(1, skew / 2)
        spread[lone] = 0
        # Whole multiples of 2**-20 add up without rounding, so counts of points stay exact.
        quantum = self.scale * 2**-20
        upper = np.rint(count * (0.5 - skew / (4 * half)) / quantum) * quantum
        place = np.clip(
            [mean + spread * (skew / 2 - half), mean + spread * (skew / 2 + half)], -0.5, 0.5
        )
        center = np.arange(count.shape[1]) + 0.5
        points = self.low[labels, None] + (center + place) * self.width[labels, None]
        weights = np.stack([count - upper, upper])
        return _packed(np.concatenate(list(points), 1), np.concatenate(list(weights), 1))

    def positives_about(self, which: int, center: Floats) -> Floats:
        """Sum over each label's positives of log-odds (0), ln s (1) or -ln(1-s) (2) - center."""
        return np.asarray(self.sums[1 + which] + self.sums[0] * (self.centers[which] - center))


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What logistic fits need of some rows, in place of a source of them."""

    ranges: Ranges
    moments: Moments
    n_rows: int
    totals: Any
    _made: list[tuple[Floats, Floats]] = field(default_factory=list, repr=False)

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return float(np.max(self.totals))

    def points(self) -> tuple[Floats, Floats]:
        """Points and weights of the moments, made once for all fits that ask for them."""
        if not self._made:
            self._made.append(self.moments.result())
        return self._made[0]

    @property
    def n_labels(self) -> int:
        """Labels summarised."""
        return int(self.ranges.n_positives.size)

    @property
    def kind(self) -> Kind:
        """What the scores are."""
        return self.moments.kind

    @classmethod
    def join(cls, parts: Sequence[Summary]) -> Summary:
        """The summary of all rows of some disjoint parts, which have the same bins."""
        ranges, moments = parts[0].ranges.empty_like(), parts[0].moments.empty_like()
        for part in parts:
            ranges.merge(part.ranges)
            moments.merge(part.moments)
        n_rows, total = sum(part.n_rows for part in parts), sum(part.totals for part in parts)
        return cls(ranges, moments, n_rows, total)


class SumsAt(MergeableTally):
    """Sums over the cells of some labels at given parameters, by one of the kernels."""

    JOINED: ClassVar = {"sums": "add"}
    blocks_apart = 1

    def __init__(
        self, kernel: Any, n_sums: int, columns: NDArray[np.int64], frame: Floats, theta: Floats
    ) -> None:
        self.kernel, self.columns = kernel, columns
        self.frame, self.theta = np.ascontiguousarray(frame), np.ascontiguousarray(theta)
        self.sums = np.zeros((n_sums, columns.size))

    def empty_like(self) -> Self:
        """Zero sums at the same parameters."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"kernel": self.kernel, "n_sums": len(self.sums), "columns": self.columns,
                "frame": self.frame, "theta": self.theta}  # fmt: skip

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        probable, times = panel.kind == "probability", _times_of(panel)
        if isinstance(panel, SparsePanel):
            return self._add_listed(panel)
        parameters = self.columns, self.frame, self.theta
        if panel.absent is None:
            scores = np.ascontiguousarray(panel.scores)
            self.kernel(scores, probable, *parameters, self.sums, times)
            return None
        scores, some, more = panel.filled()
        once = np.zeros_like(self.sums)
        self.kernel(scores, probable, *parameters, self.sums, times)
        self.kernel(some, probable, *parameters, once, None)
        self.sums -= once * more[self.columns]
        return None

    def _add_listed(self, panel: SparsePanel) -> None:
        """Take the cells that a block lists: the kernel sees one row of them."""
        place = np.full(panel.n_labels, -1, np.int64)
        place[self.columns] = np.arange(self.columns.size)
        owners = place[panel.listed.indices]
        known = owners >= 0
        owners, times = owners[known], _cell_times(panel)[known]
        cells = np.ascontiguousarray(panel.checked().cells[known])[None]
        sums = np.zeros((len(self.sums), owners.size))
        frame, theta = (np.ascontiguousarray(each[:, owners]) for each in (self.frame, self.theta))
        if owners.size:
            whole = np.arange(owners.size)
            self.kernel(cells, panel.kind == "probability", whole, frame, theta, sums, None)
        for total, each in zip(self.sums, sums, strict=True):
            np.add.at(total, owners, times * each)

    def result(self) -> Floats:
        """The sums, one column per label."""
        return self.sums


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


def _empty_ranges(n_labels: int) -> Floats:
    """Low and high of the negatives, then of the positives; the last row marks cells with NaN."""
    ends = np.zeros((5, n_labels))
    ends[0:4:2], ends[1:4:2] = np.inf, -np.inf
    return ends


def _positives_of(panel: Panel) -> Positives:
    """True labels of every row; none where the panel has no labels, as for a label-free fit."""
    if panel.labels is None:
        return Positives(np.zeros(panel.n_rows + 1, np.int64), np.empty(0, np.int32))
    return panel.positives()


def _present_ranges(panel: Panel, positives: Positives) -> Floats:
    """The ranges of a checked block of which cells are absent."""
    ends = _empty_ranges(panel.n_labels)
    if isinstance(panel, SparsePanel):
        labels, cells = panel.listed.indices, panel.cells.astype(np.float64)
        true = np.zeros(cells.size, np.bool_)
        true[positives.among(panel.listed, panel.n_labels)] = True
        for first, wanted in ((0, ~true), (2, true)):
            np.minimum.at(ends[first], labels[wanted], cells[wanted])
            np.maximum.at(ends[first + 1], labels[wanted], cells[wanted])
        return ends
    there = panel.present()
    assert there is not None
    rows = np.repeat(np.arange(panel.n_rows), positives.counts)
    true = np.zeros(there.shape, np.bool_)
    true[rows, positives.indices] = True
    for first, wanted in ((0, there & ~true), (2, there & true)):
        ends[first] = np.min(panel.scores, axis=0, where=wanted, initial=np.inf)
        ends[first + 1] = np.max(panel.scores, axis=0, where=wanted, initial=-np.inf)
    return ends


def _cell_times(panel: SparsePanel) -> Floats:
    """The weight of each listed cell."""
    times = _times_of(panel)
    return np.repeat(np.ones(panel.n_rows) if times is None else times, panel.listed.counts)


def _times_of(panel: Panel) -> Floats | None:
    """The weight of each row; None where they count alike."""
    return None if panel.sample_weight is None else panel.sample_weight.times


def weight_scale(mean: float) -> float:
    """The power of two next to the mean weight of rows: 1 where they count alike."""
    return float(2.0 ** np.rint(np.log2(mean)))


def _outer(ends: Floats) -> tuple[Floats, Floats]:
    """Low and high of all cells."""
    return np.minimum(ends[0], ends[2]), np.maximum(ends[1], ends[3])


def _packed(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Points of positive weight first, and no more columns than the fullest label needs."""
    order = np.argsort(weights <= 0, axis=1, kind="stable")
    most = int((weights > 0).sum(axis=1).max())
    order = order[:, :most]
    weights = np.take_along_axis(weights, order, 1)
    points = np.take_along_axis(points, order, 1)
    return np.where(weights > 0, points, points[:, :1]), weights


def _sum_points(features: Floats, weights: Floats, theta: Floats) -> Floats:
    """The sums of the kernels, over weighted points."""
    logit = theta[0][:, None] + sum(
        t[:, None] * u for t, u in zip(theta[1:], features, strict=True)
    )
    e = np.exp(-np.abs(logit))
    q = e / (1 + e)
    high = logit >= 0
    sums = [(weights * high).sum(axis=1), (weights * np.where(high, -q, q)).sum(axis=1)]
    p = weights * np.where(high, 1 - q, q)
    sums += [(p * u).sum(axis=1) for u in features]
    w = weights * q * (1 - q)
    sums.append(w.sum(axis=1))
    weighted = [w * u for u in features]
    sums += [x.sum(axis=1) for x in weighted]
    for i, x in enumerate(weighted):
        sums += [(x * u).sum(axis=1) for u in features[i:]]
    return np.stack(sums)
