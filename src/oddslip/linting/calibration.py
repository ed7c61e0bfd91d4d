"""OS905: calibration per label that leaves raw scores where a label has one class only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from oddslip.linting.labels import LabelRegions
from oddslip.linting.syntax import FUNCTIONS, Module, called_name, constant, mentions

CALIBRATOR = re.compile(r"isotonic|calibrat|platt|beta_?cal|venn", re.I)
COUNTS = re.compile("unique|nunique|sum|any|pos|positives?|counts?|size")
SCORES = re.compile("(prob|pred|score|logit|output|raw).*")
PRIORS = re.compile("mean|priors?|prevalence|rates?|base")


def find_raw_fallbacks(module: Module, regions: LabelRegions) -> Iterator[ast.stmt]:
    """Branches of loops over labels that leave a label uncalibrated."""
    for loop in regions.loops:
        if not any(CALIBRATOR.search(called_name(node)) for node in ast.walk(loop)):
            continue
        for node in ast.walk(loop):
            if (
                isinstance(node, ast.If)
                and any(map(_asks_for_one_class, ast.walk(node.test)))
                and _keeps_raw(node.body, loop, module)
            ):
                yield node


def _asks_for_one_class(test: ast.AST) -> bool:
    """``len(np.unique(y)) < 2``, ``y.sum() == 0``, ``n_pos < 5``, ``not y.any()``."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Eq):
        limit = constant(test.comparators[0])
        return mentions(COUNTS, test.left) and isinstance(limit, int | float)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return called_name(test.operand) == "any"
    return False


def _keeps_raw(body: list[ast.stmt], loop: ast.AST, module: Module) -> bool:
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
    return skips and _copies_scores(loop, module)


def _is_raw(value: ast.expr) -> bool:
    """A column of scores, no calibrator, or the map that changes nothing."""
    if isinstance(value, ast.Constant):
        return value.value is None
    if isinstance(value, ast.Tuple | ast.List | ast.Dict):
        return any(isinstance(node, ast.Constant) for node in ast.walk(value))
    return mentions(SCORES, value)


def _copies_scores(loop: ast.AST, module: Module) -> bool:
    """Whether the result starts as a copy of the scores, in the function of the loop."""
    scope = next((each for each in module.ancestors(loop) if isinstance(each, FUNCTIONS)), None)
    nodes = ast.walk(scope) if scope else module.nodes
    copies = ("copy", "array", "clone", "astype")
    return any(called_name(node) in copies and mentions(SCORES, node) for node in nodes)
