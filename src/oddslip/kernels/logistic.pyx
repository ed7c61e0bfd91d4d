"""Sums over cells for logistic fits, for all labels of a block at once.

A row is taken in strips of labels that stay in the first cache level. Nothing here knows what was
true, save `range_rows` and `add_positives`: the gradient of the likelihood is a sum over all cells
minus a sum over the positives, and the latter does not change with the parameters.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t

from oddslip.kernels.arithmetic cimport clip_of, exp_of, log1p_of, log_odds_of, log_of, tail_of
from oddslip.kernels.types cimport parts, score_t

import numpy as np

cdef enum:
    STRIP = 256
    SHORT = 64  # labels whose bins stay in the second cache level
    PITCH = STRIP + 8  # avoids sums of a label a page apart, which alias in the cache
    MOMENTS = 4
    AFFINE = 6
    BETA = 10

CLIP = 1e-12  # probabilities are clipped to [CLIP, 1 - CLIP]
LOWEST = -708.0  # exp of lower numbers is denormal
N_MOMENTS = MOMENTS  # per bin: count, and sums of the first three powers of the place in the bin
N_AFFINE = AFFINE
N_BETA = BETA


def range_rows(
    const score_t[:, ::1] scores, const int64_t[::1] indptr, const int32_t[::1] indices,
    double[:, ::1] found,
):
    """Widen ``found``: lowest and highest score of the negatives, then of the positives.

    Its last row turns NaN where a label has a cell that is not finite.
    """
    cdef Py_ssize_t i, j, at, n_labels = scores.shape[1]
    if n_labels == 0:
        return
    cdef double[::1] scratch = np.empty(n_labels)
    cdef double* row = &scratch[0]
    cdef double* low = &found[0, 0]
    cdef double* high = &found[1, 0]
    cdef double* spoiled = &found[4, 0]
    cdef const score_t* cells
    with nogil:
        for i in range(scores.shape[0]):
            cells = &scores[i, 0]
            for j in range(n_labels):
                row[j] = cells[j]
                spoiled[j] += <double> cells[j] * 0.0
            for at in range(indptr[i], indptr[i + 1]):
                j = indices[at]
                found[2, j] = min(found[2, j], row[j])
                found[3, j] = max(found[3, j], row[j])
                row[j] = low[j]  # a positive must not widen the range of the negatives
            for j in range(n_labels):
                low[j] = min(low[j], row[j])
            for at in range(indptr[i], indptr[i + 1]):
                row[indices[at]] = high[indices[at]]
            for j in range(n_labels):
                high[j] = max(high[j], row[j])


def add_moments(
    const score_t[:, ::1] scores, bint probable, const double[::1] low,
    const double[::1] per_bin, double[:, :, ::1] moments, const double[::1] times=None,
):
    """Add every cell's log-odds to the moments of its bin, (labels, bins, N_MOMENTS).

    Label j's bins start at ``low[j]`` and there are ``per_bin[j]`` of them to a unit. A cell's
    place runs from -1/2 to 1/2 across its bin. A row counts ``times``, or once.
    """
    cdef bint weighed = times is not None
    cdef double n = 1.0
    cdef Py_ssize_t n_labels = moments.shape[0], n_bins = moments.shape[1]
    cdef Py_ssize_t i, t, piece, first, width
    cdef double top = n_bins - 0.5, at, u
    cdef double strip[SHORT]
    cdef double lows[SHORT]
    cdef double per[SHORT]
    cdef int32_t bins[SHORT]
    cdef const score_t* row
    cdef double* part
    cdef double* cell
    with nogil:
        for piece in range(parts(n_labels, SHORT)):
            first = piece * SHORT
            width = min(<Py_ssize_t> SHORT, n_labels - first)
            for t in range(width):
                lows[t] = low[first + t]
                per[t] = per_bin[first + t]
            part = &moments[first, 0, 0]
            for i in range(scores.shape[0]):
                if weighed:
                    n = times[i]
                row = &scores[i, first]
                for t in range(width):
                    strip[t] = row[t]
                if probable:
                    for t in range(width):
                        strip[t] = log_odds_of(clip_of(strip[t]))
                for t in range(width):
                    at = (strip[t] - lows[t]) * per[t]
                    bins[t] = <int32_t> min(max(at, 0.0), top)
                    strip[t] = at - <double> bins[t] - 0.5
                for t in range(width):
                    cell = part + (t * n_bins + bins[t]) * MOMENTS
                    u = strip[t]
                    cell[0] += n
                    cell[1] += n * u
                    cell[2] += n * u * u
                    cell[3] += n * u * u * u


def add_positives(
    const score_t[:, ::1] scores, bint probable, const int64_t[::1] indptr,
    const int32_t[::1] indices, const double[:, ::1] center, double[:, ::1] sums,
    const double[::1] times=None,
):
    """Per label: number of positives, and their sums of log-odds, ln s and -ln(1 - s).

    Each is measured from its own ``center``, so that little is lost when it is moved. A row counts
    ``times``, or once.
    """
    cdef bint weighed = times is not None
    cdef double n = 1.0
    cdef Py_ssize_t i, j, at
    cdef double s, z, log_s, log_rest
    with nogil:
        for i in range(scores.shape[0]):
            if weighed:
                n = times[i]
            for at in range(indptr[i], indptr[i + 1]):
                j = indices[at]
                s = scores[i, j]
                if probable:
                    s = clip_of(s)
                    z = log_odds_of(s)
                    log_s = log_of(s)
                    log_rest = -log1p_of(-s)
                else:
                    z = s
                    log_s = min(s, 0.0) - tail_of(s)
                    log_rest = max(s, 0.0) + tail_of(s)
                sums[0, j] += n
                sums[1, j] += n * (z - center[0, j])
                sums[2, j] += n * (log_s - center[1, j])
                sums[3, j] += n * (log_rest - center[2, j])


cdef inline void _load(
    const score_t* row, const int64_t* columns, Py_ssize_t width, bint whole, double* strip
) noexcept nogil:
    """The next cells of a row as float64: a run of labels, or the listed ones."""
    cdef Py_ssize_t t
    if whole:
        for t in range(width):
            strip[t] = row[columns[0] + t]
    else:
        for t in range(width):
            strip[t] = row[columns[t]]


cdef inline void _lay(
    const double[:, ::1] table, Py_ssize_t first, Py_ssize_t width, double* laid
) noexcept nogil:
    """Rows of a table end to end, PITCH apart.

    Within one array of known spacing the compiler sees that rows do not overlap; for arrays of
    their own it gives up and goes cell by cell.
    """
    cdef Py_ssize_t k, t
    for k in range(table.shape[0]):
        for t in range(width):
            laid[k * PITCH + t] = table[k, first + t]


cdef inline void _take_up(
    const double* laid, Py_ssize_t first, Py_ssize_t width, double[:, ::1] table
) noexcept nogil:
    """Add the padded sums to the rows of the table."""
    cdef Py_ssize_t k, t
    for k in range(table.shape[0]):
        for t in range(width):
            table[k, first + t] += laid[k * PITCH + t]


def add_affine_sums(
    const score_t[:, ::1] scores, bint probable, const int64_t[::1] columns,
    const double[:, ::1] frame, const double[:, ::1] theta, double[:, ::1] sums,
    const double[::1] times=None,
):
    """Gradient and curvature of the labels in ``columns`` at ``theta`` (intercept, slope).

    The feature is u = (z - frame[0]) * frame[1], the logit theta[0] + theta[1] * u. Rows of
    ``sums``: logits that are not negative, residuals towards them, p u, w, w u, w u u with
    w = p (1 - p). The first two add up to the sum of p without losing a saturated cell's digits.
    A row counts ``times``, or once.
    """
    cdef bint weighed = times is not None
    cdef double n = 1.0
    cdef Py_ssize_t n_columns = columns.shape[0]
    cdef bint whole = n_columns == scores.shape[1], high
    cdef Py_ssize_t i, t, piece, first, width
    cdef double strip[STRIP]
    cdef double given[4 * PITCH]
    cdef double laid[AFFINE * PITCH]
    cdef double u, logit, e, q, w
    with nogil:
        for piece in range(parts(n_columns, STRIP)):
            first = piece * STRIP
            width = min(<Py_ssize_t> STRIP, n_columns - first)
            _lay(frame, first, width, given)
            _lay(theta, first, width, given + 2 * PITCH)
            for t in range(AFFINE * PITCH):
                laid[t] = 0.0
            for i in range(scores.shape[0]):
                if weighed:
                    n = times[i]
                _load(&scores[i, 0], &columns[first], width, whole, strip)
                if probable:
                    for t in range(width):
                        strip[t] = log_odds_of(clip_of(strip[t]))
                for t in range(width):
                    u = (strip[t] - given[t]) * given[PITCH + t]
                    logit = given[2 * PITCH + t] + given[3 * PITCH + t] * u
                    e = exp_of(max(-fabs(logit), -708.0))
                    q = e / (1.0 + e)  # the smaller of p and 1 - p
                    high = logit >= 0.0
                    w = n * q * (1.0 - q)
                    laid[t] += n if high else 0.0
                    laid[PITCH + t] += n * (-q if high else q)
                    laid[2 * PITCH + t] += n * (1.0 - q if high else q) * u
                    laid[3 * PITCH + t] += w
                    laid[4 * PITCH + t] += w * u
                    laid[5 * PITCH + t] += w * u * u
            _take_up(laid, first, width, sums)


def add_beta_sums(
    const score_t[:, ::1] scores, bint probable, const int64_t[::1] columns,
    const double[:, ::1] frame, const double[:, ::1] theta, double[:, ::1] sums,
    const double[::1] times=None,
):
    """As `add_affine_sums`, for theta (c, a, b) and the two features of beta calibration.

    Rows of ``sums``: logits that are not negative, residuals, p u, p v, then the upper triangle
    of the curvature for (1, u, v): w, wu, wv, wuu, wuv, wvv.
    """
    cdef bint weighed = times is not None
    cdef double n = 1.0
    cdef Py_ssize_t n_columns = columns.shape[0]
    cdef bint whole = n_columns == scores.shape[1], high
    cdef Py_ssize_t i, t, piece, first, width
    cdef double strip[2 * PITCH]
    cdef double given[7 * PITCH]
    cdef double laid[BETA * PITCH]
    cdef double s, tail, u, v, logit, e, q, p, w
    with nogil:
        for piece in range(parts(n_columns, STRIP)):
            first = piece * STRIP
            width = min(<Py_ssize_t> STRIP, n_columns - first)
            _lay(frame, first, width, given)
            _lay(theta, first, width, given + 4 * PITCH)
            for t in range(BETA * PITCH):
                laid[t] = 0.0
            for i in range(scores.shape[0]):
                if weighed:
                    n = times[i]
                _load(&scores[i, 0], &columns[first], width, whole, strip)
                if probable:
                    for t in range(width):
                        s = clip_of(strip[t])
                        strip[t] = log_of(s)
                        strip[PITCH + t] = -log1p_of(-s)
                else:
                    for t in range(width):
                        s = strip[t]
                        tail = tail_of(s)
                        strip[t] = min(s, 0.0) - tail
                        strip[PITCH + t] = max(s, 0.0) + tail
                for t in range(width):
                    u = (strip[t] - given[t]) * given[PITCH + t]
                    v = (strip[PITCH + t] - given[2 * PITCH + t]) * given[3 * PITCH + t]
                    logit = (
                        given[4 * PITCH + t] + given[5 * PITCH + t] * u + given[6 * PITCH + t] * v
                    )
                    e = exp_of(max(-fabs(logit), -708.0))
                    q = e / (1.0 + e)
                    high = logit >= 0.0
                    p = n * (1.0 - q if high else q)
                    w = n * q * (1.0 - q)
                    laid[t] += n if high else 0.0
                    laid[PITCH + t] += n * (-q if high else q)
                    laid[2 * PITCH + t] += p * u
                    laid[3 * PITCH + t] += p * v
                    laid[4 * PITCH + t] += w
                    laid[5 * PITCH + t] += w * u
                    laid[6 * PITCH + t] += w * v
                    laid[7 * PITCH + t] += w * u * u
                    laid[8 * PITCH + t] += w * u * v
                    laid[9 * PITCH + t] += w * v * v
            _take_up(laid, first, width, sums)
