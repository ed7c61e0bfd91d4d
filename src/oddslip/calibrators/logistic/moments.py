"""The loss of logistic fits, and the sums it needs: ranges, a summary, and exact sums.

Each of these is one pass over a source. The summary cuts every label's log-odds into bins and
stores the first three moments of each; two points per bin have the same moments. So the likelihood
over hundreds of points approximates the one over all rows, and its optimum is nearly the true one.

Ranges and moments of disjoint rows add up. So those of folds, collected in one pass, give a
`Summary` of the rows outside each fold, on which fits need no further pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from oddslip.calibrators.logistic.newton import Derivatives, Search
from oddslip.core.labels import LabelTotals, Positives
from oddslip.core.panel import Kind, Panel, SparsePanel
from oddslip.core.passes import Passes
from oddslip.core.tally import MergeableTally, State, Tally, owned
from oddslip.core.types import Array, Bools, Floats, Ints
from oddslip.core.types import Ints as Indices
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
from oddslip.kernels.newton import descend_points, find_levels
from oddslip.kernels.points import mean_features, place_points, sum_points
from oddslip.sources import Source
from oddslip.sources.base import BLOCK_BYTES
from oddslip.sources.views import ColumnSource, Narrowing, collect_labels

T = TypeVar("T", bound=Tally)

MAX_BINS, MIN_BINS = 256, 32
MAX_TOTAL_BINS = 1 << 20  # of all labels together, unless that leaves fewer than MIN_BINS each
MAX_MARGIN = 1e100  # larger margins would overflow when squared
MIN_SPREAD = 1e-290  # the inverse of a smaller one would overflow


_PER_LABEL = (
    *("label_positives", "positive_weights", "n_positives", "label_low", "label_high"),
    *("negative_low", "positive_low", "negative_high", "positive_high", "low", "high"),
)


class Cells:
    """Counts, ranges and summary of some rows per fit, and further passes over these rows.

    With a `Summary` in place of a source no pass is made, and no sum is exact. A summary of the
    rows beside their source saves the passes that would make one.
    """

    @classmethod
    def read(
        cls, source: Source | Summary, shared: bool = False, summary: Summary | None = None
    ) -> Passes[Self]:
        """The ranges of the rows, from one pass, or none if a summary is there."""
        summary = source if isinstance(source, Summary) else summary
        ranges = (yield Ranges(source.n_labels)) if summary is None else summary.ranges
        cells = cls(source, shared, summary, ranges)
        cells.n_passes = int(summary is None)
        return cells

    def __init__(
        self, source: Source | Summary, shared: bool, summary: Summary | None, ranges: Ranges
    ) -> None:
        self.source, self.shared, self.summary = source, shared, summary
        self.n_passes = 0
        self.exact = not isinstance(source, Summary)
        self._narrowing: Narrowing | None = None
        self.label_positives = ranges.n_positives
        self.total_weight = source.total_weight
        self.totals = source.totals if isinstance(source, Summary) else source.totals()
        self.positive_weights = ranges.positive_weights
        self.n_positives = self._per_fit(self.positive_weights, np.sum)
        self.n_cells = self.totals
        if shared:
            each = np.broadcast_to(self.totals, source.n_labels)
            self.n_cells = float(each.sum()) if np.ndim(self.totals) else self.totals * each.size
        ends = log_odds(ranges.result(), source.kind)
        self.label_low, self.label_high = _outer(ends)
        self.negative_low, self.positive_low = (self._per_fit(ends[k], np.min) for k in (0, 2))
        self.negative_high, self.positive_high = (self._per_fit(ends[k], np.max) for k in (1, 3))
        self.low = np.minimum(self.negative_low, self.positive_low)
        self.high = np.maximum(self.negative_high, self.positive_high)
        self.n_labels = source.n_labels

    @property
    def label_totals(self) -> LabelTotals:
        """Positives of each label."""
        return LabelTotals(self.label_positives, self.positive_weights, self.totals)

    @property
    def never_negative(self) -> Bools:
        """Labels that are true in every row in which they are present."""
        if np.ndim(self.totals):
            return np.asarray(self.positive_weights == self.totals)
        return np.asarray(self.label_positives == self.source.n_rows)

    def of_labels(self, labels: Indices) -> Cells:
        """The same for some labels, with the same bins, since a summary is large."""
        assert isinstance(self.source, Source)
        part = copy(self)
        columns = ColumnSource(self.source, labels)
        part.source, part._narrowing = columns, columns.narrowing
        for name in _PER_LABEL:
            setattr(part, name, getattr(self, name)[labels])
        if np.ndim(self.totals):
            part.totals = part.n_cells = self.totals[labels]
        return part

    def add_up(self, tally: T) -> Passes[T]:
        """One more pass over the rows; of some labels, if these are some of all."""
        self.n_passes += 1
        return collect_labels(tally, self._narrowing)

    def _per_fit(self, values: Floats, how: Any) -> Floats:
        return np.asarray(how(values, keepdims=True) if self.shared else values)

    def prior_log_odds(self) -> Floats:
        """Log-odds of each fit's prevalence; 0 if that is 0 or 1."""
        negatives = self.n_cells - self.n_positives
        both = (self.n_positives > 0) & (negatives > 0)
        return np.log(np.where(both, self.n_positives, 1)) - np.log(np.where(both, negatives, 1))

    def summarise(self) -> Passes[None]:
        """Read the rows into points and weights, (fits, points)."""
        if self.summary is not None:  # shared with other fits
            self.moments = self.summary.moments
            points, weights = self.summary.points()
        else:
            assert isinstance(self.source, Source)
            limits = self.label_low, self.label_high
            fineness = weight_scale(self.total_weight / self.source.n_rows)
            moments = yield from self.add_up(
                Moments(*limits, self.source.kind, self.n_labels, scale=fineness)
            )
            points, weights = moments.result()
            moments.drop_bins()
            self.moments = (moments,)
        if self.shared:
            points, weights = points.reshape(1, -1), weights.reshape(1, -1)
        self.points, self.weights = points, weights

    def positives_about(self, which: int, center: Floats) -> Floats:
        """Sum of a feature over each fit's positives, measured from the fit's center."""
        first = self.moments[0]
        sums = np.sum([each.sums for each in self.moments], axis=0)
        about = sums[1 + which] + sums[0] * (first.centers[which] - center)
        return self._per_fit(np.asarray(about), np.sum)


