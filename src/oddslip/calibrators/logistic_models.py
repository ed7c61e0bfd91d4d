"""A source seen as many small logistic fits: first through its summary, then exactly.

A *fit* is one label, or all labels together where they share their parameters.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators.logistic_moments import Moments, Ranges, SumsAt, beta_features, log_odds
from oddslip.kernels.logistic import N_AFFINE, N_BETA, add_affine_sums, add_beta_sums
from oddslip.sources import Source
from oddslip.tallies import Tally

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

CHUNK = 32  # labels of the summary taken at a time, to stay in cache
LEAST_SPREAD = 1e-290  # the inverse of a smaller one would overflow


class Cells:
    """Counts, ranges and summary of a source, per fit; and further passes over it."""

    def __init__(self, source: Source, shared: bool, threads: int | None) -> None:
        self.source, self.shared, self.threads = source, shared, threads
        self.n_passes = 0
        ranges = self.run(Ranges(source.n_labels))
        self.label_positives = ranges.n_positives
        self.n_positives = self._joined(ranges.n_positives.astype(float), np.sum)
        self.n_cells = float(source.n_rows * (source.n_labels if shared else 1))
        found = log_odds(ranges.result(), source.kind)
        self.label_low = np.minimum(found[0], found[2])
        self.label_high = np.maximum(found[1], found[3])
        self.negative_low, self.positive_low = (self._joined(found[k], np.min) for k in (0, 2))
        self.negative_high, self.positive_high = (self._joined(found[k], np.max) for k in (1, 3))
        self.low = np.minimum(self.negative_low, self.positive_low)
        self.high = np.maximum(self.negative_high, self.positive_high)

    def run(self, tally: Any) -> Any:
        """One more pass over the source."""
        self.n_passes += 1
        ready: Tally = tally
        return self.source.run(ready, threads=self.threads)

    def _joined(self, values: Floats, how: Any) -> Floats:
        return np.asarray(how(values, keepdims=True) if self.shared else values)

    def prior_log_odds(self) -> Floats:
        """Log-odds of each fit's prevalence; 0 where it has none."""
        negatives = self.n_cells - self.n_positives
        both = (self.n_positives > 0) & (negatives > 0)
        return np.where(
            both, np.log(np.maximum(self.n_positives, 1)) - np.log(np.maximum(negatives, 1)), 0
        )

    def summarise(self) -> None:
        """Read the source into points and weights, (fits, points)."""
        self.moments = self.run(Moments(self.label_low, self.label_high, self.source.kind))
        points, weights = self.moments.result()
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
        self.center, self.scale = center, np.where(spread < LEAST_SPREAD, 1, spread)
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

    def identity(self) -> Floats:
        """Parameters that leave the score as it is."""
        return np.vstack([self.center.sum(axis=0), self.scale])

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Slopes of the plain features, and the intercept."""
        slopes = theta[1:] / self.scale
        return slopes, np.asarray(theta[0] - (slopes * self.center).sum(axis=0))

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
