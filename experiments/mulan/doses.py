"""Dose and response: what the four weight magnitudes leave of the ranking, raw and repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from experiments.figures.doses import MagnitudeLine
from experiments.mulan.arms import LEARNERS
from experiments.mulan.regularities import COLLAPSE
from experiments.mulan.table import TABLE_2, Cells
from experiments.store import WEIGHTS

SHOWN = {"1": "1", "sqrt": "√r", "r": "r", "10r": "10r"}


def magnitude_lines(cells: Cells) -> list[MagnitudeLine]:
    """MAP@K at each weight, learner by learner; data sets with no finished cell are left out."""
    lines = []
    for learner in LEARNERS:
        for data in TABLE_2:
            row_cells = [cells.get(f"{data}-{learner}-{weight}") for weight in WEIGHTS]
            if data in cells and any(cell is not None for cell in row_cells):
                raw, repaired = (
                    tuple(None if cell is None else cell["map"][rung] for cell in row_cells)
                    for rung in ("raw", "isotonic")
                )
                lines.append(MagnitudeLine(learner, data, cells[data]["n_labels"], raw, repaired))
    return lines


def falls_with_the_dose(values: Sequence[float | None]) -> bool:
    """Whether all values are known and none is above the one before."""
    present = [value for value in values if value is not None]
    falling = all(after <= before for before, after in pairwise(present))
    return falling and len(present) == len(values)


def format_doses(cells: Cells) -> list[str]:
    """The section of the page, as lines of Markdown."""
    lines = magnitude_lines(cells)
    return [
        "## Dose and response",
        "",
        "![Share of the unweighted MAP@K at four weight magnitudes](mulan-doses.png)",
        "",
        "Weights 1, √r, r and 10r. Above: the model as trained; below: after per-label isotonic",
        "with the prior policy. Marked data sets fall below half at some weight (dotted line).",
        "",
        "Cells that keep less than half of their unweighted MAP@K, of those finished:",
        "",
        *_count_collapses(lines),
        "",
        "Means over the data sets whose four weights are finished. Realized: the realized over the",
        "intended shift, median over labels and then over data sets.",
        "",
        *_format_means(cells, lines),
        "",
        "Raw MAP@K at 1, √r, r, 10r. Bold: no step of the dose raises it.",
        "",
        *_table(lines, "raw"),
        "",
        *_format_monotone(lines),
        "",
        "The same after per-label isotonic with the prior policy.",
        "",
        *_table(lines, "repaired"),
        "",
    ]


def _count_collapses(lines: Sequence[MagnitudeLine]) -> Iterator[str]:
    yield "| | " + " | ".join(SHOWN[weight] for weight in WEIGHTS) + " |"
    yield "|---" * (len(WEIGHTS) + 1) + "|"
    for what in ("raw", "repaired"):
        texts = []
        for at in range(len(WEIGHTS)):
            shares = [
                value / line.raw[0]
                for line in lines
                if (value := getattr(line, what)[at]) is not None and line.raw[0]
            ]
            texts.append(f"{sum(share < COLLAPSE for share in shares)} of {len(shares)}")
        yield f"| {what} | " + " | ".join(texts) + " |"


def _format_means(cells: Cells, lines: Sequence[MagnitudeLine]) -> Iterator[str]:
    yield (
        "| learner | w | raw | isotonic | ceiling | inversion | what-if "
        "| AUC | distinct | saturated | realized | data sets |"
    )
    yield "|---" * 12 + "|"
    for learner in LEARNERS:
        whole = [line.data for line in lines if line.learner == learner and None not in line.raw]
        for weight in WEIGHTS if whole else ():
            row_cells = [cells[f"{data}-{learner}-{weight}"] for data in whole]
            rungs = [
                _middle([cell["map"].get(rung) for cell in row_cells], ".3f")
                for rung in ("raw", "isotonic", "ceiling", "inversion", "what-if")
            ]
            scores = [
                _middle([cell.get(name) for cell in row_cells], form)
                for name, form in (("auc", ".3f"), ("distinct", ".0f"), ("saturated_share", ".2%"))
            ]
            # Where ln w is near 0 the ratio has no size, so one data set could carry a mean.
            ratio = _middle([cell.get("median_realized") for cell in row_cells], ".2f", median)
            texts = " | ".join([*rungs, *scores, ratio, str(len(whole))])
            yield f"| {learner} | {SHOWN[weight]} | {texts} |"


def _middle(values: Sequence[Any], form: str, of: Callable[[list[float]], float] = fmean) -> str:
    present = [value for value in values if value is not None]
    return format(of(present), form) if present else "-"


def _table(lines: Sequence[MagnitudeLine], what: str) -> Iterator[str]:
    learners = list(dict.fromkeys(line.learner for line in lines))
    yield "| data set | " + " | ".join(learners) + " |"
    yield "|---" * (len(learners) + 1) + "|"
    by_name = {(line.data, line.learner): getattr(line, what) for line in lines}
    for data in dict.fromkeys(line.data for line in lines):
        texts = []
        for learner in learners:
            values = by_name.get((data, learner), (None,) * len(WEIGHTS))
            text = " ".join("-" if value is None else f"{value:.3f}" for value in values)
            texts.append(f"**{text}**" if falls_with_the_dose(values) else text)
        yield f"| {data} | " + " | ".join(texts) + " |"


def _format_monotone(lines: Sequence[MagnitudeLine]) -> Iterator[str]:
    for learner in dict.fromkeys(line.learner for line in lines):
        whole = [line for line in lines if line.learner == learner and None not in line.raw]
        falling = [line.data for line in whole if falls_with_the_dose(line.raw)]
        text = f": {', '.join(falling)}" if falling else ""
        yield f"- {learner}: monotone in the dose on {len(falling)} of {len(whole)} sets{text}"
