"""Order-preserving unsigned keys of scores.

The bits of a float in [0, 1] grow with the float, so probabilities *are* their keys: a view, no
copy. Margins are mapped once. In both cases every invalid cell (NaN, infinite, outside [0, 1])
has a key above ``LIMITS[...]``, so the largest key of a row also says whether the row is valid:
ranking checks its input for free. The one exception is -0.0 among probabilities, which is valid
and has a key above the limit; whoever meets such a key looks closer (`Panel.mended`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.kernels import Kind
from oddslip.kernels.compiling import kernel

UNSIGNED: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float32): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.uint64),
}


# A margin's bits: negative floats are flipped whole, the others get the sign bit, which makes
# the unsigned order the float order. Subtracting the key of the most negative finite float wraps
# -inf and the negative NaNs round to the top, beside +inf and the positive NaNs.
@kernel("void(const uint32[:,::1], uint32[:,::1])")
def _map_margins_32(bits: Any, keys: Any) -> None:
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            b = bits[i, j]
            if b == np.uint32(0x80000000):  # -0.0 ties with 0.0
                b = np.uint32(0)
            flip = np.uint32(0xFFFFFFFF) if b >> np.uint32(31) else np.uint32(0x80000000)
            keys[i, j] = (b ^ flip) - np.uint32(0x00800000)


@kernel("void(const uint64[:,::1], uint64[:,::1])")
def _map_margins_64(bits: Any, keys: Any) -> None:
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            b = bits[i, j]
            if b == np.uint64(0x8000000000000000):
                b = np.uint64(0)
            all_ones = np.uint64(0xFFFFFFFFFFFFFFFF)
            flip = all_ones if b >> np.uint64(63) else np.uint64(0x8000000000000000)
            keys[i, j] = (b ^ flip) - np.uint64(0x0010000000000000)


def keys_of(scores: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """Keys of a C-contiguous block of scores: a view for probabilities, a new array for margins."""
    bits = scores.view(UNSIGNED[scores.dtype])
    if kind == "probability":
        return bits
    keys = np.empty_like(bits)
    (_map_margins_32 if bits.dtype == np.uint32 else _map_margins_64)(bits, keys)
    return keys


def scores_of(keys: NDArray[Any], kind: Kind) -> NDArray[Any]:
    """The scores these keys stand for: the inverse of `keys_of`."""
    keys = np.ascontiguousarray(keys)
    wide = keys.dtype == np.uint64
    unsigned: Any = np.uint64 if wide else np.uint32
    dtype: Any = np.float64 if wide else np.float32
    if kind == "probability":
        return keys.view(dtype)
    sign = unsigned(0x8000000000000000 if wide else 0x80000000)
    bits: NDArray[Any] = keys + unsigned(0x0010000000000000 if wide else 0x00800000)
    bits ^= np.where(bits & sign, sign, ~unsigned(0))
    return bits.view(dtype)


def _limit(dtype: Any, kind: Kind) -> int:
    top = dtype(1.0) if kind == "probability" else np.finfo(dtype).max
    return int(keys_of(np.full((1, 1), top, dtype), kind)[0, 0])


LIMITS: dict[tuple[np.dtype[Any], str], int] = {
    (np.dtype(UNSIGNED[np.dtype(dtype)]), kind): _limit(dtype, kind)
    for dtype in (np.float32, np.float64)
    for kind in ("probability", "margin")
}


@kernel("uint32(const uint32[:,::1])", "uint64(const uint64[:,::1])")
def largest_key(keys: Any) -> Any:
    """The largest key of a block; 0 if it is empty."""
    largest = keys.dtype.type(0)
    for i in range(keys.shape[0]):
        for j in range(keys.shape[1]):
            largest = max(largest, keys[i, j])
    return largest
