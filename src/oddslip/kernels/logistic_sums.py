"""Sums over cells that logistic fits are made of, for all labels of a block at once.

A row is taken in strips of labels that stay in the first cache level. Nothing here knows what was
true, save `range_rows` and `add_positives`: the gradient of the likelihood is a sum over all cells
minus a sum over the positives, and the latter does not change with the parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.kernels.compiling import inlined, kernel
from oddslip.kernels.logistic_pieces import (
    LOWEST,
    clip_of,
    exp_of,
    log1p_of,
    log_odds_of,
    log_of,
)

STRIP = 256
NARROW = 32  # labels whose moments stay in the second cache level
N_MOMENTS = 4  # per bin: count, and sums of the first three powers of the place in the bin
N_AFFINE, N_BETA = 6, 10

_FUSED = {"contract"}  # let a * b + c be one instruction; nothing else is relaxed


@kernel(
    "void(const float32[:,::1], const int64[::1], const int32[::1], float64[:,::1])",
    "void(const float64[:,::1], const int64[::1], const int32[::1], float64[:,::1])",
    fastmath=_FUSED,
)
def range_rows(scores: Any, indptr: Any, indices: Any, found: Any) -> None:
    """Widen ``found``: lowest and highest score of the negatives, then of the positives.

    Its last row turns NaN where a label has a cell that is not finite.
    """
    n_labels = scores.shape[1]
    row = np.empty(n_labels, np.float64)
    for i in range(scores.shape[0]):
        for j in range(n_labels):
            row[j] = scores[i, j]
            found[4, j] += row[j] * 0.0
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            found[2, j] = min(found[2, j], row[j])
            found[3, j] = max(found[3, j], row[j])
            row[j] = found[0, j]  # a positive must not move the negatives' range
        for j in range(n_labels):
            found[0, j] = min(found[0, j], row[j])
        for at in range(indptr[i], indptr[i + 1]):
            row[indices[at]] = found[1, indices[at]]
        for j in range(n_labels):
            # A first row's positive still holds the empty range's infinity here.
            found[1, j] = max(found[1, j], row[j])


@kernel(
    "void(const float32[:,::1], boolean, const float64[::1], const float64[::1], "
    "float64[:,:,::1])",
    "void(const float64[:,::1], boolean, const float64[::1], const float64[::1], "
    "float64[:,:,::1])",
    fastmath=_FUSED,
)
def add_moments(scores: Any, probable: Any, low: Any, per_bin: Any, moments: Any) -> None:
    """Add every cell's log-odds to the moments of its bin, (labels, bins, N_MOMENTS).

    Label j's bins start at ``low[j]`` and there are ``per_bin[j]`` of them to a unit. A cell's
    place runs from -1/2 to 1/2 across its bin.
    """
    n, n_labels = scores.shape
    last = np.int64(moments.shape[1] - 1)
    bins = np.empty(NARROW, np.int64)
    place = np.empty(NARROW, np.float64)
    for first in range(0, n_labels, NARROW):
        width = min(NARROW, n_labels - first)
        for i in range(n):
            for t in range(width):
                z = np.float64(scores[i, first + t])
                if probable:
                    z = log_odds_of(clip_of(z))
                at = (z - low[first + t]) * per_bin[first + t]
                b = min(max(np.int64(at), 0), last)
                bins[t] = b
                place[t] = at - b - 0.5
            for t in range(width):
                u = place[t]
                bin_moments = moments[first + t, bins[t]]
                bin_moments[0] += 1.0
                bin_moments[1] += u
                bin_moments[2] += u * u
                bin_moments[3] += u * u * u


@inlined
def _features(s, probable):  # type: ignore[no-untyped-def]
    """ln s and -ln(1 - s) of a probability or of a margin."""
    if probable:
        s = clip_of(s)
        return log_of(s), -log1p_of(-s)
    tail = log1p_of(exp_of(max(-abs(s), LOWEST)))
    return min(s, 0.0) - tail, max(s, 0.0) + tail


@kernel(
    "void(const float32[:,::1], boolean, const int64[::1], const int32[::1], const float64[:,::1],"
    " float64[:,::1])",
    "void(const float64[:,::1], boolean, const int64[::1], const int32[::1], const float64[:,::1],"
    " float64[:,::1])",
)
def add_positives(
    scores: Any, probable: Any, indptr: Any, indices: Any, center: Any, sums: Any
) -> None:
    """Per label: number of positives, and their sums of log-odds, ln s and -ln(1 - s).

    Each is measured from its own ``center``, so that little is lost when it is moved.
    """
    for i in range(scores.shape[0]):
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            s = np.float64(scores[i, j])
            log_s, log_rest = _features(s, probable)
            z = log_odds_of(clip_of(s)) if probable else s
            sums[0, j] += 1.0
            sums[1, j] += z - center[0, j]
            sums[2, j] += log_s - center[1, j]
            sums[3, j] += log_rest - center[2, j]


@inlined
def _load(row, columns, first, width, whole, strip):  # type: ignore[no-untyped-def]
    """The next cells of a row as float64: a run of labels, or the listed ones."""
    if whole:
        for t in range(width):
            strip[t] = row[first + t]
    else:
        for t in range(width):
            strip[t] = row[columns[first + t]]


_SUMS = "boolean, const int64[::1], const float64[:,::1], const float64[:,::1], float64[:,::1])"


@kernel(
    "void(const float32[:,::1], " + _SUMS,
    "void(const float64[:,::1], " + _SUMS,
    fastmath=_FUSED,
)
def add_affine_sums(
    scores: Any, probable: Any, columns: Any, frame: Any, theta: Any, sums: Any
) -> None:
    """Gradient and curvature of the labels in ``columns`` at ``theta`` (intercept, slope).

    The feature is u = (z - frame[0]) * frame[1], the logit theta[0] + theta[1] * u. Rows of
    ``sums``: logits that are not negative, residuals towards them, p u, w, w u, w u u with
    w = p (1 - p). The first two add up to the sum of p without losing a saturated cell's digits.
    """
    n_columns = columns.shape[0]
    whole = n_columns == scores.shape[1]
    strip = np.empty(STRIP, np.float64)
    for first in range(0, n_columns, STRIP):
        width = min(STRIP, n_columns - first)
        for i in range(scores.shape[0]):
            _load(scores[i], columns, first, width, whole, strip)
            if probable:
                for t in range(width):
                    strip[t] = log_odds_of(clip_of(strip[t]))
            for t in range(width):
                j = first + t
                u = (strip[t] - frame[0, j]) * frame[1, j]
                logit = theta[0, j] + theta[1, j] * u
                e = exp_of(max(-abs(logit), LOWEST))
                q = e / (1.0 + e)  # the smaller of p and 1 - p
                high = logit >= 0.0
                w = q * (1.0 - q)
                sums[0, j] += 1.0 if high else 0.0
                sums[1, j] += -q if high else q
                sums[2, j] += (1.0 - q if high else q) * u
                sums[3, j] += w
                sums[4, j] += w * u
                sums[5, j] += w * u * u


@kernel(
    "void(const float32[:,::1], " + _SUMS,
    "void(const float64[:,::1], " + _SUMS,
    fastmath=_FUSED,
)
def add_beta_sums(
    scores: Any, probable: Any, columns: Any, frame: Any, theta: Any, sums: Any
) -> None:
    """As `add_affine_sums`, for theta (c, a, b) and the two features of beta calibration.

    Rows of ``sums``: logits that are not negative, residuals, p u, p v, then the upper triangle
    of the curvature for (1, u, v): w, wu, wv, wuu, wuv, wvv.
    """
    n_columns = columns.shape[0]
    whole = n_columns == scores.shape[1]
    strip = np.empty(STRIP, np.float64)
    other = np.empty(STRIP, np.float64)
    for first in range(0, n_columns, STRIP):
        width = min(STRIP, n_columns - first)
        for i in range(scores.shape[0]):
            _load(scores[i], columns, first, width, whole, strip)
            if probable:
                for t in range(width):
                    strip[t], other[t] = _features(strip[t], True)
            else:
                for t in range(width):
                    strip[t], other[t] = _features(strip[t], False)
            for t in range(width):
                j = first + t
                u = (strip[t] - frame[0, j]) * frame[1, j]
                v = (other[t] - frame[2, j]) * frame[3, j]
                logit = theta[0, j] + theta[1, j] * u + theta[2, j] * v
                e = exp_of(max(-abs(logit), LOWEST))
                q = e / (1.0 + e)
                high = logit >= 0.0
                p = 1.0 - q if high else q
                w = q * (1.0 - q)
                sums[0, j] += 1.0 if high else 0.0
                sums[1, j] += -q if high else q
                sums[2, j] += p * u
                sums[3, j] += p * v
                sums[4, j] += w
                sums[5, j] += w * u
                sums[6, j] += w * v
                sums[7, j] += w * u * u
                sums[8, j] += w * u * v
                sums[9, j] += w * v * v
