"""Calibrate and rank in one pass, without computing the calibrated matrix.

Maps are non-decreasing, so a cell's value reaches tau if and only if its key reaches some key of
its label. With such keys for a ladder of levels tau_0 > tau_1 > ..., a row is ranked as follows:

1. one vectorised sweep compares the row with the keys of one low level and collects the cells that
   reach them;
2. these few cells are compared with all levels, and the highest level that k cells reach is taken;
3. only the cells that reach it are evaluated. If the k-th best of them reaches tau, no other cell
   of the row can beat or tie it.

A row with too few cells at one level tries a lower one, and in the end evaluates every cell. The
choice of levels decides the speed, never the result. Invalid cells have keys above every level, so
they are always among those collected, and the input is validated at no cost.
"""

from libc.math cimport INFINITY, fabs, log
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from oddslip.kernels.maps cimport (
    AFFINE, BETA, IDENTITY, KNOTS, beta_of_margin, interpolate, place_of, sigmoid, value_of,
)
from oddslip.kernels.places cimport is_ahead, order, sort, take, worst_of
from oddslip.kernels.types cimport key_t, parts, score_t

import numpy as np

cdef enum:
    LANES = 16
    DEPTH = 8
    SEGMENT = LANES * DEPTH
    N_LEVELS = 16
    FEWEST = 16  # up to so many places are sorted by insertion

LEVELS = N_LEVELS


cdef struct Maps:
    # The maps of all labels, see `maps`; ``odds`` if values are on the log-odds scale.
    const int8_t* code
    const double* a
    const double* b
    const double* c
    const int64_t* start
    const int64_t* stop
    const double* x
    const double* knots
    bint margin
    bint odds


cdef struct Places:
    # Evaluated cells of one row; the spare arrays are for merge sort.
    double* values
    int32_t* columns
    double* spare_values
    int32_t* spare_columns


cdef inline uint8_t _reach(const key_t* cells, const key_t* sieve, int lane) noexcept nogil:
    """One bit for each cell of a lane that reaches the sieve; unrolled to be vectorised."""
    return (
        (cells[lane] >= sieve[lane])
        | (cells[16 + lane] >= sieve[16 + lane]) << 1
        | (cells[32 + lane] >= sieve[32 + lane]) << 2
        | (cells[48 + lane] >= sieve[48 + lane]) << 3
        | (cells[64 + lane] >= sieve[64 + lane]) << 4
        | (cells[80 + lane] >= sieve[80 + lane]) << 5
        | (cells[96 + lane] >= sieve[96 + lane]) << 6
        | (cells[112 + lane] >= sieve[112 + lane]) << 7
    )


cdef Py_ssize_t _collect(
    const key_t* row, Py_ssize_t n_labels, const key_t* sieve, int64_t* hits, int32_t* cells
) noexcept nogil:
    """Columns of the cells that reach the sieve. A lane's bit tells which of its cells do."""
    cdef Py_ssize_t n_segments = n_labels // SEGMENT
    cdef Py_ssize_t segment, column, hit, n_hits = 0, n_cells = 0
    cdef uint32_t lanes[LANES]
    cdef int64_t first
    cdef int lane, step
    for segment in range(n_segments):
        first = segment * SEGMENT
        for lane in range(LANES):
            lanes[lane] = _reach(row + first, sieve + first, lane)
        for lane in range(LANES):
            hits[n_hits] = (first + lane) << DEPTH | lanes[lane]
            n_hits += lanes[lane] != 0
    for hit in range(n_hits):
        first = hits[hit] >> DEPTH
        for step in range(DEPTH):
            cells[n_cells] = <int32_t> (first + step * LANES)
            n_cells += (hits[hit] >> step) & 1
    for column in range(n_segments * SEGMENT, n_labels):
        cells[n_cells] = <int32_t> column
        n_cells += row[column] >= sieve[column]
    return n_cells


cdef inline double _evaluate(double score, Py_ssize_t label, const Maps* maps) noexcept nogil:
    """Value of one cell."""
    cdef int64_t place
    if maps.code[label] == KNOTS:
        place = place_of(score, maps.start[label], maps.stop[label], maps.x)
        return interpolate(score, maps.knots + 4 * place)
    return value_of(
        maps.code[label], score, maps.a[label], maps.b[label], maps.c[label], maps.margin,
        maps.odds,
    )


