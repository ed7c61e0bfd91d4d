"""Sums of trees against walking down them, and gradients against NumPy."""

import numpy as np
import pytest

from oddslip.kernels.trees import (
    MAX_LEAVES,
    fill_gradients,
    lay_trees,
    sum_dense_rows,
    sum_sparse_rows,
    weigh_gradients,
)

N_FEATURES = 6


def grow(rng, n_leaves):
    """A tree by splitting leaves at random: features, thresholds, children; leaves are ~number."""
    features, thresholds, left, right = [], [], [], []
    hanging = {0: None}  # leaf -> (node, side)
    for node in range(n_leaves - 1):
        leaf = int(rng.choice(list(hanging)))
        parent = hanging.pop(leaf)
        if parent is not None:
            (left if parent[1] == 0 else right)[parent[0]] = node
        features.append(int(rng.integers(N_FEATURES)))
        thresholds.append(float(rng.choice([-1.5, -0.5, 0.0, 0.5, 1.5])))
        left.append(~leaf)
        right.append(~(node + 1))
        hanging |= {leaf: (node, 0), node + 1: (node, 1)}
    return features, thresholds, left, right


def walk(tree, values, row):
    features, thresholds, left, right = tree
    node = 0 if features else ~0
    while node >= 0:
        node = left[node] if row[features[node]] <= thresholds[node] else right[node]
    return values[~node]


@pytest.mark.parametrize("n_leaves", [1, 2, 7, MAX_LEAVES])
def test_sums_are_those_of_walking_down_every_tree(dtype, frozen, n_leaves):
    rng = np.random.default_rng(n_leaves)
    n_labels, n_rounds, n_rows = 3, 4, 50
    n_trees = n_labels * n_rounds
    trees = [grow(rng, n_leaves) for _ in range(n_trees)]
    features, thresholds, left, right = (
        np.concatenate([np.array(tree[i]) for tree in trees]) for i in range(4)
    )
    values = rng.normal(size=n_trees * n_leaves)
    n_nodes = n_trees * (n_leaves - 1)
    starts, leaf_starts = np.arange(n_trees + 1) * (n_leaves - 1), np.arange(n_trees + 1) * n_leaves
    masks, rests_left = np.empty(n_nodes, np.uint64), np.empty(n_nodes, np.uint8)
    leaves = np.zeros((n_trees, n_leaves))
    arguments = starts, thresholds.astype(float), left.astype(np.int32), right.astype(np.int32)
    lay_trees(*frozen(*arguments, leaf_starts, values), masks, rests_left, leaves)
    slots = 2 * features.astype(int) + (rests_left == 0)
    order = np.lexsort((np.abs(thresholds), slots))
    edges = np.searchsorted(slots[order], np.arange(2 * N_FEATURES + 1)).astype(np.int32)
    of_tree = np.repeat(np.arange(n_trees), n_leaves - 1)[order].astype(np.int32)
    forest = frozen(edges, thresholds[order].astype(float), of_tree, masks[order], leaves)
    rows = rng.choice([0.0, 0.0, -2.0, -0.5, 0.5, 1.0, 2.0], (n_rows, N_FEATURES)).astype(dtype)
    expected = np.zeros((n_rows, n_labels))
    for i in range(n_rows):
        for j in range(n_labels):
            for t in range(j * n_rounds, (j + 1) * n_rounds):
                expected[i, j] += walk(trees[t], values[t * n_leaves : (t + 1) * n_leaves], rows[i])
    dense, sparse = np.empty((2, n_rows, n_labels))
    sum_dense_rows(frozen(rows), *forest, dense)
    np.testing.assert_array_equal(dense, expected)
    row_starts = np.concatenate([[0], np.cumsum((rows != 0).sum(axis=1))])
    columns = np.nonzero(rows)[1].astype(np.int32)
    sum_sparse_rows(*frozen(row_starts, columns, rows[rows != 0]), *forest, sparse)
    np.testing.assert_array_equal(sparse, expected)


def test_double_gradients_are_those_of_the_weighted_loss(frozen):
    rng = np.random.default_rng(0)
    sums, truths = rng.normal(0, 5, (4, 300)), (rng.random((4, 300)) < 0.3).astype(np.uint8)
    starts, weights = rng.normal(size=4), rng.uniform(1, 90, 4)
    gradients, hessians = np.empty((2, 4, 300), np.float32)
    weigh_gradients(*frozen(sums, truths, starts, weights), gradients, hessians)
    p = 1 / (1 + np.exp(-(starts[:, None] + sums)))
    scale = np.where(truths, weights[:, None], 1)
    np.testing.assert_allclose(gradients, (p - truths) * scale, rtol=1e-6)
    np.testing.assert_allclose(hessians, p * (1 - p) * scale, rtol=1e-6)


def test_single_gradients_are_those_of_the_weighted_loss_and_never_flat(frozen):
    rng = np.random.default_rng(1)
    margins = rng.normal(0, 8, (300, 4)).astype(np.float32)
    margins[0, 0], margins[1, 0] = 200, -200
    truths = (rng.random((300, 4)) < 0.3).astype(np.uint8)
    weights = rng.uniform(1, 90, 4).astype(np.float32)
    gradients, hessians = np.empty((2, 300, 4), np.float32)
    fill_gradients(*frozen(margins, truths, weights), gradients, hessians)
    one = np.float32(1)
    p = one / (np.exp(np.minimum(-margins, np.float32(88.7))) + one)
    scale = np.where(truths, weights, one)
    np.testing.assert_allclose(gradients, (p - truths) * scale, rtol=1e-5, atol=1e-30)
    floor = np.maximum(p * (one - p), np.float32(1e-16))
    np.testing.assert_allclose(hessians, floor * scale, rtol=1e-5)
    assert (hessians > 0).all()
