"""Parts of a diagnosis in plain sentences, for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from oddslip.core.formatting import (
    estimated,
    nat,
    percent,
    score,
    share_of,
    signed,
    small_percent,
    times,
)
from oddslip.reports.html.pictures import choose_labels
from oddslip.reports.numbers import finite_budget, repair_of, tell_likeness, tell_residual
from oddslip.reports.text import printable

if TYPE_CHECKING:
    from oddslip.diagnosis.decomposition import Decomposition
    from oddslip.diagnosis.result import Diagnosis


class Look(NamedTuple):
    """The style of a verdict: a word, a tone for the colour, and an icon."""

    word: str
    tone: str
    icon: str


LOOKS = {
    "healthy": Look("Healthy", "good", "check"),
    "common_weight": Look("Healthy", "good", "check"),
    "repairable_by_inversion": Look("Hurt, repairable by inversion", "bad", "wrench"),
    "repairable_by_calibration": Look("Repairable by calibration", "bad", "wrench"),
    "dead_labels": Look("Repairable, if dead labels go to their prior", "bad", "wrench"),
    "keep_margins": Look("Hurt, part of it lost in ties", "bad", "alert"),
    "undecided": Look("Undecided without the unweighted twin", "plain", "pause"),
    "keep_raw": Look("Keep the raw scores", "plain", "pause"),
    "no_signal": Look("No signal within labels", "bad", "alert"),
    "below_popularity": Look("Below popularity", "bad", "alert"),
    "drift": Look("Calibration rows differ from evaluated rows", "bad", "alert"),
}


def look_of(diagnosis: Diagnosis) -> Look:
    """The style of the verdict."""
    return LOOKS.get(diagnosis.verdict.code, Look(diagnosis.verdict.code, "plain", "pause"))


def facts_of(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """The inputs of the diagnosis: name and value."""
    return [
        ("rows evaluated", f"{diagnosis.n_rows:,}"),
        ("rows calibrated on", f"{diagnosis.n_calibration_rows:,}"),
        ("labels", f"{diagnosis.n_labels:,}"),
        ("slots, K", f"{diagnosis.k}"),
        ("metric", diagnosis.metric_name),
        ("protocol", diagnosis.protocol),
        ("weights", diagnosis.weighting),
        ("within-label AUC", estimated(diagnosis.signal.mean)),
    ]


def tell_loss(diagnosis: Diagnosis) -> list[str]:
    """The decomposition in words; empty without the twin."""
    parts = diagnosis.decomposition
    if parts is None:
        return []
    metric = diagnosis.metric_name
    if parts.loss <= 0:
        change = f"{signed(-parts.loss)} {metric}"
        sentences = [f"The weighted model lost nothing against its twin ({change})."]
    else:
        sentences = [
            f"The weights cost {score(parts.loss)} {metric} against the unweighted twin.",
            *_tell_causes(parts),
            *_tell_repairs(diagnosis, parts),
        ]
    if diagnosis.overlap is not None:
        sentences.append(
            f"On average {diagnosis.overlap.mean:.2f} of {diagnosis.k} shown labels are those the "
            f"twin shows; {small_percent(diagnosis.overlap.share_changed)} of the rows differ."
        )
    if likeness := tell_likeness(diagnosis):
        sentences.append(likeness)
    return sentences


def _tell_causes(parts: Decomposition) -> list[str]:
    """Shares as the waterfall shows them: below zero for a cause that gained."""
    odds, slippage = parts.share("odds"), parts.share("slippage")
    if odds is None or slippage is None:
        return []
    alone = "" if odds >= 0 else "; alone it would have gained"
    less = "" if slippage >= 0 else ": it lost less than the odds shift says"
    return [
        "The odds shift, which an ideal learner would suffer too, accounts for "
        f"{percent(odds)} of it{alone}.",
        "Slippage, what this learner made of it beyond that, accounts for "
        f"{percent(slippage)}{less}.",
    ]


def _tell_repairs(diagnosis: Diagnosis, parts: Decomposition) -> list[str]:
    sentences = []
    inverted, residue = parts.returned.get("inversion"), parts.share("tie_residue")
    repair = repair_of(diagnosis)
    if inverted is not None:
        sentences.append(f"Subtracting ln w returns {percent(inverted)} of the loss.")
    if repair is not None and repair.share is not None and repair.rung != "inversion":
        name = printable(repair.name)
        start = f"Repair chooses {name}, which" if repair.rung == "chosen" else name
        below = parts.returned["ceiling"] - repair.share
        ceiling = f"; the ceiling of per-label maps lies {percent(below)} higher"
        sentences.append(f"{start} returns {percent(repair.share)}{ceiling if below > 0 else ''}.")
    if residue is not None:
        sentences.append(
            f"{percent(residue)} is out of reach of any per-label map: ties."
            if residue > 0
            else "No part is out of reach of per-label maps: their ceiling is at or above the twin."
        )
    return sentences


def tell_shifts(diagnosis: Diagnosis) -> list[str]:
    """How far the intended shift was realized."""
    shifts, n_labels = diagnosis.shifts, diagnosis.n_labels
    sentences = []
    if shifts.median_ratio is not None:
        sentences.append(
            f"The median label realized {times(shifts.median_ratio)} of its ln w "
            f"({shifts.n_known:,} of {int(shifts.weighted.sum()):,} weighted labels can be read)."
        )
    elif shifts.intended is not None:
        sentences.append("No weighted label has a shift that can be read.")
    if shifts.median_direct_ratio is not None:
        sentences.append(
            f"Held against the twin directly, the median is {times(shifts.median_direct_ratio)}."
        )
    budget = finite_budget(shifts)
    if budget is not None:
        beyond = 0 if shifts.unrealizable is None else int(shifts.unrealizable.sum())
        sentences.append(
            f"The step budget is {nat(budget)} nat; ln w lies beyond it for {beyond:,} of "
            f"{n_labels:,} labels."
        )
    elif shifts.budget is not None:
        sentences.append("The leaf step has no cap, so no step budget bounds the shift.")
    sentences += tell_residual(shifts)
    n_drawn = len(choose_labels(n_labels))
    if shifts.intended is not None and n_drawn < n_labels:
        sentences.append(f"{n_drawn:,} of {n_labels:,} labels are drawn, evenly chosen.")
    return sentences


def tiles_of(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Saturation and ties as big numbers: value, name, detail."""
    stored, ties, n = diagnosis.saturation, diagnosis.ties, diagnosis.ladder.n_evaluated
    return [
        (small_percent(stored.share), "cells at exactly 1.0", f"{stored.n_cells:,} cells"),
        (f"{stored.n_labels_hit:,}", "labels with such cells", f"of {diagnosis.n_labels:,} labels"),
        (
            share_of(stored.full_rows, diagnosis.n_rows),
            f"rows with {diagnosis.k} or more of them",
            f"{stored.full_rows:,} of {diagnosis.n_rows:,} rows",
        ),
        (
            share_of(ties.n_rows, n),
            "rows decided by ties",
            f"{ties.n_rows:,} of {n:,} rows with a true label",
        ),
    ]


