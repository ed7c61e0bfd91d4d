"""Newton's method for logistic fits: the steps of a fit, and fits on the points of a summary.

Parameters are the intercept, then one slope per feature. Features lie in [-1, 1], so a step moves
no logit by more than the sum of its absolute entries: its *reach*. That bounds the change of the
curvature along the step: after a full step of reach r the next one is about r/2 as long
(self-concordance of the logistic loss). So convergence is known without another pass over the data.

`advance_fits` and `advance_roots` take one step of many fits, whose sums the caller computes; all
else computes its sums from points, see `oddslip.kernels.points`.
"""

from libc.math cimport INFINITY, fabs, log, log1p, sqrt
from libc.stdint cimport int64_t, uint8_t

from oddslip.kernels.points cimport (
    BETA,
    LEVEL,
    Points,
    frame_points,
    load_points,
    scratch_size,
    sum_affine,
    sum_beta,
    sum_level,
)

import numpy as np

cdef enum:
    SIZE = 3  # parameters of a fit, at most
    STATE = 2 * SIZE + 2

cdef double TOLERANCE = 1e-11  # of a parameter, relative where it exceeds 1
cdef double TRUSTED = 0.1  # reach up to which the bound above is used
cdef double SETTLED = 40.0  # a logit this far from 0 has a weight below the rounding error of others
cdef double OVERSHOOT = 0.25  # slope past the minimum along a step, as a share of that at its start
cdef double FLAT = 1e-200  # no curvature: the weights of all cells vanish
cdef double ASTRAY = 0.1  # squared length of a first step, in standard errors, that drops a start
cdef double TOO_STEEP = 1e8
cdef double NEGLIGIBLE = 1e-13  # twice the gain of a step; in steep fits rounding allows no less
cdef double SINGULAR = 1e-12  # directions of less relative curvature are not moved
cdef double REGULAR = 1e-6  # determinant above which no direction is singular
cdef double TINY = 2.2250738585072014e-308

STEEPEST = TOO_STEEP  # slopes above this have no digits left for cells in between: separable
N_STATE = STATE  # numbers of the state of a fit: base, step, decrement and share

cdef struct Descent:
    double base[SIZE]  # the best parameters so far
    double step[SIZE]  # the step from there
    double decrement  # its squared length in standard errors
    double share  # of the step, to be tried next

cdef struct Step:
    double step[SIZE]
    double spread[SIZE]  # standard errors of the parameters
    double reach
    double decrement

cdef struct Root:
    double level
    double low
    double high
    double last_step

cdef struct Loss:
    Points points
    int size
    double n_positives
    double positives[2]  # sums of the features over the positives
    bint penalised
    double mean[2]
    double precision[3]
    double tilt  # a slope besides the fitted one


cdef void _rotate(double* matrix, double* vectors, int p, int q) noexcept nogil:
    """One rotation of Jacobi's method, which makes an entry of a symmetric 3 x 3 matrix 0."""
    cdef double entry = matrix[3 * p + q], half, t, c, s, x, y
    cdef int k
    if entry == 0.0:
        return
    half = (matrix[3 * q + q] - matrix[3 * p + p]) / (2.0 * entry)
    t = (1.0 if half >= 0.0 else -1.0) / (fabs(half) + sqrt(1.0 + half * half))
    c = 1.0 / sqrt(1.0 + t * t)
    s = t * c
    for k in range(3):
        x, y = matrix[3 * k + p], matrix[3 * k + q]
        matrix[3 * k + p], matrix[3 * k + q] = c * x - s * y, s * x + c * y
    for k in range(3):
        x, y = matrix[3 * p + k], matrix[3 * q + k]
        matrix[3 * p + k], matrix[3 * q + k] = c * x - s * y, s * x + c * y
    for k in range(3):
        x, y = vectors[3 * k + p], vectors[3 * k + q]
        vectors[3 * k + p], vectors[3 * k + q] = c * x - s * y, s * x + c * y


cdef void _invert_singular(double* matrix, double* inverse) noexcept nogil:
    """The inverse of a symmetric 3 x 3 matrix, 0 along directions of eigenvalues up to SINGULAR."""
    cdef double vectors[9]
    cdef int i, j, k, sweep
    for i in range(9):
        vectors[i] = 1.0 if i % 4 == 0 else 0.0
        inverse[i] = 0.0
    for sweep in range(12):
        _rotate(matrix, vectors, 0, 1)
        _rotate(matrix, vectors, 0, 2)
        _rotate(matrix, vectors, 1, 2)
    for k in range(3):
        if matrix[4 * k] > SINGULAR:
            for i in range(3):
                for j in range(3):
                    inverse[3 * i + j] += vectors[3 * i + k] * vectors[3 * j + k] / matrix[4 * k]


