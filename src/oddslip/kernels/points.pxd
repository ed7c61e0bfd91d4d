"""The points of one fit in scratch memory, and the sums of logistic losses over them.

Sums run in LANES parts side by side. So loops vectorise although no addition is reordered.
"""

from libc.math cimport fabs

from oddslip.kernels.arithmetic cimport exp_of, tail_of

cdef enum:
    LANES = 8
    LEVEL = 3  # sums of `sum_level`, `sum_affine` and `sum_beta`
    AFFINE = 6
    BETA = 10

cdef struct Points:
    double* weights
    double* u  # the features: one of an affine fit, two of a beta fit
    double* v
    Py_ssize_t n  # a multiple of LANES: the last points may have no weight


cdef inline Py_ssize_t scratch_size(Py_ssize_t n_points) noexcept nogil:
    """Numbers that the scratch memory of a fit of so many points holds."""
    return 3 * (n_points + LANES)


cdef inline void load_points(
    Points* points, double* scratch, const double* places, const double* weights, Py_ssize_t n,
    bint beta,
) noexcept nogil:
    """Copy the points of a fit up to the last with a weight, as features from 0."""
    cdef Py_ssize_t i, pitch = n + LANES
    cdef double z, tail
    while n > 0 and weights[n - 1] == 0.0:
        n -= 1
    points.n = (n + LANES - 1) // LANES * LANES
    points.weights, points.u, points.v = scratch, scratch + pitch, scratch + 2 * pitch
    for i in range(n):
        points.weights[i] = weights[i]
        points.u[i] = places[i]
    for i in range(n, points.n):
        points.weights[i] = 0.0
        points.u[i] = places[0]
    if beta:
        for i in range(points.n):
            z = points.u[i]
            tail = tail_of(z)
            points.u[i] = min(z, 0.0) - tail
            points.v[i] = max(z, 0.0) + tail


cdef inline void frame_points(double* features, Py_ssize_t n, double center, double per) noexcept nogil:
    """Measure a feature from a center, in units of which there are ``per`` to one of before."""
    cdef Py_ssize_t i
    for i in range(n):
        features[i] = (features[i] - center) * per


cdef inline double smaller_of(double logit) noexcept nogil:
    """The smaller of p and 1 - p; 0 where it would be denormal."""
    cdef double size = -fabs(logit)
    cdef double e = exp_of(max(size, -708.0))
    return (e if size > -708.0 else 0.0) / (1.0 + e)


cdef inline void add_lanes(const double* laid, int n_sums, double* sums) noexcept nogil:
    """Add up the parts of each sum."""
    cdef int k, t
    for k in range(n_sums):
        sums[k] = 0.0
        for t in range(LANES):
            sums[k] += laid[k * LANES + t]


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
    cdef double n, q, logit
    for t in range(LEVEL * LANES):
        laid[t] = 0.0
    for strip in range(points.n // LANES):
        i = strip * LANES
        for t in range(LANES):
            n = weights[i + t]
            logit = level + slope * us[i + t]
            q = smaller_of(logit)
            laid[t] += n if logit >= 0.0 else 0.0
            laid[LANES + t] += n * (-q if logit >= 0.0 else q)
            laid[2 * LANES + t] += n * q * (1.0 - q)
    add_lanes(laid, LEVEL, sums)


cdef inline void sum_affine(
    const Points* points, double level, double slope, double* sums
) noexcept nogil:
    """As `oddslip.kernels.logistic.add_affine_sums`, over weighted points."""
    cdef double laid[AFFINE * LANES]
    cdef const double* weights = points.weights
    cdef const double* us = points.u
    cdef Py_ssize_t strip, i, t
    cdef double n, u, q, w, logit
    for t in range(AFFINE * LANES):
        laid[t] = 0.0
    for strip in range(points.n // LANES):
        i = strip * LANES
        for t in range(LANES):
            n = weights[i + t]
            u = us[i + t]
            logit = level + slope * u
            q = smaller_of(logit)
            w = n * q * (1.0 - q)
            laid[t] += n if logit >= 0.0 else 0.0
            laid[LANES + t] += n * (-q if logit >= 0.0 else q)
            laid[2 * LANES + t] += n * (1.0 - q if logit >= 0.0 else q) * u
            laid[3 * LANES + t] += w
            laid[4 * LANES + t] += w * u
            laid[5 * LANES + t] += w * u * u
    add_lanes(laid, AFFINE, sums)


cdef inline void sum_beta(const Points* points, const double* theta, double* sums) noexcept nogil:
    """As `oddslip.kernels.logistic.add_beta_sums`, over weighted points."""
    cdef double laid[BETA * LANES]
    cdef const double* weights = points.weights
    cdef const double* us = points.u
    cdef const double* vs = points.v
    cdef Py_ssize_t strip, i, t
    cdef double n, u, v, p, q, w, logit
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
            p = n * (1.0 - q if logit >= 0.0 else q)
            w = n * q * (1.0 - q)
            laid[t] += n if logit >= 0.0 else 0.0
            laid[LANES + t] += n * (-q if logit >= 0.0 else q)
            laid[2 * LANES + t] += p * u
            laid[3 * LANES + t] += p * v
            laid[4 * LANES + t] += w
            laid[5 * LANES + t] += w * u
            laid[6 * LANES + t] += w * v
            laid[7 * LANES + t] += w * u * u
            laid[8 * LANES + t] += w * u * v
            laid[9 * LANES + t] += w * v * v
    add_lanes(laid, BETA, sums)
