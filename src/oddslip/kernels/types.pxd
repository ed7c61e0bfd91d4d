"""Types of cells, and the bits of floats. One source serves single and double precision."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

ctypedef fused key_t:
    uint32_t
    uint64_t

ctypedef fused score_t:
    float
    double

# Copying bytes is C's way to read the bits of a float; compilers remove the copy.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline uint32_t bits_of_single(float number) {
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        return bits;
    }

    static inline uint64_t bits_of(double number) {
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return bits;
    }

    static inline double float_of(uint64_t bits) {
        double number;
        memcpy(&number, &bits, sizeof number);
        return number;
    }
    """
    uint32_t bits_of_single(float number) noexcept nogil
    uint64_t bits_of(double number) noexcept nogil
    double float_of(uint64_t bits) noexcept nogil


cdef inline Py_ssize_t parts(Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    """Number of parts of a size that make up n; the last may be smaller."""
    return (n + size - 1) // size
