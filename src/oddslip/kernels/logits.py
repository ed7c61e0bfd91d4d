"""Cells on the log-odds scale: shifted odds, sums of sigmoids, histograms, saturated cells.

The sigmoid of logit(p) - b is p / (p + e^b (1 - p)): for probabilities it takes one division, no
exponential and no logarithm. Loops run along the labels of a row, so every sum is a vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.kernels.compiling import inlined, kernel

CLIP = 1e-12  # a probability and its complement count as at least this much

# Bins of odds: the sign-free bits of a float32 above its first three mantissa bits, eight bins
# per doubling, from the clip to its inverse.
ODDS_SHIFT = 20
ODDS_FIRST = int(np.float32(CLIP).view(np.uint32)) >> ODDS_SHIFT
ODDS_BINS = (int(np.float32(1 / CLIP).view(np.uint32)) >> ODDS_SHIFT) - ODDS_FIRST + 1

# Bins of margins: equal widths between -REACH and REACH, the outer ones open.
REACH = 32.0
PER_NAT = 10.0
MARGIN_BINS = int(2 * REACH * PER_NAT)

N_SUMS = 5  # what `sum_sigmoids` keeps per label

_FAST: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}


@kernel(
    "void(const float32[:,::1], const float64[::1], float64[:,::1])",
    "void(const float64[:,::1], const float64[::1], float64[:,::1])",
    **_FAST,
)
def weigh_odds(scores: Any, weights: Any, odds: Any) -> None:
    """Odds of probabilities, clipped, times the weight of the label: ordered as their logits."""
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = np.float64(scores[i, j])
            odds[i, j] = weights[j] * (max(p, CLIP) / max(1.0 - p, CLIP))


@kernel(
    "void(const float32[:,::1], const float64[::1], const float64[::1], float32[:,::1])",
    "void(const float64[:,::1], const float64[::1], const float64[::1], float64[:,::1])",
    **_FAST,
)
def shift_probabilities(scores: Any, up: Any, down: Any, shifted: Any) -> None:
    """``up p / (up p + down (1 - p))``: the probability whose odds are up / down times as high."""
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = np.float64(scores[i, j])
            x = up[j] * p
            shifted[i, j] = x / (x + down[j] * (1.0 - p))


@inlined
def _add_cell(x, y, n, j, inside, outside, slope, bend, twist):  # type: ignore[no-untyped-def]
    """Add n cells with odds x : y to the sums of label j."""
    scale = 1.0 / (x + y)
    q = x * scale
    r = y * scale
    v = q * r
    inside[j] += n * q
    outside[j] += n * r
    slope[j] += n * v
    bend[j] += n * (v * (r - q))
    twist[j] += n * (v * (1.0 - 6.0 * v))


@kernel(
    "void(const float32[:,::1], const float64[::1], float64[:,::1])",
    "void(const float64[:,::1], const float64[::1], float64[:,::1])",
    **_FAST,
)
def sum_sigmoids(scores: Any, factors: Any, sums: Any) -> None:
    """Per label, sums over rows of q = sigmoid(logit(p) - ln factor), clipped, and of 1 - q.

    The further three are the sums of the first, second and third derivative of the sigmoid.
    """
    inside, outside, slope, bend, twist = sums[0], sums[1], sums[2], sums[3], sums[4]
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            p = np.float64(scores[i, j])
            x = max(p, CLIP)
            y = max(1.0 - p, CLIP) * factors[j]
            _add_cell(x, y, 1.0, j, inside, outside, slope, bend, twist)


@kernel("void(const float64[:,::1], float64[:,::1])", **_FAST)
def sum_odds_sigmoids(odds: Any, sums: Any) -> None:
    """The sums of `sum_sigmoids` for cells whose shifted odds are known."""
    inside, outside, slope, bend, twist = sums[0], sums[1], sums[2], sums[3], sums[4]
    for i in range(odds.shape[0]):
        for j in range(odds.shape[1]):
            _add_cell(odds[i, j], 1.0, 1.0, j, inside, outside, slope, bend, twist)


@kernel(
    "void(const uint32[:,::1], const float64[::1], const float64[::1], float64[:,::1])", **_FAST
)
def sum_binned_sigmoids(counts: Any, centres: Any, shifts: Any, sums: Any) -> None:
    """The sums of `sum_sigmoids` for counted cells that stand at the centres of their bins."""
    inside, outside, slope, bend, twist = sums[0], sums[1], sums[2], sums[3], sums[4]
    for j in range(counts.shape[0]):
        for at in range(counts.shape[1]):
            n = np.float64(counts[j, at])
            if n > 0:
                odds = np.exp(min(max(centres[at] - shifts[j], -700.0), 700.0))
                _add_cell(odds, 1.0, n, j, inside, outside, slope, bend, twist)


@kernel(
    "void(const float32[:,::1], uint32[:,::1])",
    "void(const float64[:,::1], uint32[:,::1])",
    **_FAST,
)
def bin_probabilities(scores: Any, counts: Any) -> None:
    """Count the odds of each label in bins: the bits of a positive float grow with it."""
    n_labels = scores.shape[1]
    odds = np.empty(n_labels, np.float32)
    bits = odds.view(np.uint32)
    clip = scores.dtype.type(CLIP)
    one = scores.dtype.type(1)
    for i in range(scores.shape[0]):
        for j in range(n_labels):
            p = scores[i, j]
            odds[j] = max(p, clip) / max(one - p, clip)
        for j in range(n_labels):
            counts[j, (bits[j] >> np.uint32(ODDS_SHIFT)) - np.uint32(ODDS_FIRST)] += np.uint32(1)


@kernel(
    "void(const float32[:,::1], uint32[:,::1])",
    "void(const float64[:,::1], uint32[:,::1])",
    **_FAST,
)
def bin_margins(scores: Any, counts: Any) -> None:
    """Count the margins of each label in bins of equal width; the outer bins take the rest."""
    n_labels = scores.shape[1]
    bins = np.empty(n_labels, np.int32)
    for i in range(scores.shape[0]):
        for j in range(n_labels):
            at = (np.float64(scores[i, j]) + REACH) * PER_NAT
            bins[j] = np.int32(min(max(at, 0.0), MARGIN_BINS - 1.0))
        for j in range(n_labels):
            counts[j, bins[j]] += np.uint32(1)


@kernel(
    "void(const uint32[:,::1], uint32, int64[::1], int64[::1])",
    "void(const uint64[:,::1], uint64, int64[::1], int64[::1])",
)
def count_reaching(keys: Any, threshold: Any, per_label: Any, per_row: Any) -> None:
    """Count the keys that reach a threshold: added up per label, set per row."""
    for i in range(keys.shape[0]):
        count = np.int64(0)
        for j in range(keys.shape[1]):
            reaches = np.int64(keys[i, j] >= threshold)
            per_label[j] += reaches
            count += reaches
        per_row[i] = count
