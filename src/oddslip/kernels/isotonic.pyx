"""Isotonic regression by counting: cells among the distinct keys of their label's positives.

A label with m distinct keys u_1 < ... < u_m has 2m + 1 *slots*: below u_1, at u_1, between u_1
and u_2, ..., at u_m, above u_m. `fill_buckets` makes a look-up table from the bits of a key to its
neighbourhood, `place_cells` counts the cells of every slot and keeps the largest key of every slot
between keys, and `pool_labels` turns the counts into the isotonic fit.

A *column* is a column of the scores; it belongs to a label, its own one or, for a pooled fit, the
only one.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from oddslip.kernels.types cimport key_t, parts

import numpy as np

from oddslip.kernels.keys import UNSIGNED, keys_of

ctypedef fused count_t:
    uint16_t
    uint32_t

ctypedef fused slot_t:
    uint16_t
    uint32_t
    int64_t

cdef enum:
    STRIP = 16
    TILE = 2048
    PITCH = TILE + 16  # avoids a distance of a power of two, where columns would share a cache set
    CROWD = 1 << 20  # keys of one label above which its tables exceed every cache

# Most bits of margins tell apart numbers near 0, where few margins lie. So all keys from ``low``
# to ``high`` share a bucket. Probabilities crowd near 0 and keep all their buckets.
GAPS = {
    (UNSIGNED[np.dtype(dtype)], kind): tuple(
        keys_of(np.array([[-end, end]], dtype), "margin")[0].tolist() if end else (0, 0)
    )
    for dtype in (np.float32, np.float64)
    for kind, end in (("probability", 0), ("margin", 2**-6))
}


cdef inline uint64_t squeeze(uint64_t key, uint64_t low, uint64_t high) noexcept nogil:
    """The key without the gap: keys from ``low`` to ``high`` become equal; the order is kept."""
    return key - min(max(key, low), high) + low


def fill_buckets(
    const int64_t[::1] indptr, const key_t[::1] u, uint64_t low, uint64_t high,
    const int64_t[::1] bucket_indptr, const uint64_t[::1] shifts, uint32_t[::1] buckets,
    uint64_t[::1] steps,
):
    """For each bucket of each label twice the place of its first key, plus 1 if it holds one.

    An empty bucket has the place of the next key. A key's bucket is its distance from the label's
    first key, without the gap, shifted. ``steps`` says how many halvings find a key in the
    fullest bucket.
    """
    cdef Py_ssize_t label, at
    cdef int64_t filled, bucket, fullest, held
    cdef uint64_t distance, step
    with nogil:
        for label in range(indptr.shape[0] - 1):
            filled = bucket_indptr[label]
            fullest = 0
            held = 0
            for at in range(indptr[label], indptr[label + 1]):
                distance = squeeze(u[at], low, high) - squeeze(u[indptr[label]], low, high)
                bucket = bucket_indptr[label] + <int64_t> (distance >> shifts[label])
                held = 1 if bucket >= filled else held + 1
                fullest = max(fullest, held)
                while filled <= bucket:
                    buckets[filled] = <uint32_t> (2 * at + (filled == bucket))
                    filled += 1
            step = 0
            while (<int64_t> 1 << step) <= fullest:
                step += 1
            steps[label] = step


# Rows are taken in tiles, columns in strips as wide as a cache line. A strip is turned so that each
# column lies in one piece; what lies below u_1, at u_m or above it is counted by vectorised sweeps.
# The rest looks up a bucket of its bits and searches the few keys in there without a branch.


cdef inline void _turn(
    const key_t* cells, Py_ssize_t n, Py_ssize_t n_columns, Py_ssize_t width, key_t* strip
) noexcept nogil:
    """Copy a strip of some rows so that each of its columns is contiguous."""
    cdef Py_ssize_t i, w
    if width == STRIP:  # a width known at compile time is twice as fast
        for i in range(n):
            for w in range(STRIP):
                strip[w * PITCH + i] = cells[i * n_columns + w]
    else:
        for i in range(n):
            for w in range(width):
                strip[w * PITCH + i] = cells[i * n_columns + w]


cdef inline Py_ssize_t _sweep(
    const key_t* cells, Py_ssize_t n, key_t first, key_t last, count_t* bottom, count_t* top,
    key_t* largest_below, key_t* largest_above, key_t* lowest,
) noexcept nogil:
    """Count the cells below ``first``, at ``last`` and above it; returns their number.

    ``bottom`` is the slot below ``first`` and ``top`` the one above ``last``.
    """
    cdef key_t low = cells[0], highest = 0, highest_below = 0
    cdef key_t below = 0, at_last = 0, above = 0, key, is_below
    cdef Py_ssize_t i
    for i in range(n):
        key = cells[i]
        low = min(low, key)
        highest = max(highest, key)
        is_below = key < first  # a number, not a branch: branches would keep this scalar
        highest_below = max(highest_below, key & -is_below)
        below += is_below
        at_last += key == last
        above += key > last
    bottom[0] += <count_t> below
    largest_below[0] = max(largest_below[0], highest_below)
    (top - 1)[0] += <count_t> at_last
    top[0] += <count_t> above
    if above > 0:
        largest_above[0] = max(largest_above[0], highest)
    lowest[0] = min(lowest[0], low)
    return <Py_ssize_t> (below + at_last + above)


cdef inline Py_ssize_t _sift(
    const key_t* cells, Py_ssize_t n, key_t first, key_t last, key_t* inner
) noexcept nogil:
    """Collect the cells from ``first`` to below ``last``, without a branch per cell."""
    cdef key_t span = last - first
    cdef Py_ssize_t i, n_inner = 0
    for i in range(n):
        inner[n_inner] = cells[i]
        n_inner += <key_t> (cells[i] - first) < span
    return n_inner


cdef inline Py_ssize_t _look_up(
    const key_t* inner, Py_ssize_t n, key_t first, uint64_t shift, uint64_t low, uint64_t high,
    const uint32_t* buckets, uint32_t* found, uint32_t* crowded,
) noexcept nogil:
    """The bucket entry of every cell, and which cells' buckets hold a key."""
    cdef uint64_t origin = squeeze(first, low, high)
    cdef Py_ssize_t i, n_crowded = 0
    if low == high:
        for i in range(n):
            found[i] = buckets[<uint64_t> <key_t> (inner[i] - first) >> shift]
    else:
        for i in range(n):
            found[i] = buckets[(squeeze(inner[i], low, high) - origin) >> shift]
    for i in range(n):
        crowded[n_crowded] = <uint32_t> i
        n_crowded += found[i] & 1
    return n_crowded


