"""Validate arrays in an .npz: coefficients, layers, and the trees of scikit-learn."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from oddslip.adapters.forest import tree_error
from oddslip.core.types import Array, Ints
from oddslip.errors import UnreadableFile
from oddslip.io.arrays import unpack_arrays
from oddslip.learners.model_validation.head import DAMAGE, Fault, refuse_faults

TREE_TYPES = {
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


def pack_npz(arrays: Mapping[str, Array]) -> bytes:
    """Arrays by name as the bytes of an .npz, without pickle."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpack_npz(data: bytes, what: str) -> dict[str, Array]:
    """The arrays of an .npz, by name; ``what`` they are, for the error."""
    if data[:2] != b"PK":
        raise UnreadableFile(f"{DAMAGE}: its {what} must be an .npz.")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return unpack_arrays(archive, Path("a group of labels"))


def read_arrays(data: bytes) -> dict[str, Array]:
    """Read the arrays of an .npz, which must hold finite floating-point cells."""
    arrays = unpack_npz(data, "arrays")
    for name, array in arrays.items():
        if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise UnreadableFile(f"{DAMAGE}: {name[:20]!r} must hold finite numbers.")
    return arrays


def check_shapes(
    arrays: Mapping[str, Array], expected: Mapping[str, tuple[int | None, ...]]
) -> None:
    """Raise unless the arrays have these names and shapes; None is any length."""
    if set(arrays) != set(expected):
        difference = sorted(set(arrays) ^ set(expected))
        raise UnreadableFile(f"{DAMAGE}: array {difference[0][:20]!r} is missing or unknown.")
    for name, shape in expected.items():
        actual = arrays[name].shape
        fits = len(actual) == len(shape) and all(
            size in (None, other) for size, other in zip(shape, actual, strict=False)
        )
        if not fits:
            raise UnreadableFile(f"{DAMAGE}: {name} must be of shape {shape}, got {actual}.")


def check_layers(arrays: Mapping[str, Array], n_labels: int | None, n_features: int | None) -> int:
    """Raise unless each layer fits the one before it. Returns the number of layers."""
    depth = sum(name.startswith("slope") for name in arrays)
    names = [f"{part}{at}" for at in range(depth) for part in ("slope", "bias")]
    expected: dict[str, tuple[int | None, ...]] = dict.fromkeys(names[::2], (None, None))
    expected |= dict.fromkeys(names[1::2], (None,))
    check_shapes(arrays, expected | {"means": (n_features,), "scales": (n_features,)})
    widths = [arrays["means"].size, *(arrays[name].size for name in names[1::2])]
    if depth == 0 or (n_labels is not None and widths[-1] != n_labels):
        raise UnreadableFile(f"{DAMAGE}: it must have layers that end in {n_labels} labels.")
    check_shapes(
        {name: arrays[name] for name in names[::2]},
        dict(zip(names[::2], pairwise(widths), strict=True)),
    )
    check_shapes({"scales": arrays["scales"]}, {"scales": (widths[0],)})
    if (arrays["scales"] <= 0).any():
        raise UnreadableFile(f"{DAMAGE}: scales must be above 0.")
    return depth


def read_trees(data: bytes, n_labels: int | None, n_features: int | None) -> dict[str, Array]:
    """Read the arrays; raise `UnreadableFile` for anything that a kernel could not handle."""
    arrays = unpack_npz(data, "trees")
    with refuse_faults():
        _check_trees(arrays, n_labels, n_features)
    return arrays


def _check_trees(arrays: dict[str, Array], n_labels: int | None, n_features: int | None) -> None:
    difference = sorted(set(arrays) ^ set(TREE_TYPES))
    if difference:
        raise Fault(f"array {difference[0][:20]!r} is missing or unknown")
    for name, dtype in TREE_TYPES.items():
        if arrays[name].ndim != 1 or arrays[name].dtype != dtype:
            raise Fault(f"{name} must be a list of {np.dtype(dtype).name}")
    starts, n_trees, n_leaves = (arrays[name] for name in ("starts", "n_trees", "n_leaves"))
    labels = starts.size if n_labels is None else n_labels
    if starts.size != labels or n_trees.size != labels:
        raise Fault(f"it must have trees for {labels} labels, got {starts.size}")
    if arrays["n_features"].size != 1:
        raise Fault("n_features must be one number")
    features = int(arrays["n_features"][0])
    if not 0 <= features <= MAX_COUNT or (n_features is not None and features != n_features):
        raise Fault(f"it must have {n_features} features, got {features}")
    if (
        _out_of_range(n_trees, 0)
        or _out_of_range(n_leaves, 1)
        or int(n_trees.sum()) != n_leaves.size
    ):
        raise Fault("n_trees and n_leaves must count what is there")
    n_nodes = int(n_leaves.sum()) - n_leaves.size
    for name in ("feature", "threshold", "left", "right", "missing_left"):
        if arrays[name].size != n_nodes:
            raise Fault(f"{name} must hold {n_nodes} nodes, got {arrays[name].size}")
    if arrays["value"].size != n_nodes + n_leaves.size:
        raise Fault("value must hold one number for each leaf")
    if not (np.isfinite(starts).all() and np.isfinite(arrays["value"]).all()):
        raise Fault("starts and values must be finite")
    if np.isnan(arrays["threshold"]).any() or (arrays["missing_left"] > 1).any():
        raise Fault("threshold must be a number and missing_left 0 or 1")
    fault = tree_error(n_leaves, arrays["feature"], arrays["left"], arrays["right"], features)
    if fault is not None:
        raise Fault(fault)


def _out_of_range(counts: Ints, minimum: int) -> bool:
    return bool(counts.size and (counts.min() < minimum or counts.max() > MAX_COUNT))
