"""Findings about weights and the shifts they led to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oddslip.diagnosis.comparisons import inversion_pays, is_near, is_saturated
from oddslip.diagnosis.diagnoses import Diagnosis
from oddslip.diagnosis.findings import Finding, count_of
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
        "If label-specific weights stay, calibrate per label before the top K is taken.",
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
        "Do not invert by ln w, which over-corrects by the shortfall. Calibrate per label; or "
        "raise the cap (max_delta_step) or the rounds if the full shift is wanted.",
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
        "Do not rely on the inversion for these labels.",
    )


def check_inversion(d: Diagnosis) -> Finding | None:
    """OS303 or OS304."""
    if d.weighting != "label-specific" or "inversion" not in d.ladder:
        return None
    gain, ratio = d.ladder.gain("inversion"), d.shifts.median_ratio
    evidence = {
        "gain": gain.value,
        "gain_low": gain.low,
        "gain_high": gain.high,
        "median_ratio": ratio,
        "saturated_share": d.saturation.share,
    }
    measured = f"it moves MAP@{d.k} by {gain.value:+.4f}"
    if inversion_pays(d):
        return Finding(
            "OS303",
            "info",
            f"Inverting by ln w pays: the median label realized {ratio:.0%} of its shift, "
            f"essentially no cell is saturated, and {measured}.",
            evidence,
            "Subtract ln w from the log-odds (calibrator inversion). It needs no calibration "
            "rows. Compare it with per-label isotonic on held-out rows.",
        )
    return Finding(
        "OS304",
        "warning",
        f"Inverting by ln w will not do: {_why_not(d)}; {measured}.",
        evidence,
        "Calibrate per label on held-out rows instead of inverting.",
    )


def _why_not(d: Diagnosis) -> str:
    ratio = d.shifts.median_ratio
    reasons = []
    if is_saturated(d):
        reasons.append(f"{d.saturation.share:.2%} of all cells are saturated")
    if ratio is None:
        reasons.append("no realized shift can be read")
    elif not is_near(d):
        reasons.append(f"the median label realized {ratio:.0%} of its shift")
    return " and ".join(reasons) or "it gains little or nothing over raw or over calibration"


CHECKS: tuple[Callable[[Diagnosis], Finding | None], ...] = (
    check_different_weights,
    check_common_weight,
    check_short_shift,
    check_unknown_shift,
    check_inversion,
)
