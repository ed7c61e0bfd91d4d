"""Validate LightGBM's model text, line by line, before LightGBM reads it.

LightGBM cuts the text at ``tree_sizes``, sizes its buffers by ``num_class`` and follows any child
of a node. So the text must be exactly what LightGBM writes: the same lines in the same order,
arrays whose lengths agree with ``num_leaves``, and valid trees.
"""

from __future__ import annotations

import re

import numpy as np

from oddslip.adapters.forest import tree_error
from oddslip.core.types import Floats, Ints
from oddslip.learners.model_validation.head import Fault, refuse_faults

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_HEAD = {
    "version": r"v[34]",
    "num_class": r"[1-9]\d{0,8}",
    "num_tree_per_iteration": r"[1-9]\d{0,8}",
    "label_index": r"\d{1,9}",
    "max_feature_idx": r"\d{1,9}",
    "objective": rf"binary sigmoid:{_NUMBER}",
    "average_output": None,
    "feature_names": r".+",
    "monotone_constraints": r"(?:-1|0|1)(?: (?:-1|0|1))*",
    "feature_infos": r".+",
    "tree_sizes": r"(?:\d{1,18}(?: \d{1,18})*)?",
}
_OPTIONAL = {"objective", "average_output", "monotone_constraints"}
_INFO = re.compile(rf"none|\[{_NUMBER}:{_NUMBER}\]|-?\d+(?::-?\d+)*")
_TAIL = re.compile(
    r"\nfeature_importances:\n(?:Column_\d+=[-+.e\d]+\n)*"
    r"(?:\nparameters:\n(?:\[[a-z0-9_]+: [^\"\\\x00-\x1f\x7f-\xff]*\]\n)*\nend of parameters\n)?"
    r"\npandas_categorical:null\n*"
)
_INTEGERS = str.maketrans("", "", "0123456789- ")
_FLOATS = str.maketrans("", "", "0123456789-+.e ")
_LOOSE = str.maketrans("", "", "0123456789-+.e infa")  # a gain may be inf or nan

# Lines of a tree, in order, and how many numbers each holds: by nodes, by leaves, or one.
_PER_NODE = (
    "split_feature",
    "split_gain",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
)
_PER_LEAF = ("leaf_value", "leaf_weight", "leaf_count")
_PER_NODE_AFTER = ("internal_value", "internal_weight", "internal_count")
_CATEGORIES = ("cat_boundaries", "cat_threshold")
_LINEAR = ("leaf_const", "num_features", "leaf_features", "leaf_coeff")
_PLAIN = ("num_leaves", "num_cat", *_PER_NODE, *_PER_LEAF, *_PER_NODE_AFTER, "is_linear")
_TINY = float(np.finfo(np.float64).tiny)
_MAX_DECISION = 11  # two bits below for category and default, missing values of kind 0, 1 or 2


def check_model_text(text: str, n_features: int | None = None) -> int:
    """Raise unless LightGBM could have written the text. Returns its number of labels."""
    with refuse_faults():
        return _check(text, n_features)


def _check(text: str, n_features: int | None) -> int:
    if not text.isascii() or "\r" in text or "\0" in text:
        raise Fault("a model must be plain text")
    head, separator, rest = text.partition("\n\n")
    body, end, tail = rest.partition("end of trees\n")
    if not separator or not end or (body and not body.endswith("\n\n\n")):
        raise Fault("a model must have a head, trees and an end of trees")
    fields = _read_head(head.split("\n"))
    n_labels, last = int(fields["num_tree_per_iteration"]), int(fields["max_feature_idx"])
    if int(fields["num_class"]) != n_labels:
        raise Fault(f"num_class must be num_tree_per_iteration={n_labels}")
    if n_features is not None and last + 1 != n_features:
        raise Fault(f"max_feature_idx must be {n_features - 1}, got {last}")
    _check_features(fields, last + 1)
    _check_trees(body, fields["tree_sizes"], n_labels, last + 1)
    if not _TAIL.fullmatch(tail):
        raise Fault("what follows the trees must be importances and parameters")
    return n_labels


def _read_head(lines: list[str]) -> dict[str, str]:
    if lines[0] != "tree":
        raise Fault("a model must begin with tree")
    fields: dict[str, str] = {}
    for line in lines[1:]:
        key, equals, value = line.partition("=")
        if key not in _HEAD or key in fields:
            raise Fault(f"unknown or repeated line {line[:40]!r}")
        pattern = _HEAD[key]
        fits = not equals if pattern is None else equals and re.fullmatch(pattern, value)
        if not fits:
            raise Fault(f"{key} must not be {value[:40]!r}")
        fields[key] = value
    missing = [key for key in _HEAD if key not in fields and key not in _OPTIONAL]
    if missing:
        raise Fault(f"{missing[0]} is missing")
    return fields


