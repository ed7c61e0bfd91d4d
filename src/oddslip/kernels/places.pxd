"""The k best cells of a row, collected one at a time: higher value first, then lower column.

Up to ``FEW`` cells are kept sorted, by insertion. More are kept as a heap whose root is the worst
of them, so that n cells take O(n log k) steps in whatever order they come. `order` sorts the heap,
by merging, with as many spare places.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy

from oddslip.kernels.types cimport parts

cdef enum:
    FEW = 100  # measured: insertion is faster up to about 120 places, whatever the row's length

ctypedef fused value_t:
    uint32_t
    uint64_t
    double


cdef inline bint is_ahead(
    value_t value, int32_t column, value_t other_value, int32_t other_column
) noexcept nogil:
    """Whether a cell ranks before another."""
    return value > other_value or (value == other_value and column < other_column)


cdef inline void sift(
    value_t value, int32_t column, value_t* values, int32_t* columns, Py_ssize_t place,
    Py_ssize_t n,
) noexcept nogil:
    """Sift a cell down a heap of n from a place."""
    cdef Py_ssize_t child = 2 * place + 1
    while child < n:
        if child + 1 < n and is_ahead(
            values[child], columns[child], values[child + 1], columns[child + 1]
        ):
            child += 1
        if not is_ahead(value, column, values[child], columns[child]):
            break
        values[place] = values[child]
        columns[place] = columns[child]
        place = child
        child = 2 * place + 1
    values[place] = value
    columns[place] = column


cdef inline void build(value_t* values, int32_t* columns, Py_ssize_t n) noexcept nogil:
    """Turn n cells into a heap."""
    cdef Py_ssize_t place
    for place in range(n // 2 - 1, -1, -1):
        sift(values[place], columns[place], values, columns, place, n)


cdef inline Py_ssize_t worst_of(Py_ssize_t k) noexcept nogil:
    """Position of the worst of k cells, once there are k."""
    return 0 if k > FEW else k - 1


cdef inline Py_ssize_t take(
    value_t value, int32_t column, value_t* values, int32_t* columns, Py_ssize_t filled,
    Py_ssize_t k,
) noexcept nogil:
    """Add a cell to the k best so far, replacing the worst once there are k of them.

    The caller compares the cell with the worst. Returns how many cells there are now.
    """
    cdef Py_ssize_t place = min(filled, k - 1)
    if k <= FEW:
        while place > 0 and is_ahead(value, column, values[place - 1], columns[place - 1]):
            values[place] = values[place - 1]
            columns[place] = columns[place - 1]
            place -= 1
        values[place] = value
        columns[place] = column
    elif filled == k:
        sift(value, column, values, columns, 0, k)
    else:
        values[place] = value
        columns[place] = column
        if place == k - 1:
            build(values, columns, k)
    return min(filled + 1, k)


cdef inline void sort(
    value_t* values, int32_t* columns, value_t* spare_values, int32_t* spare_columns, Py_ssize_t n
) noexcept nogil:
    """Sort n cells, best first, by merging runs of doubling length."""
    cdef Py_ssize_t pair, left, middle, right, i, j, place, run = 1
    while run < n:
        for pair in range(parts(n, 2 * run)):
            left = 2 * run * pair
            middle = min(left + run, n)
            right = min(left + 2 * run, n)
            i = left
            j = middle
            for place in range(left, right):
                if i < middle and (
                    j == right or not is_ahead(values[j], columns[j], values[i], columns[i])
                ):
                    spare_values[place] = values[i]
                    spare_columns[place] = columns[i]
                    i += 1
                else:
                    spare_values[place] = values[j]
                    spare_columns[place] = columns[j]
                    j += 1
        memcpy(values, spare_values, n * sizeof(value_t))
        memcpy(columns, spare_columns, n * sizeof(int32_t))
        run *= 2


cdef inline void order(
    value_t* values, int32_t* columns, value_t* spare_values, int32_t* spare_columns,
    Py_ssize_t filled, Py_ssize_t k,
) noexcept nogil:
    """Sort the cells, best first, if they are not sorted yet."""
    if k > FEW:
        sort(values, columns, spare_values, spare_columns, filled)
