"""Advice: the same words wherever a finding recommends something, so that no two disagree."""

from __future__ import annotations

from oddslip.diagnosis.comparison import (
    chosen_repair,
    is_below_popularity,
    is_sound,
    lacks_signal,
    name_repair,
    rises_in_vain,
    try_inversion,
    twin_standing,
    weights_are_strange,
)
from oddslip.diagnosis.findings import Severity
from oddslip.diagnosis.result import Measurements


def advise_repair(d: Measurements) -> str:
    """Which repair to take, by the ladder."""
    if lacks_signal(d):
        return "Repair nothing before it is known why the scores hold no signal within labels."
    trial, repair = try_inversion(d), chosen_repair(d)
    if repair is None and is_below_popularity(d):
        return "Show the labels by popularity, for no repair surely beats that list on these rows."
    if repair is None and rises_in_vain(d):
        return (
            "Keep the raw scores, for no repair surely beats both them and the same list in every "
            "row on these rows."
        )
    if repair is None:
        return "Keep the raw scores, for no repair surely beats them on these rows."
    if trial is not None and trial.outcome == "undecided" and trial.to_raw == "above":
        return (
            f"Compare inversion and {name_repair(d, trial.other or '')} on more rows; on these "
            f"{name_repair(d, repair)} is the higher, but not by a sure and material difference."
        )
    if repair == "inversion":
        return "Subtract ln w from the log-odds (calibrator inversion); no rows are needed to fit."
    return (
        "Calibrate on held-out rows like those you serve (`oddslip fit`, Repair), which on these "
        f"chooses {name_repair(d, repair)}."
    )


def weights_may_go(d: Measurements) -> bool:
    """Whether training without the weights is worth advising: not where the twin is worse."""
    return (
        d.weighting == "label-specific"
        and not lacks_signal(d)
        and twin_standing(d) not in ("below", "level")
        and not weights_are_strange(d)
    )


def grave_if_repaired(d: Measurements) -> Severity:
    """What is wrong with calibration rows matters where something is to be repaired."""
    return "info" if is_sound(d) or lacks_signal(d) else "warning"


def within(sentence: str) -> str:
    """A sentence to follow a colon."""
    return sentence[0].lower() + sentence[1:]
