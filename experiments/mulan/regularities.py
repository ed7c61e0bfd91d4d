"""The regularities of the paper's section 4 and its selection rule, from finished cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.mulan import table as paper
from experiments.mulan.arms import LEARNERS
from experiments.mulan.table import TABLE_2, Cells

DEFAULT = "lightgbm"
MANY_LABELS = ("delicious", "corel5k")
COLLAPSE = 0.5  # a cell that keeps less than this share of its unweighted MAP has collapsed
CHOSEN_ON = ("emotions", "birds", "medical", "enron", "corel5k")  # constants of the default rule
RULES_TOLD = ("tau 0", "paper", "auto")
LARGEST_TAU = "isotonic-10"
BELOW = -0.01  # a cell this far below raw is counted
# Data set, learner and weight of a cell: what the rules chose in it.
Chosen = dict[tuple[str, str, str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A number of the paper's text: what it is, ours, and its digits in the paper.

    ``form`` is how it is printed, ``paper`` is empty where the paper has no such number, ``of``
    says how many cells there were, ``note`` follows our number in brackets.
    """

    what: str
    value: float
    form: str
    paper: str
    of: str
    note: str = ""

    @property
    def ours(self) -> str:
        """Our number as it would be printed."""
        text = format(round(self.value), "d") if self.form == "d" else format(self.value, self.form)
        return text + (f" ({self.note})" if self.note else "")

    @property
    def difference(self) -> str:
        """Ours less the printed one; 0 where they agree to the digits printed."""
        if not self.paper:
            return ""
        form = "+d" if self.form == "d" else f"+{self.form.lstrip('+')}"
        gap = self.value - float(self.paper)
        text = format(round(gap), form) if self.form == "d" else format(gap, form)
        return text if float(text) else "0"


def find_regularities(cells: Cells) -> list[Finding]:
    """Every number of regularities (i) to (iv) that the finished cells allow."""
    return [
        *_collapses(cells),
        *_gaps(cells),
        *_default_on_many_labels(cells),
        *_dead_labels(cells),
        *_modest(cells),
        *_what_if(cells),
        *_regularised(cells),
    ]


def pairs(cells: Cells) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    """Data set, learner, unweighted cell and cell at w = r, where both are finished."""
    for data in TABLE_2:
        for learner in LEARNERS:
            plain, weighted = (cells.get(f"{data}-{learner}-{w}") for w in ("1", "r"))
            if plain is not None and weighted is not None:
                yield data, learner, plain, weighted


def _collapses(cells: Cells) -> Iterator[Finding]:
    ratios = {
        (data, learner): weighted["map"]["raw"] / plain["map"]["raw"]
        for data, learner, plain, weighted in pairs(cells)
    }
    of = f"{len(ratios)} of 55 cells"
    for threshold, printed in paper.COLLAPSES.items():
        count = sum(share < threshold for share in ratios.values())
        what = f"(i) cells at w = r that keep less than {threshold} of their unweighted MAP"
        yield Finding(what, count, "d", printed, of)
    for metric, name in (("ndcg", "nDCG"), ("recall", "recall")):
        count = sum(
            weighted[metric]["raw"] < COLLAPSE * plain[metric]["raw"]
            for _, _, plain, weighted in pairs(cells)
            if metric in plain and metric in weighted
        )
        what = f"(i) cells at w = r that keep less than {COLLAPSE} of their unweighted {name}"
        yield Finding(what, count, "d", "", of)
    for data, printed in paper.COLLAPSED.items():
        names = [
            learner
            for (name, learner), share in ratios.items()
            if name == data and share < COLLAPSE
        ]
        there = sum(name == data for name, _ in ratios)
        yield Finding(
            f"(i) learners that collapse on {data}",
            len(names),
            "d",
            printed,
            f"{there} of 5 learners",
            ", ".join(names),
        )
    others = [
        name for (name, _), share in ratios.items() if name not in paper.COLLAPSED and share < 0.5
    ]
    yield Finding("(i) cells that collapse elsewhere", len(others), "d", "0", of, ", ".join(others))


