"""Rounds of the hierarchical fit: sums of every label's loss, and what all labels share.

A row of ``state`` is a `Label`. A row of ``design`` holds what a label's level is linear in: 1, the
label-free shift, the log-odds of the prior, ln w, and the center, whose coefficient is the common
slope. See `oddslip.calibrators.logistic.hierarchy`.
"""

from libc.math cimport INFINITY, fabs, log1p, sqrt

from oddslip.kernels.points cimport (
    AFFINE,
    Points,
    load_centered,
    scratch_size,
    sum_affine,
)

import numpy as np

cdef enum:
    SHARED = 5  # parameters that labels share: four of the level, and the slope
    STATE = 10

cdef double SETTLED = 40.0  # logits beyond it have no weight
cdef double LEAST = 1e-3  # maps must increase, to keep the order of rows within a label
cdef double TINY = 2.2250738585072014e-308

N_SHARED = SHARED
N_STATE = STATE
MIN_SLOPE = LEAST

cdef struct Matrix:  # symmetric, 2 x 2
    double aa
    double ab
    double bb

cdef struct Label:
    double level  # at the center
    double slope
    double level_gradient
    double slope_gradient
    Matrix curvature
    double trust  # weight of the departure: small if it is far
    double leverage  # weight of the label: small if a covariate is far from the others'
    double reach  # largest distance of a point from the center


cdef inline Matrix _inverse(Matrix m) noexcept nogil:
    """The inverse of a positive definite matrix, scaled to avoid overflow."""
    cdef double a = 1.0 / sqrt(m.aa), b = 1.0 / sqrt(m.bb)
    cdef double between = m.ab * a * b
    cdef double rest = max(1.0 - between * between, 1e-14)
    return Matrix(a * a / rest, -between * a * b / rest, b * b / rest)


cdef inline Matrix _bend(const Label* label, const Matrix* precision) noexcept nogil:
    """Curvature of the penalised loss."""
    return Matrix(
        label.curvature.aa + precision.aa * label.trust,
        label.curvature.ab + precision.ab * label.trust,
        label.curvature.bb + precision.bb * label.trust,
    )


cdef inline double _moved(const Label* label, double level, double slope) noexcept nogil:
    """How far a step moves the logits of a label that have weight."""
    cdef double within = min(label.reach, (SETTLED + fabs(label.level)) / label.slope)
    return fabs(level) + fabs(slope) * within


cdef inline double _level_of(const double* design, const double* beta) noexcept nogil:
    cdef double level = 0.0
    cdef int k
    for k in range(SHARED):
        level += design[k] * beta[k]
    return level


def sum_labels(
    const double[:, :] points, const double[:, :] weights, const double[:, ::1] design,
    const double[:, :] totals, double[:, ::1] state,
):
    """Set gradient and curvature of every label's loss.

    ``totals`` has shape (2, labels): the positives, and the sum of their log-odds from the center.
    """
    cdef Py_ssize_t j
    cdef double[::1] scratch = np.empty(scratch_size(points.shape[1]))
    cdef double sums[AFFINE]
    cdef Points some
    cdef Label* label
    with nogil:
        for j in range(points.shape[0]):
            label = <Label*> &state[j, 0]
            load_centered(
                &some, &scratch[0], &points[j, 0], &weights[j, 0], points.shape[1],
                design[j, SHARED - 1],
            )
            sum_affine(&some, label.level, label.slope, sums)
            label.level_gradient = (sums[0] - totals[0, j]) + sums[1]
            label.slope_gradient = sums[2] - totals[1, j]
            label.curvature = Matrix(sums[3], sums[4], sums[5])


