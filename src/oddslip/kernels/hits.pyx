"""True labels: their positions in dense cells and rankings, and the metrics of a ranking.

``columns`` are the top K with ties by column; ``joined[p]`` says whether place p ties with place
p - 1; ``at_kth`` is how many cells of the whole row tie with the last place. Cells that tie form a
group; only the last group can reach beyond K. The policies differ in the order inside groups:
as ranked (STABLE), averaged over all orders (EXPECTED), positives first (BEST), last (WORST).
"""

from libc.math cimport log2
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

from oddslip.kernels.places cimport order, take, worst_of
from oddslip.kernels.types cimport key_t

import numpy as np

cpdef enum:
    STABLE = 0
    EXPECTED = 1
    BEST = 2
    WORST = 3

cpdef enum:
    BY_MIN = 0
    BY_RELEVANT = 1
    BY_HITS = 2

METRICS = ("map", "precision", "recall", "ndcg", "hit_rate", "psp_gain", "psp_best")


# Positives of dense 0/1 cells, as compressed rows. Eight cells are read at a time.


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline uint64_t eight_cells(const uint8_t *cells) {
        uint64_t word;
        memcpy(&word, cells, sizeof word);
        return word;
    }
    """
    uint64_t eight_cells(const uint8_t* cells) noexcept nogil


cdef inline int64_t _count_true(const uint8_t* row, Py_ssize_t n_labels) noexcept nogil:
    """True cells of a row. Sums of bytes are flushed before they overflow at 255."""
    cdef Py_ssize_t n_words = n_labels // 8
    cdef Py_ssize_t word, start, j
    cdef uint64_t bytes_sum, pairs
    cdef int64_t count = 0
    for start in range(0, n_words, 255):
        bytes_sum = 0
        for word in range(start, min(start + 255, n_words)):
            bytes_sum += eight_cells(row + 8 * word)
        pairs = (bytes_sum & <uint64_t> 0x00FF00FF00FF00FF) + (
            (bytes_sum >> 8) & <uint64_t> 0x00FF00FF00FF00FF
        )
        count += (pairs * <uint64_t> 0x0001000100010001) >> 48
    for j in range(8 * n_words, n_labels):
        count += row[j]
    return count


def count_positives(const uint8_t[:, ::1] cells, int64_t[::1] indptr):
    """``indptr`` of the compressed rows: running count of the true cells."""
    cdef Py_ssize_t i, n_labels = cells.shape[1]
    with nogil:
        for i in range(cells.shape[0]):
            indptr[i + 1] = indptr[i]
            if n_labels > 0:
                indptr[i + 1] += _count_true(&cells[i, 0], n_labels)


def fill_positives(
    const uint8_t[:, ::1] cells, const int64_t[::1] indptr, int32_t[::1] indices
):
    """Columns of the true cells, row after row."""
    cdef Py_ssize_t i, j, word, n_labels = cells.shape[1]
    cdef Py_ssize_t n_words = n_labels // 8
    cdef int64_t place
    cdef const uint8_t* row
    with nogil:
        for i in range(cells.shape[0]):
            place = indptr[i]
            if place == indptr[i + 1]:
                continue
            row = &cells[i, 0]
            for word in range(n_words):
                if eight_cells(row + 8 * word) != 0:
                    for j in range(8 * word, 8 * word + 8):
                        if row[j] != 0:
                            indices[place] = <int32_t> j
                            place += 1
            for j in range(8 * n_words, n_labels):
                if row[j] != 0:
                    indices[place] = <int32_t> j
                    place += 1


def place_positives(
    const key_t[:, ::1] keys, const int64_t[::1] rows, const int64_t[::1] indptr,
    const int32_t[::1] indices, const key_t[::1] kth, int8_t[::1] sides,
):
    """Side of each positive against its row's k-th key: 1 above, 0 equal to it, -1 below."""
    cdef Py_ssize_t i, at
    cdef key_t key
    with nogil:
        for i in range(rows.shape[0]):
            for at in range(indptr[i], indptr[i + 1]):
                key = keys[rows[i], indices[at]]
                sides[at] = 1 if key > kth[i] else (0 if key == kth[i] else -1)


cdef inline int64_t _place_in(
    int32_t column, const int32_t* indices, int64_t start, int64_t stop
) noexcept nogil:
    """Position of a column among a row's positives, or where it would be inserted."""
    cdef int64_t middle
    while start < stop:
        middle = (start + stop) // 2
        if indices[middle] < column:
            start = middle + 1
        else:
            stop = middle
    return start


