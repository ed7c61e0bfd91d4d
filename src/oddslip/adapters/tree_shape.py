"""The shape of binary trees given as arrays: every node and leaf is reached once from the root."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def tree_error(
    n_leaves: NDArray[np.int64],
    features: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    n_features: int,
) -> str | None:
    """What is wrong with trees laid one after another, in LightGBM's numbering; None if nothing.

    A tree of n leaves has n - 1 nodes, parents before children; a child below zero is leaf
    ``~child``. Since a child comes after its parent there is no cycle, and since each is named
    once there is no sharing and nothing is left out.
    """
    if n_leaves.size and n_leaves.min() < 1:
        return "num_leaves must be at least 1"
    n_nodes = n_leaves - 1
    total = int(n_nodes.sum())
    if not (features.size == left.size == right.size == total):
        return "a tree must have one node less than leaves"
    if total == 0:
        return None
    if features.min() < 0 or features.max() >= n_features:
        return f"split_feature must be between 0 and {n_features - 1}"
    tree = np.repeat(np.arange(n_leaves.size), n_nodes)
    first_node = np.cumsum(n_nodes) - n_nodes
    first_leaf = np.cumsum(n_leaves) - n_leaves
    places = np.arange(total) - first_node[tree]
    node_seen = np.zeros(total, np.int64)
    leaf_seen = np.zeros(int(n_leaves.sum()), np.int64)
    for children in (left, right):
        inner = children >= 0
        wrong = np.where(inner, children <= places, ~children >= n_leaves[tree])
        if wrong.any() or (children >= n_nodes[tree]).any():
            return "a child must be a later node or a leaf of its tree"
        nodes = first_node[tree[inner]] + children[inner]
        leaves = first_leaf[tree[~inner]] + ~children[~inner]
        node_seen += np.bincount(nodes, minlength=node_seen.size)
        leaf_seen += np.bincount(leaves, minlength=leaf_seen.size)
    wanted_nodes = np.ones(total, np.int64)
    wanted_nodes[first_node[n_nodes > 0]] = 0
    wanted_leaves = np.repeat((n_nodes > 0).astype(np.int64), n_leaves)
    if not np.array_equal(node_seen, wanted_nodes) or not np.array_equal(leaf_seen, wanted_leaves):
        return "each node and leaf must be reached exactly once"
    return None
