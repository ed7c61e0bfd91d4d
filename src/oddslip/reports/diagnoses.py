"""A diagnosis and a plan on a terminal: the verdict first, all of it on one screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from oddslip.reports.numbers import (
    estimated,
    finite_budget,
    interval,
    label_columns,
    level_name,
    nat,
    percent,
    score,
    signed,
    signed_interval,
    small_percent,
    times,
    value_text,
)
from oddslip.reports.regimes import count_regimes, read_regimes, tell_association
from oddslip.reports.texts import new_table, printable

if TYPE_CHECKING:
    from oddslip.diagnosis.decompositions import Decomposition
    from oddslip.diagnosis.diagnoses import Diagnosis
    from oddslip.diagnosis.findings import Finding
    from oddslip.diagnosis.plans import Plan

MATTERING = 3  # findings on the first screen
LABELS_SHOWN = 20
HEADINGS = {
    "label": "label",
    "n_positives": "true",
    "calibration_positives": "true (cal)",
    "evaluation_positives": "true (eval)",
    "prior": "prior",
    "intended_shift": "ln w",
    "realized_shift": "realized",
    "direct_shift": "direct",
    "over_correction": "beyond",
    "saturated_cells": "at 1.0",
    "takeover_slots": "slots if dead",
    "leaf_value": "leaf",
}


def show_diagnosis(diagnosis: Diagnosis, *, verbose: bool = False) -> Iterator[Any]:
    """What to print, piece by piece: texts and tables."""
    d = diagnosis
    yield printable(d.verdict.sentence)
    yield ""
    yield ladder_lines(d)
    yield protocol_sentence(d)
    if d.decomposition is not None:
        yield loss_sentence(d.decomposition, d.k)
    yield ""
    findings = d.findings if verbose else d.findings[:MATTERING]
    for finding in findings:
        yield from finding_lines(finding, verbose=verbose)
    left = len(d.findings) - len(findings)
    if left:
        yield f"{left} more finding{'s' if left > 1 else ''}: --verbose shows all."
    if verbose:
        yield from _details(d)


def ladder_lines(d: Diagnosis) -> Any:
    """Every rung with MAP at K and its paired difference to raw."""
    level = f"{level_name(d.ladder.level)} interval"
    table = new_table("rung", f"MAP@{d.k}", level, "minus raw", level)
    for name, rung in d.ladder.rungs.items():
        difference = rung.differences["map"]
        apart = ("", "") if name == "raw" else (
            signed(difference.value), signed_interval(difference)
        )  # fmt: skip
        table.add_row(name, score(rung["map"].value), interval(rung["map"]), *apart)
    return table


def protocol_sentence(d: Diagnosis) -> str:
    """Which rows were calibrated on and evaluated."""
    rows = f"{d.n_rows:,} rows evaluated, {d.n_calibration_rows:,} calibrated on"
    if d.optimistic:
        return f"{rows}: a split of the same rows, so repairs look better than they will be."
    return f"{rows}, {d.n_labels:,} labels."


def loss_sentence(parts: Decomposition, k: int) -> str:
    """The loss and its parts in one line."""
    told = f"Loss against the twin: {score(parts.loss)} MAP@{k}"
    if parts.loss <= 0:
        return f"{told}: none."
    named = {
        "odds": "odds shift",
        "slippage": "slippage",
        "isotonic": "isotonic returns",
        "tie_residue": "ties keep",
    }
    shares = [
        f"{name} {percent(share)}"
        for part, name in named.items()
        if (share := parts.share(part)) is not None
    ]
    return f"{told}: {', '.join(shares)}."


def finding_lines(finding: Finding, *, verbose: bool = False) -> Iterator[str]:
    """A finding in two lines; its evidence as well if asked."""
    yield f"{finding.code} {finding.severity}: {printable(finding.sentence)}"
    yield f"  -> {printable(finding.advice)}"
    if verbose:
        told = ", ".join(f"{name}={_evidence(value)}" for name, value in finding.evidence.items())
        yield f"  {printable(told)} (docs: {finding.anchor})"


def _details(d: Diagnosis) -> Iterator[Any]:
    yield ""
    shifts = d.shifts
    if shifts.median_ratio is not None:
        yield (
            f"Realized shift: median {times(shifts.median_ratio)} of ln w over {shifts.n_known:,} "
            f"labels."
        )
    if shifts.median_direct_ratio is not None:
        yield f"Direct shift: median {times(shifts.median_direct_ratio)} of ln w."
    if (budget := finite_budget(shifts)) is not None:
        yield f"Step budget: {nat(budget)} nat."
    if d.overlap is not None:
        yield (
            f"Top {d.k}: {d.overlap.mean:.2f} labels in common with the twin; "
            f"{small_percent(d.overlap.share_changed)} of the rows differ."
        )
    for missing in d.missing:
        yield f"Not computed: {missing.what}. Needs: {missing.needs}."
    yield ""
    yield from label_lines(label_columns(d), d.n_labels)


def show_plan(plan: Plan, *, verbose: bool = False) -> Iterator[Any]:
    """What to print, piece by piece: texts and tables."""
    yield printable(plan.recommendation)
    yield ""
    table = new_table("before training", "value")
    low, high = float(plan.intended.min()), float(plan.intended.max())
    beyond = int(plan.unrealizable.sum())
    rows = {
        "labels, rows": f"{plan.n_labels:,}, {plan.n_rows:,}",
        "ln w, nat": f"{low:.2f} to {high:.2f}",
        "step budget, nat": nat(plan.budget) if plan.capped else "no cap, no bound",
        "labels beyond the budget": f"{beyond:,}",
        "smallest cap that admits every shift": f"{plan.admitting_cap:.3g}",
        "largest cap that rules out saturation": f"{plan.unsaturating_cap:.3g}",
        f"leaf with 1 positive in {plan.rows_in_leaf}, driven to": _leaf(plan),
    }
    what_if = plan.what_if
    if what_if is not None:
        rows[f"rows whose top {plan.k} would change"] = small_percent(what_if.share_changed)
        if what_if.loss is not None:
            rows[f"what-if loss in MAP@{plan.k}"] = estimated(what_if.loss)
    for name, value in rows.items():
        table.add_row(name, value)
    yield table
    if low < high:  # nothing is measured yet, so what the inversion will do is a prediction
        yield " ".join(tell_association(count_regimes(read_regimes().points)))
    if verbose:
        yield ""
        yield from label_lines(plan.label_columns(), plan.n_labels)


def _leaf(plan: Plan) -> str:
    low, high = float(plan.leaf_value.min()), float(plan.leaf_value.max())
    return f"{score(low)} to {score(high)}"


def label_lines(columns: dict[str, Any], n_labels: int) -> Iterator[Any]:
    """The labels with most positives as a table, with the columns that fit."""
    shown = min(n_labels, LABELS_SHOWN)
    headings = {name: short for name, short in HEADINGS.items() if name in columns}
    table = new_table(*headings.values())
    positives = columns.get("evaluation_positives", columns.get("n_positives"))
    for at in np.argsort(-np.asarray(positives), kind="stable")[:shown]:
        table.add_row(*(printable(value_text(columns[name][at])) for name in headings))
    yield table
    if shown < n_labels:
        yield f"{shown} of {n_labels:,} labels shown; --json holds all."


def _evidence(value: Any) -> str:
    """A mapping in braces: on one line its names would run into those around it."""
    told = value_text(value)
    return f"{{{told}}}" if isinstance(value, Mapping) else told
