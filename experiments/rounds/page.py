"""The page of the study by rounds, and its picture, from finished cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from experiments.rounds.study import DATASETS, GENERATED, GENERATED_SHAPE, PRESET, Cells
from experiments.text import paragraph
from oddslip.core.types import JsonObject
from oddslip.planning.rounds import Rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = "enron"
SAME = 1e-12  # costs below are rounding


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_lines(cells)) + "\n"


def draw(cells: Cells) -> Figure:
    """The judged rows of one data set by rounds."""
    figure: Figure = _rounds(cells[DRAWN]["judge"]).plot()
    return figure


def _rounds(cell: JsonObject) -> Rounds:
    values: JsonObject = {}
    for field in fields(Rounds):
        value = cell[field.name]
        values[field.name] = tuple(value) if isinstance(value, list) else value
    return Rounds(**values)


def _lines(cells: Cells) -> Iterator[str]:
    yield "# Slippage by rounds"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments rounds --finished --page docs/paper/rounds.md --figure "
        "docs/paper/rounds.png` from `experiments/results/rounds.jsonl`. The same command without "
        "`--finished` trains what is missing. One LightGBM model per label with the weight "
        f"negatives / positives, preset `{PRESET}` (200 rounds), measured after a dozen numbers "
        "of rounds. MULAN sets are split by the protocol `paper` of that study: trained on the "
        "fitted rows, stopped by the calibration rows, judged on the test rows. "
        f"`{GENERATED}` are {GENERATED_SHAPE[0]:,} synthetic rows of {GENERATED_SHAPE[1]} labels, "
        "a third for each purpose. Repaired is the metric after a hierarchical repair, "
        "cross-fitted on the rows that are measured."
    )
    yield ""
    yield f"![MAP@K by rounds on the test rows of {DRAWN}](rounds.png)"
    yield ""
    yield "## Where to stop"
    yield ""
    yield from paragraph(
        "Stop by raw: after the rounds at which the raw metric of the calibration rows is best. "
        "Stop by repaired: where the repaired metric of the same rows is best. Both columns are "
        "the repaired metric of the judged rows."
    )
    yield ""
    yield "| data set | K | labels | stop by raw | repaired | stop by repaired | repaired | cost |"
    yield "|---|---|---|---|---|---|---|---|"
    costs = []
    for name in (name for name in DATASETS if name in cells):
        cell = cells[name]
        raw, repaired = cell["by_raw"], cell["by_repaired"]
        costs.append(repaired["repaired"] - raw["repaired"])
        yield (
            f"| {name} | {cell['k']} | {cell['n_labels']} "
            f"| {raw['rounds']} | {raw['repaired']:.4f} "
            f"| {repaired['rounds']} | {repaired['repaired']:.4f} | {costs[-1]:+.4f} |"
        )
    yield ""
    if costs:
        worse = sum(cost > SAME for cost in costs)
        yield from paragraph(
            f"Stopping by raw costs on {worse} of {len(costs)} sets, {max(costs):+.4f} at most and "
            f"{sum(costs) / len(costs):+.4f} on average. `OneVsRest(early_stopping=..., "
            'stop_by="repaired")` and `MapAtK(repaired=...)` stop by the repaired metric.'
        )
        yield ""
    yield "## By rounds"
    for name in (name for name in DATASETS if name in cells):
        yield from _table(name, _rounds(cells[name]["judge"]))


def _table(name: str, rounds: Rounds) -> Iterator[str]:
    yield ""
    yield f"### {name}"
    yield ""
    yield "| rounds | raw | repaired | cells at 1.0 | realized shift |"
    yield "|---|---|---|---|---|"
    assert rounds.shift_ratio is not None
    columns = (rounds.rounds, rounds.raw, rounds.repaired, rounds.saturated, rounds.shift_ratio)
    for number, raw, repaired, share, ratio in zip(*columns, strict=True):
        yield f"| {number} | {raw:.4f} | {repaired:.4f} | {share:.2%} | {ratio:.2f} |"
