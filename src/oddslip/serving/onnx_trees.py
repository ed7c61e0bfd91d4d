"""LightGBM's trees as one ONNX node, which computes the margins of all labels.

Trees in ONNX are float32, and LightGBM compares in float64: a feature x goes left if x <= t. With t
rounded to the nearest float32, a feature between the two goes the other way, and its margin can be
wrong by whole nats. With t rounded down, every float32 feature takes the same branch; only the
rounding of sums remains, about 1e-6. So train on float32 features, and fit the repair on the
margins of the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oddslip.core.types import JsonObject
from oddslip.errors import InvalidInput
from oddslip.serving.onnx import IR_VERSION, OPSET, load_onnx

if TYPE_CHECKING:
    from lightgbm import Booster
    from onnx import ModelProto


def trees_graph(boosters: Sequence[Booster]) -> ModelProto:
    """A graph from float32 ``features`` to float32 ``margins``, one label per booster.

    Parameters
    ----------
    boosters : sequence of lightgbm.Booster or LGBMClassifier
        One per label, binary, with numeric splits. Missing values go where LightGBM sends NaN.

    Returns
    -------
    onnx.ModelProto
        To be joined to `repair_graph` by ``onnx.compose.merge_models``.

    Examples
    --------
    >>> trees = trees_graph(boosters)  # doctest: +SKIP
    >>> onnx.compose.merge_models(trees, repair_graph(repair, k=7, scores="float32"),
    ...                           io_map=[("margins", "scores")])  # doctest: +SKIP
    """
    load_onnx()
    from onnx import TensorProto, checker, helper

    boosters = [getattr(each, "booster_", each) for each in boosters]
    invalid = [each for each in boosters if not hasattr(each, "dump_model")]
    if invalid or not boosters:
        actual = repr(invalid[0])[:60] if invalid else "none"
        raise InvalidInput(f"boosters must be LightGBM's, one per label, got {actual}.")
    models = [each.dump_model() for each in boosters]
    table: dict[str, list[Any]] = defaultdict(list)
    trees = [
        (label, tree["tree_structure"])
        for label, model in enumerate(models)
        for tree in model["tree_info"]
    ]
    for number, (label, root) in enumerate(trees):
        _add_tree(table, number, label, root)
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["features"],
        ["margins"],
        domain="ai.onnx.ml",
        n_targets=len(models),
        **table,
    )
    n_features = max(model["max_feature_idx"] for model in models) + 1
    features, margins = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", width])
        for name, width in (("features", n_features), ("margins", len(models)))
    )
    model = helper.make_model(
        helper.make_graph([node], "trees", [features], [margins]),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)],
        ir_version=IR_VERSION,
        producer_name="oddslip",
    )
    checker.check_model(model, full_check=True)
    return model


def _add_tree(table: dict[str, list[Any]], tree: int, label: int, root: JsonObject) -> None:
    """Add the nodes of a tree, parents before children."""
    nodes = [root]
    for at, node in enumerate(nodes):
        leaf = "leaf_value" in node
        if not leaf and node["decision_type"] != "<=":
            raise InvalidInput(
                "boosters must split numbers, got a category. Encode categories as numbers first."
            )
        for name, cell in {
            "treeids": tree,
            "nodeids": at,
            "featureids": node.get("split_feature", 0),
            "modes": "LEAF" if leaf else "BRANCH_LEQ",
            "values": _round_down(node.get("threshold", 0.0)),
            "truenodeids": 0 if leaf else len(nodes),
            "falsenodeids": 0 if leaf else len(nodes) + 1,
            "missing_value_tracks_true": int(_missing_goes_left(node)),
        }.items():
            table[f"nodes_{name}"].append(cell)
        if leaf:
            leaves = {"treeids": tree, "nodeids": at, "ids": label, "weights": node["leaf_value"]}
            for name, cell in leaves.items():
                table[f"target_{name}"].append(cell)
        else:
            nodes += [node["left_child"], node["right_child"]]


def _missing_goes_left(node: JsonObject) -> bool:
    """Whether NaN goes left; a split without NaN in training treats it as zero."""
    if "leaf_value" in node:
        return False
    if node["missing_type"] == "NaN":
        return bool(node["default_left"])
    if node["missing_type"] == "Zero":
        raise InvalidInput(
            "boosters must not take zero for missing: train with zero_as_missing=false."
        )
    return bool(node["threshold"] >= 0.0)


def _round_down(threshold: float) -> float:
    """The largest float32 that is not above a threshold."""
    nearest = np.float32(threshold)
    if float(nearest) > threshold:
        nearest = np.nextafter(nearest, np.float32(-np.inf))
    return float(nearest)
