"""Findings about the weights: whether they fit the scores, what they did, what inverting does."""

from __future__ import annotations

import numpy as np

from oddslip.core.formatting import (
    count_of,
    nat,
    percent,
    signed,
    signed_estimate,
    small_percent,
    times,
    weight_text,
)
from oddslip.diagnosis.checks.advice import advise_repair, weights_may_go, within
from oddslip.diagnosis.comparison import (
    InversionTrial,
    Outcome,
    inversion_pays,
    is_saturated,
    name_repair,
    try_inversion,
    twin_standing,
    weights_are_strange,
)
from oddslip.diagnosis.findings import Finding, Severity
from oddslip.diagnosis.result import Measurements
from oddslip.diagnosis.thresholds import (
    FELL_SHORT,
    MATERIAL,
    SHORT_LABELS,
    UNKNOWN_LABELS,
    conditions_hold,
)


def check_different_weights(d: Measurements) -> Finding | None:
    """OS101."""
    if d.weights is None or d.weighting != "label-specific" or weights_are_strange(d):
        return None
    low, high = float(d.weights.min()), float(d.weights.max())
    spread = float(np.log(high / low))
    advice = (
        f"They cost less than {percent(MATERIAL)} of {d.metric_name} against the unweighted twin."
    )
    if twin_standing(d) == "below":
        gained = signed(-d.ladder.gain("unweighted").value)
        advice = (
            f"Keep the weights, with which {d.metric_name} is {gained} against the unweighted twin."
        )
    elif weights_may_go(d):
        advice = (
            "Train without weights, or with one weight common to all labels, which changes no "
            "order."
        )
    return Finding(
        "OS101",
        "warning" if weights_may_go(d) else "info",
        f"Weights differ across labels, from {weight_text(low)} to {weight_text(high)}: they "
        f"multiply the odds of one label against another by up to {weight_text(high / low)} "
        f"({nat(spread)} nat).",
        {"smallest": low, "largest": high, "spread_nat": spread},
        f"{advice} If label-specific weights stay: {within(advise_repair(d))}",
    )


def check_common_weight(d: Measurements) -> Finding | None:
    """OS102."""
    if d.weights is None or d.weighting != "common":
        return None
    weight = float(d.weights[0])
    return Finding(
        "OS102",
        "info",
        f"All labels have the weight {weight_text(weight)}. A common weight never changes the "
        "order within a row.",
        {"weight": weight},
        "Nothing needs to be repaired on its account. Probabilities are shifted by ln w; "
        "invert them if they are read as probabilities.",
    )


def check_strange_weights(d: Measurements) -> Finding | None:
    """OS103."""
    fit = d.weight_fit
    if fit is None or not weights_are_strange(d) or fit.fit == "logarithms":
        return None
    pattern = {
        "no trace": "the labels' shifts are near zero, whatever their weight",
        "reversed": "labels with a heavy weight are shifted the other way",
        "unrelated": "the labels' shifts are as large as such weights make them, but go with "
        "other labels",
    }[fit.fit]
    check = {
        "no trace": "whether these scores come from a model trained with them, and whether they "
        "have been corrected already",
        "reversed": "whether they are inverses, of the negatives or of the prevalence",
        "unrelated": "that weights and scores have their labels in the same order, and that the "
        "weights are those of this model",
    }[fit.fit]
    return Finding(
        "OS103",
        "warning",
        f"The weights do not fit the scores: {pattern} (shift over ln w: slope {times(fit.slope)}, "
        f"correlation {times(fit.correlation)}, {fit.n_labels:,} labels).",
        {
            "fit": fit.fit,
            "slope": fit.slope,
            "correlation": fit.correlation,
            "size": fit.size,
            "n_labels": fit.n_labels,
        },
        f"Check the weights: {check}. Do not subtract their logarithm. {advise_repair(d)}",
    )


def check_short_shift(d: Measurements) -> Finding | None:
    """OS301."""
    if weights_are_strange(d):
        return None
    readable = d.shifts.identified & d.shifts.weighted
    short = readable & (np.nan_to_num(d.shifts.ratio, nan=1.0) < FELL_SHORT)
    n_known, n_short = int(readable.sum()), int(short.sum())
    beyond = 0 if d.shifts.unrealizable is None else int(d.shifts.unrealizable.sum())
    if d.weighting != "label-specific" or (n_short < SHORT_LABELS * max(1, n_known) and not beyond):
        return None
    median = d.shifts.median_ratio
    realized = "" if median is None else f"; the median label realized {times(median)} of ln w"
    cap, budget = "", d.shifts.budget
    if beyond and budget is not None:
        labels = count_of(beyond, "label")
        cap = f" The step budget of {nat(budget)} nat admits no more for {labels}."
    return Finding(
        "OS301",
        "warning",
        f"The shift fell short for {n_short:,} of {n_known:,} labels whose shift can be read"
        f"{realized}.{cap}",
        {
            "n_short": n_short,
            "n_known": n_known,
            "median_ratio": median,
            "budget": d.shifts.budget,
            "n_unrealizable": beyond if d.shifts.unrealizable is not None else None,
        },
        f"Inverting by ln w over-corrects these labels by the shortfall{_yet(d)}. "
        f"{advise_repair(d)}",
    )


