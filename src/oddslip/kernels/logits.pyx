"""Cells on the log-odds scale: shifted odds, sums of sigmoids, histograms, saturated cells.

The sigmoid of logit(p) - b is p / (p + e^b (1 - p)): for probabilities it takes one division, no
exponential and no logarithm. Loops run along the labels of a row, so every sum is a vector. Sums of
a strip of labels lie in arrays of the loop's own: the compiler then knows that nothing overlaps.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t

from oddslip.kernels.types cimport bits_of_single, key_t, parts, score_t

import numpy as np

cdef enum:
    STRIP = 1024
    TILE = 32  # rows whose bins are computed before they are counted, to read cells in order
    AT_HAND = 64  # labels whose counts fit a core's cache
    PITCH = STRIP + 8  # avoids sums of a label a page apart, which alias in the cache
    SUMS = 5
    SHIFT = 20

cdef double LEAST = 1e-12
cdef double WIDEST = 32.0
cdef double BINS_PER_NAT = 10.0

CLIP = LEAST  # a probability and its complement are clipped at this

# Bins of odds: the sign-free bits of a float32 above its first three mantissa bits, eight bins
# per doubling, from the clip to its inverse.
ODDS_SHIFT = SHIFT
ODDS_FIRST = bits_of_single(<float> LEAST) >> SHIFT
ODDS_BINS = (bits_of_single(<float> (1.0 / LEAST)) >> SHIFT) - ODDS_FIRST + 1

# Bins of margins: equal widths between -REACH and REACH, the outer ones open.
REACH = WIDEST
PER_NAT = BINS_PER_NAT
MARGIN_BINS = int(2 * REACH * PER_NAT)

N_SUMS = SUMS  # sums per label of `sum_sigmoids`


def weigh_odds(const score_t[:, ::1] scores, const double[::1] weights, double[:, ::1] odds):
    """Odds of probabilities, clipped, times the weight of the label: ordered as their logits."""
    cdef Py_ssize_t i, j, n_labels = scores.shape[1]
    cdef const score_t* row
    cdef const double* weight
    cdef double* out
    cdef double p
    if n_labels == 0:
        return
    with nogil:
        for i in range(scores.shape[0]):
            row = &scores[i, 0]
            weight = &weights[0]
            out = &odds[i, 0]
            for j in range(n_labels):
                p = row[j]
                out[j] = weight[j] * (max(p, 1e-12) / max(1.0 - p, 1e-12))


def shift_probabilities(
    const score_t[:, ::1] scores, const double[::1] up, const double[::1] down,
    score_t[:, ::1] shifted,
):
    """``up p / (up p + down (1 - p))``: the probability whose odds are up / down times as high."""
    cdef Py_ssize_t i, j, n_labels = scores.shape[1]
    cdef const score_t* row
    cdef const double* ups
    cdef const double* downs
    cdef score_t* out
    cdef double p, x
    if n_labels == 0:
        return
    with nogil:
        for i in range(scores.shape[0]):
            row = &scores[i, 0]
            ups = &up[0]
            downs = &down[0]
            out = &shifted[i, 0]
            for j in range(n_labels):
                p = row[j]
                x = ups[j] * p
                out[j] = <score_t> (x / (x + downs[j] * (1.0 - p)))


cdef inline void _add_cell(double x, double y, double n, double* sums) noexcept nogil:
    """Add n cells with odds x : y to the sums of a label, which are PITCH apart."""
    cdef double scale = 1.0 / (x + y)
    cdef double q = x * scale
    cdef double r = y * scale
    cdef double v = q * r
    sums[0] += n * q
    sums[PITCH] += n * r
    sums[2 * PITCH] += n * v
    sums[3 * PITCH] += n * (v * (r - q))
    sums[4 * PITCH] += n * (v * (1.0 - 6.0 * v))


def sum_sigmoids(const score_t[:, ::1] scores, const double[::1] factors, double[:, ::1] sums):
    """Per label, sums over rows of q = sigmoid(logit(p) - ln factor), clipped, and of 1 - q.

    The further three are the sums of the first, second and third derivative of the sigmoid.
    """
    cdef Py_ssize_t i, k, t, part, first, width, n_labels = scores.shape[1]
    cdef const score_t* row
    cdef double laid[SUMS * PITCH]
    cdef double factor[STRIP]
    cdef double p, x, y
    with nogil:
        for part in range(parts(n_labels, STRIP)):
            first = part * STRIP
            width = min(<Py_ssize_t> STRIP, n_labels - first)
            for t in range(width):
                factor[t] = factors[first + t]
                for k in range(SUMS):
                    laid[k * PITCH + t] = sums[k, first + t]
            for i in range(scores.shape[0]):
                row = &scores[i, first]
                for t in range(width):
                    p = row[t]
                    x = max(p, 1e-12)
                    y = max(1.0 - p, 1e-12) * factor[t]
                    _add_cell(x, y, 1.0, laid + t)
            for k in range(SUMS):
                for t in range(width):
                    sums[k, first + t] = laid[k * PITCH + t]


def sum_odds_sigmoids(const double[:, ::1] odds, double[:, ::1] sums):
    """The sums of `sum_sigmoids` for cells whose shifted odds are known."""
    cdef Py_ssize_t i, k, t, part, first, width, n_labels = odds.shape[1]
    cdef const double* row
    cdef double laid[SUMS * PITCH]
    with nogil:
        for part in range(parts(n_labels, STRIP)):
            first = part * STRIP
            width = min(<Py_ssize_t> STRIP, n_labels - first)
            for k in range(SUMS):
                for t in range(width):
                    laid[k * PITCH + t] = sums[k, first + t]
            for i in range(odds.shape[0]):
                row = &odds[i, first]
                for t in range(width):
                    _add_cell(row[t], 1.0, 1.0, laid + t)
            for k in range(SUMS):
                for t in range(width):
                    sums[k, first + t] = laid[k * PITCH + t]


def sum_binned_sigmoids(
    const uint32_t[:, ::1] counts, const double[::1] centres, const double[::1] shifts,
    double[:, ::1] sums,
):
    """The sums of `sum_sigmoids` for binned cells at the centres of their bins."""
    cdef Py_ssize_t j, k, at
    cdef double laid[SUMS * PITCH]
    cdef double odds
    with nogil:
        for j in range(counts.shape[0]):
            for k in range(SUMS):
                laid[k * PITCH] = sums[k, j]
            for at in range(counts.shape[1]):
                if counts[j, at] > 0:
                    odds = exp(min(max(centres[at] - shifts[j], -700.0), 700.0))
                    _add_cell(odds, 1.0, counts[j, at], laid)
            for k in range(SUMS):
                sums[k, j] = laid[k * PITCH]


cdef void _count_bins(
    const uint16_t* bins, Py_ssize_t n_rows, Py_ssize_t width, uint32_t* counts, Py_ssize_t n_bins
) noexcept nogil:
    """Add a tile of bins to the counts of its labels, few labels at a time, to fit the cache."""
    cdef Py_ssize_t i, t, part, first, end
    for part in range(parts(width, AT_HAND)):
        first = part * AT_HAND
        end = min(first + AT_HAND, width)
        for i in range(n_rows):
            for t in range(first, end):
                counts[t * n_bins + bins[i * STRIP + t]] += 1


def bin_probabilities(const score_t[:, ::1] scores, uint32_t[:, ::1] counts):
    """Count the odds of each label in bins: the bits of a positive float grow with it."""
    cdef Py_ssize_t i, t, part, tile, first, width, start, height
    cdef Py_ssize_t n_rows = scores.shape[0], n_labels = scores.shape[1], n_bins = counts.shape[1]
    cdef uint32_t lowest = bits_of_single(<float> LEAST) >> SHIFT
    cdef uint16_t bins[TILE * STRIP]
    cdef uint16_t* binned
    cdef const score_t* row
    cdef score_t clip = <score_t> LEAST, one = 1, p
    with nogil:
        for part in range(parts(n_labels, STRIP)):
            first = part * STRIP
            width = min(<Py_ssize_t> STRIP, n_labels - first)
            for tile in range(parts(n_rows, TILE)):
                start = tile * TILE
                height = min(<Py_ssize_t> TILE, n_rows - start)
                for i in range(height):
                    row = &scores[start + i, first]
                    binned = bins + i * STRIP
                    for t in range(width):
                        p = row[t]
                        p = max(p, clip) / max(one - p, clip)
                        binned[t] = <uint16_t> ((bits_of_single(<float> p) >> SHIFT) - lowest)
                _count_bins(bins, height, width, &counts[first, 0], n_bins)


def bin_margins(const score_t[:, ::1] scores, uint32_t[:, ::1] counts):
    """Count the margins of each label in bins of equal width; the outer bins take the rest."""
    cdef Py_ssize_t i, t, part, tile, first, width, start, height
    cdef Py_ssize_t n_rows = scores.shape[0], n_labels = scores.shape[1], n_bins = counts.shape[1]
    cdef double last = 2.0 * WIDEST * BINS_PER_NAT - 1.0
    cdef double reach = WIDEST, per_nat = BINS_PER_NAT, at
    cdef uint16_t bins[TILE * STRIP]
    cdef uint16_t* binned
    cdef const score_t* row
    with nogil:
        for part in range(parts(n_labels, STRIP)):
            first = part * STRIP
            width = min(<Py_ssize_t> STRIP, n_labels - first)
            for tile in range(parts(n_rows, TILE)):
                start = tile * TILE
                height = min(<Py_ssize_t> TILE, n_rows - start)
                for i in range(height):
                    row = &scores[start + i, first]
                    binned = bins + i * STRIP
                    for t in range(width):
                        at = (<double> row[t] + reach) * per_nat
                        binned[t] = <uint16_t> <int32_t> min(max(at, 0.0), last)
                _count_bins(bins, height, width, &counts[first, 0], n_bins)


def count_reaching(
    const key_t[:, ::1] keys, key_t threshold, int64_t[::1] per_label, int64_t[::1] per_row
):
    """Count the keys that reach a threshold: added up per label, set per row."""
    cdef Py_ssize_t i, t, part, first, width, n_labels = keys.shape[1]
    cdef const key_t* row
    cdef key_t counted[STRIP]
    cdef key_t count, reaches
    with nogil:
        for i in range(keys.shape[0]):
            per_row[i] = 0
        for part in range(parts(n_labels, STRIP)):
            first = part * STRIP
            width = min(<Py_ssize_t> STRIP, n_labels - first)
            for t in range(width):
                counted[t] = 0
            for i in range(keys.shape[0]):
                row = &keys[i, first]
                count = 0
                for t in range(width):
                    reaches = row[t] >= threshold
                    counted[t] += reaches
                    count += reaches
                per_row[i] += count
            for t in range(width):
                per_label[first + t] += counted[t]