cdef void _invert(double* m, int n, double* inverse) noexcept nogil:
    """The same for n <= 3 rows whose diagonal is 1, rows of three numbers."""
    cdef double r, det
    if n == 1:
        inverse[0] = 1.0 / m[0]
    elif n == 2:
        # The eigenvalues are 1 + r and 1 - r.
        r = m[1]
        if 1.0 - fabs(r) > SINGULAR:
            det = (1.0 - r) * (1.0 + r)
            inverse[0] = inverse[4] = 1.0 / det
            inverse[1] = inverse[3] = -r / det
        else:
            inverse[0] = inverse[4] = 0.5 / (1.0 + fabs(r))
            inverse[1] = inverse[3] = inverse[0] if r >= 0.0 else -inverse[0]
    elif n == 3:
        inverse[0] = m[4] * m[8] - m[5] * m[5]
        inverse[1] = inverse[3] = m[2] * m[5] - m[1] * m[8]
        inverse[2] = inverse[6] = m[1] * m[5] - m[2] * m[4]
        inverse[4] = m[0] * m[8] - m[2] * m[2]
        inverse[5] = inverse[7] = m[1] * m[2] - m[0] * m[5]
        inverse[8] = m[0] * m[4] - m[1] * m[1]
        det = m[0] * inverse[0] + m[1] * inverse[1] + m[2] * inverse[2]
        if det > REGULAR:
            for n in range(9):
                inverse[n] /= det
        else:
            _invert_singular(m, inverse)


cdef void _newton_step(
    int size, const double* gradient, const double* curvature, const bint* fixed, Step* new
) noexcept nogil:
    """A step that does not move fixed parameters and directions without curvature."""
    cdef double scaled[9]
    cdef double inverse[9]
    cdef double scale[SIZE]
    cdef int moving[SIZE]
    cdef int i, j, n = 0
    new.reach = 0.0
    new.decrement = 0.0
    for i in range(size):
        new.step[i] = new.spread[i] = 0.0
        if fixed[i]:
            continue
        if curvature[4 * i] > FLAT:
            moving[n] = i
            scale[n] = 1.0 / sqrt(curvature[4 * i])
            n += 1
        elif fabs(gradient[i]) > TOLERANCE:
            new.reach = INFINITY
    for i in range(n):
        for j in range(n):
            scaled[3 * i + j] = curvature[3 * moving[i] + moving[j]] * scale[i] * scale[j]
    _invert(scaled, n, inverse)
    for i in range(n):
        for j in range(n):
            new.step[moving[i]] -= inverse[3 * i + j] * scale[i] * scale[j] * gradient[moving[j]]
        new.spread[moving[i]] = sqrt(max(inverse[4 * i], 0.0)) * scale[i]
    for i in range(size):
        new.reach += fabs(new.step[i])
        new.decrement -= new.step[i] * gradient[i]
    new.decrement = max(new.decrement, 0.0)


cdef double _effective_reach(int size, const double* theta, const double* step) noexcept nogil:
    """How far a step moves logits within SETTLED of 0; the others have no weight.

    In a steep fit most cells are far beyond, and move far without consequences.
    """
    cdef double share = 0.0
    cdef int i
    for i in range(1, size):
        if theta[i] > 0.0:
            share = max(share, fabs(step[i]) / theta[i])
        elif step[i] != 0.0:
            share = INFINITY
    return fabs(step[0]) + share * (SETTLED + fabs(theta[0]))


cdef void _bounded_step(
    int size, const double* theta, const double* gradient, const double* curvature,
    bint intercept, Step* new,
) noexcept nogil:
    """A Newton step with slopes that stay at 0 or above."""
    cdef bint fixed[SIZE]
    cdef bint sinking = True
    cdef int i
    fixed[0] = not intercept
    for i in range(1, size):
        fixed[i] = theta[i] <= 0.0 and gradient[i] >= 0.0
    while sinking:
        _newton_step(size, gradient, curvature, fixed, new)
        sinking = False
        for i in range(1, size):
            if theta[i] <= 0.0 and new.step[i] < 0.0:
                fixed[i] = sinking = True
    if new.reach < INFINITY:
        new.reach = min(new.reach, _effective_reach(size, theta, new.step))


cdef void _move(
    int size, const double* theta, const double* step, double share, double* moved
) noexcept nogil:
    """Parameters after a share of the step; slopes that nearly vanish are set to 0."""
    cdef int i
    for i in range(size):
        moved[i] = theta[i] + share * step[i]
        if i and moved[i] < TOLERANCE * fabs(theta[i]):
            moved[i] = 0.0


