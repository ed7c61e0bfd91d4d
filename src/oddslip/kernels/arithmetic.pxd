"""Exponential, logarithm and log-odds in plain arithmetic, so that loops over cells vectorise.

The library functions are called cell by cell, these are pasted into the loop. Each is within two
units in the last place on the range its callers use.
"""

from libc.math cimport fabs
from libc.stdint cimport uint64_t

from oddslip.kernels.types cimport bits_of, float_of


cdef inline double exp_of(double x) noexcept nogil:
    """e to the x, for -708 <= x <= 0."""
    # Adding 1.5 * 2**52 rounds to a whole number in the low bits. The first part of ln 2 has few
    # enough digits that whole multiples of it are exact.
    cdef double turns = x * 1.4426950408889634 + 6755399441055744.0
    cdef double whole = turns - 6755399441055744.0
    cdef double r = (x - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10
    cdef double p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return float_of(bits_of(p) + (bits_of(turns) << 52))


cdef inline double log_of(double x) noexcept nogil:
    """Natural logarithm, for normal x > 0."""
    # The power of two is counted from 1023 below, to stay positive: unsigned numbers can be
    # shifted, and turned into floats by writing their digits below those of 2**52, on vectors.
    cdef uint64_t bias = <uint64_t> 1023 << 52
    cdef uint64_t bits = bits_of(x)
    cdef uint64_t power = (bits + bias - <uint64_t> 0x3FE6A09E667F3BCD) >> 52
    cdef double whole = float_of(power | <uint64_t> 0x4330000000000000) - 4503599627371519.0
    cdef double m = float_of(bits + bias - (power << 52))  # between the roots of 1/2 and 2
    cdef double f = (m - 1.0) / (m + 1.0)
    cdef double s = f * f
    cdef double p = 1.0 / 23.0
    p = p * s + 1.0 / 21.0
    p = p * s + 1.0 / 19.0
    p = p * s + 1.0 / 17.0
    p = p * s + 1.0 / 15.0
    p = p * s + 1.0 / 13.0
    p = p * s + 1.0 / 11.0
    p = p * s + 1.0 / 9.0
    p = p * s + 1.0 / 7.0
    p = p * s + 1.0 / 5.0
    p = p * s + 1.0 / 3.0
    return whole * 6.93147180369123816490e-01 + (
        2.0 * f + (2.0 * f * s * p + whole * 1.90821492927058770002e-10)
    )


cdef inline double log1p_of(double x) noexcept nogil:
    """Logarithm of 1 + x for -1 < x <= 1, exact for small x as well."""
    cdef double y = 1.0 + x
    return log_of(y) + (x - (y - 1.0)) / y


cdef inline double clip_of(double s) noexcept nogil:
    """A clipped probability."""
    return min(max(s, 1e-12), 1.0 - 1e-12)


cdef inline double log_odds_of(double s) noexcept nogil:
    """Log-odds of a clipped probability."""
    return log_of(s / (1.0 - s))


cdef inline double tail_of(double z) noexcept nogil:
    """ln(1 + e^-|z|), the common part of a margin's log-probabilities."""
    return log1p_of(exp_of(max(-fabs(z), -708.0)))
