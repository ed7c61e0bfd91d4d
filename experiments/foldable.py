"""`reproduce_foldable`: what a repair loses if it must be foldable, and the page of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.row_aware.panels import Panel, list_panels, measure_panels
from experiments.store import RESULTS, CellStore
from experiments.text import paragraph
from oddslip.core.arguments import check_k
from oddslip.metrics import average_precision_at_k
from oddslip.selection.repair import Repair

DATASETS = (
    *("emotions", "scene", "flags", "yeast", "birds", "genbase", "medical", "enron"),
    *("bibtex", "corel5k", "delicious", "tmc2007-500"),
)
MEASURES = 1  # raised when what a cell measures changes
SAME = 1e-12

Cells = dict[str, dict[str, Any]]


def reproduce_foldable(
    *,
    datasets: Sequence[str] = DATASETS,
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work",
    finished: bool = False,
) -> Cells:
    """Repair every panel twice, freely and foldable; returns all finished cells by key.

    Panels are those of `experiments.row_aware`: fitted on calibration rows, judged on test rows.
    """
    store = CellStore(results, "foldable")
    if not finished:
        measure_panels(
            store,
            {name: list_panels(name, data, Path(work)) for name in datasets},
            lambda panel, _: measure(panel),
            {"measures": MEASURES},
            command="python -m experiments foldable --dataset {}",
        )
    return store.require(store.values())


def measure(panel: Panel) -> dict[str, Any]:
    """Choices and test metrics of a free and of a foldable repair."""
    scored = panel.load()
    k = check_k(scored.k, scored.truth.shape[1])
    values: dict[str, Any] = {"k": k, "n_rows": len(scored.truth)}
    values["raw"] = float(average_precision_at_k(scored.test, scored.test_truth, k=k))
    for name, foldable in (("free", False), ("foldable", True)):
        repair = Repair(k=k, prior=scored.prior, weights=scored.weights, foldable=foldable)
        repair.fit(scored.calibration, scored.truth, threads=1)
        repaired = repair.fitted_.transform(scored.test, dtype=np.float64, threads=1)
        level = float(average_precision_at_k(repaired, scored.test_truth, k=k))
        values[name] = {"chosen": repair.chosen_, "map": level}
    return values


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_lines(cells)) + "\n"


def _lines(cells: Cells) -> Iterator[str]:
    yield "# What a foldable repair costs"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments foldable --finished --page docs/paper/foldable.md` from "
        "`experiments/results/foldable.jsonl`. Each panel is a trained arm of the "
        "[MULAN study](mulan.md), protocol `paper`, unweighted or with the weights r. `Repair` is "
        "fitted on the calibration rows twice, with all its candidates and with `foldable=True`, "
        "and judged by MAP@K of the test rows."
    )
    yield ""
    cost = np.array([cell["free"]["map"] - cell["foldable"]["map"] for cell in cells.values()])
    over_raw = {
        name: np.array([cell[name]["map"] - cell["raw"] for cell in cells.values()])
        for name in ("free", "foldable")
    }
    same = sum(cell["free"]["chosen"] == cell["foldable"]["chosen"] for cell in cells.values())
    yield from paragraph(
        f"Over {len(cells)} panels the free choice gains {over_raw['free'].mean():+.4f} over raw, "
        f"the foldable one {over_raw['foldable'].mean():+.4f}: folding costs {cost.mean():.4f} on "
        f"average, {cost.max():.4f} at most. Both choose the same in {same} panels. The foldable "
        f"repair ranks worse in {int((cost > SAME).sum())} and better in "
        f"{int((cost < -SAME).sum())}; its worst change against raw is "
        f"{over_raw['foldable'].min():+.4f}."
    )
    yield ""
    yield "| data set | panels | gain over raw, free | foldable | cost, mean | largest |"
    yield "|---|---|---|---|---|---|"
    names = np.array([next(n for n in DATASETS if key.startswith(f"{n}-")) for key in cells])
    for name in (name for name in DATASETS if name in names):
        inside = names == name
        yield (
            f"| {name} | {int(inside.sum())} | {over_raw['free'][inside].mean():+.4f} "
            f"| {over_raw['foldable'][inside].mean():+.4f} | {cost[inside].mean():.4f} "
            f"| {cost[inside].max():.4f} |"
        )
    yield ""
    yield "Panels in which the choices differ:"
    yield ""
    yield "| panel | raw | free choice | MAP@K | foldable choice | MAP@K | cost |"
    yield "|---|---|---|---|---|---|---|"
    for key, cell in cells.items():
        free, foldable = cell["free"], cell["foldable"]
        if free["chosen"] != foldable["chosen"]:
            yield (
                f"| {key} | {cell['raw']:.4f} | {free['chosen']} | {free['map']:.4f} "
                f"| {foldable['chosen']} | {foldable['map']:.4f} "
                f"| {free['map'] - foldable['map']:+.4f} |"
            )
