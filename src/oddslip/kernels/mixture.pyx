"""Knots of mixtures of an isotonic map and a smooth one."""

from libc.math cimport fabs
from libc.stdint cimport int8_t, int64_t

from oddslip.kernels.maps cimport AFFINE, sigmoid, value_of

import numpy as np


cdef inline double _isotonic(
    double score, Py_ssize_t after, Py_ssize_t first, Py_ssize_t last, const double* x,
    const double* y,
) noexcept nogil:
    """The isotonic map at a score, ``after`` which is the next knot: linear, flat outside."""
    cdef Py_ssize_t above = min(max(after, first), last)
    cdef Py_ssize_t below = max(above - 1, first)
    cdef double width = x[above] - x[below], part = 1.0
    if width > 0.0:
        part = (score - x[below]) / width
        part = 0.0 if part != part else min(max(part, 0.0), 1.0)  # infinite ones have no part
    return y[below] + part * (y[above] - y[below])


cdef Py_ssize_t _place_grid(
    const double[::1] grid, const double[::1] scores, double a, double b, bint steep, bint margin,
    double* extra,
) noexcept nogil:
    """Scores of a mixture besides the isotonic knots, in order; returns how many."""
    cdef Py_ssize_t i, n = 0
    cdef Py_ssize_t n_grid = grid.shape[0] if steep else scores.shape[0]
    cdef double score
    if not margin:
        extra[0] = 0.0
        n = 1
    for i in range(n_grid):
        score = (grid[i] - b) / a if steep else scores[i]
        if steep and not margin:
            if fabs(score) >= 27.631021115928547:  # the clipped log-odds
                continue
            score = sigmoid(score)
        if margin and score > 0.0 and (n == 0 or extra[n - 1] < 0.0):
            extra[n] = 0.0
            n += 1
        extra[n] = score
        n += 1
    if not margin or extra[n - 1] < 0.0:
        extra[n] = 0.0 if margin else 1.0
        n += 1
    return n


def mix_knots(
    const int64_t[::1] indptr, const double[::1] x, const double[::1] y,
    const int8_t[::1] code, const double[::1] a, const double[::1] b, const double[::1] c,
    const double[::1] share, const double[::1] grid, const double[::1] grid_scores, bint margin,
    bint odds,
):
    """Knots, as indptr, x and y, of ``share`` of the isotonic map and the rest of the smooth one.

    Isotonic maps have the knots ``x[indptr[j]:indptr[j + 1]]``; smooth ones are those of
    `oddslip.kernels.maps`. A mixture has the isotonic knots, those at ``grid_scores``, which have
    the log-odds ``grid``, and the ends of the range of scores. If the smooth map is steeper than
    the identity, it has knots where that map has the values ``grid`` instead.
    """
    cdef Py_ssize_t j, i, g, start, first, last, after, n, n_labels = code.shape[0]
    cdef Py_ssize_t n_grid = grid.shape[0], n_ends = 1 if margin else 2
    cdef Py_ssize_t most = x.shape[0] + n_labels * (n_grid + n_ends)
    ends_of, scores, values = np.zeros(n_labels + 1, np.int64), np.empty(most), np.empty(most)
    cdef int64_t[::1] stops = ends_of
    cdef double[::1] xs = scores, ys = values, extra = np.empty(n_grid + n_ends)
    cdef const double* at = NULL
    cdef const double* levels = NULL
    cdef double score, value, level
    cdef bint steep
    if x.shape[0]:
        at, levels = &x[0], &y[0]
    n = 0
    with nogil:
        for j in range(n_labels):
            steep = code[j] == AFFINE and a[j] > 1.0
            g = _place_grid(grid, grid_scores, a[j], b[j], steep, margin, &extra[0])
            first, last = indptr[j], indptr[j + 1] - 1
            after, i, start, level = first, 0, n, 0.0
            while i < g or after <= last:
                if i >= g or (after <= last and at[after] <= extra[i]):
                    score = at[after]
                else:
                    score = extra[i]
                while i < g and extra[i] <= score:
                    i += 1
                while after <= last and at[after] <= score:
                    after += 1
                value = value_of(code[j], score, a[j], b[j], c[j], margin, odds)
                if odds:
                    value = sigmoid(value)
                if share[j] > 0.0:
                    value = share[j] * _isotonic(score, after, first, last, at, levels) + (
                        1.0 - share[j]
                    ) * value
                level = max(level, min(max(value, 0.0), 1.0))  # rounding must not turn it down
                xs[n] = score
                ys[n] = level
                n += 1
            stops[j + 1] = n
    return ends_of, scores[:n], values[:n]
