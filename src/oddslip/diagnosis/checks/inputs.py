"""Findings about inputs that contradict one another: swapped, repeated, or declared wrongly."""

from __future__ import annotations

import numpy as np

from oddslip.core.formatting import count_of, nat, times
from oddslip.diagnosis.comparison import (
    are_corrected,
    holds_labels,
    rises,
    shifts_are_felt,
    twin_standing,
    weights_are_logarithms,
)
from oddslip.diagnosis.findings import Finding
from oddslip.diagnosis.result import Measurements
from oddslip.diagnosis.thresholds import (
    MIN_UNIT_CELLS,
    NEAR,
    RELATED,
    SWAPPED_SLOPE,
)


def check_logarithms(d: Measurements) -> Finding | None:
    """OS104."""
    fit = d.weight_fit
    if fit is None or d.weights is None or not weights_are_logarithms(d):
        return None
    return Finding(
        "OS104",
        "critical",
        "The weights look like logarithms: the labels' shifts fit the weights as they are, and "
        f"not their logarithm ({count_of(fit.n_labels, 'label')}).",
        {
            "smallest": float(d.weights.min()),
            "largest": float(d.weights.max()),
            "n_labels": fit.n_labels,
        },
        "Check the weights: pass those the positives were trained with, not ln w; "
        "weights=np.exp(...) if these are logarithms.",
    )


def check_corrected(d: Measurements) -> Finding | None:
    """OS105."""
    fit = d.weight_fit
    if d.shifts.intended is None or d.weighting != "label-specific" or rises(d, "inversion"):
        return None
    intended = float(np.sqrt(np.mean(d.shifts.intended**2)))
    if are_corrected(d):
        size = d.shift_size
        return Finding(
            "OS105",
            "warning",
            "The scores look corrected already, or trained without these weights: label by label "
            f"they fit the prevalence to {nat(size or 0.0)} nat, where the weights intend "
            f"{nat(intended)} nat.",
            {"shift_nat": size, "intended_nat": intended, "corrected": "once"},
            "Do not repair them again. If they were repaired, diagnose the raw scores; if they "
            "are those of the unweighted model, leave the weights out.",
        )
    if fit is None or fit.fit != "reversed" or not -NEAR[1] <= fit.slope <= -NEAR[0]:
        return None
    if not shifts_are_felt(d):
        return None
    with np.errstate(divide="ignore"):
        rarity = -np.log(d.prior)
    finite = np.isfinite(rarity)
    if not finite.any() or _correlation(d.shifts.intended[finite], rarity[finite]) < RELATED:
        return None  # rare labels weigh less: the weights are the inverses, not the scores
    return Finding(
        "OS105",
        "warning",
        "The scores look corrected twice, or corrected though they were unweighted: labels are "
        f"shifted by {times(fit.slope)} of ln w.",
        {"slope": fit.slope, "intended_nat": intended, "corrected": "twice"},
        "Diagnose the scores as the model gives them, before any repair.",
    )


def check_identical_twin(d: Measurements) -> Finding | None:
    """OS207."""
    if d.likeness is None or not d.likeness.identical or d.weighting == "none":
        return None
    return Finding(
        "OS207",
        "critical",
        f"The twin is identical to the scores, cell by cell in {d.likeness.n_rows:,} rows.",
        {"n_rows": d.likeness.n_rows},
        "Pass the scores of a model trained without weights. The loss is 0 here whatever the "
        "weights did.",
    )


def check_swapped_twin(d: Measurements) -> Finding | None:
    """OS208."""
    shifts = d.shifts
    if shifts.direct is None or shifts.intended is None or d.weighting != "label-specific":
        return None
    finite = np.isfinite(shifts.direct)
    if twin_standing(d) in (None, "above") or not are_corrected(d) or not finite.any():
        return None
    direct, intended = shifts.direct[finite], shifts.intended[finite]
    related = _correlation(direct, intended)
    slope = float(direct @ intended / (intended @ intended))
    if related > -RELATED or slope > -SWAPPED_SLOPE:
        return None
    return Finding(
        "OS208",
        "critical",
        "Twin and scores look swapped: the twin carries the shift of the weights, "
        f"{times(-slope)} of ln w above the scores, which carry none.",
        {"slope": slope, "correlation": related, "n_labels": int(finite.sum())},
        "Pass the weighted model's scores as scores, and those of the unweighted twin as "
        "unweighted.",
    )


def check_unit_margins(d: Measurements) -> Finding | None:
    """OS209."""
    n_unit, n_cells = d.saturation.n_unit, d.saturation.n_cells_there
    if n_unit is None or n_unit < max(n_cells, MIN_UNIT_CELLS):
        return None
    return Finding(
        "OS209",
        "critical",
        f"All {n_cells:,} margins lie between 0 and 1: they look like probabilities.",
        {"n_cells": n_cells},
        'Pass kind="probability" if they are. Shifts, the inversion and parametric maps read '
        "margins as log-odds and are wrong otherwise.",
    )


def check_leak(d: Measurements) -> Finding | None:
    """OS210."""
    if not holds_labels(d):
        return None
    finite = np.isfinite(d.signal.areas)
    n_positives = int(d.evaluation_counts[finite].sum())
    return Finding(
        "OS210",
        "critical",
        f"The scores hold the labels: all {n_positives:,} true cells stand above every other cell "
        f"of their label, in {count_of(int(finite.sum()), 'label')}.",
        {"n_positives": n_positives, "n_labels": int(finite.sum())},
        "Check that the scores are a model's, on rows it was not trained on, and that no feature "
        "holds the labels. Nothing else here means anything before that.",
    )


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Correlation of two columns; 0 where one is constant."""
    one, other = one - one.mean(), other - other.mean()
    spread = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / spread if spread > 0 else 0.0
