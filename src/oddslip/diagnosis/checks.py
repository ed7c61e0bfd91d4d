"""Findings: what the scores, the weights and the calibration rows give rise to say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oddslip.diagnosis.comparison import (
    InversionTrial,
    Outcome,
    best_fitted,
    best_repair,
    chosen_repair,
    inversion_pays,
    is_gain,
    is_saturated,
    level_of,
    loses,
    try_inversion,
)
from oddslip.diagnosis.findings import Finding, Severity
from oddslip.diagnosis.result import Measurements
from oddslip.diagnosis.thresholds import (
    DRIFT_SHARE,
    FELL_SHORT,
    SCARCE_LABELS,
    SCARCE_POSITIVES,
    SHARED_ROWS,
    SHORT_LABELS,
    TAKEN_ROWS,
    TIED_SHARE,
    UNKNOWN_LABELS,
    UNSEEN_POSITIVES,
    conditions_hold,
)
from oddslip.wording import (
    count_of,
    nat,
    percent,
    score,
    signed,
    signed_estimate,
    small_percent,
    times,
    weight_text,
)

SHOWN = 10  # labels named in the evidence


# --------------------------------------------------------------------------------------- the scores


def check_popularity(d: Measurements) -> Finding | None:
    """OS201."""
    gain = d.ladder.gain("popularity")
    if not is_gain(gain, level_of(d, "popularity")):
        return None
    raw, popular = d.ladder.value("raw"), d.ladder.value("popularity")
    return Finding(
        "OS201",
        "critical",
        f"The ranking is below popularity: MAP@{d.k} {score(raw)} against {score(popular)} for the "
        "same list in every row.",
        {"raw": raw, "popularity": popular, "difference": -gain.value},
        "Do not deploy these scores as they are. Take the repair that the ladder shows to be "
        "above popularity, or retrain without label-specific weights.",
    )


def check_saturation(d: Measurements) -> Finding | None:
    """OS202."""
    if not is_saturated(d):
        return None
    stored = d.saturation
    n_labels = int((stored.n_saturated > 0).sum())
    would = "are" if d.kind == "probability" else "would be"
    return Finding(
        "OS202",
        "warning",
        f"{small_percent(stored.share)} of all cells {would} stored as exactly 1.0, in "
        f"{count_of(n_labels, 'label')}; "
        f"{stored.full_rows:,} of {stored.n_rows:,} rows hold at least {d.k} of them.",
        {
            "n_cells": int(stored.n_saturated.sum()),
            "share": stored.share,
            "n_labels": n_labels,
            "n_full_rows": stored.full_rows,
        },
        "Retrain with a cap on the leaf step (max_delta_step) or without weights: leaves that "
        "saturate lose the order of their cells. `oddslip plan` says which cap rules it out.",
    )


def check_ties(d: Measurements) -> Finding | None:
    """OS203."""
    share = d.ties.n_rows / d.ladder.n_evaluated
    if share < TIED_SHARE:
        return None
    return Finding(
        "OS203",
        "critical" if share >= 0.5 else "warning",
        f"Ties decide the top {d.k} in {small_percent(share)} of the rows: by how they are broken, "
        f"MAP@{d.k} lies between {score(d.ties.map_worst)} and {score(d.ties.map_best)}.",
        {
            "n_rows": d.ties.n_rows,
            "share": share,
            "map_worst": d.ties.map_worst,
            "map_best": d.ties.map_best,
        },
        "Equal scores rank by label index here and by chance elsewhere. Keep margins or float64, "
        "or remove the cause: saturated or very coarse leaves.",
    )


def check_storage(d: Measurements) -> Finding | None:
    """OS204."""
    if d.kind != "probability" or not is_saturated(d) or not d.ties.n_rows:
        return None
    return Finding(
        "OS204",
        "warning",
        f"Scores are stored as {d.dtype} probabilities, in which saturated cells are equal; "
        "margins would keep their order.",
        {"dtype": d.dtype, "share": d.saturation.share, "n_tied_rows": d.ties.n_rows},
        "Store the raw margin (log-odds) and pass kind=margin. It keeps the order inside "
        "saturated cells, though not the scale across labels: calibrate as well.",
    )


# -------------------------------------------------------------------------------------- the weights


def check_different_weights(d: Measurements) -> Finding | None:
    """OS101."""
    if d.weights is None or d.weighting != "label-specific":
        return None
    low, high = float(d.weights.min()), float(d.weights.max())
    spread = float(np.log(high / low))
    return Finding(
        "OS101",
        "warning",
        f"Weights differ across labels, from {weight_text(low)} to {weight_text(high)}: they "
        f"change the order of labels whose log-odds lie closer than up to {nat(spread)} nat.",
        {"smallest": low, "largest": high, "spread_nat": spread},
        "Train without weights, or with one weight common to all labels, which changes no order. "
        f"If label-specific weights stay: {_within(advise_repair(d))}",
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


def check_short_shift(d: Measurements) -> Finding | None:
    """OS301."""
    known = d.shifts.identified & d.shifts.weighted
    short = known & (np.nan_to_num(d.shifts.ratio, nan=1.0) < FELL_SHORT)
    n_known, n_short = int(known.sum()), int(short.sum())
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
        f"{advise_repair(d)} Raise the cap (max_delta_step) or the rounds if the full shift is "
        "wanted.",
    )


def check_unknown_shift(d: Measurements) -> Finding | None:
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


def check_inversion(d: Measurements) -> Finding | None:
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


def _measured(d: Measurements, trial: InversionTrial) -> str:
    """The paired differences, in words."""
    moves = f"it moves MAP@{d.k} by {signed_estimate(trial.gain)}"
    if trial.lead is None or trial.to_other is None:
        return moves
    place = {
        "above": "above",
        "below": "below",
        "level": "level with",
        "undecided": "neither surely level with nor surely apart from",
    }[trial.to_other]
    which = "the best fitted repair" if trial.other_gains else "the highest fitted rung"
    return f"{moves} and is {place} {trial.other}, {which} ({signed_estimate(trial.lead)})"


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


def advise_repair(d: Measurements) -> str:
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


def _yet(d: Measurements) -> str:
    return ", yet it is measured to pay" if inversion_pays(d) else ""


def _within(sentence: str) -> str:
    """A sentence to follow a colon."""
    return sentence[0].lower() + sentence[1:]


# ----------------------------------------------------------------------------- the calibration rows


def check_takeover(d: Measurements) -> Finding | None:
    """OS401."""
    if d.takeover is None or d.takeover.n_rows < TAKEN_ROWS * d.n_rows or not d.takeover.n_rows:
        return None
    share = d.takeover.n_rows / d.n_rows
    cost = d.ladder.value("isotonic") - d.ladder.value("isotonic, identity")
    busiest = np.argsort(-d.takeover.slots, kind="stable")[:SHOWN]
    return Finding(
        "OS401",
        "warning",
        "Passed through a per-label calibrator with their raw score, "
        f"{count_of(d.takeover.n_dead, 'dead label')} would take slots in {small_percent(share)} "
        f"of the rows ({signed(-cost)} MAP@{d.k} against the prior).",
        {
            "n_dead": d.takeover.n_dead,
            "n_rows": d.takeover.n_rows,
            "share": share,
            "map_cost": cost,
            "labels": {
                d.label_names[at]: int(d.takeover.slots[at])
                for at in busiest
                if d.takeover.slots[at]
            },
        },
        'Send labels without calibration positives to their prior (dead="prior") or exclude '
        "them; never let them pass with their raw score.",
    )


def check_scarcity(d: Measurements) -> Finding | None:
    """OS402."""
    share = float(np.mean(d.calibration_counts < SCARCE_POSITIVES))
    if share < SCARCE_LABELS:
        return None
    median = float(np.median(d.calibration_counts))
    return Finding(
        "OS402",
        "warning",
        f"{percent(share)} of the labels have fewer than {SCARCE_POSITIVES} calibration "
        f"positives (median {median:g}).",
        {
            "share": share,
            "median": median,
            "n_dead": int((d.calibration_counts == 0).sum()),
        },
        "Use more calibration rows. Choose tau, per-label or shared, and whether to calibrate at "
        "all by cross-validation inside them: `oddslip fit` does.",
    )


def check_harm(d: Measurements) -> Finding | None:
    """OS403."""
    if not loses(d, "isotonic") or best_fitted(d) is not None:
        return None
    cost = d.ladder.gain("isotonic")
    return Finding(
        "OS403",
        "warning",
        f"Calibration hurts here: per-label isotonic moves MAP@{d.k} by {signed(cost.value)}, and "
        "no calibrator fitted on these rows surely beats raw.",
        {"gain": cost.value, "gain_low": cost.low, "gain_high": cost.high},
        "Fit on more and more similar rows before you calibrate. Until then: "
        + ("keep the raw scores." if best_repair(d) is None else "subtract ln w, which gains."),
    )


def check_unseen(d: Measurements) -> Finding | None:
    """OS404."""
    unseen = d.drift.unseen
    total = int(d.evaluation_counts.sum())
    lost = int(d.evaluation_counts[unseen].sum())
    if not lost or lost < UNSEEN_POSITIVES * total:
        return None
    largest = np.argsort(-np.where(unseen, d.evaluation_counts, 0), kind="stable")[:SHOWN]
    return Finding(
        "OS404",
        "warning",
        f"{lost:,} positives ({small_percent(lost / total)}) of the evaluated rows belong to "
        f"{count_of(int(unseen.sum()), 'label')} without a calibration positive: at their prior "
        "these are hardly shown.",
        {
            "n_labels": int(unseen.sum()),
            "n_positives": lost,
            "share": lost / total,
            "labels": {
                d.label_names[at]: int(d.evaluation_counts[at]) for at in largest if unseen[at]
            },
        },
        "Calibrate on rows that hold these labels. No rule inside the calibration rows can see "
        "this loss.",
    )


def check_overlap(d: Measurements) -> Finding | None:
    """OS405."""
    shared, total = d.drift.n_shared_rows, d.drift.n_calibration_rows
    if not shared or shared < SHARED_ROWS * total:
        return None
    return Finding(
        "OS405",
        "critical",
        f"{shared:,} of {total:,} calibration rows are evaluated too: the repaired rungs are "
        "flattered.",
        {"n_rows": shared, "share": shared / total},
        "Calibrate on rows of the training period that are not evaluated.",
    )


def check_drift(d: Measurements) -> Finding | None:
    """OS406."""
    if d.drift.share < DRIFT_SHARE:
        return None
    n_drifted = int(d.drift.drifted.sum())
    return Finding(
        "OS406",
        "critical",
        "The prevalence differs between calibration and evaluated rows for "
        f"{count_of(n_drifted, 'label')} with {percent(d.drift.share)} of all positives.",
        {
            "n_labels": n_drifted,
            "share": d.drift.share,
            "labels": [d.label_names[at] for at in np.flatnonzero(d.drift.drifted)[:SHOWN]],
        },
        "Calibrate on recent rows drawn like those you serve. Where that is impossible, raw "
        "scores are the safe default of an unweighted model.",
    )


def check_split(d: Measurements) -> Finding | None:
    """OS407."""
    if not d.optimistic:
        return None
    return Finding(
        "OS407",
        "info",
        f"No calibration panel was given: {d.n_calibration_rows:,} rows were split off to "
        f"calibrate, {d.n_rows:,} are evaluated. Rows to be served later will gain less.",
        {"n_calibration_rows": d.n_calibration_rows, "n_rows": d.n_rows, "seed": d.seed},
        "Pass calibration rows held out from the training period.",
    )


# ---------------------------------------------------------------------------------- all of them

CHECKS: tuple[Callable[[Measurements], Finding | None], ...] = (
    check_popularity,
    check_saturation,
    check_ties,
    check_storage,
    check_different_weights,
    check_common_weight,
    check_short_shift,
    check_unknown_shift,
    check_inversion,
    check_drift,
    check_overlap,
    check_takeover,
    check_harm,
    check_scarcity,
    check_unseen,
    check_split,
)
