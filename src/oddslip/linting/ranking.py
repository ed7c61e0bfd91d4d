"""Where a file ranks labels by their scores: that is what weights per label hurt."""

from __future__ import annotations

import ast
import re

from oddslip.linting.labels import TRUTH
from oddslip.linting.syntax import Module, argument, called_name, constant, mentions

SORTS = {"argsort", "argpartition", "nlargest"}
METRICS = re.compile(r"_at_k$|ndcg|^m?apk$|top_?k_acc|label_ranking|^coverage_error$", re.I)
SCORES = re.compile("(prob|pred|score|logit|output).*")
PROBABILITIES = re.compile("prob.*")
IMPORTANCES = re.compile("importances?|coefs?|shap|features?")


def find_ranking(module: Module) -> ast.Call | None:
    """The first call that sorts, cuts or compares scores of one row across labels.

    Examples
    --------
    >>> find_ranking(Module(ast.parse("np.argsort(probs, axis=1)"))) is not None
    True
    >>> find_ranking(Module(ast.parse("np.argsort(model.feature_importances_)"))) is None
    True
    """
    calls = (call for call in module.calls if _is_ranking(call))
    return min(calls, key=lambda call: call.lineno, default=None)


def _is_ranking(call: ast.Call) -> bool:
    name = called_name(call)
    if name in ("topk", "top_k") or METRICS.search(name):
        return True
    if name in SORTS:
        return _is_of_scores(call) and constant(_axis(call)) != 0
    if name == "argmax":
        return _is_of_scores(call) and constant(_axis(call)) in (1, -1)
    if name == "sorted":
        key = argument(call, 9, "key")
        return key is not None and mentions(PROBABILITIES, key)
    return False


def _axis(call: ast.Call) -> ast.expr | None:
    is_function = getattr(getattr(call.func, "value", None), "id", "") in ("np", "torch", "tf")
    return argument(call, 1 if is_function else 0, "axis", "dim")


def _is_of_scores(call: ast.Call) -> bool:
    """Not of importances, nor of labels in one-hot form such as ``y_test.argmax(axis=1)``."""
    ranked = call.args[0] if call.args else getattr(call.func, "value", call.func)
    if isinstance(ranked, ast.Name) and mentions(TRUTH, ranked) and not mentions(SCORES, ranked):
        return False
    return mentions(SCORES, call) and not mentions(IMPORTANCES, call)
