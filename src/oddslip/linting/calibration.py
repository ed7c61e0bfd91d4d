"""OS905: calibration per label that leaves raw scores where a label has one class only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from oddslip.linting.labels import LabelRegions
from oddslip.linting.syntax import Module, called_name, mentions

CALIBRATOR = re.compile(r"isotonic|calibrat|platt|beta_?cal|venn", re.I)
CALIBRATORS = re.compile("calibrators?|cals?")
COUNTS = re.compile("unique|nunique|sum|any|pos|positives?|counts?|size")
SCORES = re.compile("p|(prob|pred|score|logit|output|raw).*")
PRIORS = re.compile("mean|priors?|prevalence|rates?|base")
Branch = ast.If | ast.ExceptHandler


def find_raw_fallbacks(module: Module, regions: LabelRegions) -> Iterator[Branch]:
    """Branches of loops over labels that leave a label uncalibrated."""
    if any(called_name(call) == "all" and mentions(CALIBRATORS, call) for call in module.calls):
        return  # calibrated if every label is
    starts_raw = any(map(_copies_scores, module.calls))
    for loop in regions.loops:
        if any(map(_is_calibrator, ast.walk(loop))):
            for node in ast.walk(loop):
                if isinstance(node, ast.If):
                    body = _fallback(node, module)
                else:
                    body = node.body if isinstance(node, ast.ExceptHandler) else []
                if isinstance(node, ast.If | ast.ExceptHandler) and _keeps_raw(body, starts_raw):
                    yield node


def _is_calibrator(node: ast.AST) -> bool:
    """A calibrator by its name, or a model of scores: ``fit(logits.reshape(-1, 1), y)``."""
    if isinstance(node, ast.Call) and called_name(node) == "fit" and node.args:
        return mentions(SCORES, node.args[0])
    return bool(CALIBRATOR.search(called_name(node)))


def _fallback(node: ast.If, module: Module) -> list[ast.stmt]:
    """The branch for a label with too few classes or rows; empty if the test is about others.

    Such a test is ``len(np.unique(y)) < 2``, ``y.sum() == 0`` or ``not y.any()``, alone or as one
    of several; or its opposite, ``y.sum() > 0``.
    """
    for test in ast.walk(node.test):
        if isinstance(test, ast.UnaryOp) and called_name(test.operand) == "any":
            return node.body
        if isinstance(test, ast.Compare) and mentions(COUNTS, test.left, *module.values(test.left)):
            is_few = isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Eq)
            is_all = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
            return node.body if is_few and not is_all else node.orelse
    return []


def _keeps_raw(body: list[ast.stmt], starts_raw: bool) -> bool:
    nodes = [node for statement in body for node in ast.walk(statement)]
    if not body or mentions(PRIORS, *body) or any(isinstance(node, ast.Raise) for node in nodes):
        return False
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
    values = [node.value for node in nodes if isinstance(node, ast.Assign)]
    values += [call.args[0] for call in calls if called_name(call) == "append"]
    fitted = [call.args[0] for call in calls if called_name(call) == "fit"]
    values += [each for each in fitted if isinstance(each, ast.List)]  # fit([0, 1], [0, 1])
    if any(map(_is_raw, values)):
        return True
    skips = all(isinstance(each, ast.Continue | ast.Pass | ast.Expr) for each in body)
    return skips and starts_raw


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
