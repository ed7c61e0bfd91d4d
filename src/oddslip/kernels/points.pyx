"""Points of a summary: weighted log-odds with the moments of the bins, and sums over them.

Points are arrays of shape (fits, points), packed: those of positive weight come first. A frame has
two rows per feature, its center and 1 / its scale, as in `oddslip.kernels.logistic`.
"""

from libc.math cimport INFINITY, rint, sqrt
from libc.stdint cimport int64_t, uintptr_t

from oddslip.kernels.types cimport parts

import numpy as np


def place_points(parts_of_moments, const double[::1] low, const double[::1] width, double quantum):
    """Two points per bin with its moments, packed: points and weights, each (labels, points).

    ``parts_of_moments`` are arrays of shape (labels, bins, 4), which are added up label by label,
    so that the sum of large arrays is never in memory. Weights are multiples of ``quantum``, so
    that they add up without rounding. There are as many points as the fullest label needs; the rest
    of a row repeats its first point, without weight. A label without cells has a point of one
    quantum at 0.
    """
    cdef const double[:, :, ::1] moments = parts_of_moments[0]
    cdef Py_ssize_t j, i, k, n, n_labels = moments.shape[0], n_bins = moments.shape[1], most = 0
    cdef Py_ssize_t n_columns = parts(2 * n_bins, LANES) * LANES
    cdef Py_ssize_t part, n_parts = len(parts_of_moments)
    cdef Py_ssize_t n_powers = moments.shape[2], size = n_bins * n_powers
    cdef double count, mean, variance, spread, skew, half, upper, center, place
    cdef const double* cells
    cdef const double* more
    cdef double* out
    cdef double* mass
    cdef uintptr_t[::1] starts = np.empty(n_parts, np.uintp)
    for part in range(n_parts):
        moments = parts_of_moments[part]
        starts[part] = <uintptr_t> &moments[0, 0, 0]
    cdef double[::1] total = np.empty(size)
    cdef double* summed = &total[0]
    points, weights = np.empty((n_labels, n_columns)), np.empty((n_labels, n_columns))
    cdef double[:, ::1] places = points, masses = weights
    with nogil:
        for j in range(n_labels):
            out = &places[j, 0]
            mass = &masses[j, 0]
            n = 0
            for part in range(n_parts):
                more = <const double*> starts[part] + j * size
                for i in range(size):
                    summed[i] = more[i] if part == 0 else summed[i] + more[i]
            for i in range(n_bins):
                cells = summed + i * n_powers
                count = cells[0]
                if count <= 0.0:
                    continue
                mean = cells[1] / count
                variance = cells[2] / count - mean * mean
                center = i + 0.5
                spread = 0.0
                skew = 0.0
                half = 1.0
                if variance >= 1e-12:
                    spread = sqrt(variance)
                    skew = (cells[3] / count - 3.0 * mean * variance - mean * mean * mean) / (
                        spread * variance
                    )
                    half = sqrt(1.0 + 0.25 * skew * skew)
                upper = rint(count * (0.5 - skew / (4.0 * half)) / quantum) * quantum
                for k in range(2):
                    mass[n] = upper if k else count - upper
                    place = mean + spread * (0.5 * skew + (half if k else -half))
                    out[n] = low[j] + (center + min(max(place, -0.5), 0.5)) * width[j]
                    n += mass[n] > 0.0
            if n == 0:
                out[0] = 0.0
                mass[0] = quantum
                n = 1
            for i in range(n, n_columns):
                out[i] = out[0]
                mass[i] = 0.0
            most = max(most, n)
    most = parts(most, LANES) * LANES
    return points[:, :most], weights[:, :most]


def range_points(const double[:, :] points, const double[:, :] weights):
    """Lowest and highest point with a weight of every fit, (2, fits)."""
    cdef Py_ssize_t j, i
    cdef double low, high
    ends = np.empty((2, points.shape[0]))
    cdef double[:, ::1] out = ends
    with nogil:
        for j in range(points.shape[0]):
            low, high = INFINITY, -INFINITY
            for i in range(points.shape[1]):
                if weights[j, i] > 0.0:
                    low = min(low, points[j, i])
                    high = max(high, points[j, i])
            out[0, j], out[1, j] = low, high
    return ends


def mean_features(const double[:, :] points, const double[:, :] weights, bint beta):
    """Weighted means of the features of every fit, (features, fits)."""
    cdef Py_ssize_t j, i, n_fits = points.shape[0]
    means = np.zeros((2 if beta else 1, n_fits))
    cdef double[:, ::1] out = means
    cdef double[::1] scratch = np.empty(scratch_size(points.shape[1]))
    cdef double total, first, second
    cdef Points some
    with nogil:
        for j in range(n_fits):
            load_points(&some, &scratch[0], &points[j, 0], &weights[j, 0], points.shape[1], beta)
            total = 0.0
            first = 0.0
            second = 0.0
            for i in range(some.n):
                total += some.weights[i]
                first += some.weights[i] * some.u[i]
                if beta:
                    second += some.weights[i] * some.v[i]
            out[0, j] = first / total
            if beta:
                out[1, j] = second / total
    return means


def sum_points(
    const double[:, :] points, const double[:, :] weights, const int64_t[::1] fits,
    const double[:, :] frame, const double[:, :] theta,
):
    """Sums of the loss of some fits at ``theta``, as in `oddslip.kernels.logistic`."""
    cdef Py_ssize_t j, k, at, n_fits = fits.shape[0]
    cdef bint beta = theta.shape[0] == 3
    cdef int n_sums = BETA if beta else AFFINE
    sums = np.empty((n_sums, n_fits))
    cdef double[:, ::1] out = sums
    cdef double[::1] scratch = np.empty(scratch_size(points.shape[1]))
    cdef double here[3]
    cdef double total[BETA]
    cdef Points some
    with nogil:
        for j in range(n_fits):
            at = fits[j]
            load_points(&some, &scratch[0], &points[at, 0], &weights[at, 0], points.shape[1], beta)
            frame_points(some.u, some.n, frame[0, j], frame[1, j])
            for k in range(theta.shape[0]):
                here[k] = theta[k, j]
            if beta:
                frame_points(some.v, some.n, frame[2, j], frame[3, j])
                sum_beta(&some, here, total)
            else:
                sum_affine(&some, here[0], here[1], total)
            for k in range(n_sums):
                out[k, j] = total[k]
    return sums
