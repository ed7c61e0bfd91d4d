"""How often each row is drawn in a resample of rows."""

from libc.stdint cimport int64_t, uint64_t


cdef inline uint64_t _mix(uint64_t z) noexcept nogil:
    """splitmix64: a counter in, 64 well-mixed bits out."""
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return z ^ (z >> 31)


def count_draws(const uint64_t[::1] seeds, const int64_t[::1] n_draws, double[:, ::1] counts):
    """Replicate b draws ``n_draws[b]`` of the columns of ``counts`` with replacement."""
    cdef Py_ssize_t b, column, n = counts.shape[1]
    cdef int64_t draw
    cdef uint64_t state
    cdef double* drawn
    if n == 0:
        return
    with nogil:
        for b in range(counts.shape[0]):
            drawn = &counts[b, 0]
            for column in range(n):
                drawn[column] = 0.0
            state = seeds[b]
            for draw in range(n_draws[b]):
                state += <uint64_t> 0x9E3779B97F4A7C15
                # 53 bits as a fraction of one, times n. Fewer than 2**63, so the cast is plain.
                column = <Py_ssize_t> (
                    <double> <int64_t> (_mix(state) >> 11) * 1.1102230246251565e-16 * n
                )
                drawn[column] += 1.0