cdef bint _advance(
    Descent* fit, int size, const double* theta, const double* gradient, const double* curvature,
    bint intercept, const double* fallback, bint first,
) noexcept nogil:
    """Take up gradient and curvature at the trial ``theta``; returns whether the fit is done.

    Only gradients are compared along a step, which is cut where the loss rises too steeply. A fit
    that is far from its minimum at first continues from ``fallback``, if given. A fit whose slope
    exceeds TOO_STEEP stops there.
    """
    cdef Step new
    cdef double target[SIZE]
    cdef double rise = 0.0, share = 1.0, error
    cdef bint done, steep = False
    cdef int i
    for i in range(size):
        rise += gradient[i] * fit.step[i]
    if rise > OVERSHOOT * fit.decrement:
        fit.share *= min(max(fit.decrement / (fit.decrement + rise), 0.1), 0.5)
        return False
    _bounded_step(size, theta, gradient, curvature, intercept, &new)
    for i in range(1, size):
        steep = steep or theta[i] > TOO_STEEP
        if -new.step[i] > theta[i]:  # the slope would fall below 0
            share = min(share, -theta[i] / new.step[i])
    _move(size, theta, new.step, share, target)
    done = new.reach <= TRUSTED and share == 1.0
    if done and new.decrement > NEGLIGIBLE:
        error = new.reach / 2 * sqrt(new.decrement)
        for i in range(size):
            done = done and error * new.spread[i] <= TOLERANCE * max(1.0, fabs(target[i]))
    if first and fallback is not NULL and (new.decrement > ASTRAY or new.reach == INFINITY):
        for i in range(size):
            fit.base[i] = fallback[i]
        return False
    if not first and not done and steep:
        done = True
        for i in range(size):
            target[i] = theta[i]
    for i in range(size):
        fit.base[i] = target[i] if done else theta[i]
        fit.step[i] = new.step[i]
    fit.decrement, fit.share = new.decrement, share
    return done


cdef bint _close_in(Root* root, double gradient, double curvature) noexcept nogil:
    """Move a level towards the root of the gradient; returns whether it is found.

    The gradient grows with the level, so the bracket always holds. Where Newton's step leaves it,
    or does not shrink, the bracket is halved. Nothing is assumed about the curvature, which can
    underflow between distant groups of saturated cells.
    """
    cdef double at = root.level, step, target, reach, small
    cdef bint inside
    if gradient >= 0.0:
        root.high = at
    if gradient <= 0.0:
        root.low = at
    if gradient == 0.0:
        return True
    step = -gradient / max(curvature, TINY)
    target = at + step
    inside = root.low <= target <= root.high and fabs(step) <= root.last_step / 2
    small = TOLERANCE * max(1.0, fabs(at))
    reach = fabs(step)
    root.level = target if inside else root.low + (root.high - root.low) / 2
    root.last_step = fabs(root.level - at)
    return (inside and reach < TRUSTED and reach * reach / 2 <= small) or (
        root.high - root.low <= small
    )


cdef void _evaluate(
    const Loss* loss, const double* theta, double* gradient, double* curvature
) noexcept nogil:
    """Gradient and curvature, in rows of three numbers, on the points of a fit."""
    cdef double sums[BETA]
    cdef double far[2]
    cdef int i, j, size = loss.size, place = 1 + size
    if size == 3:
        sum_beta(&loss.points, theta, sums)
    else:
        sum_affine(&loss.points, theta[0], theta[1] + loss.tilt, sums)
    # Counts first: the rest is small where cells saturate, and must stay exact.
    gradient[0] = (sums[0] - loss.n_positives) + sums[1]
    for i in range(1, size):
        gradient[i] = sums[1 + i] - loss.positives[i - 1]
    for i in range(size):
        for j in range(i, size):
            curvature[3 * i + j] = curvature[3 * j + i] = sums[place]
            place += 1
    if loss.penalised:
        for i in range(2):
            far[i] = theta[i] - loss.mean[i]
        for i in range(2):
            gradient[i] += loss.precision[i] * far[0] + loss.precision[i + 1] * far[1]
            for j in range(2):
                curvature[3 * i + j] += loss.precision[i + j]


