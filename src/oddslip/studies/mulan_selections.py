"""The paper's negative result and its selection rule, computed from finished cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oddslip.studies import mulan_paper as paper
from oddslip.studies.mulan_arms import LEARNERS
from oddslip.studies.mulan_paper import TABLE_2
from oddslip.studies.mulan_regularities import DEFAULT, Cells, Finding

CHOSEN_ON = ("emotions", "birds", "medical", "enron", "corel5k")  # constants of the default rule
RULES_TOLD = ("tau 0", "paper", "auto")
LARGEST_TAU = "isotonic-10"
BELOW = -0.01  # a cell this far below raw is counted

# Data set, learner and weight of a cell: what the rules chose in it.
Chosen = dict[tuple[str, str, str], Mapping[str, Any]]


def find_selections(cells: Cells) -> list[Finding]:
    """Every number of the selection rule that the finished cells allow."""
    chosen = finished_choices(cells)
    return [*_hurt(cells, chosen), *_kept(chosen), *_grid(chosen), *_pooled(cells)]


def compare_rules_told(cells: Cells) -> list[tuple[str, str, str, str, str, str, str]]:
    """Per group of data sets and rule: below raw, surely below, worst, mean gain, cells."""
    chosen = finished_choices(cells)
    tuned = {key: cell for key, cell in chosen.items() if key[0] in CHOSEN_ON}
    apart = {key: cell for key, cell in chosen.items() if key not in tuned}
    lines = []
    for group, some, all_of in (
        ("all eleven", chosen, 110),
        ("the five the default rule was chosen on", tuned, 50),
        ("the other six", apart, 60),
    ):
        for rule in RULES_TOLD if some else ():
            gains = {key: cell[rule]["difference"] for key, cell in some.items()}
            worst = min(gains, key=lambda key: gains[key])
            lines.append(
                (
                    group,
                    rule,
                    str(sum(gain < BELOW for gain in gains.values())),
                    str(sum(cell[rule]["high"] < 0 for cell in some.values())),
                    f"{gains[worst]:+.3f} ({'-'.join(worst)})",
                    f"{sum(gains.values()) / len(gains):+.4f}",
                    f"{len(some)} of {all_of}",
                )
            )
    return lines


def _hurt(cells: Cells, chosen: Chosen) -> Iterator[Finding]:
    """Default LightGBM at w = 1."""
    plain = {data: cells.get(f"{data}-{DEFAULT}-1") for data in TABLE_2}
    losses = {
        data: cell["map"]["raw"] - cell["map"]["isotonic"]
        for data, cell in plain.items()
        if cell is not None
    }
    who = "default LightGBM at w = 1"
    if losses:
        hurt = [data for data, loss in losses.items() if loss > 0.005]
        yield Finding(
            f"sets where isotonic loses more than 0.005, {who}", len(hurt), "d",
            paper.HURT_DEFAULT, f"{len(losses)} of 11 data sets", ", ".join(hurt),
        )  # fmt: skip
    told = {data: chosen[data, DEFAULT, "1"] for data in TABLE_2 if (data, DEFAULT, "1") in chosen}
    of = f"{len(told)} of 11 data sets"
    for rule, what, printed in (
        ("tau 0", "isotonic", paper.HURT_SURELY),
        ("paper", "the paper's rule", paper.HURT_AFTER_CHOICE),
        ("auto", "our default rule", ""),
    ):
        if told:
            below = [data for data, cell in told.items() if cell[rule]["high"] < 0]
            yield Finding(
                f"sets where {what} is below raw with an interval below 0, {who}",
                len(below), "d", printed, of, ", ".join(below),
            )  # fmt: skip
    if "delicious" in told:
        gain = told["delicious"]["paper"]
        for name, printed in paper.DELICIOUS_GAIN.items():
            part = {"value": "gain", "low": "lower end", "high": "upper end"}[name]
            value = gain["difference" if name == "value" else name]
            yield Finding(
                f"delicious, {who}: {part} of the paper's rule over raw", value, "+.3f", printed,
                "1 cell",
            )  # fmt: skip


def _kept(chosen: Chosen) -> Iterator[Finding]:
    """What the paper's rule chose for the default LightGBM at w = 1."""
    for wanted, what in (
        (paper.KEPT_RAW, "keeps raw on"),
        (paper.KEPT_PER_LABEL, "keeps per-label isotonic on"),
    ):
        told = {
            data: chosen[data, DEFAULT, "1"]["paper"]["chosen"]
            for data in wanted
            if (data, DEFAULT, "1") in chosen
        }
        if told:
            raw = wanted is paper.KEPT_RAW
            same = [d for d, name in told.items() if (name == "raw" if raw else _per_label(name))]
            yield Finding(
                f"the paper's rule {what}, of {', '.join(wanted)}", len(same), "d",
                str(len(wanted)), f"{len(told)} of {len(wanted)} data sets",
                ", ".join(f"{data}: {name}" for data, name in told.items()),
            )  # fmt: skip


def _grid(chosen: Chosen) -> Iterator[Finding]:
    """Of all choices at w = 1 and w = r."""
    if not chosen:
        return
    of = f"{len(chosen)} of 110 cells"
    for rule in ("paper", "tau 0"):
        gains = {key: cell[rule]["difference"] for key, cell in chosen.items()}
        below = sum(gain < BELOW for gain in gains.values())
        name = "the paper's rule" if rule == "paper" else "tau = 0"
        what = f"cells more than 0.01 below raw under {name}"
        yield Finding(what, below, "d", paper.BELOW_RAW[rule], of)
        if rule == "paper":
            worst = min(gains, key=lambda key: gains[key])
            yield Finding(
                "the worst cell of the paper's rule, less raw", gains[worst], "+.3f",
                paper.WORST_BELOW_RAW, of, "-".join(worst),
            )  # fmt: skip
    names = [cell["paper"]["chosen"] for cell in chosen.values()]
    own = [name for name in names if _per_label(name)]
    yield Finding(
        "per-label maps among the choices of the paper's rule", len(own), "d",
        paper.CHOSEN_PER_LABEL, of,
    )  # fmt: skip
    yield Finding(
        "of these with the largest tau, 10", own.count(LARGEST_TAU), "d",
        paper.CHOSEN_LARGEST_TAU, of,
    )  # fmt: skip


def _pooled(cells: Cells) -> Iterator[Finding]:
    gains = [
        cell["map"]["pooled"] - cell["map"]["raw"]
        for data in TABLE_2
        for learner in LEARNERS
        for weight in ("1", "r")
        if "pooled" in (cell := cells.get(f"{data}-{learner}-{weight}", {})).get("map", {})
    ]
    if gains:
        yield Finding(
            "cells where the pooled map is more than 0.01 below raw",
            sum(gain < BELOW for gain in gains), "d", paper.POOLED_BELOW_RAW,
            f"{len(gains)} of 110 cells",
        )  # fmt: skip


def finished_choices(cells: Cells) -> Chosen:
    """What the rules chose in the cells of the paper's data sets, where that is finished."""
    return {
        (data, learner, weight): cells[f"{data}-{learner}-{weight}-choices"]
        for data in TABLE_2
        for learner in LEARNERS
        for weight in ("1", "r")
        if f"{data}-{learner}-{weight}-choices" in cells
    }


def _per_label(name: str) -> bool:
    return name.startswith("isotonic")
