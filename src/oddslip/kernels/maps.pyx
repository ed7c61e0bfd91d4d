"""Maps of scores to calibrated values, for whole blocks.

A label's map has a code and at most three numbers or a range of knots. Its *value* is what labels
are compared by: a probability or log-odds. Every map is non-decreasing in the score. What becomes
of one cell stands in ``maps.pxd``.

A knot is a row (score, value, slope to the next knot, value of the next knot); the last knot of a
label and every knot of a step function have slope 0.

Blocks are taken in tiles of rows and strips of columns, turned so that a label's cells lie in one
piece and its knots stay in the first cache.
"""

from libc.stdint cimport int8_t, int64_t, uint8_t

from oddslip.kernels.types cimport parts, score_t

cdef enum:
    STRIP = 16
    TILE = 256
    PITCH = TILE + 8  # columns of a strip start in different cache sets

ctypedef fused mapped_t:
    float
    double

CLIP = 1e-12  # probabilities are clipped to [CLIP, 1 - CLIP] before taking log-odds
ROOF = 1.0 - CLIP
LOWEST = -1.7976931348623157e308  # lowest value of a label that is not excluded


cdef inline void _turn(
    const score_t* scores, Py_ssize_t n, Py_ssize_t n_labels, Py_ssize_t width, double* strip
) noexcept nogil:
    """Copy a strip so that each column is contiguous."""
    cdef Py_ssize_t i, w
    # A width known to the compiler is unrolled; an unknown one becomes slow scattered stores.
    if width == STRIP:
        for i in range(n):
            for w in range(STRIP):
                strip[w * PITCH + i] = scores[i * n_labels + w]
    else:
        for i in range(n):
            for w in range(width):
                strip[w * PITCH + i] = scores[i * n_labels + w]


cdef inline int64_t _check(double* cells, Py_ssize_t n, double low, double high) noexcept nogil:
    """Count the invalid cells, and replace -0.0 by 0.0 in the others."""
    cdef int64_t wrong = 0
    cdef Py_ssize_t i
    for i in range(n):
        wrong += 0 if (cells[i] >= low) & (cells[i] <= high) else 1
        cells[i] += 0.0
    return wrong


cdef inline void _turn_back(
    const double* turned, Py_ssize_t n, Py_ssize_t n_labels, Py_ssize_t width, mapped_t* mapped
) noexcept nogil:
    """Write a strip to its columns."""
    cdef Py_ssize_t i, w
    if width == STRIP:
        for i in range(n):
            for w in range(STRIP):
                mapped[i * n_labels + w] = <mapped_t> turned[w * PITCH + i]
    else:
        for i in range(n):
            for w in range(width):
                mapped[i * n_labels + w] = <mapped_t> turned[w * PITCH + i]


cdef void _map_knots(
    const double* cells, Py_ssize_t n, int64_t start, int64_t stop, const double* x,
    const double* knots, int64_t* places, double* mapped,
) noexcept nogil:
    """Values of some cells of a label with knots."""
    cdef int64_t half, at, left = stop - start
    cdef Py_ssize_t i
    # One step of bisection for all cells at a time, which is vectorised.
    for i in range(n):
        places[i] = start
    while left > 1:
        half = left >> 1
        for i in range(n):
            at = places[i]
            places[i] = at + half if x[at + half] <= cells[i] else at
        left -= half
    for i in range(n):
        mapped[i] = interpolate(cells[i], knots + 4 * places[i])


cdef inline double _finish(
    int code, double score, double value, bint margin, bint odds
) noexcept nogil:
    """The probability of a cell of a label without knots, from its value."""
    if code == CONSTANT:
        return value
    if code == EXCLUDED:
        return 0.0
    if code == IDENTITY and not margin:
        return score
    return sigmoid(value) if odds else value


cdef void _map_column(
    int code, const double* cells, Py_ssize_t n, double a, double b, double c, bint margin,
    bint odds, bint to_probability, double* mapped,
) noexcept nogil:
    """Values or probabilities of some cells of a label without knots."""
    cdef Py_ssize_t i
    for i in range(n):
        mapped[i] = value_of(code, cells[i], a, b, c, margin, odds)
    if to_probability:
        for i in range(n):
            mapped[i] = _finish(code, cells[i], mapped[i], margin, odds)


def fill_knots(
    const double[::1] x, const double[::1] y, const uint8_t[::1] is_last, double[:, ::1] knots
):
    """Rows of x, y, the slope to the next knot and its y; ``is_last`` if there is none."""
    cdef Py_ssize_t i
    cdef bint alone
    with nogil:
        for i in range(x.shape[0]):
            knots[i, 0] = x[i]
            knots[i, 1] = y[i]
            alone = is_last[i] or x[i + 1] <= x[i]
            knots[i, 2] = 0.0 if alone else (y[i + 1] - y[i]) / (x[i + 1] - x[i])
            knots[i, 3] = y[i] if alone else y[i + 1]


def map_cells(
    const score_t[:, ::1] scores, const int8_t[::1] code, const double[::1] a,
    const double[::1] b, const double[::1] c, const int64_t[::1] start, const int64_t[::1] stop,
    const double[::1] x, const double[:, ::1] knots, bint margin, bint odds, double low,
    double high, bint to_probability, mapped_t[:, ::1] mapped,
):
    """Fill ``mapped`` with values or probabilities; returns how many cells are not in [low, high].

    ``a`` of a constant is what is to be written. An excluded label has value -inf and
    probability 0.
    """
    cdef Py_ssize_t n_rows = scores.shape[0], n_labels = scores.shape[1]
    cdef Py_ssize_t part, first, piece, column, w, width, n, label
    cdef int64_t wrong = 0
    cdef double strip[STRIP * PITCH]
    cdef double turned[STRIP * PITCH]
    cdef int64_t places[TILE]
    cdef const double* knot_scores = NULL
    cdef const double* knot_rows = NULL
    if x.shape[0]:
        knot_scores, knot_rows = &x[0], &knots[0, 0]
    with nogil:
        for part in range(parts(n_rows, TILE)):
            first = part * TILE
            n = min(<Py_ssize_t> TILE, n_rows - first)
            for piece in range(parts(n_labels, STRIP)):
                column = piece * STRIP
                width = min(<Py_ssize_t> STRIP, n_labels - column)
                _turn(&scores[first, column], n, n_labels, width, strip)
                for w in range(width):
                    label = column + w
                    wrong += _check(strip + w * PITCH, n, low, high)
                    if code[label] == KNOTS:
                        _map_knots(
                            strip + w * PITCH, n, start[label], stop[label], knot_scores,
                            knot_rows, places, turned + w * PITCH,
                        )
                    else:
                        _map_column(
                            code[label], strip + w * PITCH, n, a[label], b[label], c[label],
                            margin, odds, to_probability, turned + w * PITCH,
                        )
                _turn_back(turned, n, n_labels, width, &mapped[first, column])
    return wrong