def tell_ties(diagnosis: Diagnosis) -> str:
    """How far ties can move the metric."""
    ties = diagnosis.ties
    if not ties.n_rows:
        return "No row is decided by ties: the order of tied labels cannot move the metric."
    return (
        f"Depending on how a sort breaks them, ties put the raw {diagnosis.metric_name} anywhere "
        f"from {score(ties.worst)} to {score(ties.best)}. Here the lower label index goes "
        f"first: {score(diagnosis.ladder.value('raw'))}."
    )


def tell_dead(diagnosis: Diagnosis) -> str:
    """The effect of dead labels under the identity policy; empty if there are none."""
    takeover = diagnosis.takeover
    if takeover is None or not takeover.n_dead:
        return ""
    if takeover.n_dead == 1:
        dead = "1 label is dead: it is true in no calibration row. If it kept its raw scores, it"
    else:
        dead = (
            f"{takeover.n_dead:,} labels are dead: they are true in no calibration row. If they "
            "kept their raw scores, they"
        )
    return f"{dead} would take slots in {takeover.n_rows:,} of {diagnosis.n_rows:,} rows."


# Words of the paper that the page uses. docs/glossary.md explains each at more length.
GLOSSARY = {
    "row": "One case to rank labels for: a customer, a document, a patient.",
    "label": "One thing that may be shown: a product, a tag, a diagnosis.",
    "cell": "One score: that of one label in one row.",
    "K": "The number of labels shown per row.",
    "panel": "A table of scores, one line per row and one column per label, with the true labels.",
    "prior": "The share of the training rows in which a label is true.",
    "twin": "The same model trained without weights.",
    "ln w": "The logarithm of a label's weight: the shift of its log-odds that the weight intends.",
    "odds shift": "What a weight does to the ranking when a learner realizes it exactly.",
    "slippage": "What the learner lost beyond the odds shift.",
    "what-if": "The twin with ln w added to its log-odds: an ideal weighted model.",
    "rung": "One way to rank the rows: the raw scores, a repair, or a reference to compare with.",
    "ceiling": "Isotonic maps fitted on the evaluated rows themselves: the best that maps can do.",
    "dead label": "A label that is true in no calibration row, so that no map can be fitted to it.",
    "saturated": "Stored as exactly 1.0, so that the order of such cells is lost.",
}
