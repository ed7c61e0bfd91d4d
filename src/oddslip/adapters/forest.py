"""A layout of LightGBM trees that scores many labels at once.

LightGBM traverses tree after tree; thousands of labels have hundreds of thousands of them. The
layout of `oddslip.kernels.trees` gives the same sums to the last bit, several times faster. Trees
it does not support (categories, linear leaves, missing values, more than 64 leaves) are scored by
LightGBM.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddslip.core.threads import available_threads
from oddslip.core.types import Array, FeaturesLike, Floats, Ints
from oddslip.errors import InvalidInput
from oddslip.kernels.trees import MAX_LEAVES, lay_trees, sum_dense_rows, sum_sparse_rows

if TYPE_CHECKING:
    from lightgbm import Booster

LAY_AFTER = 1000  # rows; computing the layout takes about as long as LightGBM takes for these
_GROUP_SIZE = 64
_FIELDS = ("num_leaves", "split_feature", "threshold", "left_child", "right_child", "leaf_value")
_SUPPORTED = (*_FIELDS, "decision_type", "num_cat", "is_linear")
_LINE = re.compile(rf"^({'|'.join(_SUPPORTED)})=(.*)$", re.MULTILINE)
_MISSING_GOES_LEFT = 2  # a bit of decision_type without effect if no value is missing


@dataclass(frozen=True)
class Forest:
    """All trees of a group of labels; nodes sorted by feature, sign and size of the threshold."""

    n_labels: int
    starts: NDArray[np.int32]  # first node of a feature: above zero, below zero, next feature
    thresholds: Floats
    trees: NDArray[np.int32]
    masks: NDArray[np.uint64]
    leaves: Floats  # (trees, leaves)

    def sum_rows(self, X: FeaturesLike) -> Floats:
        """Sum of each label's trees per row; rows are dense or CSR, float32 or float64."""
        if 2 * X.shape[1] + 1 > self.starts.size:
            raise InvalidInput(
                f"X must have the {self.starts.size // 2} features of training, got {X.shape[1]}."
            )
        sums = np.zeros((X.shape[0], self.n_labels), np.float64)
        layout = (self.starts, self.thresholds, self.trees, self.masks, self.leaves)
        if not hasattr(X, "tocsr"):
            sum_dense_rows(np.ascontiguousarray(X), *layout, sums)
            return sums
        rows = X.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        places = rows.indptr.astype(np.int64), np.ascontiguousarray(rows.indices, np.int32)
        sum_sparse_rows(*places, np.ascontiguousarray(rows.data), *layout, sums)
        return sums


class Forests:
    """LightGBM Boosters of one label each, laid out in groups once many rows are scored."""

    def __init__(self, boosters: Mapping[int, Booster]) -> None:
        keys = list(boosters)
        self._boosters = boosters
        self._groups = [keys[at : at + _GROUP_SIZE] for at in range(0, len(keys), _GROUP_SIZE)]
        self._forests: dict[int, Forest | None] = {}

    def sum_rows(self, rows: FeaturesLike) -> dict[int, Floats]:
        """Sums by the Booster's key; empty where LightGBM itself should score."""
        cells = rows.data if hasattr(rows, "tocsr") else rows
        plain = isinstance(cells, np.ndarray) and cells.dtype in (np.float32, np.float64)
        if not plain or rows.shape[0] < LAY_AFTER:
            return {}
        with ThreadPoolExecutor(available_threads(None)) as pool:
            parts = pool.map(lambda number: self._sum_group(number, rows), range(len(self._groups)))
            return {key: sums for part in parts for key, sums in part.items()}

    def _sum_group(self, number: int, rows: FeaturesLike) -> dict[int, Floats]:
        group = self._groups[number]
        if number not in self._forests:
            texts = [self._boosters[key].model_to_string() for key in group]
            self._forests[number] = lay_forest(texts)
        forest = self._forests[number]
        return {} if forest is None else dict(zip(group, forest.sum_rows(rows).T, strict=True))


class Trees(NamedTuple):
    """Trees of a model in LightGBM's order: for each round, the tree of each label."""

    n_labels: int
    n_features: int
    fields: dict[str, Array]  # of all trees, concatenated

    @property
    def n_trees(self) -> int:
        """Trees of all labels."""
        return int(self.fields["num_leaves"].size)


