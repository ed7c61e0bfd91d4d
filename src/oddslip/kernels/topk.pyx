"""The K highest keys of each row, in one pass.

For K up to 8, a long row is cut into segments of 16 lanes x 8 cells, and segments into groups of 8.
One vectorised sweep keeps the largest key of each lane of each segment, then of each group, then of
the row. The K-th largest of the 16 lane maxima is a *floor*: at least K cells reach it, so only
lanes that reach it are looked into, about K of them. That bounds the work for sorted rows as well
as for random ones. A row in which many lanes tie at the floor (saturated scores) takes the first
columns at the floor instead.

Other rows are read from the left, and the K best so far are kept (see `places`): a row that ascends
to the right is the slowest, one that descends the fastest.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from oddslip.kernels.places cimport is_ahead, order, take, worst_of
from oddslip.kernels.types cimport key_t, parts

import numpy as np

cdef enum:
    LANES = 16
    DEPTH = 8
    SEGMENT = LANES * DEPTH
    LONG_ROW = 4 * SEGMENT  # shorter rows are faster without the sweep


cdef inline void _highest(const key_t* cells, key_t* out) noexcept nogil:
    """The largest of each lane of a segment. Unrolled by hand, since compilers keep a loop."""
    cdef key_t tops[LANES]
    cdef key_t a, b, c, d
    cdef int lane
    for lane in range(LANES):
        a = max(cells[lane], cells[LANES + lane])
        b = max(cells[2 * LANES + lane], cells[3 * LANES + lane])
        c = max(cells[4 * LANES + lane], cells[5 * LANES + lane])
        d = max(cells[6 * LANES + lane], cells[7 * LANES + lane])
        a = max(a, b)
        c = max(c, d)
        tops[lane] = max(a, c)
    for lane in range(LANES):
        out[lane] = tops[lane]


cdef void _sweep(
    const key_t* row, Py_ssize_t n_labels, key_t* lanes, key_t* groups, Py_ssize_t n_groups,
    key_t* tops,
) noexcept nogil:
    """Fill the maxima of lanes, groups and of the row; 0 past the end of the row."""
    cdef Py_ssize_t n_whole = n_labels // SEGMENT
    cdef Py_ssize_t segment, step, column, group
    cdef key_t* last = lanes + n_whole * LANES
    cdef int lane
    for segment in range(n_whole):
        _highest(row + segment * SEGMENT, lanes + segment * LANES)
    for lane in range(LANES):
        last[lane] = 0
    for step in range(n_whole * DEPTH, n_labels // LANES):
        for lane in range(LANES):
            last[lane] = max(last[lane], row[step * LANES + lane])
    for column in range(n_labels // LANES * LANES, n_labels):
        lane = column % LANES
        last[lane] = max(last[lane], row[column])
    for group in range(n_groups):
        _highest(lanes + group * SEGMENT, groups + group * LANES)
    for lane in range(LANES):
        tops[lane] = groups[lane]
    for group in range(1, n_groups):
        for lane in range(LANES):
            tops[lane] = max(tops[lane], groups[group * LANES + lane])


cdef key_t _find_floor(const key_t* tops, Py_ssize_t k) noexcept nogil:
    """The k-th largest of the lanes' maxima."""
    cdef key_t highest = tops[0], floor
    cdef int lane, other, above
    for lane in range(1, LANES):
        highest = max(highest, tops[lane])
    floor = highest
    for lane in range(LANES):
        above = 0
        for other in range(LANES):
            above += tops[other] > tops[lane]
        floor = min(floor, tops[lane] if above < k else highest)
    return floor