def check_unknown_shift(d: Measurements) -> Finding | None:
    """OS302."""
    weighted = d.shifts.weighted
    unknown = weighted & ~d.shifts.identified
    n_unknown, n_weighted = int(unknown.sum()), int(weighted.sum())
    if not n_unknown or n_unknown < UNKNOWN_LABELS * n_weighted:
        return None
    saturated = int((unknown & (d.saturation.n_saturated > 0)).sum())
    reasons = {
        "hold saturated cells": saturated,
        "have no prior strictly between 0 and 1": n_unknown - saturated,
    }
    why = " and ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
    return Finding(
        "OS302",
        "warning",
        f"The realized shift of {n_unknown:,} of {n_weighted:,} weighted labels cannot be read "
        f"from the scores: {why}.",
        {"n_unknown": n_unknown, "n_weighted": n_weighted, "n_saturated_labels": saturated},
        f"{_advise_reading(d, saturated)} What the inversion does to the ranking is measured in "
        "the ladder all the same.",
    )


def _advise_reading(d: Measurements, n_saturated: int) -> str:
    """What would show the shifts that the scores do not, and was not passed."""
    if d.shifts.direct is not None:
        return 'The twin shows their direct shift (`--verbose`, to_frame("labels")).'
    if n_saturated and d.kind == "probability":
        return "Pass margins instead of probabilities, or the unweighted twin for the direct shift."
    return "Pass the unweighted twin for the direct shift."


def check_inversion(d: Measurements) -> Finding | None:
    """OS303, OS304 or OS305, by what was measured; the paper's association explains it."""
    trial = try_inversion(d)
    if trial is None:
        return None
    code, severity, start = INVERSION_FINDINGS[trial.outcome]
    if trial.outcome == "fails" and trial.to_raw == "above":
        start = "Inverting by ln w is not surely better than the same list in every row"
    ratio, lead = d.shifts.median_ratio, trial.lead
    return Finding(
        code,
        severity,
        f"{start}: {_measured(d, trial)}. {_explain(d, trial)}",
        {
            "gain": trial.gain.value,
            "gain_low": trial.gain.low,
            "gain_high": trial.gain.high,
            "other": trial.other and name_repair(d, trial.other),
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


def _measured(d: Measurements, trial: InversionTrial) -> str:
    """The paired differences, in words."""
    moves = f"it moves {d.metric_name} by {signed_estimate(trial.gain)}"
    if trial.lead is None or trial.to_other is None:
        return moves
    place = {
        "above": "above",
        "below": "below",
        "level": "level with",
        "undecided": "neither surely level with nor surely apart from",
    }[trial.to_other]
    other = name_repair(d, trial.other or "")
    which = "which Repair chooses" if trial.other == "chosen" else "the highest fitted rung"
    return f"{moves} and is {place} {other}, {which} ({signed_estimate(trial.lead)})"


def _explain(d: Measurements, trial: InversionTrial) -> str:
    """What the paper's association would have expected, and why."""
    ratio, share = d.shifts.median_ratio, d.saturation.share
    realized = "no realized shift can be read"
    if ratio is not None:
        realized = f"the median label realized {times(ratio)} of its shift"
    cells = (
        f"{small_percent(share)} of all cells are" if is_saturated(d) else "essentially no cell is"
    )
    expected = conditions_hold(ratio, share)
    reasons = [
        reason
        for reason, condition in (
            (realized, conditions_hold(ratio, 0.0)),
            (f"{cells} saturated", not is_saturated(d)),
        )
        if condition == expected
    ]
    why = " and ".join(reasons)
    if trial.outcome != "undecided" and expected == (trial.outcome == "pays"):
        return f"As the paper's association has it: {why}."
    return f"The paper's association would{'' if expected else ' not'} expect it to pay: {why}."


def _yet(d: Measurements) -> str:
    return ", yet it is measured to pay" if inversion_pays(d) else ""
