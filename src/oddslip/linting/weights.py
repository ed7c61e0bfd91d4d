"""OS901 to OS904: weights of positives that differ between labels."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from oddslip.linting.labels import LabelRegions, is_label_name
from oddslip.linting.syntax import (
    FUNCTIONS,
    Module,
    Setting,
    argument,
    called_name,
    constant,
    identifiers,
    words,
)

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
MAX_STEPS = 200  # from a name to its values and on

# Of functions and methods: a number, unless an axis is named.
REDUCTIONS = {"sum", "mean", "median", "count_nonzero", "nansum", "nanmean"}
NUMBERS = {"float", "int", "len", "item", "round", "count"}
COMMON = {"ones", "full", "ones_like", "full_like", "zeros"}  # one number for all labels
COUNTS = {"bincount", "value_counts", "compute_class_weight", "tolist"}
TENSORS = {"tensor", "Tensor", "FloatTensor", "array", "asarray", "min", "max"}


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


# ----------------------------------------------------------------- whether a weight is a vector


def is_vector(root: ast.expr, module: Module) -> bool | None:
    """True for a vector, False for a number; None if the file does not tell.

    Examples
    --------
    >>> def kind(text): return is_vector(ast.parse(text).body[-1].value, Module(ast.parse(text)))
    >>> kind("n / y.sum(axis=0)"), kind("torch.tensor([n / y.sum()])"), kind("weights")
    (True, False, None)
    """
    kinds: set[bool | None] = set()
    waiting: list[ast.AST] = [root]
    visited = set()
    for _ in range(MAX_STEPS):
        if not waiting:
            break
        node = waiting.pop()
        place = module.variable(node) or node
        if place in visited:
            continue
        visited.add(place)
        if place in module.arguments:
            kinds.add(None)
        kind = _step(node, module)
        if isinstance(kind, list):
            waiting += kind
        else:
            kinds.add(kind)
    if True in kinds:
        return True
    return None if None in kinds or waiting else False


def _step(node: ast.AST, module: Module) -> bool | list[ast.AST] | None:
    """What a node is, or the nodes that decide it."""
    if isinstance(node, ast.Constant):
        return False
    if isinstance(node, ast.List | ast.Tuple):
        entries = {each.value if isinstance(each, ast.Constant) else each for each in node.elts}
        return len(entries) > 1  # equal entries are one number for all labels
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return True
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Subscript):
        if isinstance(constant(node.slice), str):  # options["pos_weight"]
            return None
        return [node.value] if isinstance(node.slice, ast.Slice) else False
    if isinstance(node, ast.Call):
        return _step_call(node, module)
    if module.variable(node) in module.containers:
        return True
    values = [each for each in module.values(node) if not isinstance(each, FUNCTIONS)]
    if not values and isinstance(node, ast.Attribute) and node.attr in ("values", "T", "data"):
        return [node.value]
    return values or None


def _step_call(call: ast.Call, module: Module) -> bool | list[ast.AST] | None:
    name, function = called_name(call), call.func
    is_method = isinstance(function, ast.Attribute) and not _is_library(function.value)
    if name in REDUCTIONS:
        return argument(call, 0 if is_method else 1, "axis", "dim") is not None
    if name in NUMBERS or name in COMMON:
        return False
    if name in COUNTS:
        return True
    returned = [each for node in module.values(function) for each in _returned(node)]
    if returned:
        return returned
    if isinstance(function, ast.Attribute) and is_method:  # weights.to(device)
        return [function.value]
    if isinstance(function, ast.Attribute) or name in TENSORS:  # torch.tensor(weights)
        return list(call.args[:3])
    return None


def _returned(function: ast.AST) -> list[ast.AST]:
    """What a function returns, if that is one value."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    nodes = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return [node for node in nodes if node is not None and not isinstance(node, ast.Tuple)]


def _is_library(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "numpy", "torch", "tf", "nn", "F", "pd")
