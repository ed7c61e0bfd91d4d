"""Exponential, logarithm and log-odds as plain arithmetic, so that loops over cells vectorise.

The library functions are called cell by cell; these are pasted into the loop. Each is within two
units in the last place on the range its callers use.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from oddslip.kernels.compiling import inlined

CLIP = 1e-12  # probabilities are taken from [CLIP, 1 - CLIP]
LOWEST = -708.0  # exp of anything lower is no normal number

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # few enough digits that whole multiples are exact
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number in the low bits
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD


@intrinsic
def _bits_of(typing: Any, number: Any) -> Any:
    """The bits of a float64 as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _float_of(typing: Any, bits: Any) -> Any:
    """The float64 with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@inlined
def exp_of(x):  # type: ignore[no-untyped-def]
    """e to the x, for LOWEST <= x <= 0."""
    turns = x * _LOG2E + _ROUND
    whole = turns - _ROUND
    r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    p = 1.0 / 6227020800.0
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
    return _float_of(_bits_of(p) + (_bits_of(turns) << 52))


@inlined
def log_of(x):  # type: ignore[no-untyped-def]
    """Natural logarithm, for normal x > 0."""
    bits = _bits_of(x)
    power = (bits - _SQRT_HALF_BITS) >> 52
    m = _float_of(bits - (power << 52))  # between the roots of 1/2 and 2
    f = (m - 1.0) / (m + 1.0)
    s = f * f
    p = 1.0 / 23.0
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
    whole = float(power)
    return whole * _LN2_HIGH + (2.0 * f + (2.0 * f * s * p + whole * _LN2_LOW))


@inlined
def log1p_of(x):  # type: ignore[no-untyped-def]
    """Logarithm of 1 + x for -1 < x <= 1, exact for small x as well."""
    y = 1.0 + x
    return log_of(y) + (x - (y - 1.0)) / y


@inlined
def clip_of(s):  # type: ignore[no-untyped-def]
    """A probability kept away from 0 and 1."""
    return min(max(s, CLIP), 1.0 - CLIP)


@inlined
def log_odds_of(s):  # type: ignore[no-untyped-def]
    """Log-odds of a clipped probability."""
    return log_of(s / (1.0 - s))
