"""Validation of binary trees stored as arrays."""

from __future__ import annotations

import numpy as np

from oddslip.core.types import Ints


def tree_error(
    n_leaves: Ints,
    features: Ints,
    left_child: Ints,
    right_child: Ints,
    n_features: int,
) -> str | None:
    """The error in concatenated trees with LightGBM's numbering; None if they are valid.

    A tree of n leaves has n - 1 nodes, parents before children; a child below zero is leaf
    ``~child``. A child comes after its parent, so there is no cycle. Each node and leaf is
    referenced once, so none is shared or missing.
    """
    if n_leaves.size and n_leaves.min() < 1:
        return "num_leaves must be at least 1"
    n_nodes = n_leaves - 1
    total = int(n_nodes.sum())
    if not (features.size == left_child.size == right_child.size == total):
        return "a tree must have one node less than leaves"
    if total == 0:
        return None
    if features.min() < 0 or features.max() >= n_features:
        return f"split_feature must be between 0 and {n_features - 1}"
    tree = np.repeat(np.arange(n_leaves.size), n_nodes)
    first_node = np.cumsum(n_nodes) - n_nodes
    first_leaf = np.cumsum(n_leaves) - n_leaves
    places = np.arange(total) - first_node[tree]
    node_references = np.zeros(total, np.int64)
    leaf_references = np.zeros(int(n_leaves.sum()), np.int64)
    for children in (left_child, right_child):
        inner = children >= 0
        wrong = np.where(inner, children <= places, ~children >= n_leaves[tree])
        if wrong.any() or (children >= n_nodes[tree]).any():
            return "a child must be a later node or a leaf of its tree"
        nodes = first_node[tree[inner]] + children[inner]
        leaves = first_leaf[tree[~inner]] + ~children[~inner]
        node_references += np.bincount(nodes, minlength=node_references.size)
        leaf_references += np.bincount(leaves, minlength=leaf_references.size)
    expected_nodes = np.ones(total, np.int64)
    expected_nodes[first_node[n_nodes > 0]] = 0
    expected_leaves = np.repeat((n_nodes > 0).astype(np.int64), n_leaves)
    nodes_once = np.array_equal(node_references, expected_nodes)
    if not nodes_once or not np.array_equal(leaf_references, expected_leaves):
        return "each node and leaf must be reached exactly once"
    return None
