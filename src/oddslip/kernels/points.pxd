"""The points of one fit in scratch memory, and the sums of logistic losses over them.

Sums run in LANES parts side by side. So loops vectorise although no addition is reordered.
"""

from libc.math cimport fabs

from oddslip.kernels.arithmetic cimport exp_of, tail_of

cdef enum:
    LANES = 8
    NARROW = 4  # so many lanes of six sums stay in registers
    LEVEL = 3  # sums of `sum_level`, `sum_affine` and `sum_beta`
    AFFINE = 6
    BETA = 10

cdef struct Points:
    const double* weights
    const double* u  # the features: one of an affine fit, two of a beta fit
    const double* v
    double center  # of an affine fit, from which its feature is measured
    Py_ssize_t n  # a multiple of LANES: the last points may have no weight


cdef inline Py_ssize_t scratch_size(Py_ssize_t n_points) noexcept nogil:
    """Numbers that the scratch memory of a fit of so many points holds."""
    return 3 * (n_points + LANES)


cdef inline Py_ssize_t count_used(const double* weights, Py_ssize_t n) noexcept nogil:
    """Points up to the last with a weight."""
    while n > 0 and weights[n - 1] == 0.0:
        n -= 1
    return n


cdef inline void load_points(
    Points* points, double* scratch, const double* places, const double* weights, Py_ssize_t n,
    bint beta,
) noexcept nogil:
    """Copy the points of a fit as features from 0, up to the last with a weight."""
    cdef Py_ssize_t i, pitch = n + LANES
    cdef double* w = scratch
    cdef double* u = scratch + pitch
    cdef double* v = scratch + 2 * pitch
    cdef double z, tail
    n = count_used(weights, n)
    points.n = (n + LANES - 1) // LANES * LANES
    points.weights, points.u, points.v, points.center = w, u, v, 0.0
    for i in range(n):
        w[i] = weights[i]
        u[i] = places[i]
    for i in range(n, points.n):
        w[i] = 0.0
        u[i] = places[0]
    if beta:
        for i in range(points.n):
            z = u[i]
            tail = tail_of(z)
            u[i] = min(z, 0.0) - tail
            v[i] = max(z, 0.0) + tail


cdef inline void load_centered(
    Points* points, double* scratch, const double* places, const double* weights, Py_ssize_t n,
    double center,
) noexcept nogil:
    """The same for an affine fit about a center; rows of whole LANES are not copied."""
    if n % LANES == 0:
        points.n = (count_used(weights, n) + LANES - 1) // LANES * LANES
        points.weights, points.u, points.v = weights, places, NULL
    else:
        load_points(points, scratch, places, weights, n, False)
    points.center = center


cdef inline void frame_points(
    const double* features, Py_ssize_t n, double center, double per
) noexcept nogil:
    """Measure a loaded feature from a center, in units of which ``per`` make one of before."""
    cdef Py_ssize_t i
    cdef double* loaded = <double*> features
    for i in range(n):
        loaded[i] = (loaded[i] - center) * per


cdef inline double smaller_of(double logit) noexcept nogil:
    """The smaller of p and 1 - p; 0 where it would be denormal."""
    cdef double size = -fabs(logit)
    cdef double e = exp_of(max(size, -708.0))
    return (e if size > -708.0 else 0.0) / (1.0 + e)


cdef inline void add_lanes(
    const double* laid, int n_sums, int n_lanes, double* sums
) noexcept nogil:
    """Add up the parts of each sum."""
    cdef int k, t
    for k in range(n_sums):
        sums[k] = 0.0
        for t in range(n_lanes):
            sums[k] += laid[k * n_lanes + t]


cdef inline void sum_level(
    const Points* points, double level, double slope, double* sums
) noexcept nogil:
    """Logits that are not negative, residuals towards them, and w = p (1 - p).

    The first two add up to the sum of p without losing a saturated point's digits.
    """
    cdef double laid[LEVEL * LANES]
    cdef const double* weights = points.weights
    cdef const double* us = points.u
    cdef Py_ssize_t strip, i, t
    cdef double n, q, nq, logit
    for t in range(LEVEL * LANES):
        laid[t] = 0.0
    for strip in range(points.n // LANES):
        i = strip * LANES
        for t in range(LANES):
            n = weights[i + t]
            logit = level + slope * us[i + t]
            q = smaller_of(logit)
            nq = n * q
            laid[t] += n if logit >= 0.0 else 0.0
            laid[LANES + t] += -nq if logit >= 0.0 else nq
            laid[2 * LANES + t] += nq - nq * q
    add_lanes(laid, LEVEL, LANES, sums)


cdef inline void sum_affine(
    const Points* points, double level, double slope, double* sums
) noexcept nogil:
    """As `oddslip.kernels.logistic.add_affine_sums`, over weighted points."""
    cdef double laid[AFFINE * NARROW]
    cdef const double* weights = points.weights
    cdef const double* us = points.u
    cdef Py_ssize_t strip, i, t
    cdef double n, u, q, nq, w, above, rest, logit, center = points.center
    for t in range(AFFINE * NARROW):
        laid[t] = 0.0
    for strip in range(points.n // NARROW):
        i = strip * NARROW
        for t in range(NARROW):
            n = weights[i + t]
            u = us[i + t] - center
            logit = level + slope * u
            q = smaller_of(logit)
            nq = n * q
            above = n if logit >= 0.0 else 0.0
            rest = -nq if logit >= 0.0 else nq
            w = nq - nq * q
            laid[t] += above
            laid[NARROW + t] += rest
            laid[2 * NARROW + t] += (above + rest) * u
            laid[3 * NARROW + t] += w
            laid[4 * NARROW + t] += w * u
            laid[5 * NARROW + t] += w * u * u
    add_lanes(laid, AFFINE, NARROW, sums)


cdef inline void sum_beta(const Points* points, const double* theta, double* sums) noexcept nogil:
    """As `oddslip.kernels.logistic.add_beta_sums`, over weighted points."""
    cdef double laid[BETA * LANES]
    cdef const double* weights = points.weights
    cdef const double* us = points.u
    cdef const double* vs = points.v
    cdef Py_ssize_t strip, i, t
    cdef double n, u, v, q, nq, w, above, rest, logit
    for t in range(BETA * LANES):
        laid[t] = 0.0
    for strip in range(points.n // LANES):
        i = strip * LANES
        for t in range(LANES):
            n = weights[i + t]
            u = us[i + t]
            v = vs[i + t]
            logit = theta[0] + theta[1] * u + theta[2] * v
            q = smaller_of(logit)
            nq = n * q
            above = n if logit >= 0.0 else 0.0
            rest = -nq if logit >= 0.0 else nq
            w = nq - nq * q
            laid[t] += above
            laid[LANES + t] += rest
            laid[2 * LANES + t] += (above + rest) * u
            laid[3 * LANES + t] += (above + rest) * v
            laid[4 * LANES + t] += w
            laid[5 * LANES + t] += w * u
            laid[6 * LANES + t] += w * v
            laid[7 * LANES + t] += w * u * u
            laid[8 * LANES + t] += w * u * v
            laid[9 * LANES + t] += w * v * v
    add_lanes(laid, BETA, LANES, sums)
