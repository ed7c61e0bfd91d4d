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
N_MOMENTS = 4  # per bin: count, and sums of the first three powers of the place in the bin
N_AFFINE, N_BETA = 6, 10

# Let a * b + c be one instruction, nothing else relaxed; no branch for a division by zero.
_PLAIN: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy"}


@kernel(
    "void(const float32[:,::1], const int64[::1], const int32[::1], float64[:,::1])",
    "void(const float64[:,::1], const int64[::1], const int32[::1], float64[:,::1])",
    **_PLAIN,
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
            found[1, j] = max(found[1, j], row[j])


@kernel(
    "void(const float32[:,::1], boolean, const float64[::1], const float64[::1], float64[:,:,::1])",
    "void(const float64[:,::1], boolean, const float64[::1], const float64[::1], float64[:,:,::1])",
    **_PLAIN,
)
def add_moments(scores: Any, probable: Any, low: Any, per_bin: Any, moments: Any) -> None:
    """Add every cell's log-odds to the moments of its bin, (labels, bins, N_MOMENTS).

    Label j's bins start at ``low[j]`` and there are ``per_bin[j]`` of them to a unit. A cell's
    place runs from -1/2 to 1/2 across its bin.
    """
    n_labels, n_bins = moments.shape[:2]
    top = n_bins - 0.5
    flat = moments.reshape(moments.size)
    strip = np.empty(3 * STRIP, np.float64)
    cells = np.empty(STRIP, np.int64)
    for first in range(0, n_labels, STRIP):
        width = min(STRIP, n_labels - first)
        for t in range(width):
            strip[STRIP + t] = low[first + t]
            strip[2 * STRIP + t] = per_bin[first + t]
        part = flat[first * n_bins * N_MOMENTS :]
        for i in range(scores.shape[0]):
            row = scores[i, first : first + width]
            for t in range(width):
                strip[t] = row[t]
            if probable:
                for t in range(width):
                    strip[t] = log_odds_of(clip_of(strip[t]))
            for t in range(width):
                at = (strip[t] - strip[STRIP + t]) * strip[2 * STRIP + t]
                whole = np.floor(min(max(at, 0.0), top))
                strip[t] = at - whole - 0.5
                cells[t] = (np.int64(whole) + t * n_bins) * N_MOMENTS
            for t in range(width):
                cell = cells[t]
                u = strip[t]
                part[cell] += 1.0
                part[cell + 1] += u
                part[cell + 2] += u * u
                part[cell + 3] += u * u * u


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


@inlined
def _lay(table, first, width, laid):  # type: ignore[no-untyped-def]
    """Rows of a table end to end, STRIP apart.

    Within one array of known spacing the compiler sees that rows do not overlap; for arrays of
    their own it gives up and goes cell by cell.
    """
    for k in range(table.shape[0]):
        for t in range(width):
            laid[k * STRIP + t] = table[k, first + t]


@inlined
def _take_up(laid, first, width, table):  # type: ignore[no-untyped-def]
    """Add what was laid out to the rows of the table."""
    for k in range(table.shape[0]):
        for t in range(width):
            table[k, first + t] += laid[k * STRIP + t]


_SUMS = "boolean, const int64[::1], const float64[:,::1], const float64[:,::1], float64[:,::1])"


@kernel(
    "void(const float32[:,::1], " + _SUMS,
    "void(const float64[:,::1], " + _SUMS,
    **_PLAIN,
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
    given = np.empty(4 * STRIP, np.float64)
    for first in range(0, n_columns, STRIP):
        width = min(STRIP, n_columns - first)
        _lay(frame, first, width, given)
        _lay(theta, first, width, given[2 * STRIP :])
        laid = np.zeros(N_AFFINE * STRIP, np.float64)
        for i in range(scores.shape[0]):
            _load(scores[i], columns, first, width, whole, strip)
            if probable:
                for t in range(width):
                    strip[t] = log_odds_of(clip_of(strip[t]))
            for t in range(width):
                u = (strip[t] - given[t]) * given[STRIP + t]
                logit = given[2 * STRIP + t] + given[3 * STRIP + t] * u
                e = exp_of(max(-abs(logit), LOWEST))
                q = e / (1.0 + e)  # the smaller of p and 1 - p
                high = logit >= 0.0
                w = q * (1.0 - q)
                laid[t] += 1.0 if high else 0.0
                laid[STRIP + t] += -q if high else q
                laid[2 * STRIP + t] += (1.0 - q if high else q) * u
                laid[3 * STRIP + t] += w
                laid[4 * STRIP + t] += w * u
                laid[5 * STRIP + t] += w * u * u
        _take_up(laid, first, width, sums)


@kernel(
    "void(const float32[:,::1], " + _SUMS,
    "void(const float64[:,::1], " + _SUMS,
    **_PLAIN,
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
    strip = np.empty(2 * STRIP, np.float64)
    given = np.empty(7 * STRIP, np.float64)
    for first in range(0, n_columns, STRIP):
        width = min(STRIP, n_columns - first)
        _lay(frame, first, width, given)
        _lay(theta, first, width, given[4 * STRIP :])
        laid = np.zeros(N_BETA * STRIP, np.float64)
        for i in range(scores.shape[0]):
            _load(scores[i], columns, first, width, whole, strip)
            if probable:
                for t in range(width):
                    strip[t], strip[STRIP + t] = _features(strip[t], True)
            else:
                for t in range(width):
                    strip[t], strip[STRIP + t] = _features(strip[t], False)
            for t in range(width):
                u = (strip[t] - given[t]) * given[STRIP + t]
                v = (strip[STRIP + t] - given[2 * STRIP + t]) * given[3 * STRIP + t]
                logit = given[4 * STRIP + t] + given[5 * STRIP + t] * u + given[6 * STRIP + t] * v
                e = exp_of(max(-abs(logit), LOWEST))
                q = e / (1.0 + e)
                high = logit >= 0.0
                p = 1.0 - q if high else q
                w = q * (1.0 - q)
                laid[t] += 1.0 if high else 0.0
                laid[STRIP + t] += -q if high else q
                laid[2 * STRIP + t] += p * u
                laid[3 * STRIP + t] += p * v
                laid[4 * STRIP + t] += w
                laid[5 * STRIP + t] += w * u
                laid[6 * STRIP + t] += w * v
                laid[7 * STRIP + t] += w * u * u
                laid[8 * STRIP + t] += w * u * v
                laid[9 * STRIP + t] += w * v * v
        _take_up(laid, first, width, sums)