def _check_features(fields: dict[str, str], n_features: int) -> None:
    # Compare counts first, so that names are only built for as many features as the text holds.
    names, infos = fields["feature_names"].split(" "), fields["feature_infos"].split(" ")
    if not len(names) == len(infos) == n_features:
        raise Fault(f"feature_names and feature_infos must hold {n_features} each")
    if any(name != f"Column_{at}" for at, name in enumerate(names)):
        raise Fault("feature_names must be Column_0, Column_1 and so on")
    if not all(map(_INFO.fullmatch, infos)):
        raise Fault("feature_infos must be ranges or categories")
    constraints = fields.get("monotone_constraints")
    if constraints is not None and constraints.count(" ") + 1 != n_features:
        raise Fault(f"monotone_constraints must hold {n_features} numbers")


def _check_trees(body: str, sizes: str, n_labels: int, n_features: int) -> None:
    trees = body.split("\n\n\n")[:-1] if body else []
    lengths = [int(size) for size in sizes.split(" ")] if sizes else []
    if lengths != [len(tree) + 3 for tree in trees]:
        raise Fault("tree_sizes must be the lengths of the trees")
    if len(trees) % n_labels:
        raise Fault(f"{len(trees)} trees must be the same number for each of {n_labels} labels")
    columns: dict[str, list[str]] = {key: [] for key in (*_PLAIN, "shrinkage")}
    special = []
    for number, tree in enumerate(trees):
        lines = tree.split("\n")
        if lines[0] != f"Tree={number}":
            raise Fault(f"Tree={number} must come, got {lines[0][:40]!r}")
        values = {}
        for line in lines[1:]:
            key, equals, value = line.partition("=")
            if not equals or key in values:
                raise Fault(f"unknown or repeated line {line[:40]!r} in tree {number}")
            values[key] = value
        if len(values) == len(columns) and values.keys() == columns.keys():
            if values["num_cat"] != "0" or values["is_linear"] != "0":
                raise Fault(f"tree {number} must have its categories and linear leaves")
        else:
            special.append((number, values))
        for key, column in columns.items():
            if key not in values:
                raise Fault(f"{key} is missing in tree {number}")
            column.append(values[key])
    _check_columns(columns, n_features, {number for number, _ in special})
    for number, values in special:
        _check_special(number, values, n_features)


def _check_columns(columns: dict[str, list[str]], n_features: int, special: set[int]) -> None:
    """All trees at once, field by field."""
    n_leaves = _integers(columns["num_leaves"], 1)
    nodes = (n_leaves - 1).tolist()
    if n_leaves.size and n_leaves.min() < 1:
        raise Fault("num_leaves must be at least 1")
    inner = {key: columns[key] for key in (*_PER_NODE, *_PER_NODE_AFTER)}
    for key, column in inner.items():
        _check_counts(key, column, nodes)
    for key in _PER_LEAF:
        # LightGBM omits weight and count of a single leaf.
        optional = key != "leaf_value"
        expected = [
            0 if optional and n == 0 and not value else n + 1
            for n, value in zip(nodes, columns[key], strict=True)
        ]
        _check_counts(key, columns[key], expected)
    # Not used for scoring, but LightGBM parses them on its own threads, where an error ends the
    # process.
    for key in ("split_gain", "internal_value", "internal_weight"):
        _floats(columns[key], _LOOSE)
    for key in ("leaf_count", "internal_count"):
        _integers(columns[key])
    decisions = _integers(columns["decision_type"])
    if decisions.size and (decisions.min() < 0 or decisions.max() > _MAX_DECISION):
        raise Fault(f"decision_type must be between 0 and {_MAX_DECISION}")
    if not special and (decisions & 1).any():
        raise Fault("a split by category must have categories")
    if special:
        tree = np.repeat(np.arange(n_leaves.size), n_leaves - 1)
        if np.isin(tree[(decisions & 1) == 1], list(special), invert=True).any():
            raise Fault("a split by category must have categories")
    for key in ("threshold", "leaf_value", "leaf_weight", "shrinkage"):
        _check_normal(key, columns[key])
    _check_counts("shrinkage", columns["shrinkage"], [1] * len(nodes))
    children = _integers(columns["left_child"]), _integers(columns["right_child"])
    fault = tree_error(n_leaves, _integers(columns["split_feature"]), *children, n_features)
    if fault is not None:
        raise Fault(fault)


