"""What to do: which repair a diagnosis recommends, and the recommendation a plan ends in.

A diagnosis has measured every repair and goes by that. A plan has measured nothing: it predicts by
the paper's association, and says so.
"""

from __future__ import annotations

from dataclasses import replace

from oddslip.diagnosis.comparisons import chosen_repair, is_gain, try_inversion
from oddslip.diagnosis.diagnoses import Diagnosis
from oddslip.diagnosis.findings import count_of
from oddslip.diagnosis.plans import Plan
from oddslip.diagnosis.thresholds import COMMON_WEIGHT

INVERSION_DOUBTED = (
    "by the paper's association, which is no law, inverting by ln w pays less there, so measure it "
    "before you rely on it"
)


def advise_repair(d: Diagnosis) -> str:
    """Which repair to take, by the ladder: the same words wherever a finding recommends one."""
    trial, repair = try_inversion(d), chosen_repair(d)
    if repair is None:
        return "Keep the raw scores, for no repair surely beats them on these rows."
    if trial is not None and trial.outcome == "undecided" and trial.to_raw == "above":
        return (
            f"Compare inversion and {trial.other} on more rows; on these {repair} is the higher, "
            "but not by a sure and material difference."
        )
    if repair == "inversion":
        return "Subtract ln w from the log-odds (calibrator inversion); no rows are needed to fit."
    return (
        f"Calibrate on held-out rows like those you serve; {repair} is the best repair of the "
        "ladder."
    )


def recommend(plan: Plan) -> Plan:
    """The plan with its recommendation."""
    return replace(plan, recommendation=_sentence(plan))


def _sentence(plan: Plan) -> str:
    if plan.weights.max() <= plan.weights.min() * COMMON_WEIGHT:
        weight = float(plan.weights[0])
        if abs(weight - 1) < COMMON_WEIGHT - 1:
            return "Train as planned: no label is weighted, so no order is changed."
        return (
            f"Train as planned: the weight {weight:.4g} is common to all labels, which changes "
            "no order within a row."
        )
    start = "Train without label-specific weights"
    loss = None if plan.what_if is None else plan.what_if.loss
    if loss is not None and plan.what_if is not None and plan.what_if.unweighted is not None:
        level = plan.what_if.unweighted.value
        if is_gain(loss, level):
            start += f": fully realized, these cost {loss.value:.4f} of MAP@{plan.k} {level:.4f}"
        else:
            start += f": they buy nothing for the order (what-if MAP@{plan.k} {-loss.value:+.4f})"
    else:
        spread = float(plan.intended.max() - plan.intended.min())
        start += f": these move labels against each other by up to {spread:.1f} nat"
    return f"{start}. If they must stay, {_cap_advice(plan)}."


def _cap_advice(plan: Plan) -> str:
    low, high = plan.admitting_cap, plan.unsaturating_cap
    calibrate = "calibrate per label on held-out rows, with dead labels at their prior"
    if low <= high:
        window = f"a max_delta_step between {low:.3g} and {high:.3g} admits every shift without "
        window += "saturating any cell"
        if low <= plan.max_delta_step <= high:
            return f"your cap of {plan.max_delta_step:g} is right ({window}); then {calibrate}"
        return f"{window}: set one, then {calibrate}"
    if plan.capped and plan.max_delta_step <= high:
        labels = count_of(int(plan.unrealizable.sum()), "label")
        return (
            f"your cap of {plan.max_delta_step:g} rules out saturated cells but leaves {labels} "
            f"short of the shift: {calibrate}; {INVERSION_DOUBTED}"
        )
    return (
        f"no cap admits every shift (from {low:.3g}) and rules out saturation (up to {high:.3g}): "
        f"cap at {high:.3g} or below, then {calibrate}; {INVERSION_DOUBTED}"
    )