def pool_labels(
    const double[:, ::1] design, const double[:, ::1] state, const double[:, :] precision
):
    """Weights, (5, 5), and pull, (5,), of the least squares for the shared parameters.

    Each label is an observation of its parameters at the minimum of the quadratic, with its
    curvature as precision. The spread of the prior reduces its weight.
    """
    cdef Py_ssize_t j
    cdef int a, b
    cdef Matrix inside = Matrix(precision[0, 0], precision[0, 1], precision[1, 1])
    cdef Matrix c, p
    cdef double s00, s01, s10, s11, w00, w01, w10, w11, at0, at1, pull0, pull1, side
    cdef const Label* label
    cdef const double* d
    matrix, right = np.zeros((SHARED, SHARED)), np.zeros(SHARED)
    cdef double[:, ::1] m = matrix
    cdef double[::1] r = right
    with nogil:
        for j in range(state.shape[0]):
            label = <const Label*> &state[j, 0]
            d = &design[j, 0]
            c = label.curvature
            p = _inverse(_bend(label, &inside))
            s00 = 1.0 - (c.aa * p.aa + c.ab * p.ab)
            s01 = -(c.aa * p.ab + c.ab * p.bb)
            s10 = -(c.ab * p.aa + c.bb * p.ab)
            s11 = 1.0 - (c.ab * p.ab + c.bb * p.bb)
            w00 = label.leverage * (s00 * c.aa + s01 * c.ab)
            w01 = label.leverage * (s00 * c.ab + s01 * c.bb)
            w10 = label.leverage * (s10 * c.aa + s11 * c.ab)
            w11 = label.leverage * (s10 * c.ab + s11 * c.bb)
            at0 = c.aa * label.level + c.ab * label.slope - label.level_gradient
            at1 = c.ab * label.level + c.bb * label.slope - label.slope_gradient
            pull0 = label.leverage * (s00 * at0 + s01 * at1)
            pull1 = label.leverage * (s10 * at0 + s11 * at1)
            for a in range(SHARED):
                for b in range(SHARED):
                    m[a, b] += d[a] * w00 * d[b]
                m[a, SHARED - 1] += d[a] * w01
                m[SHARED - 1, a] += w10 * d[a]
                r[a] += d[a] * pull0
            m[SHARED - 1, SHARED - 1] += w11
            r[SHARED - 1] += pull1
    return matrix, right


def largest_move(
    const double[:, ::1] design, const double[:, ::1] state, const double[::1] step
):
    """How far a step of the shared parameters moves a logit, at most; by leverage."""
    cdef Py_ssize_t j
    cdef double largest = 0.0, moved
    cdef const Label* label
    with nogil:
        for j in range(state.shape[0]):
            label = <const Label*> &state[j, 0]
            moved = _moved(label, _level_of(&design[j, 0], &step[0]), step[SHARED - 1])
            largest = max(largest, label.leverage * moved)
    return largest


def step_labels(
    const double[:, ::1] design, double[:, ::1] state, const double[::1] beta,
    const double[:, :] precision, double freedom,
):
    """Take a step towards each label's most probable map, and set its trust.

    Slopes stay at `MIN_SLOPE` or above. Returns the expected squares of the departures, (2, 2),
    summed by leverage and trust, and the largest entry of a step.
    """
    cdef Py_ssize_t j
    cdef Matrix inside = Matrix(precision[0, 0], precision[0, 1], precision[1, 1])
    cdef Matrix bend, inverse, second
    cdef double far0, far1, g0, g1, step0, step1, moved, share, weight, distance, largest = 0.0
    cdef Matrix squares = Matrix(0.0, 0.0, 0.0)
    cdef Label* label
    with nogil:
        for j in range(state.shape[0]):
            label = <Label*> &state[j, 0]
            far0 = label.level - _level_of(&design[j, 0], &beta[0])
            far1 = label.slope - beta[SHARED - 1]
            g0 = label.level_gradient + label.trust * (inside.aa * far0 + inside.ab * far1)
            g1 = label.slope_gradient + label.trust * (inside.ab * far0 + inside.bb * far1)
            bend = _bend(label, &inside)
            inverse = _inverse(bend)
            step0 = -(inverse.aa * g0 + inverse.ab * g1)
            step1 = -(inverse.ab * g0 + inverse.bb * g1)
            if label.slope + step1 < LEAST:
                step1 = LEAST - label.slope
                step0 = -(g0 + bend.ab * step1) / bend.aa
            # A logit moved by r changes its curvature by at most e^r, so with this share of the
            # step the loss never rises.
            moved = _moved(label, step0, step1)
            share = log1p(moved) / max(moved, TINY)
            step0 *= share
            step1 *= share
            largest = max(largest, max(fabs(step0), fabs(step1)))
            label.level += step0
            label.slope += step1
            far0 += step0
            far1 += step1
            second = Matrix(
                far0 * far0 + inverse.aa, far0 * far1 + inverse.ab, far1 * far1 + inverse.bb
            )
            if freedom < INFINITY:
                distance = inside.aa * second.aa + 2.0 * inside.ab * second.ab + inside.bb * second.bb
                label.trust = (freedom + 2.0) / (freedom + max(distance, 0.0))
            weight = label.leverage * label.trust
            squares.aa += weight * second.aa
            squares.ab += weight * second.ab
            squares.bb += weight * second.bb
    return np.array([[squares.aa, squares.ab], [squares.ab, squares.bb]]), largest
