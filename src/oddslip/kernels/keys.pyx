"""Order-preserving unsigned keys of scores.

The bits of a float in [0, 1] grow with the float, so probabilities *are* their keys: a view, no
copy. Margins are mapped once. In both cases every invalid cell (NaN, infinite, outside [0, 1])
has a key above ``LIMITS[...]``, so the largest key of a row also says whether the row is valid:
ranking checks its input for free. The one exception is -0.0 among probabilities, which is valid
and has a key above the limit; whoever meets such a key looks closer (`Panel.mended`).
"""

from oddslip.kernels.types cimport key_t

import numpy as np

UNSIGNED = {
    np.dtype(np.float32): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.uint64),
}


# A margin's bits: negative floats are flipped whole, the others get the sign bit, which makes
# the unsigned order the float order. Subtracting the key of the most negative finite float wraps
# -inf and the negative NaNs round to the top, beside +inf and the positive NaNs.
def _map_margins(const key_t[:, ::1] bits, key_t[:, ::1] keys):
    cdef Py_ssize_t i, j, n_labels = bits.shape[1]
    cdef const key_t* row
    cdef key_t* mapped
    cdef key_t b, flip, one = 1
    cdef int last_bit = 8 * sizeof(key_t) - 1
    cdef key_t sign = one << last_bit
    cdef key_t lowest = one << (23 if sizeof(key_t) == 4 else 52)
    if n_labels == 0:
        return
    with nogil:
        for i in range(bits.shape[0]):
            row = &bits[i, 0]
            mapped = &keys[i, 0]
            for j in range(n_labels):
                b = row[j]
                b = 0 if b == sign else b  # -0.0 ties with 0.0
                flip = -(b >> last_bit) | sign
                mapped[j] = (b ^ flip) - lowest


def keys_of(scores, kind):
    """Keys of a C-contiguous block of scores: a view for probabilities, a new array for margins."""
    bits = scores.view(UNSIGNED[scores.dtype])
    if kind == "probability":
        return bits
    keys = np.empty_like(bits)
    _map_margins(bits, keys)
    return keys


def scores_of(keys, kind):
    """The scores of these keys: the inverse of `keys_of`."""
    keys = np.ascontiguousarray(keys)
    wide = keys.dtype == np.uint64
    unsigned = np.uint64 if wide else np.uint32
    dtype = np.float64 if wide else np.float32
    if kind == "probability":
        return keys.view(dtype)
    sign = unsigned(0x8000000000000000 if wide else 0x80000000)
    bits = keys + unsigned(0x0010000000000000 if wide else 0x00800000)
    bits ^= np.where(bits & sign, sign, ~unsigned(0))
    return bits.view(dtype)


def _limit(dtype, kind):
    top = dtype(1.0) if kind == "probability" else np.finfo(dtype).max
    return int(keys_of(np.full((1, 1), top, dtype), kind)[0, 0])


LIMITS = {
    (UNSIGNED[np.dtype(dtype)], kind): _limit(dtype, kind)
    for dtype in (np.float32, np.float64)
    for kind in ("probability", "margin")
}


def largest_key(const key_t[:, ::1] keys):
    """The largest key of a block; 0 if it is empty."""
    cdef Py_ssize_t i, j, step, n_labels = keys.shape[1]
    cdef const key_t* row
    cdef key_t tops[16]  # sixteen independent maxima, which pipeline better than one
    cdef key_t largest = 0
    cdef int lane
    if n_labels == 0:
        return largest
    with nogil:
        for lane in range(16):
            tops[lane] = 0
        for i in range(keys.shape[0]):
            row = &keys[i, 0]
            for step in range(n_labels // 16):
                for lane in range(16):
                    tops[lane] = max(tops[lane], row[16 * step + lane])
            for j in range(n_labels // 16 * 16, n_labels):
                largest = max(largest, row[j])
        for lane in range(16):
            largest = max(largest, tops[lane])
    return largest
