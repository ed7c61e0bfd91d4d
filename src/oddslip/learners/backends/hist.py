"""scikit-learn's HistGradientBoostingClassifier, one-vs-rest, without further dependencies.

Each label is one scikit-learn fit. Its trees are then stored as arrays, in LightGBM's numbering,
and scored by `oddslip.kernels.trees`, or by NumPy where a row has missing values. Either way the
sums equal scikit-learn's `decision_function` to the last bit.

scikit-learn starts a weighted fit from the log-odds of the weighted mean: the start alone raises a
label by ln w, and leaves add little. LightGBM's weighted arm starts where its twin does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from oddslip.adapters.forest import Forest, Trees, is_supported, lay_out
from oddslip.core.types import Array, FeaturesLike, Floats, Ints
from oddslip.errors import InvalidInput
from oddslip.learners.backends.base import Backend, Parameters, refusals
from oddslip.learners.model_validation.arrays import TREE_TYPES, pack_npz, read_trees

_DEFAULTS: Parameters = {
    "max_iter": 200,
    "learning_rate": 0.05,
    "max_leaf_nodes": 31,
    "max_depth": None,
    "min_samples_leaf": 20,
    "l2_regularization": 0.0,
    "max_bins": 255,
}
_LABELS_PER_GROUP = 8  # a checkpoint stores whole groups, and each thread trains one
_MAX_CELLS = 2**29  # 4 GB of float64; scikit-learn does not accept sparse rows
_TINY = 1e-35  # the kernel treats smaller features as zero


@dataclass
class HistModel:
    """Trees of a group in order of label and round, and the initial margin of each label."""

    starts: Floats  # (labels,)
    n_trees: Ints  # (labels,): rounds
    n_leaves: Ints  # (trees,)
    feature: Ints  # (nodes,), as are the next four
    threshold: Floats
    left: Ints  # a later node of the tree, or ~leaf
    right: Ints
    missing_left: NDArray[np.uint8]
    value: Floats  # (leaves,)
    n_features: int

    @cached_property
    def forest(self) -> Forest | None:
        """The layout of the trees, computed when rows are scored; None if it cannot hold them.

        The start of a label is a tree of one leaf.
        """
        trees = [_one_label(self, label) for label in range(self.starts.size)]
        return lay_out(trees) if trees and all(map(is_supported, trees)) else None


_NODE_ARRAYS = ("feature", "threshold", "left", "right", "missing_left")
_ARRAYS = ("starts", "n_trees", "n_leaves", *_NODE_ARRAYS, "value")


class Hist(Backend):
    """The backend. See `oddslip.learners.backends.base.Backend`."""

    name = "hist"
    extension = ".npz"

    def defaults(self) -> Parameters:
        """Parameters and their default values: as many trees and leaves as for LightGBM."""
        return dict(_DEFAULTS)

    def versions(self) -> dict[str, str]:
        """Versions of the packages on which the trained bits depend."""
        return {"numpy": np.__version__, "scikit-learn": sklearn.__version__}

    def workers(self, parameters: Parameters, threads: int) -> int:
        """Groups in parallel, one thread each."""
        return threads

    def prepare(self, X: FeaturesLike, parameters: Parameters) -> Floats:
        """Dense rows; each fit bins them itself."""
        if X.shape[0] * X.shape[1] > _MAX_CELLS:
            raise InvalidInput(
                f"X must have at most {_MAX_CELLS:,} cells for learner='hist', which only takes "
                f"dense rows, got {X.shape[0]:,} x {X.shape[1]:,}. Use learner='lightgbm'."
            )
        return _dense(X)

    def group_size(self, n_labels: int, n_rows: int, n_features: int, memory_bytes: int) -> int:
        """Labels per group. They are fitted one by one, so memory does not matter."""
        return max(1, min(_LABELS_PER_GROUP, -(-n_labels // 4)))

    def train(
        self,
        prepared: Floats,
        Y: NDArray[np.uint8],
        weights: Floats,
        parameters: Parameters,
        seed: int,
    ) -> HistModel:
        """Grow the trees of a group."""
        with refusals("scikit-learn"), threadpool_limits(1, "openmp"):
            fits = [
                _fit(prepared, Y[:, j], float(weights[j]), parameters, seed)
                for j in range(Y.shape[1])
            ]
        return _join([_read(fit) for fit in fits], prepared.shape[1])

    def predict_margin(self, model: HistModel, X: FeaturesLike) -> Floats:
        """Log-odds of every label of the group, on one thread."""
        rows = _dense(X)
        if model.forest is not None and not _is_unsupported(rows):
            return model.forest.sum_rows(rows)
        return _walk(model, rows, 0, self.n_rounds(model))

    def n_rounds(self, model: HistModel) -> int:
        """Rounds of boosting."""
        return int(model.n_trees.max(initial=0))

    def stage(self, model: HistModel, X: FeaturesLike, start: int, stop: int) -> Floats:
        """Log-odds added by some rounds."""
        return _walk(model, _dense(X), start, stop)

    def cut(self, model: HistModel, n_rounds: int) -> HistModel:
        """The same model with only its first rounds."""
        label = np.repeat(np.arange(model.n_trees.size), model.n_trees)
        number = np.arange(label.size) - (np.cumsum(model.n_trees) - model.n_trees)[label]
        trees = number < n_rounds
        nodes = np.repeat(trees, model.n_leaves - 1)
        return HistModel(
            starts=model.starts,
            n_trees=np.minimum(model.n_trees, n_rounds),
            n_leaves=model.n_leaves[trees],
            value=model.value[np.repeat(trees, model.n_leaves)],
            n_features=model.n_features,
            **{name: getattr(model, name)[nodes] for name in _NODE_ARRAYS},
        )

    def dump(self, model: HistModel) -> bytes:
        """The trees as .npz, without pickle."""
        arrays = {name: getattr(model, name) for name in _ARRAYS}
        return pack_npz(arrays | {"n_features": np.array([model.n_features], np.int64)})

    def load(
        self, data: bytes, n_labels: int | None = None, n_features: int | None = None
    ) -> HistModel:
        """The dumped model."""
        arrays: dict[str, Any] = read_trees(data, n_labels, n_features)
        return HistModel(**arrays | {"n_features": int(arrays["n_features"][0])})


BACKEND = Hist()


def _dense(X: FeaturesLike) -> Floats:
    cells = X.toarray() if hasattr(X, "toarray") else X
    return np.ascontiguousarray(cells, np.float64)


def _fit(
    rows: Floats,
    truth: NDArray[np.uint8],
    weight: float,
    parameters: Parameters,
    seed: int,
) -> HistGradientBoostingClassifier:
    model = HistGradientBoostingClassifier(
        **parameters, early_stopping=False, categorical_features=None, random_state=seed
    )
    return model.fit(rows, truth, None if weight == 1 else np.where(truth, weight, 1.0))


def _read(fit: HistGradientBoostingClassifier) -> dict[str, list[ArrayLike]]:
    """Trees of a fit in LightGBM's numbering, which counts nodes and leaves separately."""
    arrays: dict[str, list[ArrayLike]] = {name: [] for name in _ARRAYS[2:]}
    for (predictor,) in fit._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        index = np.where(leaf, ~(np.cumsum(leaf) - 1), np.cumsum(~leaf) - 1)
        inner = nodes[~leaf]
        if inner["is_categorical"].any():
            raise InvalidInput("learner='hist' must have numbers as features, got categories.")
        arrays["n_leaves"].append([leaf.sum()])
        arrays["feature"].append(inner["feature_idx"])
        arrays["threshold"].append(inner["num_threshold"])
        arrays["left"].append(index[inner["left"]])
        arrays["right"].append(index[inner["right"]])
        arrays["missing_left"].append(inner["missing_go_to_left"])
        arrays["value"].append(nodes["value"][leaf])
    start = float(np.ravel(fit._baseline_prediction)[0])
    return arrays | {"starts": [[start]], "n_trees": [[len(fit._predictors)]]}