cdef void _count_levels(
    const key_t* row, const int32_t* cells, Py_ssize_t n_cells, const key_t* ladder,
    uint32_t* counts,
) noexcept nogil:
    """How many of the cells reach each level."""
    cdef uint32_t counted[N_LEVELS]
    cdef const key_t* rungs
    cdef key_t key
    cdef Py_ssize_t cell
    cdef int level
    for level in range(N_LEVELS):
        counted[level] = 0
    for cell in range(n_cells):
        key = row[cells[cell]]
        rungs = ladder + <Py_ssize_t> cells[cell] * N_LEVELS
        for level in range(N_LEVELS):
            counted[level] += key >= rungs[level]
    for level in range(N_LEVELS):
        counts[level] = counted[level]


cdef inline Py_ssize_t _narrow(
    const key_t* row, const int32_t* cells, Py_ssize_t n_cells, const key_t* ladder,
    Py_ssize_t level, int32_t* kept,
) noexcept nogil:
    """The cells that reach a level."""
    cdef Py_ssize_t cell, n_kept = 0
    for cell in range(n_cells):
        kept[n_kept] = cells[cell]
        n_kept += row[cells[cell]] >= ladder[<Py_ssize_t> cells[cell] * N_LEVELS + level]
    return n_kept


cdef inline bint _any_above(
    const key_t* row, const int32_t* cells, Py_ssize_t n_cells, key_t limit
) noexcept nogil:
    """Whether one of the cells is invalid."""
    cdef key_t largest = 0
    cdef Py_ssize_t cell
    for cell in range(n_cells):
        largest = max(largest, row[cells[cell]])
    return largest > limit


cdef inline Py_ssize_t _drop(
    const uint8_t* gone, int32_t* cells, Py_ssize_t n_cells
) noexcept nogil:
    """The cells that are not gone, moved together."""
    cdef Py_ssize_t cell, n_kept = 0
    for cell in range(n_cells):
        cells[n_kept] = cells[cell]
        n_kept += gone[cells[cell]] == 0
    return n_kept


cdef Py_ssize_t _rank(
    const score_t* scores, const int32_t* cells, Py_ssize_t n_cells, Py_ssize_t k, double ceiling,
    const Maps* maps, Places* places,
) noexcept nogil:
    """Evaluate some cells of a row and put the k best first; returns how many were evaluated.

    Cells come segment by segment. Once k cells have the largest value there is, those of the
    segments to the right are not looked at: saturated rows end early. Where most of the cells are
    to be shown, they are all sorted.
    """
    cdef double* values = places.values
    cdef int32_t* columns = places.columns
    cdef Py_ssize_t cell, filled = 0, worst = worst_of(k)
    cdef int32_t label
    cdef double value
    if k > FEWEST and n_cells <= 2 * k:
        for cell in range(n_cells):
            label = cells[cell]
            values[cell] = _evaluate(scores[label], label, maps)
            columns[cell] = label
        sort(values, columns, places.spare_values, places.spare_columns, n_cells)
        return n_cells
    for cell in range(n_cells):
        label = cells[cell]
        if (
            filled == k
            and values[worst] >= ceiling
            and label // SEGMENT * SEGMENT > columns[worst]
        ):
            n_cells = cell
            break
        value = _evaluate(scores[label], label, maps)
        if filled < k or is_ahead(value, label, values[worst], columns[worst]):
            filled = take(value, label, values, columns, filled, k)
    order(values, columns, places.spare_values, places.spare_columns, filled, k)
    return n_cells


