"""Maps of one cell, which `maps` applies to blocks and `fused` to the cells it evaluates.

Whoever evaluates a cell uses `value_of` or, for knots, `place_of` and `interpolate`, so that a
block mapped whole and a cell mapped alone agree to the last bit.
"""

from libc.math cimport INFINITY, exp, fabs, log, log1p
from libc.stdint cimport int64_t

cpdef enum:  # the form of a label's map
    KNOTS = 0
    AFFINE = 1
    BETA = 2
    CONSTANT = 3
    IDENTITY = 4
    EXCLUDED = 5


cdef inline double log_odds(double score, bint margin) noexcept nogil:
    """Log-odds of a score, clipped where the score is a probability."""
    if margin:
        return score
    score = min(max(score, 1e-12), 1.0 - 1e-12)
    return log(score / (1.0 - score))


cdef inline double sigmoid(double z) noexcept nogil:
    """Probability of log-odds, without overflow."""
    cdef double small = exp(-fabs(z))
    return (1.0 if z >= 0.0 else small) / (1.0 + small)


cdef inline double beta_of_margin(double z, double a, double b, double c) noexcept nogil:
    """Beta map of log-odds: a ln(s) - b ln(1 - s) + c."""
    cdef double tail = log1p(exp(-fabs(z)))
    return b * (max(z, 0.0) + tail) - a * (max(-z, 0.0) + tail) + c


cdef inline double value_of(
    int code, double score, double a, double b, double c, bint margin, bint odds
) noexcept nogil:
    """Value of a cell of a label without knots, on the scale of the comparison.

    ``a`` of a constant is already on that scale. Labels that are not excluded stay above -inf.
    """
    cdef double value
    if code == CONSTANT:
        return a
    if code == EXCLUDED:
        return -INFINITY
    if code == AFFINE:
        value = a * log_odds(score, margin) + b
    elif code == BETA and margin:
        value = beta_of_margin(score, a, b, c)
    elif code == BETA:
        score = min(max(score, 1e-12), 1.0 - 1e-12)
        value = a * log(score) - b * log1p(-score) + c
    elif odds:
        value = log_odds(score, margin)
    elif margin:
        value = sigmoid(score)
    else:
        value = score
    return max(value, -1.7976931348623157e308)


cdef inline int64_t place_of(
    double score, int64_t start, int64_t stop, const double* x
) noexcept nogil:
    """The last knot at or below a score, or the first knot; halving without a branch."""
    cdef int64_t half, at = start, left = stop - start
    while left > 1:
        half = left >> 1
        at += half * <int64_t> (x[at + half] <= score)
        left -= half
    return at


cdef inline double interpolate(double score, const double* knot) noexcept nogil:
    """Value at a score from the last knot at or below it (or the first one)."""
    cdef double value = knot[2] * (max(score, knot[0]) - knot[0]) + knot[1]
    # Rounding may overshoot the next knot. NaN comes from an infinite slope or gap.
    value = min(value, knot[3])
    return value if value >= knot[1] else knot[1]
