"""Findings about the scores: signal, popularity, saturation, ties, and the twin's."""

from __future__ import annotations

from oddslip.core.formatting import count_of, estimated, score, small_percent
from oddslip.diagnosis.checks.advice import advise_repair, weights_may_go
from oddslip.diagnosis.comparison import (
    is_below_popularity,
    is_saturated,
    name_repair,
    popular_list,
    ranks_clearly,
)
from oddslip.diagnosis.findings import Finding
from oddslip.diagnosis.result import Measurements
from oddslip.diagnosis.thresholds import TIED_SHARE


def check_signal(d: Measurements) -> Finding | None:
    """OS205."""
    auc, standing = d.signal.mean, d.signal.standing
    if standing in ("there", "unknown"):
        return None
    evidence = {"auc": auc.value, "auc_low": auc.low, "auc_high": auc.high, "standing": standing}
    rung = ranks_clearly(d)
    if rung is not None:
        return Finding(
            "OS205",
            "info",
            f"No signal within labels on average: mean AUC {estimated(auc)}. Yet "
            f"{name_repair(d, rung)} is clearly above the same list in every row: the labels that "
            "fill the slots are ranked, and the rare ones, of which there are more, are not.",
            evidence | {"rung": rung},
            "Judge these scores by the ladder. No map per label can order the rows of a label "
            "whose AUC is about one half.",
        )
    description = {
        "none": "a label's true rows stand no higher in its scores than its other rows",
        "reversed": "a label's true rows stand below its other rows",
        "unsure": "these rows are too few to tell it from chance",
    }[standing]
    return Finding(
        "OS205",
        "warning" if standing == "unsure" else "critical",
        f"No signal within labels: mean AUC {estimated(auc)}, {description}.",
        evidence,
        "Evaluate more rows."
        if standing == "unsure"
        else "There is nothing to repair. Check that the rows of scores and labels belong "
        "together, and the sign of the scores.",
    )


def check_twin(d: Measurements) -> Finding | None:
    """OS206."""
    if d.likeness is None or d.likeness.mean is None or d.twin_follows:
        return None
    correlation = d.likeness.mean
    doubt = "loss and its parts mean nothing, and no cause is read off the twin."
    if d.likeness.columns_moved:
        n_moved, n_sought = d.likeness.n_moved, d.likeness.n_sought
        return Finding(
            "OS206",
            "critical",
            f"The twin does not follow the scores: {n_moved:,} of {n_sought:,} labels follow the "
            "twin's column of another label.",
            {"n_moved": n_moved, "n_sought": n_sought, "correlation": correlation.value},
            f"Put the columns of the twin in the order of the scores. Until then the {doubt}",
        )
    return Finding(
        "OS206",
        "critical",
        "The twin does not follow the scores: within labels their ranks correlate by "
        f"{estimated(correlation)}, no more than those of shuffled rows.",
        {
            "correlation": correlation.value,
            "correlation_low": correlation.low,
            "correlation_high": correlation.high,
            "n_rows": d.likeness.n_rows,
        },
        "Check that the rows of the twin are those of the scores, in the same order. Until then "
        f"the {doubt}",
    )


def check_popularity(d: Measurements) -> Finding | None:
    """OS201."""
    rung = popular_list(d)
    if rung is None or not is_below_popularity(d):
        return None
    gain, raw, popular = d.ladder.gain(rung), d.ladder.value("raw"), d.ladder.value(rung)
    by = "" if rung == "popularity" else ", by prevalence in the calibration rows"
    return Finding(
        "OS201",
        "critical",
        f"The ranking is below popularity: {d.metric_name} {score(raw)} against "
        f"{score(popular)} for the same list in every row{by}.",
        {"raw": raw, "popularity": popular, "difference": -gain.value},
        f"Do not deploy these scores as they are. {advise_repair(d)}"
        + (" Or retrain without label-specific weights." if weights_may_go(d) else ""),
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
        _advise_cap(d),
    )


def _advise_cap(d: Measurements) -> str:
    """How to rule out saturation; leaves are those of a boosted model."""
    boosted = d.shifts.budget is not None
    return (
        ("Retrain" if boosted else "If the model is boosted, retrain")
        + " with a cap on the leaf step (max_delta_step)"
        + (" or without weights" if weights_may_go(d) else "")
        + ": leaves that saturate lose the order of their cells. `oddslip plan` says which cap "
        "rules it out."
        + ("" if boosted else " Any other model: keep its margins, which do not saturate.")
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
        f"{d.metric_name} lies between {score(d.ties.worst)} and {score(d.ties.best)}.",
        {
            "n_rows": d.ties.n_rows,
            "share": share,
            f"{d.metric}_worst": d.ties.worst,
            f"{d.metric}_best": d.ties.best,
        },
        "Equal scores rank by label index here and by chance elsewhere. Keep margins or float64, "
        "or remove the cause: saturated or very coarse scores.",
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
        "saturated cells, though not the scale across labels.",
    )
