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
    if unmet:
        names = ", ".join(unmet[:MAX_NAMES]) + (", ..." if len(unmet) > MAX_NAMES else "")
        yield f"The target cannot be reached by {len(unmet):,}: {names}."


def _guarantee_sentences(decision: FittedDecision) -> Iterator[str]:
    """What is guaranteed, in which groups, and by how many rows it cannot be."""
    stored = decision.summary.get("guarantee", ())
    if not stored:
        return
    assert decision.target is not None
    needed = rows_needed(decision.target)
    firm = [each for each in stored if each["holds"]]
    few = [each for each in stored if each["n_rows"] < needed]
    what = f"the expected {LOSSES[decision.goal]}"
    most = f"is at most {percent(decision.target)}"
    if len(firm) > MAX_NAMES:
        yield (
            f"Guarantee: {what} {most} in {len(firm):,} of {len(stored):,} groups, for new rows "
            "that are exchangeable with those of their group."
        )
        firm = []
    for each in firm:
        group = "" if each["group"] is None else f" of group {each['group']}"
        yield (
            f"Guarantee: {what}{group} {most} for new rows that are exchangeable with these "
            f"{each['n_rows']:,}. `oddslip check` warns when they are not."
        )
    if few:
        some = "with a true label " if decision.goal == "missed" else ""
        what = "" if few[0]["group"] is None else f" in {count_of(len(few), 'group')}"
        yield f"No guarantee{what}: fewer rows {some}than the {needed:,} that it takes."


def _rule_sentence(decision: FittedDecision) -> str:
    rule = decision.rule
    most = f"at most {count_of(rule.k_max, 'label')}"
    if rule.groups is not None:
        return f"Lists by the {rule.form} of {count_of(len(rule.groups), 'group')}, {most}."
    level = float(rule.levels[0])
    if rule.form == "length":
        return f"Show {count_of(int(level), 'label')} of every row."
    if rule.form == "threshold":
        assert rule.thresholds is not None
        used = np.unique(np.maximum(rule.thresholds, level))
        used = used[np.isfinite(used)]  # a label without a threshold is never shown
        if not used.size:
            return "Show no label of any row."
        span = f"{used[0]:.4g}" if used.size == 1 else f"{used[0]:.4g} to {used[-1]:.4g}"
        return f"Show labels whose probability reaches {span}, {most}."
    target = "" if rule.form == "f1" else f" {level:.4g}"
    return (
        f"Show of every row the first labels that bring the expected {rule.form}{target}, {most}."
    )