def _check_counts(key: str, column: list[str], expected: list[int]) -> None:
    counts = [value.count(" ") + 1 if value else 0 for value in column]
    if counts != expected:
        at = next(at for at, count in enumerate(counts) if count != expected[at])
        raise Fault(f"{key} of tree {at} must hold {expected[at]} numbers, got {counts[at]}")


def _check_special(number: int, values: dict[str, str], n_features: int) -> None:
    """Trees with categories or linear leaves, of which there are few."""
    n_leaves, n_cat = int(values["num_leaves"]), int(_integers([values["num_cat"]], 1)[0])
    linear = values["is_linear"]
    if n_cat < 0 or linear not in ("0", "1"):
        raise Fault(f"num_cat and is_linear of tree {number} must be 0 or more, and 0 or 1")
    expected = [*_PLAIN, "shrinkage", *(_CATEGORIES if n_cat else ())]
    expected += _LINEAR if linear == "1" else ()
    if set(values) != set(expected):
        difference = sorted(set(values) ^ set(expected))
        raise Fault(f"{difference[0][:40]} is missing or unknown in tree {number}")
    if n_cat:
        edges = _integers([values["cat_boundaries"]])
        words = _integers([values["cat_threshold"]], bits=32)
        if edges.size != n_cat + 1 or edges[0] != 0 or (np.diff(edges) < 1).any():
            raise Fault(f"cat_boundaries of tree {number} must rise from 0")
        if words.size != edges[-1] or words.min() < 0:
            raise Fault(f"cat_threshold of tree {number} must hold {edges[-1]} numbers")
    by_category = (_integers([values["decision_type"]]) & 1) == 1
    categories = _floats([values["threshold"]])[by_category]
    if not np.isin(categories, np.arange(n_cat)).all():
        raise Fault(f"a split by category of tree {number} must name one of {n_cat}")
    if linear == "1":
        _check_counts("leaf_const", [values["leaf_const"]], [n_leaves])
        sizes = _integers([values["num_features"]])
        features = _integers([" ".join(values["leaf_features"].split())])
        slopes = _check_normal("leaf_coeff", [" ".join(values["leaf_coeff"].split())])
        _check_normal("leaf_const", [values["leaf_const"]])
        if sizes.size != n_leaves or sizes.min() < 0:
            raise Fault(f"num_features of tree {number} must hold {n_leaves} numbers")
        if not features.size == slopes.size == sizes.sum():
            raise Fault(f"leaf_features of tree {number} must hold {sizes.sum()} numbers")
        if features.size and (features.min() < 0 or features.max() >= n_features):
            raise Fault(f"leaf_features must be between 0 and {n_features - 1}")


def _integers(column: list[str], each: int | None = None, bits: int = 31) -> Ints:
    words = _words(column, _INTEGERS, each)
    numbers = np.array([int(word) for word in words], np.int64)
    if numbers.size and (numbers.min() < -(2**31) or numbers.max() >= 2**bits):
        raise Fault("whole numbers must be within 32 bits")
    return numbers


def _floats(column: list[str], characters: dict[int, int | None] = _FLOATS) -> Floats:
    return np.array([float(word) for word in _words(column, characters, None)], np.float64)


def _check_normal(key: str, column: list[str]) -> Floats:
    """Numbers within the normal range of float64; others make LightGBM end the process."""
    words = _words(column, _FLOATS, None)
    numbers = np.array([float(word) for word in words], np.float64)
    sizes = np.abs(numbers)
    if not np.isfinite(numbers).all() or ((sizes > 0) & (sizes < _TINY)).any():
        raise Fault(f"{key} must be finite, and 0 or at least {_TINY:.3g} in size")
    # A number that parses to zero must be written as zero.
    if any(words[at].partition("e")[0].strip("+-0.") for at in np.flatnonzero(numbers == 0)):
        raise Fault(f"{key} must be 0 or at least {_TINY:.3g} in size")
    return numbers


def _words(column: list[str], characters: dict[int, int | None], each: int | None) -> list[str]:
    text = " ".join(value for value in column if value)
    rest = text.translate(characters)
    if rest:
        raise Fault(f"a field must hold numbers, got {rest[:20]!r}")
    words = text.split(" ") if text else []
    if each is not None and len(words) != each * len(column):
        raise Fault("a field must hold one number for each tree")
    return words
