"""Boosted trees: sums of leaves per row, and the gradients for growing trees.

**Sums.** All trees of a group of labels at once, by what a row's features rule out. A row of zeros
ends in one leaf of each tree. Leaves are numbered so that at each node the side a zero takes, the
resting side, comes first. A feature that sends the row the other way rules out the resting side of
that node: a mask of leaves. The first leaf that no mask strikes is where the row ends. This is
QuickScorer (Lucchese et al., 2015) with the numbering turned towards zero: only nodes that turn the
row are visited, so that a sparse row costs little, and no step waits for another.

**Gradients** of the weighted logistic loss have the very bits LightGBM's and XGBoost's own have, so
that every tree has the same splits.
"""

from libc.math cimport exp, expf
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from oddslip.kernels.types cimport score_t

import numpy as np

cdef enum:
    MASK_BITS = 64

MAX_LEAVES = MASK_BITS

cdef uint64_t ALL = 0xFFFFFFFFFFFFFFFF
cdef double NEAR_ZERO = <double> <float> 1e-35  # LightGBM treats smaller features as zero

# The number of a lone bit, by the top six bits of its product with a de Bruijn sequence.
cdef uint64_t SEQUENCE = 0x03F79D71B4CB0A89
cdef uint8_t[64] NUMBERS
cdef int _bit
for _bit in range(64):
    NUMBERS[(SEQUENCE << _bit) >> 58] = _bit


def lay_trees(
    const int64_t[::1] starts, const double[::1] thresholds, const int32_t[::1] left,
    const int32_t[::1] right, const int64_t[::1] leaf_starts, const double[::1] leaf_values,
    uint64_t[::1] masks, uint8_t[::1] rests_left, double[:, ::1] laid,
):
    """Masks of all nodes, the side a zero takes, and each tree's leaf values in the new order.

    Nodes of tree t are ``starts[t]`` to ``starts[t + 1]``, parents before children; a child below
    zero is leaf ``~child``.
    """
    cdef int64_t sizes[MASK_BITS]
    cdef int64_t firsts[MASK_BITS]
    cdef Py_ssize_t tree, node, at, n_nodes
    cdef int64_t begin, size, first, leaf
    cdef int32_t resting, other
    with nogil:
        for tree in range(starts.shape[0] - 1):
            begin = starts[tree]
            n_nodes = starts[tree + 1] - begin
            leaf = leaf_starts[tree]
            for node in range(n_nodes - 1, -1, -1):
                size = 1 if left[begin + node] < 0 else sizes[left[begin + node]]
                size += 1 if right[begin + node] < 0 else sizes[right[begin + node]]
                sizes[node] = size
            firsts[0] = 0
            if n_nodes == 0:
                laid[tree, 0] = leaf_values[leaf]
            for node in range(n_nodes):
                at = begin + node
                rests_left[at] = thresholds[at] >= 0.0
                resting, other = left[at], right[at]
                if not rests_left[at]:
                    resting, other = other, resting
                size = 1 if resting < 0 else sizes[resting]
                first = firsts[node]
                masks[at] = ~(((<uint64_t> 1 << size) - 1) << first)
                if resting < 0:
                    laid[tree, first] = leaf_values[leaf + ~resting]
                else:
                    firsts[resting] = first
                if other < 0:
                    laid[tree, first + size] = leaf_values[leaf + ~other]
                else:
                    firsts[other] = first + size


cdef inline void _rule_out(
    double value, Py_ssize_t slot, const int32_t[::1] starts, const double[::1] thresholds,
    const int32_t[::1] trees, const uint64_t[::1] masks, uint64_t* left,
) noexcept nogil:
    """Clear the leaves that a feature rules out. Its nodes are sorted by distance from zero."""
    cdef int32_t node
    if value > NEAR_ZERO:
        for node in range(starts[slot], starts[slot + 1]):
            if value <= thresholds[node]:
                break
            left[trees[node]] &= masks[node]
    elif value < -NEAR_ZERO:
        for node in range(starts[slot + 1], starts[slot + 2]):
            if value > thresholds[node]:
                break
            left[trees[node]] &= masks[node]


cdef inline void _sum_leaves(
    const uint64_t* left, Py_ssize_t n_trees, const double[:, ::1] leaves, double* sums,
    Py_ssize_t n_labels,
) noexcept nogil:
    """Add the leaf of every tree to its label in the order of rounds, as boosters do."""
    cdef Py_ssize_t label, tree, n_rounds = n_trees // n_labels
    cdef uint64_t lone
    cdef double total
    for label in range(n_labels):
        total = 0.0
        for tree in range(label * n_rounds, (label + 1) * n_rounds):
            lone = left[tree] & (~left[tree] + 1)
            total += leaves[tree, NUMBERS[(lone * SEQUENCE) >> 58]]
        sums[label] = total