cdef inline void _search(
    const key_t* inner, const uint32_t* crowded, Py_ssize_t n, const key_t* u, uint64_t u_last,
    uint64_t steps, uint32_t* found,
) noexcept nogil:
    """Turn the bucket entries of crowded cells into twice their place, odd at equal keys."""
    cdef Py_ssize_t c
    cdef uint32_t i
    cdef uint64_t at, step, probe
    cdef key_t key
    for c in range(n):
        i = crowded[c]
        key = inner[i]
        at = found[i] >> 1
        step = <uint64_t> 1 << steps
        while step > 2:
            step >>= 1
            # The last key is above every cell here, so looking no further than it is right.
            probe = min(at + step - 1, u_last)
            at += step * <uint64_t> (u[probe] < key)
        at += <uint64_t> (u[at] < key)
        found[i] = <uint32_t> (2 * at + <uint64_t> (u[at] == key))


cdef inline void _tally(
    const key_t* inner, const uint32_t* found, Py_ssize_t n, count_t* counts, key_t* largest
) noexcept nogil:
    """Add cells to their slots."""
    cdef Py_ssize_t i
    cdef key_t between
    for i in range(n):
        counts[found[i]] += 1
        between = <key_t> (found[i] & 1) - 1  # all bits, or none for a cell at a key
        largest[found[i] >> 1] = max(largest[found[i] >> 1], inner[i] & between)


