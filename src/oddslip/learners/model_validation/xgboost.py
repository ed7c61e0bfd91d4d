"""Parse and validate XGBoost's UBJSON before XGBoost reads it.

The parser knows the part of UBJSON that XGBoost writes: counted arrays, keys and text with lengths
of 64 bits. Valid models are those that `OneVsRest` trains: ``binary:logistic``, one output per
tree, numerical splits.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from oddslip.core.types import JsonObject
from oddslip.learners.model_validation.head import Fault, refuse_faults

_MAX_DEPTH = 16
_SCALARS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_TYPES = {
    b"i": ">i1",
    b"U": ">u1",
    b"I": ">i2",
    b"l": ">i4",
    b"L": ">i8",
    b"d": ">f4",
    b"D": ">f8",
}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_NODES = {
    "base_weights": ">f4",
    "default_left": ">u1",
    "left_children": ">i4",
    "loss_changes": ">f4",
    "parents": ">i4",
    "right_children": ">i4",
    "split_conditions": ">f4",
    "split_indices": ">i4",
    "split_type": ">u1",
    "sum_hessian": ">f4",
}
_CATEGORIES = {"categories", "categories_nodes", "categories_segments", "categories_sizes"}
_NO_PARENT = 2**31 - 1
_FLOAT = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_BASE = re.compile(rf"\[?{_FLOAT}(?:,{_FLOAT})*\]?")


def check_booster(raw: bytes, n_features: int | None = None) -> int:
    """Raise unless XGBoost could have written the bytes. Returns their number of labels."""
    with refuse_faults(KeyError, TypeError, AttributeError, struct.error):
        reader = _Reader(raw)
        model = reader.value(0)
        if reader.at != len(raw):
            raise Fault("something follows the model")
        return _check(model, n_features)


class _Reader:
    """A parser of UBJSON."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if not 0 <= size <= len(self.raw) - self.at:
            raise Fault("it is cut short")
        self.at += size
        return self.raw[self.at - size : self.at]

    def length(self) -> int:
        """A length, as XGBoost writes it."""
        if self.take(1) != b"L":
            raise Fault("a length must have 64 bits")
        size = int(struct.unpack(">q", self.take(8))[0])
        if not 0 <= size <= len(self.raw) - self.at:
            raise Fault("it is cut short")
        return size

    def value(self, depth: int) -> Any:
        """The next value, of any type."""
        if depth > _MAX_DEPTH:
            raise Fault("it is nested too deeply")
        marker = self.take(1)
        if marker in _SCALARS:
            form = _SCALARS[marker]
            return struct.unpack(form, self.take(struct.calcsize(form)))[0]
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == b"S":
            return self.take(self.length()).decode("utf-8")
        if marker == b"{":
            return self.table(depth)
        if marker == b"[":
            return self.array(depth)
        raise Fault(f"unknown marker {marker!r}")

    def table(self, depth: int) -> JsonObject:
        """Keys and values up to a brace; no key twice."""
        table: JsonObject = {}
        while self.raw[self.at : self.at + 1] != b"}":
            key = self.take(self.length()).decode("utf-8")
            if key in table:
                raise Fault(f"key {key[:30]!r} is there twice")
            table[key] = self.value(depth + 1)
        self.at += 1
        return table

    def array(self, depth: int) -> Any:
        """Counted values: a NumPy array if of one type, a list otherwise."""
        mark = self.take(1)
        if mark == b"$":
            dtype = np.dtype(_TYPES[self.take(1)])
            if self.take(1) != b"#":
                raise Fault("an array must have a length")
            return np.frombuffer(self.take(self.length() * dtype.itemsize), dtype)
        if mark != b"#":
            raise Fault("an array must have a length")
        return [self.value(depth + 1) for _ in range(self.length())]


def _check(model: Any, n_features: int | None) -> int:
    _check_keys(model, {"learner", "version"}, "a model")
    if len(_integers(model["version"])) != 3:
        raise Fault("version must be three numbers")
    learner = model["learner"]
    keys = {"attributes", "feature_names", "feature_types", "gradient_booster"}
    _check_keys(learner, keys | {"learner_model_param", "objective"}, "learner")
    if len(learner["feature_names"]) or len(learner["feature_types"]):
        raise Fault("features must have no names or types")
    _check_texts(learner["attributes"], "attributes")
    objective = learner["objective"]
    _check_keys(objective, {"name", "reg_loss_param"}, "objective")
    _check_keys(objective["reg_loss_param"], {"scale_pos_weight"}, "reg_loss_param")
    _check_texts(objective["reg_loss_param"], "reg_loss_param")
    weight = objective["reg_loss_param"]["scale_pos_weight"]
    if objective["name"] != "binary:logistic" or not re.fullmatch(_FLOAT, weight):
        raise Fault("objective must be binary:logistic")
    n_labels, n_columns = _check_param(learner["learner_model_param"])
    if n_features is not None and n_columns != n_features:
        raise Fault(f"num_feature must be {n_features}, got {n_columns}")
    booster = learner["gradient_booster"]
    if booster["name"] == "dart":
        _check_keys(booster, {"name", "gbtree", "weight_drop"}, "gradient_booster")
        drops, booster = booster["weight_drop"], booster["gbtree"]
        n_trees = len(booster["model"]["trees"])
        if len(drops) != n_trees or not np.isfinite(np.asarray(drops, np.float64)).all():
            raise Fault(f"weight_drop must hold {n_trees} finite numbers")
    _check_keys(booster, {"name", "model"}, "gradient_booster")
    if booster["name"] != "gbtree":
        raise Fault(f"unknown booster {booster['name']!r:.30}")
    _check_forest(booster["model"], n_labels, n_columns)
    return n_labels