cdef bint _descend(Loss* loss, double* theta, bint intercept, int rounds) noexcept nogil:
    """Minimise one loss from ``theta``, with slopes of at least 0; returns whether it converged."""
    cdef Descent fit
    cdef double trial[SIZE]
    cdef double gradient[SIZE]
    cdef double curvature[9]
    cdef int i, turn
    cdef bint done = False
    fit.decrement, fit.share = 0.0, 1.0
    for i in range(loss.size):
        fit.base[i], fit.step[i] = theta[i], 0.0
    for turn in range(rounds):
        _move(loss.size, fit.base, fit.step, fit.share, trial)
        _evaluate(loss, trial, gradient, curvature)
        done = _advance(
            &fit, loss.size, trial, gradient, curvature, intercept, NULL, turn == 0
        )
        if done:
            break
    for i in range(loss.size):
        theta[i] = fit.base[i]
    return done


def descend_points(
    const double[:, :] points, const double[:, :] weights, const int64_t[::1] fits,
    const double[:, :] frame, const double[:, :] totals, double[:, :] theta,
    bint intercept, int rounds, const double[:, :] penalty=None,
):
    """Minimise the losses of some fits in place, with slopes of at least 0.

    Parameters
    ----------
    points, weights : arrays of shape (all fits, points)
    fits : array of int64
        Which of them; all else has a column for each of these.
    frame : array of shape (2 x features, fits)
        Center and 1 / scale of each feature.
    totals : array of shape (1 + features, fits)
        Number of positives, and the sums of their features in this frame.
    theta : array of shape (1 + features, fits)
        Where to start; the results.
    intercept : bool
        Whether the intercept is fitted, or fixed.
    rounds : int
    penalty : array of shape (6, fits), optional
        Of affine fits: mean and precision (two and three numbers) of a quadratic that is added to
        the loss, and a slope that is added to the fitted one.

    Returns
    -------
    array of bool
        Which fits converged.
    """
    cdef Py_ssize_t j, at, n_fits = fits.shape[0]
    cdef int k
    converged = np.zeros(n_fits, np.uint8)
    cdef uint8_t[::1] done = converged
    cdef double[::1] scratch = np.empty(scratch_size(points.shape[1]))
    cdef double here[SIZE]
    cdef Loss loss
    loss.size = theta.shape[0]
    loss.penalised = penalty is not None
    loss.tilt = 0.0
    with nogil:
        for j in range(n_fits):
            at = fits[j]
            load_points(
                &loss.points, &scratch[0], &points[at, 0], &weights[at, 0], points.shape[1],
                loss.size == 3,
            )
            frame_points(loss.points.u, loss.points.n, frame[0, j], frame[1, j])
            if loss.size == 3:
                frame_points(loss.points.v, loss.points.n, frame[2, j], frame[3, j])
            loss.n_positives = totals[0, j]
            for k in range(1, loss.size):
                loss.positives[k - 1] = totals[k, j]
            if loss.penalised:
                for k in range(2):
                    loss.mean[k] = penalty[k, j]
                for k in range(3):
                    loss.precision[k] = penalty[2 + k, j]
                loss.tilt = penalty[5, j]
            for k in range(loss.size):
                here[k] = theta[k, j]
            done[j] = _descend(&loss, here, intercept, rounds)
            for k in range(loss.size):
                theta[k, j] = here[k]
    return converged.view(np.bool_)


def find_levels(
    const double[:, :] points, const double[:, :] weights, const int64_t[::1] fits,
    const double[:, :] frame, const double[:] n_positives, double[:, :] theta,
    const double[:, :] ends, int rounds,
):
    """Intercepts between two ends, (2, fits), at which the sum of probabilities is n_positives.

    As in `descend_points`; slopes are fixed. Returns which fits converged.
    """
    cdef Py_ssize_t j, at, n_fits = fits.shape[0]
    cdef bint beta = theta.shape[0] == 3
    cdef int turn
    converged = np.zeros(n_fits, np.uint8)
    cdef uint8_t[::1] done = converged
    cdef double[::1] scratch = np.empty(scratch_size(points.shape[1]))
    cdef double sums[LEVEL]
    cdef Points some
    cdef Root root
    cdef Py_ssize_t i
    with nogil:
        for j in range(n_fits):
            at = fits[j]
            load_points(&some, &scratch[0], &points[at, 0], &weights[at, 0], points.shape[1], beta)
            frame_points(some.u, some.n, frame[0, j], frame[1, j])
            if beta:  # both features count as one
                frame_points(some.v, some.n, frame[2, j], frame[3, j])
                for i in range(some.n):
                    (<double*> some.u)[i] = theta[1, j] * some.u[i] + theta[2, j] * some.v[i]
            root = Root(theta[0, j], ends[0, j], ends[1, j], INFINITY)
            for turn in range(rounds):
                sum_level(&some, root.level, 1.0 if beta else theta[1, j], sums)
                done[j] = _close_in(&root, (sums[0] - n_positives[j]) + sums[1], sums[2])
                if done[j]:
                    break
            theta[0, j] = root.level
    return converged.view(np.bool_)