def place_cells(
    const key_t[:, ::1] keys, const int64_t[::1] label_of, const int64_t[::1] indptr,
    const key_t[::1] u, uint64_t low, uint64_t high, const int64_t[::1] bucket_indptr,
    const uint32_t[::1] buckets, const uint64_t[::1] shifts, const uint64_t[::1] steps,
    count_t[::1] counts, key_t[::1] largest, key_t[::1] lowest,
):
    """Add every cell of a block to the slots of its label; ``lowest`` keeps a label's lowest key.

    Label j has keys ``u[indptr[j]:indptr[j + 1]]``, slots from ``2 * indptr[j] + j`` and intervals
    from ``indptr[j] + j``. Labels without a key are passed over. Counts must have room for as
    many cells more as the block has of a label.
    """
    if indptr.shape[0] == 2 and u.shape[0] > CROWD:
        # All columns belong to one label. A lookup in its tables waits for memory unless the last
        # one was adjacent; sorting the cells costs a tenth of that.
        keys = np.sort(np.asarray(keys), axis=None)[:, None]
    cdef Py_ssize_t n_rows = keys.shape[0], n_columns = keys.shape[1]
    cdef Py_ssize_t part, start, piece, column, w, width, n, n_inner, n_crowded, label
    cdef int64_t begin, end
    cdef key_t first, last
    cdef const key_t* cells
    dtype = np.uint32 if sizeof(key_t) == 4 else np.uint64
    cdef key_t[::1] strip = np.empty(STRIP * PITCH, dtype)
    cdef key_t[::1] inner = np.empty(TILE + 1, dtype)
    cdef uint32_t[::1] found = np.empty(TILE, np.uint32)
    cdef uint32_t[::1] crowded = np.empty(TILE + 1, np.uint32)
    if u.shape[0] == 0:
        return
    with nogil:
        for part in range(parts(n_rows, TILE)):
            start = part * TILE
            n = min(<Py_ssize_t> TILE, n_rows - start)
            for piece in range(parts(n_columns, STRIP)):
                column = piece * STRIP
                width = min(<Py_ssize_t> STRIP, n_columns - column)
                _turn(&keys[start, column], n, n_columns, width, &strip[0])
                for w in range(width):
                    label = label_of[column + w]
                    begin = indptr[label]
                    end = indptr[label + 1]
                    if begin == end:
                        continue
                    cells = &strip[w * PITCH]
                    first = u[begin]
                    last = u[end - 1]
                    if n == _sweep(
                        cells, n, first, last, &counts[2 * begin + label],
                        &counts[2 * end + label], &largest[begin + label],
                        &largest[end + label], &lowest[label],
                    ):
                        continue
                    n_inner = _sift(cells, n, first, last, &inner[0])
                    n_crowded = _look_up(
                        &inner[0], n_inner, first, shifts[label], low, high,
                        &buckets[bucket_indptr[label]], &found[0], &crowded[0],
                    )
                    _search(
                        &inner[0], &crowded[0], n_crowded, &u[0], end - 1, steps[label], &found[0]
                    )
                    _tally(&inner[0], &found[0], n_inner, &counts[label], &largest[label])


def weigh_cells(
    const key_t[:, ::1] keys, const int64_t[::1] owners, const int64_t[::1] units,
    const int64_t[::1] indptr, const key_t[::1] u, int64_t[::1] weights, key_t[::1] largest,
    key_t[::1] lowest,
):
    """As `place_cells` for rows of unequal weight: ``units`` of each row go to its cells' slots.

    ``weights`` holds one sum for every slot.
    """
    cdef Py_ssize_t i, j, label, slot
    cdef int64_t low, high, middle
    cdef key_t key
    with nogil:
        for i in range(keys.shape[0]):
            for j in range(keys.shape[1]):
                label = owners[j]
                key = keys[i, j]
                low, high = indptr[label], indptr[label + 1]
                while low < high:  # the first of the label's keys that is not smaller
                    middle = (low + high) >> 1
                    if u[middle] < key:
                        low = middle + 1
                    else:
                        high = middle
                slot = 2 * low + label
                if low < indptr[label + 1] and u[low] == key:
                    slot += 1
                else:
                    largest[low + label] = max(largest[low + label], key)
                weights[slot] += units[i]
                lowest[label] = min(lowest[label], key)


# Pool-adjacent-violators runs over the groups *below u_1, at u_1, between u_1 and u_2, ...*. Means
# are compared as fractions of integers, so rounding never decides what is pooled.
# Interval k of label j lies at ``indptr[j] + j + k`` in the arrays of intervals.


cdef inline bint _is_less(int64_t a, int64_t b, int64_t c, int64_t d) noexcept nogil:
    """Whether a / b < c / d, exactly, for integers of any size."""
    cdef int64_t rest
    if b < 0x7FFFFFFF and d < 0x7FFFFFFF:
        return a * d < c * b
    while a // b == c // d:  # same integer part: compare the reciprocals of the fractions
        rest = a % b
        a, b, c, d = d, c % d, b, rest
        if b == 0 or d == 0:
            return b != 0
    return a // b < c // d


cdef inline Py_ssize_t _pool(
    int64_t* hits, int64_t* cells, key_t* firsts, key_t* lasts, Py_ssize_t depth, int64_t n_hits,
    int64_t n_cells, key_t first, key_t last,
) noexcept nogil:
    """Push a group on the stack of blocks; pool while its mean is not above the previous one."""
    while depth > 0 and not _is_less(hits[depth - 1], cells[depth - 1], n_hits, n_cells):
        depth -= 1
        n_hits += hits[depth]
        n_cells += cells[depth]
        first = firsts[depth]
    hits[depth] = n_hits
    cells[depth] = n_cells
    firsts[depth] = first
    lasts[depth] = last
    return depth + 1