def _check_param(param: dict[str, str]) -> tuple[int, int]:
    """Labels and features."""
    expected = {"base_score", "boost_from_average", "num_class", "num_feature", "num_target"}
    _check_keys(param, expected, "learner_model_param")
    _check_texts(param, "learner_model_param")
    n_labels, n_features = _count(param["num_target"]), _count(param["num_feature"])
    if param["num_class"] != "0" or param["boost_from_average"] not in ("0", "1") or n_labels < 1:
        raise Fault("num_class must be 0, num_target at least 1")
    starts = param["base_score"]
    if not _BASE.fullmatch(starts) or starts.startswith("[") != starts.endswith("]"):
        raise Fault("base_score must be numbers")
    chances = [float(word) for word in starts.strip("[]").split(",")]
    if len(chances) not in (1, n_labels) or not all(0 < chance < 1 for chance in chances):
        raise Fault(f"base_score must be 1 or {n_labels} probabilities")
    return n_labels, n_features


def _check_forest(model: Any, n_labels: int, n_features: int) -> None:
    expected = {"gbtree_model_param", "iteration_indptr", "tree_info", "trees"}
    _check_keys(model, expected, "model", optional=frozenset({"cats"}))
    if any(len(part) for part in model.get("cats", {}).values()):
        raise Fault("cats must be empty")
    param, trees = model["gbtree_model_param"], model["trees"]
    _check_keys(param, {"num_parallel_tree", "num_trees"}, "gbtree_model_param")
    _check_texts(param, "gbtree_model_param")
    if _count(param["num_parallel_tree"]) < 1 or _count(param["num_trees"]) != len(trees):
        raise Fault(f"num_trees must be {len(trees)}")
    labels, ends = _integers(model["tree_info"]), _integers(model["iteration_indptr"])
    if len(labels) != len(trees) or not all(0 <= label < n_labels for label in labels):
        raise Fault(f"tree_info must hold a label for each of {len(trees)} trees")
    if not ends or ends[0] != 0 or ends[-1] != len(trees) or ends != sorted(ends):
        raise Fault(f"iteration_indptr must rise from 0 to {len(trees)}")
    for number, tree in enumerate(trees):
        _check_tree(tree, number, n_features)


def _check_tree(tree: Any, number: int, n_features: int) -> None:
    name = f"tree {number}"
    _check_keys(tree, {*_NODES, *_CATEGORIES, "id", "tree_param"}, name)
    param = tree["tree_param"]
    _check_keys(
        param, {"num_deleted", "num_feature", "num_nodes", "size_leaf_vector"}, "tree_param"
    )
    _check_texts(param, "tree_param")
    n_nodes = _count(param["num_nodes"])
    if tree["id"] != number or n_nodes < 1 or n_nodes % 2 == 0:
        raise Fault(f"{name} must have its number and an odd number of nodes")
    if param["num_deleted"] != "0" or param["size_leaf_vector"] not in ("0", "1"):
        raise Fault(f"{name} must have no deleted nodes and one value per leaf")
    if _count(param["num_feature"]) != n_features:
        raise Fault(f"num_feature of {name} must be {n_features}")
    for key, dtype in _NODES.items():
        array = tree[key]
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.size != n_nodes:
            raise Fault(f"{key} of {name} must hold {n_nodes} numbers of type {dtype[1:]}")
    if any(len(tree[key]) for key in _CATEGORIES) or tree["split_type"].any():
        raise Fault(f"{name} must not split by category")
    if (tree["default_left"] > 1).any() or not np.isfinite(tree["split_conditions"]).all():
        raise Fault(f"default_left of {name} must be 0 or 1, split_conditions finite")
    if not np.isfinite(tree["base_weights"]).all():
        raise Fault(f"base_weights of {name} must be finite")
    left, right = tree["left_children"].astype(np.int64), tree["right_children"].astype(np.int64)
    nodes = np.arange(n_nodes)
    inner = left != -1
    children = np.concatenate([left[inner], right[inner]])
    parents = np.concatenate([nodes[inner], nodes[inner]])
    if ((right != -1) != inner).any() or (children <= parents).any():
        raise Fault(f"a child of {name} must be a later node")
    # Children come after parents, so each node but the root, once, means a tree.
    if not np.array_equal(np.sort(children), nodes[1:]):
        raise Fault(f"each node of {name} must be reached exactly once")
    expected = np.full(n_nodes, _NO_PARENT)
    expected[children] = parents
    if not np.array_equal(tree["parents"].astype(np.int64), expected):
        raise Fault(f"parents of {name} must be those of its children")
    features = tree["split_indices"].astype(np.int64)
    if (features < 0).any() or (features[inner] >= n_features).any():
        raise Fault(f"split_indices of {name} must be between 0 and {n_features - 1}")


def _check_keys(
    table: Any, expected: set[str], name: str, optional: frozenset[str] = frozenset()
) -> None:
    if not isinstance(table, dict):
        raise Fault(f"{name} must be a table")
    difference = sorted((expected - table.keys()) | (table.keys() - expected - optional))
    if difference:
        raise Fault(f"{difference[0][:40]!r} of {name} is missing or unknown")


def _check_texts(table: JsonObject, name: str) -> None:
    if not all(isinstance(value, str) for value in table.values()):
        raise Fault(f"{name} must hold text")


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,10}", text) or int(text) >= 2**31:
        raise Fault(f"a count must be a number, got {text[:30]!r}")
    return int(text)


def _integers(values: object) -> list[int]:
    numbers = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(numbers, list) or not all(type(value) is int for value in numbers):
        raise Fault("a list must hold whole numbers")
    return numbers
