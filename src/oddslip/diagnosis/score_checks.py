"""Findings about the scores as they are: popularity, saturation, ties, storage."""

from __future__ import annotations

from collections.abc import Callable

from oddslip.diagnosis.comparisons import is_gain, is_saturated, level_of
from oddslip.diagnosis.diagnoses import Diagnosis
from oddslip.diagnosis.findings import Finding, count_of
from oddslip.diagnosis.thresholds import TIED_SHARE


def check_popularity(d: Diagnosis) -> Finding | None:
    """OS201."""
    gain = d.ladder.gain("popularity")
    if not is_gain(gain, level_of(d, "popularity")):
        return None
    raw, popular = d.ladder.value("raw"), d.ladder.value("popularity")
    return Finding(
        "OS201",
        "critical",
        f"The ranking is below popularity: MAP@{d.k} {raw:.4f} against {popular:.4f} for the "
        "same list in every row.",
        {"raw": raw, "popularity": popular, "difference": -gain.value},
        "Do not deploy these scores as they are. Take the repair that the ladder shows to be "
        "above popularity, or retrain without label-specific weights.",
    )


def check_saturation(d: Diagnosis) -> Finding | None:
    """OS202."""
    if not is_saturated(d):
        return None
    stored = d.saturation
    n_labels = int((stored.n_saturated > 0).sum())
    would = "are" if d.kind == "probability" else "would be"
    return Finding(
        "OS202",
        "warning",
        f"{stored.share:.2%} of all cells {would} stored as exactly 1.0, in "
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


def check_ties(d: Diagnosis) -> Finding | None:
    """OS203."""
    share = d.ties.n_rows / d.ladder.n_evaluated
    if share < TIED_SHARE:
        return None
    return Finding(
        "OS203",
        "critical" if share >= 0.5 else "warning",
        f"Ties decide the top {d.k} in {share:.1%} of the rows: by how they are broken, "
        f"MAP@{d.k} lies between {d.ties.map_worst:.4f} and {d.ties.map_best:.4f}.",
        {
            "n_rows": d.ties.n_rows,
            "share": share,
            "map_worst": d.ties.map_worst,
            "map_best": d.ties.map_best,
        },
        "Equal scores rank by label index here and by chance elsewhere. Keep margins or float64, "
        "or remove the cause: saturated or very coarse leaves.",
    )


def check_storage(d: Diagnosis) -> Finding | None:
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


CHECKS: tuple[Callable[[Diagnosis], Finding | None], ...] = (
    check_popularity,
    check_saturation,
    check_ties,
    check_storage,
)
