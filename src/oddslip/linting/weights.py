"""OS901 to OS904: weights of positives that differ between labels."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from oddslip.linting.labels import LabelRegions, is_label_name
from oddslip.linting.syntax import Module, Setting, called_name, constant, identifiers, words
from oddslip.linting.vectors import is_vector

Place = ast.expr | ast.keyword
# Parameters that weight both classes by their counts, and the values that do.
AUTOMATIC: dict[str, tuple[object, ...]] = {
    "is_unbalance": (True, "true"),
    "unbalance": (True, "true"),
    "unbalanced_sets": (True, "true"),
    "auto_class_weights": ("Balanced", "SqrtBalanced"),
    "class_weights": ("auto",),
}
BALANCED = ("balanced", "balanced_subsample", "auto")
COMPUTE_WEIGHT = ("compute_class_weight", "compute_sample_weight")


def find_weights(module: Module, regions: LabelRegions) -> Iterator[tuple[str, Place]]:
    """Codes of OS901 to OS904, with the places where they apply."""
    for setting in module.settings:
        code = _code(setting, module, regions)
        if code:
            yield code, setting.node
    for call in module.calls:
        first = call.args[0] if call.args else None
        balances = called_name(call) in COMPUTE_WEIGHT and constant(first) in BALANCED
        if balances and regions.loop_of(call):
            yield "OS903", call
        if called_name(call) == "weighted_cross_entropy_with_logits":
            weights = [each for each in call.args[2:3] if _is_vector(each, module, regions)]
            yield from (("OS904", each) for each in weights)


def _code(setting: Setting, module: Module, regions: LabelRegions) -> str | None:
    name, value = setting.name, setting.value
    if name == "scale_pos_weight":
        return "OS901" if _differs(value, module, regions) else None
    if name == "pos_weight":
        called = called_name(setting.call) if setting.call else ""
        is_loss = bool({"bce", "entropy"} & words(called.replace("BCE", "Bce_")))
        return "OS904" if is_loss and _is_vector(value, module, regions) else None
    if constant(value) in AUTOMATIC.get(name, ()):
        return "OS902" if regions.holds(setting.node) else None
    if name == "class_weight" and constant(value) in BALANCED:
        return "OS903" if regions.holds(setting.node) else None
    if name in ("class_weight", "class_weights") and isinstance(value, ast.Dict | ast.List):
        return "OS901" if _differs(value, module, regions) else None
    return None


def _differs(value: ast.expr, module: Module, regions: LabelRegions) -> bool:
    """Whether a value changes from label to label."""
    if isinstance(value, ast.Constant):
        return False
    for node in ast.walk(value):  # weights[label], in a function that gets the label
        if isinstance(node, ast.Subscript) and any(map(is_label_name, identifiers(node.slice))):
            return True
    loop = regions.loop_of(value)
    return loop is not None and bool(module.bound_in(loop) & set(identifiers(value)))


def _is_vector(value: ast.expr, module: Module, regions: LabelRegions) -> bool:
    """Whether a weight is a vector; where that is unknown, whether the file has many labels."""
    vector = is_vector(value, module)
    return regions.is_multilabel if vector is None else vector