def rank_cells(
    const score_t[:, ::1] scores, const key_t[:, ::1] keys, key_t limit, Py_ssize_t k,
    const int8_t[::1] code, const double[::1] a, const double[::1] b, const double[::1] c,
    const int64_t[::1] start, const int64_t[::1] stop, const double[::1] x,
    const double[:, ::1] knots, bint margin, bint odds, const double[::1] taus,
    const key_t[:, ::1] ladder, const int64_t[::1] sweeps, const key_t[:, ::1] sieves,
    int32_t[:, ::1] columns, const int64_t[::1] indptr=None, const int32_t[::1] absent=None,
):
    """Labels of each row's k highest values, best first; equal values rank the lower label first.

    ``taus`` descend and begin with the largest value any label can have. Cells of label j whose
    key is below ``ladder[j, l]`` have values below ``taus[l]``. ``sweeps`` are the levels swept
    at, one after the other, and ``sieves`` their keys. Returns how many cells were evaluated, or
    -1 if a key is above ``limit``. Cells ``absent[indptr[i]:indptr[i + 1]]`` of row i are passed
    over; where fewer than k are left, the last columns are -1.
    """
    if sizeof(key_t) != sizeof(score_t):
        raise TypeError("keys must be as wide as scores")
    if keys.shape[1] == 0:
        return 0
    cdef Py_ssize_t n_rows = keys.shape[0], n_labels = keys.shape[1]
    cdef Py_ssize_t i, sweep, level, column, place, n_cells, n_kept, evaluated = 0
    cdef Py_ssize_t n_sweeps = sweeps.shape[0]
    cdef int64_t[::1] hits = np.empty(n_labels // DEPTH + 1, np.int64)
    cdef int32_t[:, ::1] listed = np.empty((4, n_labels + 1), np.int32)
    cdef double[:, ::1] valued = np.empty((2, n_labels))
    cdef int32_t* cells = &listed[0, 0]
    cdef int32_t* kept = &listed[1, 0]
    cdef Places ranked = Places(&valued[0, 0], &listed[2, 0], &valued[1, 0], &listed[3, 0])
    cdef Maps maps = Maps(
        &code[0], &a[0], &b[0], &c[0], &start[0], &stop[0], NULL, NULL, margin, odds
    )
    if x.shape[0]:
        maps.x, maps.knots = &x[0], &knots[0, 0]
    cdef uint32_t counts[N_LEVELS]
    cdef double ceiling = taus[0]
    cdef const key_t* row
    cdef const key_t* rungs = NULL
    cdef bint done, some_absent = indptr is not None
    cdef uint8_t[::1] gone = np.zeros(n_labels if some_absent else 1, np.uint8)
    cdef Py_ssize_t at, shown
    if n_sweeps:
        rungs = &ladder[0, 0]
    with nogil:
        for i in range(n_rows):
            row = &keys[i, 0]
            done = False
            shown = k
            if some_absent:
                for at in range(indptr[i], indptr[i + 1]):
                    gone[absent[at]] = 1
            for sweep in range(n_sweeps):
                n_cells = _collect(row, n_labels, &sieves[sweep, 0], &hits[0], cells)
                if some_absent:
                    n_cells = _drop(&gone[0], cells, n_cells)
                if sweep == 0 and _any_above(row, cells, n_cells, limit):
                    evaluated = -1
                    break
                _count_levels(row, cells, n_cells, rungs, counts)
                for level in range(sweeps[sweep] + 1):
                    if counts[level] < k:
                        continue
                    n_kept = _narrow(row, cells, n_cells, rungs, level, kept)
                    evaluated += _rank(&scores[i, 0], kept, n_kept, k, ceiling, &maps, &ranked)
                    done = ranked.values[k - 1] >= taus[level]
                    if done:
                        break
                if done:
                    break
            if evaluated < 0:
                break
            if not done:
                for column in range(n_labels):
                    kept[column] = <int32_t> column
                n_kept = n_labels
                if some_absent:
                    n_kept = _drop(&gone[0], kept, n_labels)
                    shown = min(k, n_kept)
                if _any_above(row, kept, n_kept, limit):
                    evaluated = -1
                    break
                evaluated += _rank(&scores[i, 0], kept, n_kept, k, ceiling, &maps, &ranked)
            for place in range(shown):
                columns[i, place] = ranked.columns[place]
            if some_absent:
                for place in range(shown, k):
                    columns[i, place] = -1
                for at in range(indptr[i], indptr[i + 1]):
                    gone[absent[at]] = 0
    return evaluated


def rank_lists(
    const int64_t[::1] indptr, const int32_t[::1] labels, const score_t[::1] scores, Py_ssize_t k,
    const int8_t[::1] code, const double[::1] a, const double[::1] b, const double[::1] c,
    const int64_t[::1] start, const int64_t[::1] stop, const double[::1] x,
    const double[:, ::1] knots, bint margin, bint odds, int32_t[:, ::1] columns,
):
    """As `rank_cells`, of rows that list their cells, all of them valid."""
    cdef Py_ssize_t i, at, place, filled, worst = worst_of(k)
    cdef double[:, ::1] values = np.empty((2, k))
    cdef int32_t[::1] spare_columns = np.empty(k, np.int32)
    cdef Maps maps = Maps(
        &code[0], &a[0], &b[0], &c[0], &start[0], &stop[0], NULL, NULL, margin, odds
    )
    cdef double value
    if x.shape[0]:
        maps.x, maps.knots = &x[0], &knots[0, 0]
    with nogil:
        for i in range(indptr.shape[0] - 1):
            filled = 0
            for at in range(indptr[i], indptr[i + 1]):
                value = _evaluate(scores[at], labels[at], &maps)
                if filled < k or is_ahead(value, labels[at], values[0, worst], columns[i, worst]):
                    filled = take(value, labels[at], &values[0, 0], &columns[i, 0], filled, k)
            order(
                &values[0, 0], &columns[i, 0], &values[1, 0], &spare_columns[0], filled, k
            )
            for place in range(filled, k):
                columns[i, place] = -1


cdef inline double _invert_knots(
    double target, int64_t start, int64_t stop, const double* knots
) noexcept nogil:
    """Where a label with knots reaches a value between its least and its most."""
    cdef int64_t middle, at = start, upper = stop - 1
    cdef double slope
    while upper - at > 1:
        middle = (at + upper) >> 1
        if knots[4 * middle + 1] < target:
            at = middle
        else:
            upper = middle
    slope = knots[4 * at + 2]
    if not (0.0 < slope < INFINITY):
        return knots[4 * upper]
    return min(knots[4 * at] + (target - knots[4 * at + 1]) / slope, knots[4 * upper])


cdef inline double _invert_beta(
    double target, double a, double b, double c, double z
) noexcept nogil:
    """Log-odds at which a beta map reaches a value, by Newton's method from ``z``."""
    cdef double value, chance, slope, step
    cdef int turn
    for turn in range(12):
        value = beta_of_margin(z, a, b, c)
        chance = sigmoid(z)
        slope = max(a * (1.0 - chance) + b * chance, 1e-12)
        # A flat end may throw the step far out; what is far out is mended by whoever checks.
        step = min(max((target - value) / slope, -40.0), 40.0)
        z += step
        if fabs(step) < 1e-8:  # the next one would be about its square
            break
    return z


def invert_maps(
    const double[:, ::1] targets, const int8_t[::1] code, const double[::1] a,
    const double[::1] b, const double[::1] c, const int64_t[::1] start, const int64_t[::1] stop,
    const double[::1] x, const double[:, ::1] knots, bint margin, bint odds, double low,
    double high, double[:, ::1] guesses,
):
    """About the lowest score at which label j reaches ``targets[l, j]``; -inf: all, inf: none."""
    cdef Py_ssize_t j, level
    cdef double least, most, target, z, last
    if code.shape[0] == 0:
        return
    cdef Maps maps = Maps(
        &code[0], &a[0], &b[0], &c[0], &start[0], &stop[0], NULL, NULL, margin, odds
    )
    if x.shape[0]:
        maps.x, maps.knots = &x[0], &knots[0, 0]
    with nogil:
        for j in range(code.shape[0]):
            least = _evaluate(low, j, &maps)
            most = _evaluate(high, j, &maps)
            last = 0.0
            for level in range(targets.shape[0]):
                target = targets[level, j]
                if target > most:
                    guesses[level, j] = INFINITY
                elif target <= least:
                    guesses[level, j] = -INFINITY
                elif code[j] == KNOTS:
                    guesses[level, j] = _invert_knots(target, start[j], stop[j], maps.knots)
                else:
                    z = target
                    if code[j] == AFFINE:
                        z = (target - b[j]) / a[j]
                    elif code[j] == BETA:
                        z = last = _invert_beta(target, a[j], b[j], c[j], last)
                    elif margin and not odds:
                        z = log(target / (1.0 - target))
                    if not (margin or (code[j] == IDENTITY and not odds)):
                        z = sigmoid(z)
                    guesses[level, j] = z
