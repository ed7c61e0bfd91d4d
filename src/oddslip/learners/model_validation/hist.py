"""Validate the trees of scikit-learn, saved as arrays in an .npz: every node, leaf and number."""

from __future__ import annotations

import numpy as np

from oddslip.adapters.forest import tree_error
from oddslip.core.types import Array, Ints
from oddslip.errors import UnreadableFile
from oddslip.learners.model_validation.arrays import DAMAGE, unpack_npz

TYPES = {
    "starts": np.float64,
    "n_trees": np.int64,
    "n_leaves": np.int64,
    "feature": np.int64,
    "threshold": np.float64,
    "left": np.int64,
    "right": np.int64,
    "missing_left": np.uint8,
    "value": np.float64,
    "n_features": np.int64,
}
MAX_COUNT = 2**31 - 1


def read_hist(data: bytes, n_labels: int | None, n_features: int | None) -> dict[str, Array]:
    """Read the arrays; raise `UnreadableFile` for anything that a kernel could not handle."""
    arrays = unpack_npz(data, "trees")
    fault = _fault(arrays, n_labels, n_features)
    if fault is not None:
        raise UnreadableFile(f"{DAMAGE}: {fault}.")
    return arrays


def _fault(arrays: dict[str, Array], n_labels: int | None, n_features: int | None) -> str | None:
    difference = sorted(set(arrays) ^ set(TYPES))
    if difference:
        return f"array {difference[0][:20]!r} is missing or unknown"
    for name, dtype in TYPES.items():
        if arrays[name].ndim != 1 or arrays[name].dtype != dtype:
            return f"{name} must be a list of {np.dtype(dtype).name}"
    starts, n_trees, n_leaves = (arrays[name] for name in ("starts", "n_trees", "n_leaves"))
    labels = starts.size if n_labels is None else n_labels
    if starts.size != labels or n_trees.size != labels:
        return f"it must have trees for {labels} labels, got {starts.size}"
    if arrays["n_features"].size != 1:
        return "n_features must be one number"
    features = int(arrays["n_features"][0])
    if not 0 <= features <= MAX_COUNT or (n_features is not None and features != n_features):
        return f"it must have {n_features} features, got {features}"
    if (
        _out_of_range(n_trees, 0)
        or _out_of_range(n_leaves, 1)
        or int(n_trees.sum()) != n_leaves.size
    ):
        return "n_trees and n_leaves must count what is there"
    n_nodes = int(n_leaves.sum()) - n_leaves.size
    for name in ("feature", "threshold", "left", "right", "missing_left"):
        if arrays[name].size != n_nodes:
            return f"{name} must hold {n_nodes} nodes, got {arrays[name].size}"
    if arrays["value"].size != n_nodes + n_leaves.size:
        return "value must hold one number for each leaf"
    if not (np.isfinite(starts).all() and np.isfinite(arrays["value"]).all()):
        return "starts and values must be finite"
    if np.isnan(arrays["threshold"]).any() or (arrays["missing_left"] > 1).any():
        return "threshold must be a number and missing_left 0 or 1"
    return tree_error(n_leaves, arrays["feature"], arrays["left"], arrays["right"], features)


def _out_of_range(counts: Ints, minimum: int) -> bool:
    return bool(counts.size and (counts.min() < minimum or counts.max() > MAX_COUNT))
