"""Whether an expression is a vector with one entry per label, as far as its file tells."""

from __future__ import annotations

import ast

from oddslip.linting.syntax import FUNCTIONS, Module, argument, called_name, constant

MAX_STEPS = 200  # from a name to its values and on

# Of functions and methods: a number, unless an axis is named.
REDUCTIONS = {"sum", "mean", "median", "count_nonzero", "nansum", "nanmean"}
NUMBERS = {"float", "int", "len", "item", "round", "count"}
COMMON = {"ones", "full", "ones_like", "full_like", "zeros"}  # one number for all labels
COUNTS = {"bincount", "value_counts", "compute_class_weight", "tolist"}
TENSORS = {"tensor", "Tensor", "FloatTensor", "array", "asarray", "min", "max"}


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