def _join(labels: list[dict[str, list[ArrayLike]]], n_features: int) -> HistModel:
    arrays: dict[str, Any] = {}
    for name in _ARRAYS:
        parts = [part for label in labels for part in label[name]]
        arrays[name] = np.concatenate([np.empty(0), *parts]).astype(TREE_TYPES[name])
    return HistModel(n_features=n_features, **arrays)


def _one_label(model: HistModel, label: int) -> Trees:
    first = int(model.n_trees[:label].sum())
    trees = slice(first, first + int(model.n_trees[label]))
    n_leaves = model.n_leaves[trees]
    before = int(model.n_leaves[:first].sum())
    nodes = slice(before - first, before - first + int(n_leaves.sum()) - n_leaves.size)
    fields = {
        "num_leaves": np.concatenate([[1], n_leaves]),
        "split_feature": model.feature[nodes],
        "threshold": model.threshold[nodes],
        "left_child": model.left[nodes],
        "right_child": model.right[nodes],
        "leaf_value": np.concatenate(
            [model.starts[[label]], model.value[before : before + int(n_leaves.sum())]]
        ),
    }
    return Trees(1, model.n_features, fields)


def _is_unsupported(rows: Floats) -> bool:
    """Whether rows hold cells that the kernel does not support: missing or tiny values."""
    sizes = np.abs(rows)
    return bool((np.isnan(rows) | ((sizes > 0) & (sizes <= _TINY))).any())


def _walk(model: HistModel, rows: Floats, start: int, stop: int) -> Array:
    """Sums of some rounds in NumPy, tree by tree."""
    row_numbers = np.arange(len(rows))
    sums = np.zeros((len(rows), model.starts.size))
    if start == 0:
        sums += model.starts
    first_node = np.cumsum(model.n_leaves - 1) - (model.n_leaves - 1)
    first_leaf = np.cumsum(model.n_leaves) - model.n_leaves
    first_tree = np.cumsum(model.n_trees) - model.n_trees
    for label, n_trees in enumerate(model.n_trees):
        for tree in range(first_tree[label] + start, first_tree[label] + min(stop, n_trees)):
            index = np.full(len(rows), 0 if model.n_leaves[tree] > 1 else ~0)
            while (inner := index >= 0).any():
                node = first_node[tree] + index[inner]
                cells = rows[row_numbers[inner], model.feature[node]]
                goes_left = np.where(
                    np.isnan(cells), model.missing_left[node], cells <= model.threshold[node]
                )
                index[inner] = np.where(goes_left, model.left[node], model.right[node])
            sums[:, label] += model.value[first_leaf[tree] + ~index]
    return sums