def match_points(
    const double[:, :] points, const double[:, :] weights, const double[:] prior, int rounds
):
    """Label-free shifts b per label: the mean of sigmoid(point - b) equals the prior."""
    cdef Py_ssize_t j, i, n_labels = points.shape[0]
    cdef int turn
    shifts = np.empty(n_labels)
    cdef double[::1] out = shifts
    cdef double[::1] scratch = np.empty(scratch_size(points.shape[1]))
    cdef double sums[LEVEL]
    cdef double low, high, mean, total, prior_logit, excess
    cdef Points some
    cdef Root root
    with nogil:
        for j in range(n_labels):
            load_points(&some, &scratch[0], &points[j, 0], &weights[j, 0], points.shape[1], False)
            low, high, mean, total = INFINITY, -INFINITY, 0.0, 0.0
            for i in range(some.n):
                mean += some.weights[i] * some.u[i]
                total += some.weights[i]
                if some.weights[i] > 0.0:
                    low = min(low, some.u[i])
                    high = max(high, some.u[i])
            prior_logit = log(prior[j]) - log1p(-prior[j])
            root = Root(0.0, prior_logit - high, prior_logit - low, INFINITY)
            root.level = min(max(prior_logit - mean / total, root.low), root.high)
            for turn in range(rounds):
                sum_level(&some, root.level, 1.0, sums)
                # Match the smaller of a prior and its complement: near 1 a mean has lost digits.
                if prior[j] <= 0.5:
                    excess = (sums[0] - prior[j] * total) + sums[1]
                else:
                    excess = (1.0 - prior[j]) * total - ((total - sums[0]) - sums[1])
                if _close_in(&root, excess, sums[2]):
                    break
            out[j] = -root.level
    return shifts


def first_state(const double[:, :] theta):
    """The state of fits that start from ``theta``, (fits, N_STATE)."""
    state = np.zeros((theta.shape[1], STATE))
    state[:, : theta.shape[0]] = np.asarray(theta).T
    state[:, STATE - 1] = 1.0
    return state


def next_trials(const double[:, ::1] state, const int64_t[::1] fits, int size):
    """Parameters at which the losses of some fits are needed next, (size, fits)."""
    cdef Py_ssize_t j
    cdef int k
    cdef double here[SIZE]
    cdef const Descent* fit
    trials = np.empty((size, fits.shape[0]))
    cdef double[:, ::1] out = trials
    with nogil:
        for j in range(fits.shape[0]):
            fit = <const Descent*> &state[fits[j], 0]
            _move(size, fit.base, fit.step, fit.share, here)
            for k in range(size):
                out[k, j] = here[k]
    return trials


def advance_fits(
    double[:, ::1] state, const int64_t[::1] fits, const double[:, :] theta,
    const double[:, :] gradient, const double[:, :, :] curvature, bint intercept,
    const double[:, :] fallback=None,
):
    """Take one step of some fits, given gradient and curvature at their trials ``theta``.

    ``fallback`` is for the first step alone: parameters for fits that start far from the minimum.
    Returns which fits are done; their state begins with the result.
    """
    cdef Py_ssize_t j
    cdef int i, k, size = theta.shape[0]
    cdef bint first = fallback is not None
    cdef double here[SIZE]
    cdef double slope[SIZE]
    cdef double bend[9]
    cdef double other[SIZE]
    done = np.zeros(fits.shape[0], np.uint8)
    cdef uint8_t[::1] out = done
    with nogil:
        for j in range(fits.shape[0]):
            for i in range(size):
                here[i] = theta[i, j]
                slope[i] = gradient[i, j]
                if first:
                    other[i] = fallback[i, j]
                for k in range(size):
                    bend[3 * i + k] = curvature[i, k, j]
            out[j] = _advance(
                <Descent*> &state[fits[j], 0], size, here, slope, bend, intercept, other, first
            )
    return done.view(np.bool_)


def advance_roots(
    double[:, ::1] roots, const int64_t[::1] fits, const double[:] gradient,
    const double[:] curvature,
):
    """Move some levels towards their roots, given gradient and curvature there.

    A row of ``roots`` holds the level, the two ends it lies between, and the size of its last
    step, infinite at first. Returns which are found.
    """
    cdef Py_ssize_t j
    done = np.zeros(fits.shape[0], np.uint8)
    cdef uint8_t[::1] out = done
    with nogil:
        for j in range(fits.shape[0]):
            out[j] = _close_in(<Root*> &roots[fits[j], 0], gradient[j], curvature[j])
    return done.view(np.bool_)