cdef Py_ssize_t _collect(
    const key_t* row, Py_ssize_t n_labels, key_t threshold, const key_t* lanes, uint8_t* flags,
    int32_t* starts, int32_t* hits, int32_t* cells,
) noexcept nogil:
    """Columns of the cells that reach the threshold, appended without a branch per cell."""
    cdef Py_ssize_t n_lanes = (n_labels + SEGMENT - 1) // SEGMENT * LANES
    cdef const uint64_t* words = <const uint64_t*> flags  # eight flags at a time
    cdef Py_ssize_t n_words = 0, n_hits = 0, n_cells = 0
    cdef Py_ssize_t lane, word, hit, step, column, first
    for lane in range(n_lanes):
        flags[lane] = lanes[lane] >= threshold
    for word in range(n_lanes // 8):
        starts[n_words] = <int32_t> (8 * word)
        n_words += words[word] != 0
    for word in range(n_words):
        for lane in range(starts[word], starts[word] + 8):
            hits[n_hits] = <int32_t> lane
            n_hits += flags[lane]
    for hit in range(n_hits):
        first = hits[hit] // LANES * SEGMENT + hits[hit] % LANES
        for step in range(min(<Py_ssize_t> DEPTH, parts(n_labels - first, LANES))):
            column = first + step * LANES
            cells[n_cells] = <int32_t> column
            n_cells += row[column] >= threshold
    return n_cells


cdef int64_t _long_row(
    const key_t* row, Py_ssize_t n_labels, Py_ssize_t k, key_t* lanes, key_t* groups,
    Py_ssize_t n_groups, uint8_t* flags, int32_t* starts, int32_t* hits, int32_t* cells,
    key_t* best, int32_t* columns,
) noexcept nogil:
    """Top k of one long row; returns how many cells of the row equal the k-th."""
    cdef key_t tops[LANES]
    cdef key_t floor, threshold, key
    cdef Py_ssize_t cell, column, n_cells, filled = 0, worst = worst_of(k)
    cdef int64_t at_kth = 0
    cdef int lane, reaching = 0
    _sweep(row, n_labels, lanes, groups, n_groups, tops)
    floor = _find_floor(tops, k)
    for lane in range(LANES):
        reaching += tops[lane] >= floor
    # More than k lanes reach the floor: a tie there. Look above it first, then fill from the left.
    threshold = floor + 1 if reaching > k else floor
    n_cells = _collect(row, n_labels, threshold, lanes, flags, starts, hits, cells)
    for cell in range(n_cells - 1, -1, -1):  # from the right: an ascending row comes best first
        key = row[cells[cell]]
        if filled < k or is_ahead(key, cells[cell], best[worst], columns[worst]):
            filled = take(key, cells[cell], best, columns, filled, k)
    if filled == k:
        for cell in range(n_cells):
            at_kth += row[cells[cell]] == best[k - 1]
        return at_kth
    column = 0
    while filled < k:
        if row[column] == floor:
            best[filled] = floor
            columns[filled] = <int32_t> column
            filled += 1
        column += 1
    for column in range(n_labels):
        at_kth += row[column] == floor
    return at_kth


cdef int64_t _whole_row(
    const key_t* row, Py_ssize_t n_labels, Py_ssize_t k, key_t* best, int32_t* columns,
    key_t* spare_keys, int32_t* spare_columns,
) noexcept nogil:
    """Top k of one row, cell by cell; returns how many cells equal the k-th."""
    cdef key_t lowest
    cdef Py_ssize_t column, filled = 0, worst = worst_of(k)
    cdef int64_t at_kth = 0
    for column in range(k):
        filled = take(row[column], <int32_t> column, best, columns, filled, k)
    lowest = best[worst]
    for column in range(k, n_labels):
        if row[column] > lowest:  # an equal key ranks after the worst, which is further left
            take(row[column], <int32_t> column, best, columns, k, k)
            lowest = best[worst]
    order(best, columns, spare_keys, spare_columns, k, k)
    for column in range(n_labels):
        at_kth += row[column] == best[k - 1]
    return at_kth


def rank_rows(
    const key_t[:, ::1] keys, const int64_t[::1] rows, Py_ssize_t k, int32_t[:, ::1] columns,
    key_t[:, ::1] best, int64_t[::1] at_kth,
):
    """Columns and keys of the k highest cells of the given rows, best first.

    Equal keys rank the lower column first. ``at_kth`` counts the cells of the row that equal its
    k-th; where it exceeds those shown, the top k is decided by ties.
    """
    cdef Py_ssize_t i, n_labels = keys.shape[1]
    cdef Py_ssize_t n_groups = n_labels // (SEGMENT * DEPTH) + 1
    cdef bint is_long = n_labels >= LONG_ROW and k <= LANES // 2
    dtype = np.uint32 if sizeof(key_t) == 4 else np.uint64
    cdef key_t[::1] spare_keys = np.empty(k, dtype)
    cdef int32_t[::1] spare_columns = np.empty(k, np.int32)
    if not is_long:
        with nogil:
            for i in range(rows.shape[0]):
                at_kth[i] = _whole_row(
                    &keys[rows[i], 0], n_labels, k, &best[i, 0], &columns[i, 0], &spare_keys[0],
                    &spare_columns[0],
                )
        return
    cdef key_t[::1] lanes = np.zeros(n_groups * SEGMENT, dtype)
    cdef key_t[::1] groups = np.empty(n_groups * LANES, dtype)
    cdef uint8_t[::1] flags = np.empty(lanes.shape[0], np.uint8)
    cdef int32_t[::1] starts = np.empty(lanes.shape[0] // 8 + 1, np.int32)
    cdef int32_t[::1] hits = np.empty(lanes.shape[0] + 1, np.int32)
    cdef int32_t[::1] cells = np.empty(n_labels + 1, np.int32)
    with nogil:
        for i in range(rows.shape[0]):
            at_kth[i] = _long_row(
                &keys[rows[i], 0], n_labels, k, &lanes[0], &groups[0], n_groups, &flags[0],
                &starts[0], &hits[0], &cells[0], &best[i, 0], &columns[i, 0],
            )


# Rows with absent cells. Empty slots have the column -1 and the key 0.


cdef int64_t _pad(
    key_t* best, int32_t* columns, Py_ssize_t filled, Py_ssize_t k
) noexcept nogil:
    """Mark the empty slots."""
    cdef Py_ssize_t place
    for place in range(filled, k):
        best[place] = 0
        columns[place] = -1
    return 0


cdef int64_t _scarce_row(
    const key_t* row, Py_ssize_t n_labels, const int32_t* gone, Py_ssize_t n_gone, Py_ssize_t k,
    key_t* best, int32_t* columns, key_t* spare_keys, int32_t* spare_columns,
) noexcept nogil:
    """Top k of the present cells of a row; returns how many of them equal the last."""
    cdef Py_ssize_t column, at = 0, filled = 0, worst = worst_of(k)
    cdef int64_t at_kth = 0
    for column in range(n_labels):
        if at < n_gone and gone[at] == column:
            at += 1
            continue
        if filled < k or row[column] > best[worst]:
            filled = take(row[column], <int32_t> column, best, columns, filled, k)
    order(best, columns, spare_keys, spare_columns, filled, k)
    _pad(best, columns, filled, k)
    if filled == 0:
        return 0
    at = 0
    for column in range(n_labels):
        if at < n_gone and gone[at] == column:
            at += 1
            continue
        at_kth += row[column] == best[filled - 1]
    return at_kth


def rank_present(
    const key_t[:, ::1] keys, const int64_t[::1] rows, const int64_t[::1] indptr,
    const int32_t[::1] absent, Py_ssize_t k, int32_t[:, ::1] columns, key_t[:, ::1] best,
    int64_t[::1] at_kth,
):
    """As `rank_rows`, without the absent cells of row i: ``absent[indptr[i]:indptr[i + 1]]``.

    A copy of the row shows them with the lowest key. Only where that key makes the top k do
    absent cells stand beside others, and the row is looked at anew.
    """
    cdef Py_ssize_t i, at, row, n_labels = keys.shape[1]
    cdef Py_ssize_t n_groups = n_labels // (SEGMENT * DEPTH) + 1
    cdef bint is_long = n_labels >= LONG_ROW and k <= LANES // 2
    dtype = np.uint32 if sizeof(key_t) == 4 else np.uint64
    cdef key_t[::1] spare_keys = np.empty(k, dtype)
    cdef int32_t[::1] spare_columns = np.empty(k, np.int32)
    cdef key_t[::1] copied = np.empty(n_labels, dtype)
    cdef key_t[::1] lanes = np.zeros(n_groups * SEGMENT, dtype)
    cdef key_t[::1] groups = np.empty(n_groups * LANES, dtype)
    cdef uint8_t[::1] flags = np.empty(lanes.shape[0], np.uint8)
    cdef int32_t[::1] starts = np.empty(lanes.shape[0] // 8 + 1, np.int32)
    cdef int32_t[::1] hits = np.empty(lanes.shape[0] + 1, np.int32)
    cdef int32_t[::1] cells = np.empty(n_labels + 1, np.int32)
    cdef const int32_t* gone = NULL
    if absent.shape[0]:
        gone = &absent[0]
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            memcpy(&copied[0], &keys[row, 0], n_labels * sizeof(key_t))
            for at in range(indptr[row], indptr[row + 1]):
                copied[gone[at]] = 0
            if is_long:
                at_kth[i] = _long_row(
                    &copied[0], n_labels, k, &lanes[0], &groups[0], n_groups, &flags[0],
                    &starts[0], &hits[0], &cells[0], &best[i, 0], &columns[i, 0],
                )
            else:
                at_kth[i] = _whole_row(
                    &copied[0], n_labels, k, &best[i, 0], &columns[i, 0], &spare_keys[0],
                    &spare_columns[0],
                )
            if best[i, k - 1] == 0 and indptr[row + 1] > indptr[row]:
                at_kth[i] = _scarce_row(
                    &keys[row, 0], n_labels, gone + indptr[row], indptr[row + 1] - indptr[row], k,
                    &best[i, 0], &columns[i, 0], &spare_keys[0], &spare_columns[0],
                )


def rank_listed(
    const int64_t[::1] indptr, const int32_t[::1] labels, const key_t[::1] keys,
    const int64_t[::1] rows, Py_ssize_t k, int32_t[:, ::1] columns, key_t[:, ::1] best,
    int64_t[::1] at_kth,
):
    """As `rank_rows`, of rows that list their cells: row i those of ``indptr[i]:indptr[i + 1]``."""
    cdef Py_ssize_t i, at, row, filled, worst = worst_of(k)
    dtype = np.uint32 if sizeof(key_t) == 4 else np.uint64
    cdef key_t lowest = 0
    cdef key_t[::1] spare_keys = np.empty(k, dtype)
    cdef int32_t[::1] spare_columns = np.empty(k, np.int32)
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            filled = 0
            for at in range(indptr[row], indptr[row + 1]):
                if filled == k and keys[at] < lowest:
                    continue
                if filled < k or is_ahead(
                    keys[at], labels[at], best[i, worst], columns[i, worst]
                ):
                    filled = take(keys[at], labels[at], &best[i, 0], &columns[i, 0], filled, k)
                    lowest = best[i, worst]
            order(
                &best[i, 0], &columns[i, 0], &spare_keys[0], &spare_columns[0], filled, k
            )
            _pad(&best[i, 0], &columns[i, 0], filled, k)
            at_kth[i] = 0
            if filled > 0:
                for at in range(indptr[row], indptr[row + 1]):
                    at_kth[i] += keys[at] == best[i, filled - 1]


def rank_keys(keys, k, rows=None, absent=None):
    """The output of `rank_rows` for these rows or for all, without absent cells."""
    rows = np.arange(len(keys)) if rows is None else rows
    columns = np.empty((rows.size, k), np.int32)
    best = np.empty((rows.size, k), keys.dtype)
    at_kth = np.empty(rows.size, np.int64)
    if absent is None:
        rank_rows(keys, rows, k, columns, best, at_kth)
    else:
        rank_present(keys, rows, *absent, k, columns, best, at_kth)
    return columns, best, at_kth


def rank_lists(indptr, labels, keys, k, rows=None):
    """The output of `rank_listed` for these rows or for all."""
    rows = np.arange(len(indptr) - 1) if rows is None else rows
    columns = np.empty((rows.size, k), np.int32)
    best = np.empty((rows.size, k), keys.dtype)
    at_kth = np.empty(rows.size, np.int64)
    rank_listed(indptr, labels, keys, rows, k, columns, best, at_kth)
    return columns, best, at_kth
