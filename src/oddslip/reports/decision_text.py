"""Sentences about a decision, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from oddslip.core.formatting import count_of, percent
from oddslip.decisions.risk import rows_needed

if TYPE_CHECKING:
    from oddslip.decisions.fitted_decision import FittedDecision

SHARES = {
    "empty_share": "empty lists",
    "expected_precision": "expected precision",
    "precision": "precision",
    "expected_recall": "expected recall",
    "recall": "recall",
    "missed_share": "missed labels, mean over rows with a true one",
    "wrong_share": "wrong slots, mean over rows",
}
LOSSES = {"missed": "share of missed labels", "wrong": "share of wrong slots"}
KINDS = {
    "plug_in": "by probabilities alone",
    "fitted": "by true labels",
    "used": "as used",
}
MAX_NAMES = 10


def describe_lists(decision: FittedDecision) -> Iterator[tuple[str, str]]:
    """What lists reach on the rows of the fit: names and values."""
    summary = decision.summary
    if summary.get("mean_length") is not None:
        yield "labels shown per row", f"{summary['mean_length']:.2f}"
    for key, name in SHARES.items():
        if summary.get(key) is not None:
            yield name, percent(summary[key])


def describe_decision(decision: FittedDecision) -> Iterator[str]:
    """The rule, the difference between both kinds of thresholds, the guarantee, and who fails."""
    yield _rule_sentence(decision)
    summary = decision.summary
    reached = summary.get("reached")
    if reached:
        goal = decision.goal.replace("_", " ")
        for kind, name in KINDS.items():
            if kind in reached:
                values = ", ".join(f"{side} {value:.4g}" for side, value in reached[kind].items())
                yield f"Thresholds {name}: {goal} {values}."
    few = summary.get("n_few_positives")
    if few:
        yield (
            f"{count_of(few, 'label')} with few positives: thresholds are drawn to those by "
            "probabilities alone."
        )
    never_true = summary.get("n_never_true")
    if never_true:
        yield (
            f"{count_of(never_true, 'label')} without a positive, here and among the calibration "
            "rows: never shown."
        )
    yield from _guarantee_sentences(decision)
    unmet = summary.get("unmet")
    if unmet and not _is_one_guarantee(decision):
        names = ", ".join(unmet[:MAX_NAMES]) + (", ..." if len(unmet) > MAX_NAMES else "")
        yield f"{describe_unmet(decision)}: {names}."


def describe_unmet(decision: FittedDecision) -> str:
    """That the target is not reached, or by how many labels or groups; empty if it is."""
    unmet = decision.summary.get("unmet", ())
    if unmet and _is_one_guarantee(decision):
        return "There is no guarantee"
    return f"The target cannot be reached by {len(unmet):,}" if unmet else ""


def _is_one_guarantee(decision: FittedDecision) -> bool:
    return bool(decision.summary.get("guarantee")) and decision.rule.groups is None


def _guarantee_sentences(decision: FittedDecision) -> Iterator[str]:
    """What is guaranteed, in which groups, and where it cannot be."""
    stored = decision.summary.get("guarantee")
    if not stored:
        return
    assert decision.target is not None
    firm = [each for each in stored if each["holds"]]
    what = f"Guarantee: the expected {LOSSES[decision.goal]}"
    most = f"is at most {percent(decision.target)}"
    if len(firm) > MAX_NAMES:
        yield (
            f"{what} {most} in {len(firm):,} of {len(stored):,} groups, for new rows that are "
            "exchangeable with those of their group."
        )
        firm = []
    for each in firm:
        group = "" if each["group"] is None else f" of group {each['group']}"
        yield (
            f"{what}{group} {most} for new rows that are exchangeable with these "
            f"{each['n_rows']:,}. `oddslip check` warns when they are not."
        )
    needed = rows_needed(decision.target)
    few = [each for each in stored if each["n_rows"] < needed]
    some = " with a true label" if decision.goal == "missed" else ""
    if few:
        where = "" if _is_one_guarantee(decision) else f" in {count_of(len(few), 'group')}"
        yield f"No guarantee{where}: it takes {needed:,} rows{some}, and there are fewer."
    elif not stored[0]["holds"] and _is_one_guarantee(decision):
        yield f"No guarantee: lists of {count_of(decision.rule.k_max, 'label')} miss too many."


def _rule_sentence(decision: FittedDecision) -> str:
    rule = decision.rule
    level: float | str = "the level of its group"
    if rule.groups is None:
        level = float(rule.levels[0])
        if rule.form == "length" or (rule.form == "recall" and not 0 < level < np.inf):
            n_labels = int(min(level, rule.k_max))
            return f"Show {count_of(n_labels, 'label')} of every row."
    number = level if isinstance(level, str) else f"{level:.4g}"
    if rule.form == "threshold" and rule.thresholds is not None and not isinstance(level, str):
        used = np.unique(np.maximum(rule.thresholds, level))
        used = used[np.isfinite(used)]  # a label without a threshold is never shown
        if not used.size:
            return "Show no label of any row."
        number = f"{used[0]:.4g}" if used.size == 1 else f"{used[0]:.4g} to {used[-1]:.4g}"
    how = {
        "threshold": f"the labels of a row whose probability reaches {number}",
        "length": "as many labels of a row as the length of its group",
        "precision": f"as many labels of a row as keep its expected precision at {number}",
        "recall": f"as few labels of a row as bring its expected recall to {number}",
        "f1": "the labels of a row that are best for its expected F1",
        "cost": "the labels of a row that are cheapest"
        if decision.target is None
        else f"as few labels of a row as bring its expected cost down to {number}",
    }[rule.form]
    return f"Show {how}, at most {count_of(rule.k_max, 'label')}."