class Model:
    """Gradient and curvature of the loss of every fit at given parameters.

    ``theta`` holds the intercept and one slope per feature. Features are moved by ``center`` and
    divided by ``scale``, so that they lie in [-1, 1] and the intercept hardly depends on slopes.
    """

    def __init__(self, cells: Cells, form: Literal["affine", "beta"], centered: bool) -> None:
        self.cells, self.centered = cells, centered
        self.which: tuple[int, ...]
        ends = np.stack([cells.low, cells.high], axis=1)
        if form == "affine":
            self.kernel, self.n_sums, self.which = add_affine_sums, N_AFFINE, (0,)
            self.ends = ends[None]
        else:
            self.kernel, self.n_sums, self.which = add_beta_sums, N_BETA, (1, 2)
            self.ends = np.stack(beta_features(ends))
        center = np.zeros(self.ends.shape[:2])
        if centered:
            center = mean_features(cells.points, cells.weights, form == "beta")
        self._set_center(center)

    def _set_center(self, center: Floats) -> None:
        """Measure the features from this center."""
        spread = np.abs(self.ends - center[:, :, None]).max(axis=2)
        self.center, self.scale = center, np.where(spread < MIN_SPREAD, 1, spread)
        positives = [
            self.cells.positives_about(k, m) for k, m in zip(self.which, center, strict=True)
        ]
        self.positives = np.stack(positives) / self.scale

    def recenter(self, theta: Floats, fits: Indices) -> Floats:
        """Measure features from the center of the curvature; returns the parameters in these terms.

        A steep fit has its undecided cells at one end of the range. Measured from the middle their
        logits would be small differences of large numbers.
        """
        if not self.centered:
            return theta
        sums = sum_points(*self._points, fits, self._frame(fits), theta)
        _, curvature = self._assembled(sums, fits)
        weight = np.maximum(curvature[0, 0], np.finfo(float).tiny)
        shift = np.clip(curvature[0, 1:] / weight, -1, 1)
        slopes = theta[1:] / self.scale[:, fits]
        center = self.center.copy()
        center[:, fits] += shift * self.scale[:, fits]
        self._set_center(center)
        return np.vstack([theta[0] + (theta[1:] * shift).sum(axis=0), slopes * self.scale[:, fits]])

    def measure_from_zero(self, fits: Indices) -> None:
        """Measure the features of these fits from 0, or from the end of their range next to it.

        Logits of cells near 0 then keep their digits, however far away other cells are.
        """
        nearest = np.clip(0.0, self.cells.low, self.cells.high)
        origin = nearest[None] if self.which == (0,) else np.stack(beta_features(nearest))
        center = self.center.copy()
        center[:, fits] = origin[:, fits]
        self._set_center(center)

    def identity(self) -> Floats:
        """Parameters of the identity map."""
        return np.vstack([self.center.sum(axis=0), self.scale])

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Slopes of the plain features, and the intercept."""
        slopes = theta[1:] / self.scale
        return slopes, np.asarray(theta[0] - (slopes * self.center).sum(axis=0))

    def parameters(self, slopes: Floats, intercept: Floats) -> Floats:
        """The inverse of `coefficients`."""
        return np.vstack([intercept + (slopes * self.center).sum(axis=0), slopes * self.scale])

    @property
    def _points(self) -> tuple[Floats, Floats]:
        return self.cells.points, self.cells.weights

    def _frame(self, fits: Indices) -> Floats:
        """Center and 1 / scale of each feature, (2 x features, fits)."""
        frame = np.stack([self.center[:, fits], 1 / self.scale[:, fits]], axis=1)
        return frame.reshape(-1, fits.size)

    def descend(
        self, theta: Floats, fits: Indices, *, intercept: bool, rounds: int
    ) -> tuple[Floats, Bools]:
        """Minimise the loss of these fits on the summary; also returns which converged."""
        theta = theta.copy()
        totals = np.vstack([self.cells.n_positives[fits], self.positives[:, fits]])
        return theta, descend_points(
            *self._points, fits, self._frame(fits), totals, theta, intercept, rounds
        )

    def find_levels(
        self, theta: Floats, fits: Indices, ends: Floats, *, rounds: int
    ) -> tuple[Floats, Bools]:
        """Intercepts that match the positives on the summary; also returns which converged."""
        theta = theta.copy()
        n_positives = self.cells.n_positives[fits]
        return theta, find_levels(
            *self._points, fits, self._frame(fits), n_positives, theta, ends, rounds
        )

    def solve_exactly(self, search: Search, fits: Indices) -> Passes[Any]:
        """Run a search of these fits with sums over every cell: a pass for each step."""
        try:
            theta, live = next(search)
            while True:
                theta, live = search.send((yield from self.exact(theta, fits[live])))
        except StopIteration as stop:
            return stop.value

    def exact(self, theta: Floats, fits: Indices) -> Passes[Derivatives]:
        """Gradient and curvature over every cell, in one pass."""
        assert self.cells.exact
        n_labels = self.cells.source.n_labels
        columns = np.arange(n_labels) if self.cells.shared else fits
        wide = np.zeros(columns.size)  # broadcasts the one shared fit to all labels
        frame = self._frame(fits) + wide
        tally = SumsAt(self.kernel, self.n_sums, columns, frame, theta + wide)
        sums = (yield from self.cells.add_up(tally)).result()
        if self.cells.shared:
            sums = sums.sum(axis=1, keepdims=True)
        return self._assembled(sums, fits)

    def _assembled(self, sums: Floats, fits: Indices) -> Derivatives:
        size = 1 + len(self.which)
        gradient = np.empty((size, fits.size))
        # Integers first: the rest is small where cells saturate, and must stay exact.
        gradient[0] = (sums[0] - self.cells.n_positives[fits]) + sums[1]
        gradient[1:] = sums[2 : 1 + size] - self.positives[:, fits]
        curvature = np.empty((size, size, fits.size))
        for place, (i, k) in enumerate(zip(*np.triu_indices(size), strict=True)):
            curvature[i, k] = curvature[k, i] = sums[1 + size + place]
        return gradient, curvature


class Ranges:
    """Lowest and highest score of each label's negatives and positives; checks every cell."""

    def __init__(self, n_labels: int) -> None:
        self.ends = _empty_ranges(n_labels)
        self.n_positives = np.zeros(n_labels, np.int64)
        self.positive_units = np.zeros(n_labels, np.int64)  # if rows have weights
        self.unit = 0.0

    def empty_like(self) -> Self:
        """Empty ranges of as many labels."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """Constructor arguments of an empty copy."""
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
        """Replace lows, highs and counts."""
        self.ends[0:4:2], self.ends[1:4:2] = state["lows"][0], state["highs"][0]
        self.n_positives, self.positive_units = (
            owned(state[name][0]) for name in ("n_positives", "positive_units")
        )
        self.unit = state["unit"][0].item()

    def add(self, panel: Panel) -> None:
        """Add one block of rows; raises if a cell is invalid."""
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
        if max(-low.min(), high.max()) > MAX_MARGIN:
            raise InvalidInput(
                f"margins must lie within {MAX_MARGIN:g} of 0, got one beyond that in the rows "
                f"from {panel.first_row}. Check that scores are log-odds."
            )
        self._widen(ends)
        self.n_positives += np.bincount(positives.indices, minlength=panel.n_labels)
        if panel.sample_weight is not None:
            self.unit = panel.sample_weight.unit
            units = np.repeat(panel.sample_weight.units, positives.counts)
            np.add.at(self.positive_units, positives.indices, units)

    def merge(self, other: Self) -> None:
        """Widen by another's ranges."""
        self._widen(other.ends)
        self.n_positives += other.n_positives
        self.positive_units += other.positive_units
        self.unit = self.unit or other.unit

    @property
    def positive_weights(self) -> Floats:
        """Weight of each label's positives: their number, if rows have no weights."""
        return np.asarray(self.positive_units * self.unit if self.unit else self.n_positives, float)

    def _widen(self, ends: Floats) -> None:
        self.ends[0:4:2] = np.minimum(self.ends[0:4:2], ends[0:4:2])
        self.ends[1:4:2] = np.maximum(self.ends[1:4:2], ends[1:4:2])

    def result(self) -> Floats:
        """Four rows: low and high of the negatives, then of the positives; inf, -inf if empty.

        A label without cells has the range 0 to 0.
        """
        ends = self.ends[:4].copy()
        ends[:2, np.isinf(ends).all(axis=0)] = 0.0
        return ends

    def log_odds(self, kind: Kind) -> tuple[Floats, Floats]:
        """Lowest and highest log-odds of all cells of each label."""
        return _outer(log_odds(self.result(), kind))