cdef double _group_gain(
    int64_t first, int64_t shown, int64_t size, int64_t true, int64_t before, int64_t policy,
    const double* discounts,
) noexcept nogil:
    """Sum over a group's shown places of hit x (hits so far) / rank, or of hit x discount.

    The group starts at place ``first``, shows ``shown`` of its ``size`` cells, ``true`` of which
    are positive, after ``before`` hits. Without discounts (NULL) the former.
    """
    cdef double gain = 0.0, hit, hits
    cdef int64_t i
    for i in range(shown):
        if policy == EXPECTED:
            hit = <double> true / <double> size
            hits = before + 1.0 + (i * (true - 1.0) / (size - 1.0) if size > 1 else 0.0)
        elif policy == BEST:
            hit = 1.0 if i < true else 0.0
            hits = before + i + 1.0
        else:
            hit = 1.0 if i >= size - true else 0.0
            hits = before + (i - (size - true)) + 1.0
        gain += hit * (hits / (first + i + 1.0) if discounts is NULL else discounts[first + i])
    return gain


cdef double _over_hits(
    int64_t first, int64_t shown, int64_t size, int64_t true, int64_t before, double gained,
    int64_t policy,
) noexcept nogil:
    """Average precision over the hits shown, whose number depends on the order of the last group.

    Given how many of the shown cells are positive, the denominator is fixed and the places are a
    group of their own; so run over that number, with its hypergeometric weight.
    """
    cdef int64_t low = max(0, shown - (size - true))
    cdef int64_t high = min(true, shown)
    cdef int64_t i, number
    cdef double weight = 1.0  # of the smallest number, from products that cannot overflow
    cdef double total = 0.0, value
    if low == 0:
        for i in range(shown):
            weight *= <double> (size - true - i) / <double> (size - i)
    else:
        for i in range(size - shown):
            weight *= <double> (true - i) / <double> (size - i)
    for number in range(low, high + 1):
        value = 0.0
        if before + number > 0:
            value = gained + _group_gain(first, shown, shown, number, before, policy, NULL)
            value /= before + number
        if policy == EXPECTED:
            total += weight * value
            weight *= (true - number) * (shown - number)
            weight /= (number + 1.0) * (size - true - shown + number + 1.0)
        elif number == low:
            total = value
        elif policy == BEST:
            total = max(total, value)
        else:
            total = min(total, value)
    return total


cdef double _largest(
    const int32_t* indices, const int8_t* sides, int64_t start, int64_t stop,
    const double* gain_of, int64_t number, double sign, bint tied_only, double* top,
    int32_t* labels, double* spare, int32_t* spare_labels,
) noexcept nogil:
    """Sum of the ``number`` largest ``sign x gain`` of a row's positives, or of the tied ones."""
    cdef Py_ssize_t at, place, filled = 0, worst = worst_of(number)
    cdef double gain, total = 0.0
    for at in range(start, stop):
        if number == 0 or (tied_only and sides[at] != 0):
            continue
        gain = sign * gain_of[indices[at]]
        if filled < number or gain > top[worst]:
            filled = take(gain, indices[at], top, labels, filled, number)
    order(top, labels, spare, spare_labels, filled, number)
    for place in range(filled):
        total += top[place]
    return total


