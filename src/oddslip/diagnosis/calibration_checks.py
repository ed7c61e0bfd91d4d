"""Findings about calibration: dead labels, scarce positives, harm, overlap and drift."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oddslip.diagnosis.comparisons import best_fitted, best_repair, loses
from oddslip.diagnosis.diagnoses import Diagnosis
from oddslip.diagnosis.findings import Finding, count_of
from oddslip.diagnosis.thresholds import (
    DRIFT_SHARE,
    SCARCE_LABELS,
    SCARCE_POSITIVES,
    SHARED_ROWS,
    TAKEN_ROWS,
    UNSEEN_POSITIVES,
)

SHOWN = 10  # labels named in the evidence


def check_takeover(d: Diagnosis) -> Finding | None:
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
        f"{count_of(d.takeover.n_dead, 'dead label')} would take slots in {share:.1%} of the rows "
        f"({-cost:+.4f} MAP@{d.k} against the prior).",
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


def check_scarcity(d: Diagnosis) -> Finding | None:
    """OS402."""
    scarce = d.calibration_counts < SCARCE_POSITIVES
    if scarce.mean() < SCARCE_LABELS:
        return None
    median = float(np.median(d.calibration_counts))
    return Finding(
        "OS402",
        "warning",
        f"{scarce.mean():.0%} of the labels have fewer than {SCARCE_POSITIVES} calibration "
        f"positives (median {median:g}).",
        {
            "share": float(scarce.mean()),
            "median": median,
            "n_dead": int((d.calibration_counts == 0).sum()),
        },
        "Use more calibration rows. Choose tau, per-label or shared, and whether to calibrate at "
        "all by cross-validation inside them: `oddslip fit` does.",
    )


def check_harm(d: Diagnosis) -> Finding | None:
    """OS403."""
    if not loses(d, "isotonic") or best_fitted(d) is not None:
        return None
    cost = d.ladder.gain("isotonic")
    return Finding(
        "OS403",
        "warning",
        f"Calibration hurts here: per-label isotonic moves MAP@{d.k} by {cost.value:+.4f}, and no "
        "calibrator fitted on these rows surely beats raw.",
        {"gain": cost.value, "gain_low": cost.low, "gain_high": cost.high},
        "Fit on more and more similar rows before you calibrate. Until then: "
        + ("keep the raw scores." if best_repair(d) is None else "subtract ln w, which gains."),
    )


def check_unseen(d: Diagnosis) -> Finding | None:
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
        f"{lost:,} positives ({lost / total:.1%}) of the evaluated rows belong to "
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


def check_overlap(d: Diagnosis) -> Finding | None:
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


def check_drift(d: Diagnosis) -> Finding | None:
    """OS406."""
    if d.drift.share < DRIFT_SHARE:
        return None
    n_drifted = int(d.drift.drifted.sum())
    return Finding(
        "OS406",
        "critical",
        "The prevalence differs between calibration and evaluated rows for "
        f"{count_of(n_drifted, 'label')} with {d.drift.share:.0%} of all positives.",
        {
            "n_labels": n_drifted,
            "share": d.drift.share,
            "labels": [d.label_names[at] for at in np.flatnonzero(d.drift.drifted)[:SHOWN]],
        },
        "Calibrate on recent rows drawn like those you serve. Where that is impossible, raw "
        "scores are the safe default of an unweighted model.",
    )


def check_split(d: Diagnosis) -> Finding | None:
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


CHECKS: tuple[Callable[[Diagnosis], Finding | None], ...] = (
    check_drift,
    check_overlap,
    check_takeover,
    check_harm,
    check_scarcity,
    check_unseen,
    check_split,
)