def count_bins(n_labels: int, share: float = 1.0) -> int:
    """Bins per label for this number of labels; a smaller ``share`` gives fewer bins."""
    return int(share * np.clip(MAX_TOTAL_BINS // n_labels, MIN_BINS, MAX_BINS))


class Moments(MergeableTally):
    """Moments of every label's log-odds in bins, and sums over the positives.

    ``low`` and ``high`` are the range of each label's log-odds. Bins and the order of additions are
    those of ``n_labels`` labels, of which these may be a part. A smaller ``share`` gives fewer
    bins. ``scale`` is about the weight of a row, see `weight_scale`.
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
        # Not so narrow that the last digit of a log-odds decides about bins.
        least = 1e-12 * np.maximum(1, np.maximum(np.abs(low), np.abs(high)))
        self.width = np.maximum((high - low) / n_bins, least)
        self.moments = np.zeros((low.size, n_bins, N_MOMENTS))
        # Each feature is measured from where it levels off, to be exact there.
        self.centers = np.stack([low, beta_features(high)[0], beta_features(low)[1]])
        self.sums = np.zeros((4, low.size))
        self._filled: tuple[Array, Floats] | None = None  # placeholders and their number
        # Merging the bins of two groups of blocks should cost little compared with filling them.
        self.blocks_apart = max(1, n_labels * n_bins * N_MOMENTS * 8 // BLOCK_BYTES)

    def add(self, panel: Panel) -> None:
        """Add one block of rows."""
        probable, times = self.kind == "probability", _weights_of(panel)
        if isinstance(panel, SparsePanel):
            return self._add_listed(panel)
        scores = np.ascontiguousarray(panel.scores)
        if panel.absent is not None:
            placeholder, n_before = self._filled or (None, 0.0)
            scores, placeholder, n_absent = panel.filled(placeholder)
            self._filled = placeholder, n_before + n_absent
        add_moments(scores, probable, self.low, 1 / self.width, self.moments, times)
        add_positives(scores, probable, *_positives_of(panel), self.centers, self.sums, times)
        return None

    def _add_listed(self, panel: SparsePanel) -> None:
        """Add the cells that a block lists."""
        labels, weights = panel.positions.indices, _cell_weights(panel)
        z = log_odds(panel.checked().cells.astype(np.float64), self.kind)
        at = (z - self.low[labels]) / self.width[labels]
        n_bins = self.moments.shape[1]
        bins = np.clip(at, 0.0, n_bins - 0.5).astype(np.int64)
        u = at - bins - 0.5
        place = (labels * n_bins + bins) * N_MOMENTS
        flat = self.moments.reshape(-1)
        for power in range(N_MOMENTS):
            np.add.at(flat, place + power, weights * u**power)
        positives = _positives_of(panel)
        positive_cells = positives.among(panel.positions, panel.n_labels)
        features = z[positive_cells], *beta_features(z[positive_cells])
        np.add.at(self.sums[0], positives.indices, weights[positive_cells])
        for which, feature in enumerate(features):
            deviation = feature - self.centers[which][positives.indices]
            np.add.at(self.sums[1 + which], positives.indices, weights[positive_cells] * deviation)

    def settle(self) -> None:
        """Subtract the placeholders of absent cells."""
        if self._filled is None:
            return
        placeholder, n_absent = self._filled
        once = np.zeros_like(self.moments)
        add_moments(placeholder, self.kind == "probability", self.low, 1 / self.width, once)
        self.moments -= once * n_absent[:, None, None]
        empty = self.moments[:, :, 0] == 0
        self.moments[empty] = 0.0
        self._filled = None

    def result(self) -> tuple[Floats, Floats]:
        """Points and their weights, each (labels, points): see `place_moments`."""
        return place_moments([self])

    def drop_bins(self) -> None:
        """Free the memory of the bins, once the points are computed."""
        self.moments = self.moments[:0]


def place_moments(parts: Sequence[Moments]) -> tuple[Floats, Floats]:
    """Points and their weights, each (labels, points): two per bin, with its moments.

    The parts are of disjoint rows and have the same bins; their moments add up. There are as many
    points as the fullest label needs. A label without cells has a point of negligible weight.
    """
    for part in parts:
        part.settle()
    first = parts[0]
    # Whole multiples of 2**-20 add up without rounding, so counts of points stay exact.
    quantum = first.scale * 2**-20
    bins = [part.moments for part in parts]
    points, weights = place_points(bins, first.low, first.width, quantum)
    return points, weights


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """Ranges and moments of some rows, in place of a source.

    There are several moments where there are several parts: added up they would be large.
    """

    ranges: Ranges
    moments: tuple[Moments, ...]
    n_rows: int
    totals: Any
    _points: list[tuple[Floats, Floats]] = field(default_factory=list, repr=False)

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return float(np.max(self.totals))

    def points(self) -> tuple[Floats, Floats]:
        """Points and weights of the moments, computed once for all fits."""
        if not self._points:
            self._points.append(place_moments(self.moments))
        return self._points[0]

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.ranges.n_positives.size)

    @property
    def kind(self) -> Kind:
        """Scale of the scores."""
        return self.moments[0].kind

    @classmethod
    def join(cls, parts: Sequence[Summary]) -> Summary:
        """The summary of all rows of disjoint parts with the same bins."""
        ranges = parts[0].ranges.empty_like()
        for part in parts:
            ranges.merge(part.ranges)
        moments = tuple(each for part in parts for each in part.moments)
        n_rows, total = sum(part.n_rows for part in parts), sum(part.totals for part in parts)
        return cls(ranges, moments, n_rows, total)


class SumsAt(MergeableTally):
    """Sums of a kernel over the cells of some labels at given parameters."""

    JOINED: ClassVar = {"sums": "add"}
    blocks_apart = 1

    def __init__(
        self, kernel: Any, n_sums: int, columns: Ints, frame: Floats, theta: Floats
    ) -> None:
        self.kernel, self.columns = kernel, columns
        self.frame, self.theta = np.ascontiguousarray(frame), np.ascontiguousarray(theta)
        self.sums = np.zeros((n_sums, columns.size))

    def spec(self) -> dict[str, Any]:
        """Constructor arguments of an empty copy."""
        return {
            "kernel": self.kernel,
            "n_sums": len(self.sums),
            "columns": self.columns,
            "frame": self.frame,
            "theta": self.theta,
        }

    def add(self, panel: Panel) -> None:
        """Add one block of rows."""
        probable, times = panel.kind == "probability", _weights_of(panel)
        if isinstance(panel, SparsePanel):
            return self._add_listed(panel)
        parameters = self.columns, self.frame, self.theta
        if panel.absent is None:
            scores = np.ascontiguousarray(panel.scores)
            self.kernel(scores, probable, *parameters, self.sums, times)
            return None
        scores, placeholder, n_absent = panel.filled()
        once = np.zeros_like(self.sums)
        self.kernel(scores, probable, *parameters, self.sums, times)
        self.kernel(placeholder, probable, *parameters, once, None)
        self.sums -= once * n_absent[self.columns]
        return None

    def _add_listed(self, panel: SparsePanel) -> None:
        """Add the cells that a block lists, as one row for the kernel."""
        column_of = np.full(panel.n_labels, -1, np.int64)
        column_of[self.columns] = np.arange(self.columns.size)
        owners = column_of[panel.positions.indices]
        selected = owners >= 0
        owners, weights = owners[selected], _cell_weights(panel)[selected]
        cells = np.ascontiguousarray(panel.checked().cells[selected])[None]
        sums = np.zeros((len(self.sums), owners.size))
        frame, theta = (np.ascontiguousarray(each[:, owners]) for each in (self.frame, self.theta))
        if owners.size:
            positions = np.arange(owners.size)
            self.kernel(cells, panel.kind == "probability", positions, frame, theta, sums, None)
        for total, each in zip(self.sums, sums, strict=True):
            np.add.at(total, owners, weights * each)

    def result(self) -> Floats:
        """The sums, one column per label."""
        return self.sums


def log_odds(scores: Floats, kind: Kind) -> Floats:
    """Log-odds of scores; probabilities are clipped."""
    if kind == "margin":
        return scores
    s = np.clip(scores, CLIP, 1 - CLIP)
    return np.asarray(np.log(s) - np.log1p(-s))


def beta_features(z: Floats) -> tuple[Floats, Floats]:
    """ln s and -ln(1 - s) at log-odds z."""
    tail = np.log1p(np.exp(-np.abs(z)))
    return np.minimum(z, 0) - tail, np.maximum(z, 0) + tail


def _empty_ranges(n_labels: int) -> Floats:
    """Low and high of the negatives, then of the positives; the last row marks NaN cells."""
    ends = np.zeros((5, n_labels))
    ends[0:4:2], ends[1:4:2] = np.inf, -np.inf
    return ends


def _positives_of(panel: Panel) -> Positives:
    """True labels of every row; none for a panel without labels, as in a label-free fit."""
    if panel.labels is None:
        return Positives(np.zeros(panel.n_rows + 1, np.int64), np.empty(0, np.int32))
    return panel.positives()


def _present_ranges(panel: Panel, positives: Positives) -> Floats:
    """The ranges of a checked block with absent cells."""
    ends = _empty_ranges(panel.n_labels)
    if isinstance(panel, SparsePanel):
        labels, cells = panel.positions.indices, panel.cells.astype(np.float64)
        true = np.zeros(cells.size, np.bool_)
        true[positives.among(panel.positions, panel.n_labels)] = True
        for first, mask in ((0, ~true), (2, true)):
            np.minimum.at(ends[first], labels[mask], cells[mask])
            np.maximum.at(ends[first + 1], labels[mask], cells[mask])
        return ends
    present = panel.present()
    assert present is not None
    rows = np.repeat(np.arange(panel.n_rows), positives.counts)
    true = np.zeros(present.shape, np.bool_)
    true[rows, positives.indices] = True
    for first, mask in ((0, present & ~true), (2, present & true)):
        ends[first] = np.min(panel.scores, axis=0, where=mask, initial=np.inf)
        ends[first + 1] = np.max(panel.scores, axis=0, where=mask, initial=-np.inf)
    return ends


def _cell_weights(panel: SparsePanel) -> Floats:
    """The weight of each listed cell."""
    weights = _weights_of(panel)
    return np.repeat(np.ones(panel.n_rows) if weights is None else weights, panel.positions.counts)


def _weights_of(panel: Panel) -> Floats | None:
    """The weight of each row; None without weights."""
    return None if panel.sample_weight is None else panel.sample_weight.times


def weight_scale(mean: float) -> float:
    """The power of two next to the mean weight of rows; 1 without weights."""
    return float(2.0 ** np.rint(np.log2(mean)))


def _outer(ends: Floats) -> tuple[Floats, Floats]:
    """Low and high of all cells."""
    return np.minimum(ends[0], ends[2]), np.maximum(ends[1], ends[3])
