"""Which parts of a module are done once for each label: loops over labels, one-vs-rest wrappers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from oddslip.linting.syntax import (
    COMPREHENSIONS,
    FUNCTIONS,
    Module,
    called_name,
    has_word,
    identifiers,
)

WRAPPERS = {
    *("OneVsRestClassifier", "MultiOutputClassifier", "ClassifierChain"),
    *("BinaryRelevance", "SingletaskToMultitask"),
}
LABELS = re.compile(
    "labels?|lbl|targets?|class|classes|cls|tags?|category|categories|genres?|diseases?|outcomes?|"
    "topics?|emotions?|species"
)
# Words of other loops: class_weights are no classes, and labels of a loader are those of rows.
WEIGHTS = re.compile("weights?")
OTHERS = re.compile(
    "models?|classifiers?|estimators?|params?|grid|configs?|experiments?|trials?|splits?|folds?|"
    "kf|skf|cv|loader|dataloader|batch|batches|datasets?|epochs?|seeds?|thresholds?"
)
MULTILABEL = re.compile("multi_?label|^n_labels$|^label_cols$", re.I)
MAX_NAME_CHARS = 40  # a longer text is prose
TRUTH = re.compile("ys?|labels?|targets?|truth")
# Calls that train what they are passed, or copy it to be trained; and methods that train.
TRAINING = {
    *("train", "cv", "clone", "deepcopy", "Pipeline", "make_pipeline", "CalibratedClassifierCV"),
    *("cross_val_predict", "cross_val_score"),
}
METHODS = {"fit", "set_params", "copy"}


def is_label_name(name: str) -> bool:
    """Whether an identifier speaks of labels.

    Examples
    --------
    >>> is_label_name("target_cols"), is_label_name("class_weights")
    (True, False)
    """
    return has_word(name, LABELS) and not has_word(name, OTHERS) and not has_word(name, WEIGHTS)


def is_truth_name(name: str) -> bool:
    """Whether an identifier stands for what was true: y, Y_train, labels, targets.

    Examples
    --------
    >>> is_truth_name("y_train"), is_truth_name("X")
    (True, False)
    """
    return has_word(name, TRUTH)


def is_label_loop(loop: ast.AST) -> bool:
    """Whether a loop or a comprehension goes over labels, not over rows, folds or models."""
    if isinstance(loop, ast.For | ast.AsyncFor):
        return _goes_over_labels(loop.target, loop.iter, loop)
    if isinstance(loop, COMPREHENSIONS):
        return any(_goes_over_labels(each.target, each.iter, loop) for each in loop.generators)
    return False


def _goes_over_labels(target: ast.expr, iterable: ast.expr, loop: ast.AST) -> bool:
    names = list(identifiers(iterable))
    if any(has_word(name, OTHERS) for name in names):
        return False
    if any(map(is_label_name, [*names, *identifiers(target)])):
        return True
    variables = set(identifiers(target))
    if isinstance(iterable, ast.List | ast.Tuple) and any(map(is_truth_name, variables)):
        return True
    if {"columns", "shape"} & set(names) and any(map(is_truth_name, names)):
        return True
    return any(_takes_a_label(node, variables) for node in ast.walk(loop))


def _takes_a_label(node: ast.AST, variables: set[str]) -> bool:
    """``y[:, j]``, ``Y.iloc[:, j]`` and ``y == j``, for a variable j of the loop."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        part, truth = node.slice.elts[-1:], node.value
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
        part, truth = node.comparators, node.left
    else:
        return False
    return (
        any(isinstance(each, ast.Name) and each.id in variables for each in part)
        and isinstance(truth, ast.Name | ast.Attribute)
        and any(map(is_truth_name, identifiers(truth)))
    )


class LabelRegions:
    """Nodes that are run or configured once for each label.

    Attributes
    ----------
    loops : set of nodes
        Loops over labels, and functions that such loops call.
    wrapped : set of nodes
        One-vs-rest wrappers, and estimators that a wrapper or a loop over labels trains.
    is_multilabel : bool
        Whether any name or short text speaks of multi-label data.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self.loops: set[ast.AST] = {node for node in module.nodes if is_label_loop(node)}
        self.wrapped: set[ast.AST] = {
            node for node in module.calls if called_name(node) in WRAPPERS
        }
        self.is_multilabel = any(map(_is_multilabel, module.nodes))
        self._follow(list(self.wrapped), everything=True)
        self._follow(list(self.loops), everything=False)

    def loop_of(self, node: ast.AST) -> ast.AST | None:
        """The innermost loop over labels, or function of one, that holds a node."""
        return next((each for each in self._module.ancestors(node) if each in self.loops), None)

    def holds(self, node: ast.AST) -> bool:
        """Whether a node is run or configured once for each label."""
        return any(
            each in self.loops or each in self.wrapped for each in self._module.ancestors(node)
        )

    def _follow(self, waiting: list[ast.AST], *, everything: bool) -> None:
        """Add what the nodes refer to: functions to loops, values to wrapped estimators."""
        visited = set(waiting)
        while waiting:
            for name in _references(waiting.pop(), everything):
                for value in self._module.values(name):
                    if value in visited:
                        continue
                    visited.add(value)
                    waiting.append(value)
                    if isinstance(value, FUNCTIONS) and not everything:
                        self.loops.add(value)
                    else:
                        self.wrapped.add(value)


def _references(root: ast.AST, everything: bool) -> Iterator[ast.AST]:
    """Variables of a node that name functions it calls, and estimators or parameters it trains."""
    for node in ast.walk(root):
        if not isinstance(node, ast.Call):
            if everything and isinstance(node, ast.Name | ast.Attribute):
                yield node
            continue
        yield node.func
        arguments: Iterable[ast.expr] = [each.value for each in node.keywords if each.arg is None]
        if called_name(node) == "delayed":
            arguments = node.args
        elif called_name(node) in TRAINING:
            arguments = [*node.args, *(each.value for each in node.keywords)]
        elif called_name(node) in METHODS and isinstance(node.func, ast.Attribute):
            arguments = [node.func.value]
        for each in arguments:
            yield from (n for n in ast.walk(each) if isinstance(n, ast.Name | ast.Attribute))


def _is_multilabel(node: ast.AST) -> bool:
    for field in ("id", "attr", "arg", "name", "value"):
        name = getattr(node, field, None)
        if isinstance(name, str) and len(name) < MAX_NAME_CHARS and MULTILABEL.search(name):
            return True
    return False