def lay_forest(texts: list[str]) -> Forest | None:
    """The layout of models in LightGBM's text format; None if a tree is not supported."""
    models = [_read_trees(text) for text in texts]
    supported = [trees for trees in models if trees is not None]
    return lay_out(supported) if len(supported) == len(texts) else None


def lay_out(models: list[Trees]) -> Forest:
    """The layout of trees that the kernel can trust, see `is_supported`."""
    fields = {key: np.concatenate([trees.fields[key] for trees in models]) for key in _FIELDS}
    n_nodes = fields["num_leaves"] - 1
    masks = np.empty(n_nodes.sum(), np.uint64)
    rests_left = np.empty(masks.size, np.uint8)
    tree_leaves = np.zeros((n_nodes.size, int(n_nodes.max()) + 1), np.float64)
    lay_trees(
        _edges(n_nodes),
        fields["threshold"],
        fields["left_child"].astype(np.int32),
        fields["right_child"].astype(np.int32),
        _edges(n_nodes + 1),
        fields["leaf_value"],
        masks,
        rests_left,
        tree_leaves,
    )
    # A label with fewer rounds than others is padded with trees of one leaf of value zero.
    n_rounds = max(trees.n_trees // trees.n_labels for trees in models)
    first_labels = _edges([trees.n_labels for trees in models])
    places = np.concatenate(
        [
            np.arange(trees.n_trees) % trees.n_labels * n_rounds
            + np.arange(trees.n_trees) // trees.n_labels
            + first * n_rounds
            for first, trees in zip(first_labels, models, strict=False)
        ]
    )
    n_labels = int(first_labels[-1])
    leaves = np.zeros((n_labels * n_rounds, tree_leaves.shape[1]), np.float64)
    leaves[places] = tree_leaves
    slots = 2 * fields["split_feature"].astype(np.int64) + (rests_left == 0)
    order = np.lexsort((np.abs(fields["threshold"]), slots))
    n_slots = 2 * max(trees.n_features for trees in models)
    return Forest(
        n_labels,
        np.searchsorted(slots[order], np.arange(n_slots + 1)).astype(np.int32),
        fields["threshold"][order],
        np.repeat(places, n_nodes)[order].astype(np.int32),
        masks[order],
        leaves,
    )


def _edges(sizes: ArrayLike) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _read_trees(text: str) -> Trees | None:
    head, _, rest = text.partition("\nTree=0\n")
    n_labels = re.search(r"^num_tree_per_iteration=(\d+)$", head, re.MULTILINE)
    last_feature = re.search(r"^max_feature_idx=(\d+)$", head, re.MULTILINE)
    lines: dict[str, list[str]] = {}
    for key, values in _LINE.findall(rest.partition("\nend of trees")[0]):
        lines.setdefault(key, []).append(values)
    averages = "\naverage_output" in head
    if n_labels is None or last_feature is None or averages or not set(_SUPPORTED) <= lines.keys():
        return None
    fields = {key: np.fromstring(" ".join(words), sep=" ") for key, words in lines.items()}
    fields["num_leaves"] = fields["num_leaves"].astype(np.int64)
    unsupported = fields["decision_type"].astype(np.int64) & ~_MISSING_GOES_LEFT
    if unsupported.any() or fields["num_cat"].any() or fields["is_linear"].any():
        return None
    trees = Trees(int(n_labels[1]), int(last_feature[1]) + 1, fields)
    return trees if is_supported(trees) else None


def is_supported(trees: Trees) -> bool:
    """Whether the kernel can trust these trees. A Booster accepts any file, so check."""
    fields, n_leaves = trees.fields, trees.fields["num_leaves"]
    sizes = {"threshold": n_leaves.sum() - n_leaves.size, "leaf_value": n_leaves.sum()}
    if n_leaves.max() > MAX_LEAVES or trees.n_labels < 1 or trees.n_trees % trees.n_labels:
        return False
    if any(fields[key].size != size for key, size in sizes.items()):
        return False
    if not np.isfinite(fields["threshold"]).all():
        return False
    features, left_child, right_child = (
        fields[key].astype(np.int64) for key in ("split_feature", "left_child", "right_child")
    )
    return tree_error(n_leaves, features, left_child, right_child, trees.n_features) is None


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