def split_counts(
    const int64_t[::1] indptr, const slot_t[::1] slots, int64_t[::1] at, int64_t[::1] between
):
    """Add counts to those at keys and those between: a label's slots alternate, interval first."""
    cdef Py_ssize_t label, i, start
    with nogil:
        for label in range(indptr.shape[0] - 1):
            start = indptr[label]
            for i in range(start, indptr[label + 1]):
                between[i + label] += slots[2 * i + label]
                at[i] += slots[2 * i + label + 1]
            i = indptr[label + 1]
            between[i + label] += slots[2 * i + label]


def pool_labels(
    const int64_t[::1] indptr, const key_t[::1] keys, const int64_t[::1] positives,
    const int64_t[::1] negatives_at, const int64_t[::1] negatives_between,
    const key_t[::1] largest_between, const key_t[::1] lowest, const uint8_t[::1] wanted,
    int64_t[::1] knot_indptr, key_t[::1] knots, double[::1] values,
    const int64_t[::1] positives_between=None,
):
    """Knots of the isotonic fit of every wanted label, written one after another.

    ``positives_between`` are positives whose keys are not listed: where no block of the fit can
    start, the fit does not depend on how they lie. None where all are listed.

    A block of the fit gives its first and its last key, or one knot if they are the same. Returns
    the number of knots; there is room for ``2 * (keys.size + n_labels)``.
    """
    cdef Py_ssize_t n_labels = indptr.shape[0] - 1
    cdef Py_ssize_t label, at, interval, block, depth, deepest = 1, n_knots = 0
    cdef int64_t n_cells, n_hits
    cdef bint some_unlisted = positives_between is not None
    cdef double value
    for label in range(n_labels):
        deepest = max(deepest, 2 * (indptr[label + 1] - indptr[label]) + 1)
    dtype = np.uint32 if sizeof(key_t) == 4 else np.uint64
    cdef int64_t[::1] hits = np.empty(deepest, np.int64)
    cdef int64_t[::1] cells = np.empty(deepest, np.int64)
    cdef key_t[::1] firsts = np.empty(deepest, dtype)
    cdef key_t[::1] lasts = np.empty(deepest, dtype)
    with nogil:
        for label in range(n_labels):
            knot_indptr[label] = n_knots
            if not wanted[label]:
                continue
            depth = 0
            for at in range(indptr[label], indptr[label + 1] + 1):
                interval = at + label
                n_hits = positives_between[interval] if some_unlisted else 0
                n_cells = negatives_between[interval] + n_hits
                if n_cells > 0:
                    # The mean is 0, or no block can start here, so this group is pooled with what
                    # lies before it, if anything does; else it starts at the label's lowest cell.
                    depth = _pool(
                        &hits[0], &cells[0], &firsts[0], &lasts[0], depth, n_hits, n_cells,
                        lowest[label], largest_between[interval],
                    )
                if at == indptr[label + 1]:
                    break
                n_cells = positives[at] + negatives_at[at]
                if n_cells > 0:
                    depth = _pool(
                        &hits[0], &cells[0], &firsts[0], &lasts[0], depth, positives[at], n_cells,
                        keys[at], keys[at],
                    )
            for block in range(depth):
                value = <double> hits[block] / <double> cells[block]
                knots[n_knots] = firsts[block]
                values[n_knots] = value
                n_knots += 1
                if lasts[block] != firsts[block]:
                    knots[n_knots] = lasts[block]
                    values[n_knots] = value
                    n_knots += 1
        knot_indptr[n_labels] = n_knots
    return n_knots


def count_pairs(
    const int64_t[::1] indptr, const int64_t[::1] positives, const int64_t[::1] negatives_at,
    const int64_t[::1] negatives_between, int64_t[::1] high, int64_t[::1] low,
):
    """Twice the number of (positive, negative) pairs in order, a tie counting half.

    The number is ``high * 2**24 + low``: two sums, since one might not fit.
    """
    cdef Py_ssize_t label, at
    cdef int64_t below, twice, high_sum, low_sum
    with nogil:
        for label in range(indptr.shape[0] - 1):
            below = 0
            high_sum = 0
            low_sum = 0
            for at in range(indptr[label], indptr[label + 1]):
                below += negatives_between[at + label]
                twice = 2 * below + negatives_at[at]
                below += negatives_at[at]
                high_sum += positives[at] * (twice >> 24)
                low_sum += positives[at] * (twice & 0xFFFFFF)
            high[label] += high_sum
            low[label] += low_sum


def group_keys(
    const int32_t[::1] labels, const key_t[::1] keys, int64_t[::1] places, key_t[::1] grouped
):
    """Group the keys by label. ``places`` holds the next free place of each label."""
    cdef Py_ssize_t i
    cdef int64_t place
    with nogil:
        for i in range(labels.shape[0]):
            place = places[labels[i]]
            grouped[place] = keys[i]
            places[labels[i]] = place + 1
