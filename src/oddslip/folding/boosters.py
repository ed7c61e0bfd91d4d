"""Boosters with an affine map of their margins in the leaves.

Every leaf is multiplied by the slope of its label, and the leaves of the label's first tree are
moved by the intercept.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import numpy as np

from oddslip.core.types import Array
from oddslip.errors import InvalidInput
from oddslip.folding.affine import Affine

_TREE = re.compile(r"^(?=Tree=\d+$)", re.MULTILINE)
_VALUES = re.compile(r"^(leaf_value|leaf_const|leaf_coeff|internal_value)=(.*)$", re.MULTILINE)
_MOVED = ("leaf_value", "leaf_const", "internal_value")


def fold_lightgbm(model: Any, affine: Affine) -> Any:
    """``Booster`` or ``LGBMClassifier`` of one label, or of one per class under multiclassova."""
    booster = model.booster_ if hasattr(type(model), "booster_") else model
    folded = type(booster)(model_str=fold_lightgbm_text(booster.model_to_string(), affine))
    return _wrap(model, booster, folded)


def fold_lightgbm_text(text: str, affine: Affine) -> str:
    """The text of a LightGBM model, as `Booster.save_model` writes it."""
    head, *trees = _TREE.split(text)
    if not trees:
        raise InvalidInput("a LightGBM model must have a tree to hold the repair, got none.")
    trees[-1], end, tail = trees[-1].partition("end of trees")
    n_labels = re.search(r"^num_tree_per_iteration=(\d+)$", head, re.MULTILINE)
    affine.check_labels(int(n_labels[1]) if n_labels else 1, "a LightGBM model")
    sizes = re.search(r"^tree_sizes=(.*)$", head, re.MULTILINE)
    if not end or sizes is None or sizes[1].split() != [str(len(tree.encode())) for tree in trees]:
        raise InvalidInput("a LightGBM model must have the layout of version 4, got another.")
    sigmoid = re.search(r"^objective=.*\bsigmoid:(\S+)", head, re.MULTILINE)
    shift = affine.intercept / (1.0 if sigmoid is None else float(sigmoid[1]))
    averaged = re.search(r"^average_output$", head, re.MULTILINE) is not None
    for place, tree in enumerate(trees):
        label = place % affine.n_labels
        first = averaged or place < affine.n_labels
        offset = float(shift[label]) if first else 0.0
        trees[place] = _fold_tree(tree, float(affine.slope[label]), offset)
    new_sizes = " ".join(str(len(tree.encode())) for tree in trees)
    head = head[: sizes.start(1)] + new_sizes + head[sizes.end(1) :]
    return "".join([head, *trees, end, tail])


def _fold_tree(tree: str, slope: float, shift: float) -> str:
    """The text of one tree with other leaves."""

    def line(match: re.Match[str]) -> str:
        name, values = match.groups()
        move = shift if name in _MOVED else 0.0
        numbers = re.sub(r"\S+", lambda each: repr(float(each[0]) * slope + move), values)
        return f"{name}={numbers}"

    return _VALUES.sub(line, tree)


def fold_xgboost(model: Any, affine: Affine) -> Any:
    """``Booster`` or ``XGBClassifier``, of one label or of many in either strategy."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    document = json.loads(booster.save_raw("json"))
    fold_xgboost_document(document, affine)
    folded = type(booster)()
    folded.load_model(bytearray(json.dumps(document), "utf-8"))
    return _wrap(model, booster, folded)


def fold_xgboost_document(document: dict[str, Any], affine: Affine) -> None:
    """Change the parsed JSON of an XGBoost model, as `Booster.save_model` writes it.

    ``base_score`` stays as it is, a probability in float32. So its share of the map goes into the
    first trees as well.
    """
    learner = document["learner"]
    name = learner["gradient_booster"]["name"]
    if name != "gbtree":
        raise InvalidInput(f'an XGBoost model must be of booster "gbtree", got "{name}".')
    parameters, trees = learner["learner_model_param"], learner["gradient_booster"]["model"]
    n_labels = max(1, int(parameters.get("num_target", 1)))
    affine.check_labels(n_labels, "an XGBoost model")
    base = np.array(parameters["base_score"].strip("[]").split(","), np.float32).astype(np.float64)
    start = np.log(base) - np.log1p(-base)
    shift = affine.intercept + (affine.slope - 1.0) * start
    pending = np.ones(n_labels, np.bool_)  # labels whose first tree comes later
    for tree, target in zip(trees["trees"], trees["tree_info"], strict=True):
        if int(tree["tree_param"]["size_leaf_vector"]) > 1:
            labels = np.arange(n_labels)
        else:
            labels = np.array([target])
        _fold_nodes(tree, affine.slope[labels], np.where(pending[labels], shift[labels], 0.0))
        pending[labels] = False
    if pending.any():
        raise InvalidInput("an XGBoost model must have a tree to hold the repair, got none.")


def _fold_nodes(tree: dict[str, Any], slope: Array, shift: Array) -> None:
    """Change the leaves of one tree; those of a vector tree hold one value per label."""

    def fold_values(values: Any) -> list[float]:
        cells = np.array(values, np.float64).reshape(-1, slope.size) * slope + shift
        return [float(cell) for cell in cells.astype(np.float32).ravel()]

    tree["base_weights"] = fold_values(tree["base_weights"])
    if "leaf_weights" in tree:
        tree["leaf_weights"] = fold_values(tree["leaf_weights"])
    if slope.size == 1:
        leaves = np.array(tree["left_children"]) == -1
        conditions = np.array(tree["split_conditions"], np.float64)
        conditions[leaves] = fold_values(conditions[leaves])
        tree["split_conditions"] = conditions.tolist()


def fold_catboost(model: Any, affine: Affine) -> Any:
    """A CatBoost classifier; one of several labels needs the same slope for all."""
    scale, bias = model.get_scale_and_bias()
    biases = np.atleast_1d(np.asarray(bias, np.float64))
    affine.check_labels(biases.size, "a CatBoost model")
    if np.ptp(affine.slope) > 0:
        raise InvalidInput(
            "a CatBoost model of several labels has one scale, so slopes must be equal, got "
            f"{affine.slope.min():.4g} to {affine.slope.max():.4g}. Fit Offset, or a model a label."
        )
    folded = model.copy()
    new_biases = affine.intercept + affine.slope * biases
    folded.set_scale_and_bias(
        float(scale * affine.slope[0]),
        new_biases.tolist() if biases.size > 1 else float(new_biases[0]),
    )
    return folded


def _wrap(model: Any, booster: Any, folded: Any) -> Any:
    """The folded booster in the scikit-learn class of the model, if it has one."""
    if model is booster:
        return folded
    wrapper = deepcopy(model)
    wrapper._Booster = folded
    return wrapper