cdef void _score_row(
    const int32_t* columns, const uint8_t* joined, int64_t k, int64_t n_slots, int64_t size,
    int64_t start,
    int64_t stop, const int32_t* indices, const int8_t* sides, const double* gain_of,
    int64_t policy, int64_t denominator, const double* discounts, uint8_t* hit_at, double* top,
    int32_t* top_labels, double* spare, int32_t* spare_labels, double* values,
) noexcept nogil:
    """The metrics of one row that shows k labels; its positives are ``indices[start:stop]``."""
    cdef int64_t m = stop - start, n_hits = 0, hits = 0, true = 0, above = 0
    cdef int64_t p, q, at, end, inside, place, shown, kept = 0
    cdef int64_t last = k - 1  # first place of the last group
    cdef double gained = 0.0, discounted = 0.0, ideal = 0.0, gain = 0.0
    cdef double inner, expected_hits, hit_rate, miss, sign
    for p in range(k):
        place = _place_in(columns[p], indices, start, stop)
        hit_at[p] = place < stop and indices[place] == columns[p]
        n_hits += hit_at[p]
    while last > 0 and joined[last]:
        last -= 1
    shown = k - last
    for at in range(start, stop):
        true += sides[at] == 0
        above += sides[at] == 1

    # Average precision and discounted gain, group by group.
    if policy == STABLE:
        for p in range(k):
            if hit_at[p]:
                hits += 1
                gained += hits / (p + 1.0)
                discounted += discounts[p]
        expected_hits = n_hits
        hit_rate = 1.0 if n_hits else 0.0
        inner = gained
    else:
        p = 0
        while p < last:
            end = p + 1
            while end < last and joined[end]:
                end += 1
            inside = 0
            for q in range(p, end):
                inside += hit_at[q]
            gained += _group_gain(p, end - p, end - p, inside, hits, policy, NULL)
            discounted += _group_gain(p, end - p, end - p, inside, hits, policy, discounts)
            hits += inside
            p = end
        inner = gained
        gained += _group_gain(last, shown, size, true, hits, policy, NULL)
        discounted += _group_gain(last, shown, size, true, hits, policy, discounts)
        if policy == EXPECTED:
            expected_hits = above + <double> (shown * true) / <double> size
            miss = 1.0
            for q in range(shown):
                miss *= max(0.0, <double> (size - true - q) / <double> (size - q))
            hit_rate = 1.0 if above else 1.0 - miss
        else:
            kept = min(true, shown) if policy == BEST else max(0, shown - (size - true))
            expected_hits = above + kept
            hit_rate = 1.0 if expected_hits > 0 else 0.0

    if denominator == BY_MIN:
        values[0] = gained / min(k, m)
    elif denominator == BY_RELEVANT:
        values[0] = gained / m
    elif policy == STABLE:
        values[0] = gained / n_hits if n_hits else 0.0
    else:
        values[0] = _over_hits(last, shown, size, true, above, inner, policy)
    values[1] = expected_hits / n_slots
    values[2] = expected_hits / m
    for p in range(min(k, m)):
        ideal += discounts[p]
    values[3] = discounted / ideal
    values[4] = hit_rate

    # Propensity-scored gain, and the best the row allows.
    if policy == STABLE:
        for p in range(k):
            if hit_at[p]:
                gain += gain_of[columns[p]]
    else:
        for at in range(start, stop):
            if sides[at] == 1:
                gain += gain_of[indices[at]]
            elif sides[at] == 0 and policy == EXPECTED:
                gain += gain_of[indices[at]] * shown / size
        if policy != EXPECTED:
            sign = 1.0 if policy == BEST else -1.0
            gain += sign * _largest(
                indices, sides, start, stop, gain_of, kept, sign, True, top, top_labels, spare,
                spare_labels,
            )
    values[5] = gain
    values[6] = _largest(
        indices, sides, start, stop, gain_of, min(k, m), 1.0, False, top, top_labels, spare,
        spare_labels,
    )


def score_rows(
    const int32_t[:, ::1] columns, const uint8_t[:, ::1] joined, const int64_t[::1] at_kth,
    const int64_t[::1] indptr, const int32_t[::1] indices, const int8_t[::1] sides,
    const double[::1] gain_of, int64_t policy, int64_t denominator, double[:, ::1] values,
):
    """Fill ``values`` (rows x METRICS). ``gain_of`` is each label's inverse propensity.

    A row with fewer labels than slots has -1 in the last ones.
    """
    cdef Py_ssize_t i, p, shown, k = columns.shape[1]
    cdef double[::1] discounts = np.empty(k)
    cdef double[:, ::1] top = np.empty((2, k))
    cdef int32_t[:, ::1] top_labels = np.empty((2, k), np.int32)
    cdef uint8_t[::1] hit_at = np.empty(k, np.uint8)
    cdef const int32_t* labels = NULL
    cdef const int8_t* side = NULL
    if columns.shape[0] == 0:
        return
    if indices.shape[0]:
        labels, side = &indices[0], &sides[0]
    with nogil:
        for p in range(k):
            discounts[p] = 1.0 / log2(p + 2.0)
        for i in range(columns.shape[0]):
            shown = k
            while shown > 0 and columns[i, shown - 1] < 0:
                shown -= 1
            if shown == 0:
                for p in range(values.shape[1]):
                    values[i, p] = 0.0
                continue
            _score_row(
                &columns[i, 0], &joined[i, 0], shown, k, at_kth[i], indptr[i], indptr[i + 1],
                labels, side, &gain_of[0], policy, denominator, &discounts[0],
                &hit_at[0], &top[0, 0], &top_labels[0, 0], &top[1, 0], &top_labels[1, 0],
                &values[i, 0],
            )
