"""Hashes of row ids, and how often each row is drawn in a resample of rows."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef inline uint64_t _mix(uint64_t z) noexcept nogil:
    """splitmix64: a counter in, 64 well-mixed bits out."""
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return z ^ (z >> 31)


# P(X <= k) of a Poisson number with mean 1, as shares of 2**32, for k = 0, 1, ...
cdef uint32_t[12] AT_MOST = [
    1580030169, 3160060337, 3950075422, 4213413783, 4279248374, 4292415292,
    4294609778, 4294923276, 4294962463, 4294966817, 4294967253, 4294967292,
]
cdef uint64_t GOLDEN = <uint64_t> 0x9E3779B97F4A7C15


def hash_numbers(const uint64_t[::1] numbers, uint64_t salt, uint64_t[::1] hashes):
    """64 well-mixed bits of each number and the salt."""
    cdef Py_ssize_t at
    cdef uint64_t mixed = _mix(salt + GOLDEN)
    with nogil:
        for at in range(numbers.shape[0]):
            hashes[at] = _mix(_mix(numbers[at] + GOLDEN) ^ mixed)


def hash_texts(const int64_t[::1] offsets, const uint8_t[::1] data, uint64_t[::1] hashes):
    """64 bits of each text: text i is ``data[offsets[i]:offsets[i + 1]]``."""
    cdef Py_ssize_t at
    cdef int64_t place
    cdef uint64_t state
    with nogil:
        for at in range(hashes.shape[0]):
            state = <uint64_t> (offsets[at + 1] - offsets[at]) * GOLDEN
            for place in range(offsets[at], offsets[at + 1]):
                state = (state ^ data[place]) * <uint64_t> 0x100000001B3
            hashes[at] = _mix(state + GOLDEN)


def draw_poisson(
    const uint64_t[::1] keys, uint64_t seed, Py_ssize_t first, double[:, ::1] counts
):
    """How often each replicate from ``first`` on, an even number, draws each row: Poisson, mean 1.

    A number depends only on the row's key, the seed and the replicate.
    """
    cdef Py_ssize_t b, row, n = keys.shape[0]
    cdef uint64_t salt, bits
    cdef uint64_t start = _mix(seed + GOLDEN)
    cdef bint paired
    if n == 0:
        return
    with nogil:
        for b in range(0, counts.shape[0], 2):
            salt = _mix(start + <uint64_t> ((first + b) // 2) * GOLDEN)
            paired = b + 1 < counts.shape[0]
            for row in range(n):
                bits = _mix(keys[row] ^ salt)
                counts[b, row] = _poisson(<uint32_t> bits)
                if paired:
                    counts[b + 1, row] = _poisson(<uint32_t> (bits >> 32))


cdef inline double _poisson(uint32_t bits) noexcept nogil:
    """Most numbers are 4 or less: no branch for these, one for the rest."""
    cdef int count = (
        (bits >= AT_MOST[0]) + (bits >= AT_MOST[1]) + (bits >= AT_MOST[2])
        + (bits >= AT_MOST[3]) + (bits >= AT_MOST[4])
    )
    if bits >= AT_MOST[4]:
        while count < 12 and bits >= AT_MOST[count]:
            count += 1
    return count
