"""OS905: calibration per label that leaves raw scores where a label has one class only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from oddslip.linting.labels import LabelRegions
from oddslip.linting.syntax import Module, called_name, mentions

CALIBRATOR = re.compile(r"isotonic|calibrat|platt|beta_?cal|venn", re.I)
COUNTS = re.compile("unique|nunique|sum|any|pos|positives?|counts?|size")
SCORES = re.compile("p|(prob|pred|score|logit|output|raw).*")
PRIORS = re.compile("mean|priors?|prevalence|rates?|base")
Branch = ast.If | ast.ExceptHandler


def find_raw_fallbacks(module: Module, regions: LabelRegions) -> Iterator[Branch]:
    """Branches of loops over labels that leave a label uncalibrated."""
    for loop in regions.loops:
        if not any(map(_is_calibrator, ast.walk(loop))):
            continue
        for node in ast.walk(loop):
            if isinstance(node, ast.If):
                is_fallback = any(_counts_classes(each, module) for each in ast.walk(node.test))
            else:
                is_fallback = isinstance(node, ast.ExceptHandler)
            if (
                isinstance(node, ast.If | ast.ExceptHandler)
                and is_fallback
                and _keeps_raw(node.body, module)
            ):
                yield node


def _is_calibrator(node: ast.AST) -> bool:
    """A calibrator by its name, or a model of one column of scores: ``fit(x.reshape(-1, 1))``."""
    if isinstance(node, ast.Call) and called_name(node) == "fit":
        first = next(iter(node.args), node)
        return called_name(first) == "reshape" and mentions(SCORES, first)
    return bool(CALIBRATOR.search(called_name(node)))


def _counts_classes(test: ast.AST, module: Module) -> bool:
    """``len(np.unique(y)) < 2``, ``y.sum() == 0``, ``n_pos < 5``, ``not y.any()``."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Eq):
        return mentions(COUNTS, test.left, *module.values(test.left))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return called_name(test.operand) == "any"
    return False


def _keeps_raw(body: list[ast.stmt], module: Module) -> bool:
    nodes = [node for statement in body for node in ast.walk(statement)]
    if mentions(PRIORS, *body) or any(isinstance(node, ast.Raise) for node in nodes):
        return False
    values = [node.value for node in nodes if isinstance(node, ast.Assign)]
    for node in nodes:
        if isinstance(node, ast.Call) and called_name(node) in ("append", "fit"):
            values += node.args[:1]
    if any(map(_is_raw, values)):
        return True
    skips = all(isinstance(each, ast.Continue | ast.Pass | ast.Expr) for each in body)
    return skips and any(_copies_scores(node) for node in module.calls)


def _is_raw(value: ast.expr) -> bool:
    """A column of scores, no calibrator, or the map that changes nothing."""
    if isinstance(value, ast.Constant):
        return value.value is None
    if isinstance(value, ast.Tuple | ast.List | ast.Dict):
        return any(isinstance(node, ast.Constant) for node in ast.walk(value))
    return mentions(SCORES, value)


def _copies_scores(call: ast.Call) -> bool:
    """Whether a result may start as a copy of the scores."""
    return called_name(call) in ("copy", "array", "clone") and mentions(SCORES, call)
