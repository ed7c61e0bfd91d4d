"""Isotonic regression of labels with many positives: only where a knot may be is anything sorted.

Let a label's cells stand in the order of their scores, and draw the running count of positives over
the running count of cells. The isotonic fit is the slope of the lower hull of these points, and its
knots are where the hull turns. *Buckets*, monotone in the score, show some of the points; their
hull lies nowhere below the true one. A bucket has its lowest point where all its negatives come
first: if even that is not below the hull of the buckets, the true hull does not turn inside. So
`count_buckets` counts, `mark_buckets` marks the buckets in or beside which the hull may turn,
`collect_cells` gathers the cells of those alone, `group_cells` and `sort_groups` bring them in
order, and `join_hull` fits. All numbers are whole.

Counts of a label lie in pairs, negatives and positives of one bucket after the other. Probabilities
of 0 and of 1 have a bucket each, the first and the last: their scores are known, so they are never
gathered. Marked buckets are numbered; gathered cells are in *groups*, two to a marked
bucket, its negatives and its positives.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

from oddslip.kernels.types cimport bits_of, bits_of_single, parts, score_t

import numpy as np

ctypedef fused cell_t:
    float
    double
    uint8_t

ctypedef fused count_t:
    uint16_t
    uint32_t

cdef enum:
    WIDE = 16  # columns of a strip: a cache line of scores
    NARROW = 8
    TILE = 8192
    CHUNK = 1024
    FEW = 64  # cells of a group; larger groups are faster with Shell's sort
    STEP = 8
    PITCH = TILE + 16  # avoids a distance of a power of two, where columns would share a cache set

MAX_BUCKETS = 2**15  # the counts of more do not fit a core's cache


cdef inline int32_t _fold(score_t p) noexcept nogil:
    """A monotone function of a probability, roughly linear in its log-odds near 0 and near 1."""
    cdef score_t one = 1, half = <score_t> 0.5
    cdef bint high = p >= half
    cdef score_t least = one - p if high else p  # exact, since p is not below half of 1
    cdef int32_t bits
    if score_t is float:
        bits = <int32_t> bits_of_single(least)
        return 2 * 0x3F000000 - bits if high else bits
    else:
        bits = <int32_t> (bits_of(least) >> 32)
        return 2 * 0x3FE00000 - bits if high else bits


def fold_probabilities(const score_t[::1] scores, double[::1] folded):
    """The integer scale on which buckets of probabilities have equal widths."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(scores.shape[0]):
            folded[i] = _fold(scores[i])


cdef inline void _place(
    const score_t* cells, Py_ssize_t n, bint margin, double low, double high, double scale,
    int32_t last, int32_t* places,
) noexcept nogil:
    """The bucket of each cell; a valid one even for NaN."""
    cdef Py_ssize_t i
    cdef int32_t at, first = <int32_t> low, end = <int32_t> high
    cdef float per_step = <float> scale
    cdef score_t one = 1, zero = 0
    cdef double x
    if margin:
        for i in range(n):
            x = <double> cells[i]
            x = x if x > low else low
            x = x if x < high else high
            places[i] = 1 + <int32_t> ((x - low) * scale)
    else:
        for i in range(n):
            at = _fold(cells[i])
            at = min(max(at, first), end) - first
            at = 1 + <int32_t> (<float> at * per_step)
            at = 0 if cells[i] == zero else at
            places[i] = last if cells[i] == one else at


cdef inline void _turn(
    const cell_t* cells, Py_ssize_t n, Py_ssize_t n_columns, Py_ssize_t width, cell_t* strip
) noexcept nogil:
    """Copy a strip of some rows so that each of its columns is contiguous."""
    cdef Py_ssize_t i, w
    if width == WIDE:  # a width known at compile time is twice as fast
        for i in range(n):
            for w in range(WIDE):
                strip[w * PITCH + i] = cells[i * n_columns + w]
    elif width == NARROW:
        for i in range(n):
            for w in range(NARROW):
                strip[w * PITCH + i] = cells[i * n_columns + w]
    else:
        for i in range(n):
            for w in range(width):
                strip[w * PITCH + i] = cells[i * n_columns + w]