def sum_sparse_rows(
    const int64_t[::1] row_starts, const int32_t[::1] columns, const score_t[::1] cells,
    const int32_t[::1] starts, const double[::1] thresholds, const int32_t[::1] trees,
    const uint64_t[::1] masks, const double[:, ::1] leaves, double[:, ::1] sums,
):
    """Sums (rows, labels) of CSR rows; trees are sorted by label."""
    cdef Py_ssize_t n_trees = leaves.shape[0], n_labels = sums.shape[1]
    cdef Py_ssize_t row, at, tree
    cdef uint64_t[::1] left = np.empty(n_trees, np.uint64)
    if n_trees == 0 or n_labels == 0:
        sums[:] = 0.0
        return
    with nogil:
        for row in range(sums.shape[0]):
            for tree in range(n_trees):
                left[tree] = ALL
            for at in range(row_starts[row], row_starts[row + 1]):
                _rule_out(cells[at], 2 * columns[at], starts, thresholds, trees, masks, &left[0])
            _sum_leaves(&left[0], n_trees, leaves, &sums[row, 0], n_labels)


def sum_dense_rows(
    const score_t[:, ::1] cells, const int32_t[::1] starts, const double[::1] thresholds,
    const int32_t[::1] trees, const uint64_t[::1] masks, const double[:, ::1] leaves,
    double[:, ::1] sums,
):
    """Sums (rows, labels) of dense rows; trees are sorted by label."""
    cdef Py_ssize_t n_trees = leaves.shape[0], n_labels = sums.shape[1]
    cdef Py_ssize_t row, column, tree
    cdef uint64_t[::1] left = np.empty(n_trees, np.uint64)
    if n_trees == 0 or n_labels == 0:
        sums[:] = 0.0
        return
    with nogil:
        for row in range(sums.shape[0]):
            for tree in range(n_trees):
                left[tree] = ALL
            for column in range(cells.shape[1]):
                if cells[row, column] != 0.0:
                    _rule_out(
                        cells[row, column], 2 * column, starts, thresholds, trees, masks, &left[0]
                    )
            _sum_leaves(&left[0], n_trees, leaves, &sums[row, 0], n_labels)


# The order of operations and the widths are those of LightGBM's own binary objective, so that
# every gradient has the same bits and every tree the same splits. Hence no fast-math.
def weigh_gradients(
    const double[:, ::1] sums, const uint8_t[:, ::1] truths, const double[::1] starts,
    const double[::1] weights, float[:, ::1] gradients, float[:, ::1] hessians,
):
    """First and second derivatives at margin ``starts[j] + sums[j, i]``; all (labels, rows)."""
    cdef Py_ssize_t i, j
    cdef double start, weight, away
    with nogil:
        for j in range(sums.shape[0]):
            start = starts[j]
            weight = weights[j]
            for i in range(sums.shape[1]):
                if truths[j, i]:
                    away = 1.0 / (1.0 + exp(start + sums[j, i]))
                    gradients[j, i] = <float> (-away * weight)
                    hessians[j, i] = <float> (away * (1.0 - away) * weight)
                else:
                    away = 1.0 / (1.0 + exp(-(start + sums[j, i])))
                    gradients[j, i] = <float> away
                    hessians[j, i] = <float> (away * (1.0 - away))


def fill_gradients(
    const float[:, ::1] margins, const uint8_t[:, ::1] labels, const float[::1] weights,
    float[:, ::1] gradients, float[:, ::1] hessians,
):
    """Weighted logistic gradients (rows, labels), rounded exactly where XGBoost rounds its own."""
    cdef Py_ssize_t row, label, n_labels = margins.shape[1]
    cdef float one = 1.0, floor = 1e-16, ceiling = 88.7
    cdef float chance, weight
    cdef const float* margin
    cdef const uint8_t* truth
    cdef float* gradient
    cdef float* hessian
    if margins.shape[0] == 0 or n_labels == 0:
        return
    cdef const float* scale = &weights[0]
    margin, truth = &margins[0, 0], &labels[0, 0]
    gradient, hessian = &gradients[0, 0], &hessians[0, 0]
    with nogil:
        for row in range(margins.shape[0]):
            # Function calls first, so that the arithmetic after them is vectorised.
            for label in range(n_labels):
                gradient[label] = expf(min(-margin[label], ceiling))
            for label in range(n_labels):
                chance = one / (gradient[label] + one)
                weight = scale[label] if truth[label] else one
                gradient[label] = (chance - <float> truth[label]) * weight
                hessian[label] = max(chance * (one - chance), floor) * weight
            margin += n_labels
            truth += n_labels
            gradient += n_labels
            hessian += n_labels
