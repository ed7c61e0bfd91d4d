"""Sums of boosted trees: what a row's features rule out, all trees of a group of labels at once.

A row of zeros ends in one leaf of each tree. Leaves are numbered so that at each node the side a
zero takes, the resting side, comes first. A feature that sends the row the other way rules out the
resting side of that node: a mask of leaves. The first leaf that no mask strikes is where the row
ends. This is QuickScorer (Lucchese et al., 2015) with the numbering turned towards zero: only nodes
that turn the row are visited, so that a sparse row costs little, and no step waits for another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.kernels.compiling import inlined, kernel

MOST_LEAVES = 64  # bits of a mask
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_NEAR_ZERO = float(np.float32(1e-35))  # LightGBM takes smaller features for zero

# The number of a lone bit, by the top six bits of its product with a de Bruijn sequence.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_SHIFT = np.uint64(58)
_NUMBERS = np.zeros(64, np.int64)
for _bit in range(64):
    _NUMBERS[((int(_SEQUENCE) << _bit) & int(_ALL)) >> 58] = _bit


@kernel(
    "void(const int64[::1], const float64[::1], const int32[::1], const int32[::1], "
    "const int64[::1], const float64[::1], uint64[::1], uint8[::1], float64[:,::1])"
)
def lay_trees(
    starts: Any,
    thresholds: Any,
    left: Any,
    right: Any,
    leaf_starts: Any,
    leaf_values: Any,
    masks: Any,
    rests_left: Any,
    laid: Any,
) -> None:
    """Masks of all nodes, the side a zero takes, and each tree's leaf values in the new order.

    Nodes of tree t are ``starts[t]`` to ``starts[t + 1]``, parents before children; a child below
    zero is leaf ``~child``.
    """
    sizes = np.empty(MOST_LEAVES, np.int64)
    firsts = np.empty(MOST_LEAVES, np.int64)
    for tree in range(starts.shape[0] - 1):
        begin, n_nodes = starts[tree], starts[tree + 1] - starts[tree]
        for node in range(n_nodes - 1, -1, -1):
            size = 0
            for child in (left[begin + node], right[begin + node]):
                size += 1 if child < 0 else sizes[child]
            sizes[node] = size
        firsts[0] = 0
        values = leaf_values[leaf_starts[tree] : leaf_starts[tree + 1]]
        if n_nodes == 0:
            laid[tree, 0] = values[0]
        for node in range(n_nodes):
            at = begin + node
            rests_left[at] = thresholds[at] >= 0.0
            resting, other = left[at], right[at]
            if not rests_left[at]:
                resting, other = other, resting
            size = 1 if resting < 0 else sizes[resting]
            first = firsts[node]
            masks[at] = ~(((_ONE << np.uint64(size)) - _ONE) << np.uint64(first))
            for child, place in ((resting, first), (other, first + size)):
                if child < 0:
                    laid[tree, place] = values[~child]
                else:
                    firsts[child] = place


@inlined
def _rule_out(
    value: float, slot: int, starts: Any, thresholds: Any, trees: Any, masks: Any, left: Any
) -> None:
    """Strike the leaves that a feature rules out. Its nodes lie nearest to zero first."""
    if value > _NEAR_ZERO:
        for node in range(starts[slot], starts[slot + 1]):
            if value <= thresholds[node]:
                break
            left[trees[node]] &= masks[node]
    elif value < -_NEAR_ZERO:
        for node in range(starts[slot + 1], starts[slot + 2]):
            if value > thresholds[node]:
                break
            left[trees[node]] &= masks[node]


@inlined
def _sum_leaves(left: Any, leaves: Any, sums: Any) -> None:
    """Add the leaf of every tree to its label, round after round, as boosters do."""
    n_rounds = left.shape[0] // sums.shape[0]
    for label in range(sums.shape[0]):
        total = 0.0
        for tree in range(label * n_rounds, (label + 1) * n_rounds):
            lone = left[tree] & (~left[tree] + _ONE)
            total += leaves[tree, _NUMBERS[(lone * _SEQUENCE) >> _SHIFT]]
        sums[label] = total


_FOREST = (
    "const int32[::1], const float64[::1], const int32[::1], const uint64[::1], "
    "const float64[:,::1], float64[:,::1])"
)


@kernel(
    f"void(const int64[::1], const int32[::1], const float32[::1], {_FOREST}",
    f"void(const int64[::1], const int32[::1], const float64[::1], {_FOREST}",
)
def sum_sparse_rows(
    row_starts: Any,
    columns: Any,
    cells: Any,
    starts: Any,
    thresholds: Any,
    trees: Any,
    masks: Any,
    leaves: Any,
    sums: Any,
) -> None:
    """Sums (rows, labels) of CSR rows; trees lie label after label."""
    left = np.empty(leaves.shape[0], np.uint64)
    for row in range(sums.shape[0]):
        left[:] = _ALL
        for at in range(row_starts[row], row_starts[row + 1]):
            _rule_out(cells[at], 2 * columns[at], starts, thresholds, trees, masks, left)
        _sum_leaves(left, leaves, sums[row])


@kernel(
    f"void(const float32[:,::1], {_FOREST}",
    f"void(const float64[:,::1], {_FOREST}",
)
def sum_dense_rows(
    cells: Any, starts: Any, thresholds: Any, trees: Any, masks: Any, leaves: Any, sums: Any
) -> None:
    """Sums (rows, labels) of dense rows; trees lie label after label."""
    left = np.empty(leaves.shape[0], np.uint64)
    for row in range(sums.shape[0]):
        left[:] = _ALL
        for column in range(cells.shape[1]):
            if cells[row, column] != 0.0:
                _rule_out(cells[row, column], 2 * column, starts, thresholds, trees, masks, left)
        _sum_leaves(left, leaves, sums[row])