cdef inline bint _any_numbered(const int32_t* number_of, Py_ssize_t width) noexcept nogil:
    """Whether a strip has a column that is not skipped."""
    cdef Py_ssize_t w
    for w in range(width):
        if number_of[w] >= 0:
            return True
    return False


cdef inline void _tally(const int32_t* slots, Py_ssize_t n, count_t* counts) noexcept nogil:
    """Add 1 for every cell to the slot it belongs to."""
    cdef Py_ssize_t i
    for i in range(n):
        counts[slots[i]] += 1


def count_buckets(
    const score_t[:, ::1] scores, const uint8_t[:, ::1] truths, bint margin,
    const int32_t[::1] number_of, const double[::1] low, const double[::1] high,
    const double[::1] scale, const int64_t[::1] starts, uint32_t[::1] counts,
):
    """Add the cells of a block to the buckets of their label.

    Column j is label ``number_of[j]``, or passed over if that is -1. Label k's buckets have the
    pairs of ``counts[starts[k]:starts[k + 1]]``; those but the first and the last have equal widths
    from ``low[k]`` to ``high[k]``, ``scale[k]`` to a unit.
    """
    cdef Py_ssize_t n_rows = scores.shape[0], n_columns = scores.shape[1]
    cdef Py_ssize_t wide = WIDE if sizeof(score_t) == 4 else NARROW
    cdef Py_ssize_t part, start, piece, column, w, width, n, chunk, done, some, i, n_slots, most = 0
    cdef int32_t number
    cdef int32_t slots[CHUNK]
    cdef uint32_t* counted
    cdef bint near
    dtype = np.float32 if sizeof(score_t) == 4 else np.float64
    cdef score_t[::1] strip = np.empty(wide * PITCH, dtype)
    cdef uint8_t[::1] true = np.empty(wide * PITCH, np.uint8)
    for number in range(starts.shape[0] - 1):
        most = max(most, starts[number + 1] - starts[number])
    # Counts of one tile and one label in half the width, which fit the cache.
    cdef uint16_t[::1] small = np.zeros(most + 1, np.uint16)
    with nogil:
        for part in range(parts(n_rows, TILE)):
            start = part * TILE
            n = min(<Py_ssize_t> TILE, n_rows - start)
            for piece in range(parts(n_columns, wide)):
                column = piece * wide
                width = min(wide, n_columns - column)
                if not _any_numbered(&number_of[column], width):
                    continue
                _turn(&scores[start, column], n, n_columns, width, &strip[0])
                _turn(&truths[start, column], n, n_columns, width, &true[0])
                for w in range(width):
                    number = number_of[column + w]
                    if number < 0:
                        continue
                    n_slots = starts[number + 1] - starts[number]
                    counted = &counts[starts[number]]
                    near = n_slots < 8 * n  # else adding them up takes longer than it saves
                    for chunk in range(parts(n, CHUNK)):
                        done = chunk * CHUNK
                        some = min(<Py_ssize_t> CHUNK, n - done)
                        _place(
                            &strip[w * PITCH + done], some, margin, low[number], high[number],
                            scale[number], <int32_t> (n_slots // 2 - 1), slots,
                        )
                        for i in range(some):
                            slots[i] = 2 * slots[i] + (true[w * PITCH + done + i] != 0)
                        if near:
                            _tally(slots, some, &small[0])
                        else:
                            _tally(slots, some, counted)
                    if near:
                        for i in range(n_slots):
                            counted[i] += small[i]
                            small[i] = 0


def find_places(
    const score_t[::1] scores, bint margin, double low, double high, double scale,
    int32_t n_buckets, int32_t[::1] places,
):
    """The bucket of each score among ``n_buckets``, the first and the last for 0 and 1 included."""
    if scores.shape[0]:
        with nogil:
            _place(
                &scores[0], scores.shape[0], margin, low, high, scale, n_buckets - 1, &places[0]
            )


def count_rows(
    const score_t[:, ::1] scores, const uint8_t[::1] part_of, bint margin, double low, double high,
    double scale, uint32_t[:, ::1] counts,
):
    """Add all cells of each row to the buckets of its part, the same for all columns."""
    cdef Py_ssize_t n_columns = scores.shape[1], i, chunk, done, some, j
    cdef int32_t places[CHUNK]
    cdef uint32_t* counted
    with nogil:
        for i in range(scores.shape[0]):
            counted = &counts[part_of[i], 0]
            for chunk in range(parts(n_columns, CHUNK)):
                done = chunk * CHUNK
                some = min(<Py_ssize_t> CHUNK, n_columns - done)
                _place(
                    &scores[i, done], some, margin, low, high, scale,
                    <int32_t> (counts.shape[1] - 1), places,
                )
                for j in range(some):
                    counted[places[j]] += 1


def collect_cells(
    const score_t[:, ::1] scores, const uint8_t[:, ::1] truths, bint margin,
    const int32_t[::1] number_of, const double[::1] low, const double[::1] high,
    const double[::1] scale, const int64_t[::1] starts, const uint8_t[::1] marks,
    const int32_t[::1] numbers, score_t[::1] cells, int32_t[::1] groups,
):
    """Collect the cells in marked buckets, as many as fit; returns their number."""
    cdef Py_ssize_t n_rows = scores.shape[0], n_columns = scores.shape[1]
    cdef Py_ssize_t wide = WIDE if sizeof(score_t) == 4 else NARROW
    cdef Py_ssize_t part, start, piece, column, w, width, n, chunk, done, some, i, at
    cdef Py_ssize_t n_found, n_cells = 0
    cdef int32_t number
    cdef int32_t places[CHUNK]
    cdef int32_t found[CHUNK + 1]
    cdef const uint8_t* marked
    cdef const int32_t* numbered
    dtype = np.float32 if sizeof(score_t) == 4 else np.float64
    cdef score_t[::1] strip = np.empty(wide * PITCH, dtype)
    with nogil:
        for part in range(parts(n_rows, TILE)):
            start = part * TILE
            n = min(<Py_ssize_t> TILE, n_rows - start)
            for piece in range(parts(n_columns, wide)):
                column = piece * wide
                width = min(wide, n_columns - column)
                if not _any_numbered(&number_of[column], width):
                    continue
                _turn(&scores[start, column], n, n_columns, width, &strip[0])
                for w in range(width):
                    number = number_of[column + w]
                    if number < 0:
                        continue
                    marked = &marks[starts[number] // 2]
                    numbered = &numbers[starts[number] // 2]
                    for chunk in range(parts(n, CHUNK)):
                        done = chunk * CHUNK
                        some = min(<Py_ssize_t> CHUNK, n - done)
                        _place(
                            &strip[w * PITCH + done], some, margin, low[number], high[number],
                            scale[number],
                            <int32_t> ((starts[number + 1] - starts[number]) // 2 - 1), places,
                        )
                        n_found = 0
                        for i in range(some):  # without a branch per cell
                            found[n_found] = <int32_t> i
                            n_found += marked[places[i]]
                        n_found = min(n_found, cells.shape[0] - n_cells)
                        for at in range(n_found):
                            i = found[at]
                            cells[n_cells + at] = strip[w * PITCH + done + i]
                            groups[n_cells + at] = 2 * numbered[places[i]] + (
                                truths[start + done + i, column + w] != 0
                            )
                        n_cells += n_found
    return n_cells


def group_cells(
    const int32_t[::1] groups, const score_t[::1] cells, int64_t[::1] places,
    const int64_t[::1] ends, score_t[::1] grouped,
):
    """Move cells to their groups; ``places`` holds the next free place of each group.

    Returns the number of cells whose group is full.
    """
    cdef Py_ssize_t i, n_left = 0
    cdef int32_t group
    with nogil:
        for i in range(groups.shape[0]):
            group = groups[i]
            if places[group] < ends[group]:
                grouped[places[group]] = cells[i]
                places[group] += 1
            else:
                n_left += 1
    return n_left


cdef inline void _sort_few(score_t* cells, Py_ssize_t n) noexcept nogil:
    """Insertion sort without branches, which is fast for few cells."""
    cdef Py_ssize_t i, at
    cdef score_t carried, met
    for i in range(1, n):
        carried = cells[i]
        for at in range(i):
            met = cells[at]
            cells[at] = met if met < carried else carried
            carried = carried if met < carried else met
        cells[i] = carried


cdef inline void _sort_many(score_t* cells, Py_ssize_t n) noexcept nogil:
    """Shell's sort."""
    cdef Py_ssize_t gap = 1, i, at
    cdef score_t cell
    while 9 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            cell = cells[i]
            at = i
            while at >= gap and cells[at - gap] > cell:
                cells[at] = cells[at - gap]
                at -= gap
            cells[at] = cell
        gap //= 3


def sort_groups(const int64_t[::1] ends, score_t[::1] cells):
    """Sort the cells of every group."""
    cdef Py_ssize_t group
    cdef int64_t start = 0
    with nogil:
        for group in range(ends.shape[0]):
            if ends[group] - start > FEW:
                _sort_many(&cells[start], ends[group] - start)
            elif ends[group] - start > 1:
                _sort_few(&cells[start], ends[group] - start)
            start = ends[group]


# Blocks of a convex hull: each has a mean above that of the previous one, else they are pooled.
# Means are compared as fractions of integers; counts are below 2**31.


cdef struct Block:
    int64_t hits
    int64_t cells
    int64_t first
    int64_t last


cdef inline Py_ssize_t _pool(
    Block* blocks, Py_ssize_t depth, int64_t hits, int64_t cells, int64_t first, int64_t last
) noexcept nogil:
    """Push a group on the stack of blocks; pool while its mean is not above the previous one."""
    while depth > 0 and blocks[depth - 1].hits * cells >= hits * blocks[depth - 1].cells:
        depth -= 1
        hits += blocks[depth].hits
        cells += blocks[depth].cells
        first = blocks[depth].first
    blocks[depth] = Block(hits, cells, first, last)
    return depth + 1


def mark_buckets(
    const int64_t[::1] starts, const uint32_t[::1] counts, int64_t most, uint8_t[::1] marks,
    int32_t[::1] numbers, int64_t[::1] held,
):
    """Mark the buckets in or beside which the hull may turn, but never a label's first and last.

    Only marked ones are given ``numbers``. ``held`` becomes the number of cells in each label's
    marked buckets. Where that is above ``most``, it becomes -1, and the label has no marks.
    """
    cdef Py_ssize_t label, at, block, depth, begin, end, deepest = 1
    cdef int64_t n_cells, n_hits, run, rise, misses, hits
    cdef int32_t number = 0, before
    cdef bint below
    for label in range(starts.shape[0] - 1):
        deepest = max(deepest, (starts[label + 1] - starts[label]) // 2)
    cdef int64_t[:, ::1] room = np.empty((deepest, 4), np.int64)
    cdef Block* blocks = <Block*> &room[0, 0]
    with nogil:
        for label in range(starts.shape[0] - 1):
            begin = starts[label] // 2
            end = starts[label + 1] // 2
            depth = 0
            for at in range(begin, end):
                marks[at] = 0
                misses = counts[2 * at]
                hits = counts[2 * at + 1]
                if misses + hits > 0:
                    depth = _pool(blocks, depth, hits, misses + hits, at, at)
            before = number
            held[label] = 0
            for block in range(depth):
                rise = blocks[block].hits
                run = blocks[block].cells
                n_cells = 0
                n_hits = 0
                for at in range(blocks[block].first, blocks[block].last + 1):
                    misses = counts[2 * at]
                    hits = counts[2 * at + 1]
                    # All negatives first: is that corner below the chord of this block?
                    below = n_hits * run < (n_cells + misses) * rise
                    below = below & (misses > 0) & (hits > 0)
                    below = below | (at == blocks[block].first) | (at == blocks[block].last)
                    n_cells += misses + hits
                    n_hits += hits
                    if below and begin < at < end - 1:
                        marks[at] = 1
                        numbers[at] = number
                        number += 1
                        held[label] += misses + hits
            if held[label] > most:
                held[label] = -1
                number = before
                for at in range(begin, end):
                    marks[at] = 0


cdef enum:  # codes of block ends that are not collected cells
    AT_ZERO = -1
    AT_ONE = -2
    INSIDE = -3


cdef inline double _score_at(const score_t[::1] cells, int64_t place) noexcept nogil:
    """The score of a block's end, with 0.0 for -0.0."""
    return <double> cells[place] + 0.0 if place >= 0 else (0.0 if place == AT_ZERO else 1.0)


def join_hull(
    const int64_t[::1] starts, const uint32_t[::1] counts, const uint8_t[::1] marks,
    const int64_t[::1] ends, const score_t[::1] cells, const uint8_t[::1] wanted,
    int64_t[::1] knot_indptr, double[::1] knots, double[::1] values,
):
    """Knots of the isotonic fit of every wanted label, written one after another.

    The gathered cells of a label are ``cells[ends[label]:ends[label + 1]]``: group by group, each
    ascending. A block of the fit gives its first and its last score, or one knot if they are the
    same. Returns the number of knots; there is room for twice as many as gathered cells, and four
    more per label.
    """
    cdef Py_ssize_t label, begin, last, at, block, depth, deepest = 1, n_knots = 0
    cdef int64_t negative, positive, negatives_end, positives_end, n_misses, n_hits, place
    cdef int64_t run_misses, run_hits, first, n_below
    cdef score_t score
    for label in range(starts.shape[0] - 1):
        deepest = max(deepest, 2 * (ends[label + 1] - ends[label]) + 3)
    cdef int64_t[:, ::1] room = np.empty((deepest, 4), np.int64)
    cdef Block* blocks = <Block*> &room[0, 0]
    with nogil:
        for label in range(starts.shape[0] - 1):
            knot_indptr[label] = n_knots
            if not wanted[label]:
                continue
            begin = starts[label] // 2
            last = starts[label + 1] // 2 - 1
            positives_end = ends[label]
            depth = 0
            run_misses = 0
            run_hits = 0
            for at in range(begin, last + 1):
                n_misses = counts[2 * at]
                n_hits = counts[2 * at + 1]
                if begin < at < last and not marks[at]:
                    run_misses += n_misses  # the hull does not turn here: neighbours are one group
                    run_hits += n_hits
                    continue
                if n_misses + n_hits == 0:
                    continue
                if run_misses + run_hits > 0:
                    depth = _pool(
                        blocks, depth, run_hits, run_misses + run_hits, INSIDE, INSIDE
                    )
                    run_misses = 0
                    run_hits = 0
                if at == begin or at == last:
                    place = AT_ZERO if at == begin else AT_ONE
                    depth = _pool(blocks, depth, n_hits, n_misses + n_hits, place, place)
                    continue
                negative = positives_end
                negatives_end = negative + n_misses
                positives_end = negatives_end + n_hits
                for positive in range(negatives_end, positives_end):
                    # Negatives below it come first. Those level with it come later, and are pooled
                    # with it, since their mean is 0.
                    score = cells[positive]
                    first = negative
                    while negative + STEP <= negatives_end and cells[negative + STEP - 1] < score:
                        negative += STEP
                    n_below = 0
                    for place in range(negative, min(negative + STEP, negatives_end)):
                        n_below += cells[place] < score
                    negative += n_below
                    if negative > first:
                        depth = _pool(blocks, depth, 0, negative - first, first, negative - 1)
                    depth = _pool(blocks, depth, 1, 1, positive, positive)
                if negative < negatives_end:
                    depth = _pool(
                        blocks, depth, 0, negatives_end - negative, negative, negatives_end - 1
                    )
            for block in range(depth):
                knots[n_knots] = _score_at(cells, blocks[block].first)
                values[n_knots] = <double> blocks[block].hits / <double> blocks[block].cells
                n_knots += 1
                knots[n_knots] = _score_at(cells, blocks[block].last)
                if knots[n_knots] != knots[n_knots - 1]:
                    values[n_knots] = values[n_knots - 1]
                    n_knots += 1
        knot_indptr[starts.shape[0] - 1] = n_knots
    return n_knots