def _gaps(cells: Cells) -> Iterator[Finding]:
    """Both readings of "its unweighted arm"; the one nearer to the printed numbers beside them."""
    many = [item for item in pairs(cells) if item[0] in MANY_LABELS]
    for rung, extreme, what, printed in (
        ("isotonic", max, "largest gap of the repaired", paper.LARGEST_REPAIRED_GAP),
        ("pooled", min, "smallest gap of the pooled map", paper.SMALLEST_POOLED_GAP),
    ):
        for repaired, under in (("isotonic", "under isotonic"), ("raw", "as it is")):
            gaps = {
                f"{data}, {learner}": plain["map"][repaired] - weighted["map"][rung]
                for data, learner, plain, weighted in many
            }
            if gaps:
                where = extreme(gaps, key=lambda name: gaps[name])
                yield Finding(
                    f"(i) delicious and Corel5k: {what} to the unweighted arm {under}",
                    gaps[where],
                    ".3f",
                    printed if repaired == "isotonic" else "",
                    f"{len(many)} of 10 cells",
                    where,
                )


def _default_on_many_labels(cells: Cells) -> Iterator[Finding]:
    for data, learner, plain, weighted in pairs(cells):
        if learner != DEFAULT or data not in MANY_LABELS:
            continue
        yield Finding(
            f"(i) {data}: pooled map at w = r, default LightGBM",
            weighted["map"]["pooled"],
            ".3f",
            paper.POOLED[data],
            "1 cell",
        )
        if data == "delicious" and "auc" in weighted:
            for w, cell in (("1", plain), ("r", weighted)):
                yield Finding(
                    f"(i) delicious: within-label AUC at w = {w}, default LightGBM",
                    cell["auc"],
                    ".3f",
                    paper.DELICIOUS_AUC[w],
                    "1 cell",
                )


def _dead_labels(cells: Cells) -> Iterator[Finding]:
    if "n_dead" in cells.get("corel5k", {}):
        dead = cells["corel5k"]["n_dead"]
        yield Finding("(i) corel5k: dead labels", dead, "d", paper.COREL_DEAD, "1 data set")
    rungs_of = {
        learner: weighted["map"]
        for data, learner, _, weighted in pairs(cells)
        if data == "corel5k" and "isotonic, identity" in weighted["map"]
    }
    if DEFAULT in rungs_of:
        yield Finding(
            "(i) corel5k: identity policy at w = r, default LightGBM",
            rungs_of[DEFAULT]["isotonic, identity"],
            ".3f",
            paper.COREL_IDENTITY,
            "1 cell",
        )
    gaps = {
        name: rungs["isotonic"] - rungs["isotonic, identity"] for name, rungs in rungs_of.items()
    }
    if gaps:
        least = min(gaps, key=lambda name: gaps[name])
        yield Finding(
            "(i) corel5k: smallest gap of prior less identity policy at w = r",
            gaps[least],
            ".3f",
            paper.COREL_SMALLEST_IDENTITY_GAP,
            f"{len(gaps)} of 5 learners",
            least,
        )


def _modest(cells: Cells) -> Iterator[Finding]:
    modest = [data for data, row in TABLE_2.items() if float(row["max_r"]) < 100]
    changes = {
        (data, learner): weighted["map"]["raw"] - plain["map"]["raw"]
        for data, learner, plain, weighted in pairs(cells)
        if data in modest
    }
    for who, printed, learners in (
        ("default LightGBM", paper.MODEST_DEFAULT, (DEFAULT,)),
        ("all learners", paper.MODEST_ALL, tuple(LEARNERS)),
    ):
        some = {key: change for key, change in changes.items() if key[1] in learners}
        of = f"{len(some)} of {4 * len(learners)} cells"
        for extreme, digits, name in zip((min, max), printed, ("worst", "best"), strict=True):
            if some:
                where = extreme(some, key=lambda key: some[key])
                yield Finding(
                    f"(ii) {name} change at w = r where max r < 100, {who}",
                    some[where],
                    "+.3f",
                    digits,
                    of,
                    ", ".join(where),
                )


def _what_if(cells: Cells) -> Iterator[Finding]:
    gaps = {
        data: abs(w["map"]["what-if"] - w["map"]["raw"])
        for data, learner, _, w in pairs(cells)
        if learner == DEFAULT
    }
    if gaps:
        yield Finding(
            "(iii) data sets whose what-if is within 0.03 of the trained model, default LightGBM",
            sum(gap < 0.03 for gap in gaps.values()),
            "d",
            paper.WHAT_IF_CLOSE,
            f"{len(gaps)} of 11 data sets",
        )


