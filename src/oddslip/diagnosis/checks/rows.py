"""Findings about the rows that calibrate: dead labels, scarcity, drift, overlap."""

from __future__ import annotations

import numpy as np

from oddslip.core.formatting import count_of, percent, score, signed, small_percent
from oddslip.diagnosis.checks.advice import advise_repair, grave_if_repaired, within
from oddslip.diagnosis.comparison import (
    chosen_repair,
    helps,
    inversion_pays,
    is_sound,
    level_of,
    loses,
)
from oddslip.diagnosis.findings import Finding
from oddslip.diagnosis.result import Measurements
from oddslip.diagnosis.thresholds import (
    DRIFT_SHARE,
    MATERIAL,
    SAME_ROWS,
    SCARCE_LABELS,
    SCARCE_POSITIVES,
    SHARED_ROWS,
    TAKEN_ROWS,
    UNSEEN_POSITIVES,
)
from oddslip.selection.rules import ROW_GUARD

SHOWN = 10  # labels named in the evidence


def check_takeover(d: Measurements) -> Finding | None:
    """OS401."""
    if d.takeover is None or d.takeover.n_rows < TAKEN_ROWS * d.n_rows or not d.takeover.n_rows:
        return None
    share = d.takeover.n_rows / d.n_rows
    cost = d.ladder.value("isotonic") - d.ladder.value("isotonic, identity")
    busiest = np.argsort(-d.takeover.slots, kind="stable")[:SHOWN]
    return Finding(
        "OS401",
        grave_if_repaired(d),
        "Passed through a per-label calibrator with their raw score, "
        f"{count_of(d.takeover.n_dead, 'dead label')} would take slots in {small_percent(share)} "
        f"of the rows ({signed(-cost)} {d.metric_name} against the prior).",
        {
            "n_dead": d.takeover.n_dead,
            "n_rows": d.takeover.n_rows,
            "share": share,
            f"{d.metric}_cost": cost,
            "labels": {
                d.label_names[at]: int(d.takeover.slots[at])
                for at in busiest
                if d.takeover.slots[at]
            },
        },
        'Send labels without calibration positives to their prior (dead="prior") or exclude '
        "them; never let them pass with their raw score.",
    )


def check_absent(d: Measurements) -> Finding | None:
    """OS601."""
    there = d.saturation.n_present
    if there is None:
        return None
    n_cells = d.n_rows * d.n_labels
    share = 1.0 - there / n_cells
    return Finding(
        "OS601",
        "info",
        f"{small_percent(share)} of the cells are absent, excluded or no candidates. Every number "
        "here, and every map, is of the other cells: of a label given that it is a candidate.",
        {"n_present": there, "n_cells": n_cells, "share": share},
        "Apply a repair to candidates chosen in the same way. True labels that were no "
        "candidates count nowhere here: measure what the choice of candidates misses apart.",
    )


def check_scarcity(d: Measurements) -> Finding | None:
    """OS402."""
    share = float(np.mean(d.calibration_counts < SCARCE_POSITIVES))
    if share < SCARCE_LABELS:
        return None
    median = float(np.median(d.calibration_counts))
    return Finding(
        "OS402",
        grave_if_repaired(d),
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
    if not loses(d, "isotonic") or helps(d):
        return None
    cost = d.ladder.gain("isotonic")
    return Finding(
        "OS403",
        grave_if_repaired(d),
        f"Calibration hurts here: per-label isotonic moves {d.metric_name} by "
        f"{signed(cost.value)}, and no calibrator fitted on these rows surely beats raw.",
        {"gain": cost.value, "gain_low": cost.low, "gain_high": cost.high},
        advise_repair(d)
        if is_sound(d)
        else "Fit on more and more similar rows before you calibrate. Until then: "
        f"{within(advise_repair(d))}",
    )


def check_together(d: Measurements) -> Finding | None:
    """OS408."""
    if d.chosen is None or d.chosen.row_gain is None or d.chosen.row_gain_error is None:
        return None
    gain, error = d.chosen.row_gain, d.chosen.row_gain_error
    level = level_of(d, "chosen" if "chosen" in d.ladder else "raw")
    if gain <= ROW_GUARD * error or gain < MATERIAL * level:
        return None
    advice = f'Fit oddslip.Repair(k={d.k}, rule="row_aware")'
    if chosen_repair(d) is None:
        advice += " and compare it with what you rank by now, on other rows: it is for use"
    return Finding(
        "OS408",
        "info",
        f"Labels occur together: a stage that sees the whole row adds {signed(gain)} "
        f"{d.metric_name} to {d.chosen.name} on calibration rows, out of fold (standard error "
        f"{score(error)}).",
        {"gain": gain, "standard_error": error, "chosen": d.chosen.name},
        f"{advice} where whole rows are ranked in Python, by the NumPy runtime or from JSON.",
    )


def check_unseen(d: Measurements) -> Finding | None:
    """OS404."""
    unseen = d.drift.unseen
    total = int(d.evaluation_counts.sum())
    n_unseen = int(d.evaluation_counts[unseen].sum())
    if not n_unseen or n_unseen < UNSEEN_POSITIVES * total:
        return None
    largest = np.argsort(-np.where(unseen, d.evaluation_counts, 0), kind="stable")[:SHOWN]
    return Finding(
        "OS404",
        grave_if_repaired(d),
        f"{n_unseen:,} positives ({small_percent(n_unseen / total)}) of the evaluated rows "
        f"belong to {count_of(int(unseen.sum()), 'label')} without a calibration positive: at "
        "their prior these are hardly shown.",
        {
            "n_labels": int(unseen.sum()),
            "n_positives": n_unseen,
            "share": n_unseen / total,
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
    by_id = d.drift.shared_by_id
    evidence = {"n_rows": shared, "share": shared / total, "by_id": by_id}
    if not by_id:
        return Finding(
            "OS405",
            "critical" if shared >= SAME_ROWS * total else "warning",
            f"{shared:,} of {total:,} calibration rows have the very scores and labels of an "
            "evaluated row: if they are the same rows, the repaired rungs are flattered.",
            evidence,
            "Make sure that no row calibrates and is evaluated; row ids would tell. Rows with "
            "the same features get the same scores and are no fault.",
        )
    return Finding(
        "OS405",
        "critical",
        f"{shared:,} of {total:,} calibration rows are evaluated too: the repaired rungs are "
        "flattered.",
        evidence,
        "Calibrate on rows of the training period that are not evaluated.",
    )


def check_drift(d: Measurements) -> Finding | None:
    """OS406."""
    if d.drift.share < DRIFT_SHARE:
        return None
    n_drifted = int(d.drift.drifted.sum())
    otherwise = "do not calibrate"
    if inversion_pays(d):
        otherwise = "subtract ln w, which needs none of them"
    elif d.weighting != "label-specific":
        otherwise = "raw scores are the safe default of an unweighted model"
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
        "Calibrate on recent rows drawn like those you serve. Where that is impossible, "
        f"{otherwise}.",
    )


def check_split(d: Measurements) -> Finding | None:
    """OS407."""
    if not d.optimistic:
        return None
    return Finding(
        "OS407",
        "info",
        f"No calibration panel was given: {d.n_rows:,} rows are cross-fitted, each ranked by what "
        "was fitted and chosen without its fold. Rows to be served later will gain less.",
        {"n_rows": d.n_rows, "seed": d.seed},
        "Pass calibration rows held out from the training period. If several rows belong to one "
        "user or source, give them the same row id: then no fold splits them.",
    )
