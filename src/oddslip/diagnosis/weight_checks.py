"""Findings about weights and the shifts they led to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oddslip.diagnosis.advices import advise_repair
from oddslip.diagnosis.comparisons import (
    InversionTrial,
    Outcome,
    conditions_hold,
    inversion_pays,
    is_saturated,
    try_inversion,
)
from oddslip.diagnosis.diagnoses import Diagnosis
from oddslip.diagnosis.findings import Finding, Severity, count_of, signed
from oddslip.diagnosis.thresholds import FELL_SHORT, SHORT_LABELS, UNKNOWN_LABELS


def check_different_weights(d: Diagnosis) -> Finding | None:
    """OS101."""
    if d.weights is None or d.weighting != "label-specific":
        return None
    low, high = float(d.weights.min()), float(d.weights.max())
    spread = float(np.log(high / low))
    return Finding(
        "OS101",
        "warning",
        f"Weights differ across labels, from {low:.4g} to {high:.4g}: they change the order of "
        f"labels whose log-odds lie closer than up to {spread:.1f} nat.",
        {"smallest": low, "largest": high, "spread_nat": spread},
        "Train without weights, or with one weight common to all labels, which changes no order. "
        f"If label-specific weights stay: {_within(advise_repair(d))}",
    )


def check_common_weight(d: Diagnosis) -> Finding | None:
    """OS102."""
    if d.weights is None or d.weighting != "common":
        return None
    weight = float(d.weights[0])
    return Finding(
        "OS102",
        "info",
        f"All labels have the weight {weight:.4g}. A common weight never changes the order "
        "within a row.",
        {"weight": weight},
        "Nothing needs to be repaired on its account. Probabilities are shifted by ln w; "
        "invert them if they are read as probabilities.",
    )


def check_short_shift(d: Diagnosis) -> Finding | None:
    """OS301."""
    known = d.shifts.identified & d.shifts.weighted
    short = known & (np.nan_to_num(d.shifts.ratio, nan=1.0) < FELL_SHORT)
    n_known, n_short = int(known.sum()), int(short.sum())
    beyond = 0 if d.shifts.unrealizable is None else int(d.shifts.unrealizable.sum())
    if d.weighting != "label-specific" or (n_short < SHORT_LABELS * max(1, n_known) and not beyond):
        return None
    median = d.shifts.median_ratio
    told = "" if median is None else f"; the median label realized {median:.0%} of ln w"
    cap = ""
    if beyond:
        labels = count_of(beyond, "label")
        cap = f" The step budget of {d.shifts.budget:.3g} nat admits no more for {labels}."
    return Finding(
        "OS301",
        "warning",
        f"The shift fell short for {n_short:,} of {n_known:,} labels whose shift can be read"
        f"{told}.{cap}",
        {
            "n_short": n_short,
            "n_known": n_known,
            "median_ratio": median,
            "budget": d.shifts.budget,
            "n_unrealizable": beyond if d.shifts.unrealizable is not None else None,
        },
        f"Inverting by ln w over-corrects these labels by the shortfall{_yet(d)}. "
        f"{advise_repair(d)} Raise the cap (max_delta_step) or the rounds if the full shift is "
        "wanted.",
    )


def check_unknown_shift(d: Diagnosis) -> Finding | None:
    """OS302."""
    weighted = d.shifts.weighted
    unknown = weighted & ~d.shifts.identified
    n_unknown, n_weighted = int(unknown.sum()), int(weighted.sum())
    if not n_unknown or n_unknown < UNKNOWN_LABELS * n_weighted:
        return None
    saturated = int((unknown & (d.saturation.n_saturated > 0)).sum())
    return Finding(
        "OS302",
        "warning",
        f"The realized shift of {n_unknown:,} of {n_weighted:,} weighted labels can not be read "
        f"from the scores: {saturated:,} hold saturated cells, the others have no prior strictly "
        "between 0 and 1.",
        {"n_unknown": n_unknown, "n_weighted": n_weighted, "n_saturated_labels": saturated},
        "Pass margins instead of probabilities, or the unweighted twin for the direct shift. "
        "What the inversion does to the ranking is measured in the ladder all the same.",
    )


def check_inversion(d: Diagnosis) -> Finding | None:
    """OS303, OS304 or OS305, by what was measured; the paper's association explains it."""
    trial = try_inversion(d)
    if trial is None:
        return None
    code, severity, start = INVERSION_FINDINGS[trial.outcome]
    ratio, lead = d.shifts.median_ratio, trial.lead
    return Finding(
        code,
        severity,
        f"{start}: {_measured(d, trial)}. {_explain(d, trial)}",
        {
            "gain": trial.gain.value,
            "gain_low": trial.gain.low,
            "gain_high": trial.gain.high,
            "other": trial.other,
            "lead": None if lead is None else lead.value,
            "lead_low": None if lead is None else lead.low,
            "lead_high": None if lead is None else lead.high,
            "median_ratio": ratio,
            "saturated_share": d.saturation.share,
            "conditions_hold": conditions_hold(ratio, d.saturation.share),
        },
        advise_repair(d),
    )


INVERSION_FINDINGS: dict[Outcome, tuple[str, Severity, str]] = {
    "pays": ("OS303", "info", "Inverting by ln w pays"),
    "behind": ("OS304", "warning", "Inverting by ln w is not the repair to take"),
    "fails": ("OS304", "warning", "Inverting by ln w does not help"),
    "undecided": ("OS305", "info", "These rows do not decide about inverting by ln w"),
}


def _measured(d: Diagnosis, trial: InversionTrial) -> str:
    """The paired differences, in words."""
    told = f"it moves MAP@{d.k} by {signed(trial.gain)}"
    if trial.lead is None or trial.to_other is None:
        return told
    place = {
        "above": "above",
        "below": "below",
        "level": "level with",
        "undecided": "neither surely level with nor surely apart from",
    }[trial.to_other]
    which = "the best fitted repair" if trial.other_gains else "the highest fitted rung"
    return f"{told} and is {place} {trial.other}, {which} ({signed(trial.lead)})"


def _explain(d: Diagnosis, trial: InversionTrial) -> str:
    """What the paper's association would have expected, and why."""
    ratio, share = d.shifts.median_ratio, d.saturation.share
    realized = "no realized shift can be read"
    if ratio is not None:
        realized = f"the median label realized {ratio:.0%} of its shift"
    cells = f"{share:.2%} of all cells are" if is_saturated(d) else "essentially no cell is"
    expected = conditions_hold(ratio, share)
    reasons = [
        reason
        for reason, held in (
            (realized, conditions_hold(ratio, 0.0)),
            (f"{cells} saturated", not is_saturated(d)),
        )
        if held == expected
    ]
    why = " and ".join(reasons)
    if trial.outcome != "undecided" and expected == (trial.outcome == "pays"):
        return f"As the paper's association has it: {why}."
    return f"The paper's association would{'' if expected else ' not'} expect it to pay: {why}."


def _yet(d: Diagnosis) -> str:
    return ", yet it is measured to pay" if inversion_pays(d) else ""


def _within(sentence: str) -> str:
    """A sentence to follow a colon."""
    return sentence[0].lower() + sentence[1:]


CHECKS: tuple[Callable[[Diagnosis], Finding | None], ...] = (
    check_different_weights,
    check_common_weight,
    check_short_shift,
    check_unknown_shift,
    check_inversion,
)