def _regularised(cells: Cells) -> Iterator[Finding]:
    name = "lightgbm-regularised"
    for what, printed in paper.ENRON_REGULARISED.items():
        rung, _, weight = what.partition(" at w = ")
        cell = cells.get(f"enron-{name}-{weight}")
        if cell is not None:
            value = cell["map"][rung]
            yield Finding(f"(iii) enron, regularised: {what}", value, ".3f", printed, "1 cell")
    for weight, printed in paper.MEDICAL_DISTINCT.items():
        cell = cells.get(f"medical-{name}-{weight}")
        if cell is not None:
            what = f"(iv) medical, regularised: distinct scores per label at w = {weight}"
            form = ".1f" if "." in printed else "d"
            yield Finding(what, cell["distinct"], form, printed, "1 cell")
    cell = cells.get(f"medical-{name}-10r")
    if cell is not None:
        yield Finding(
            "(iv) medical, regularised: % of cells saturated at w = 10r",
            100 * cell["saturated_share"],
            ".2f",
            paper.MEDICAL_SATURATED,
            "1 cell",
        )


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
            f"sets where isotonic loses more than 0.005, {who}",
            len(hurt),
            "d",
            paper.HURT_DEFAULT,
            f"{len(losses)} of 11 data sets",
            ", ".join(hurt),
        )
    choices = {
        data: chosen[data, DEFAULT, "1"] for data in TABLE_2 if (data, DEFAULT, "1") in chosen
    }
    of = f"{len(choices)} of 11 data sets"
    for rule, what, printed in (
        ("tau 0", "isotonic", paper.HURT_SURELY),
        ("paper", "the paper's rule", paper.HURT_AFTER_CHOICE),
        ("auto", "our default rule", ""),
    ):
        if choices:
            below = [data for data, cell in choices.items() if cell[rule]["high"] < 0]
            yield Finding(
                f"sets where {what} is below raw with an interval below 0, {who}",
                len(below),
                "d",
                printed,
                of,
                ", ".join(below),
            )
    if "delicious" in choices:
        gain = choices["delicious"]["paper"]
        for name, printed in paper.DELICIOUS_GAIN.items():
            part = {"value": "gain", "low": "lower end", "high": "upper end"}[name]
            value = gain["difference" if name == "value" else name]
            yield Finding(
                f"delicious, {who}: {part} of the paper's rule over raw",
                value,
                "+.3f",
                printed,
                "1 cell",
            )


def _kept(chosen: Chosen) -> Iterator[Finding]:
    """What the paper's rule chose for the default LightGBM at w = 1."""
    for cells_of_paper, what in (
        (paper.KEPT_RAW, "keeps raw on"),
        (paper.KEPT_PER_LABEL, "keeps per-label isotonic on"),
    ):
        choices = {
            data: chosen[data, DEFAULT, "1"]["paper"]["chosen"]
            for data in cells_of_paper
            if (data, DEFAULT, "1") in chosen
        }
        if choices:
            raw = cells_of_paper is paper.KEPT_RAW
            same = [
                d for d, name in choices.items() if (name == "raw" if raw else _per_label(name))
            ]
            yield Finding(
                f"the paper's rule {what}, of {', '.join(cells_of_paper)}",
                len(same),
                "d",
                str(len(cells_of_paper)),
                f"{len(choices)} of {len(cells_of_paper)} data sets",
                ", ".join(f"{data}: {name}" for data, name in choices.items()),
            )


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
                "the worst cell of the paper's rule, less raw",
                gains[worst],
                "+.3f",
                paper.WORST_BELOW_RAW,
                of,
                "-".join(worst),
            )
    names = [cell["paper"]["chosen"] for cell in chosen.values()]
    per_label = [name for name in names if _per_label(name)]
    yield Finding(
        "per-label maps among the choices of the paper's rule",
        len(per_label),
        "d",
        paper.CHOSEN_PER_LABEL,
        of,
    )
    yield Finding(
        "of these with the largest tau, 10",
        per_label.count(LARGEST_TAU),
        "d",
        paper.CHOSEN_LARGEST_TAU,
        of,
    )


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
            sum(gain < BELOW for gain in gains),
            "d",
            paper.POOLED_BELOW_RAW,
            f"{len(gains)} of 110 cells",
        )


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
