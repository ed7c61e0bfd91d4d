"""`reproduce_screening`: does dropping candidates early change a choice, and the page of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from experiments.row_aware.panels import DATASETS, SKIPPED, Panel, list_panels, measure_panels
from experiments.store import RESULTS, CellStore
from experiments.text import paragraph
from oddslip.core.arguments import check_k
from oddslip.metrics import average_precision_at_k
from oddslip.selection.candidates import Candidate
from oddslip.selection.repair import Repair
from oddslip.selection.rules import RULES, Rule
from oddslip.selection.trials import Trials

MEASURES = 1  # raised when what a cell measures changes
# The study trains what the row-aware study leaves out of its smaller sets.
LEFT_OUT = {name: SKIPPED[name] for name in SKIPPED if name not in ("bibtex", "corel5k")}

Cells = dict[str, dict[str, Any]]


class Unscreened(Rule):
    """A rule that tries every candidate in every repeat of the folds."""

    def contenders(self, trials: Trials) -> tuple[Candidate, ...]:
        """All of them."""
        return trials.candidates


def unscreened(rule: Rule) -> Unscreened:
    """The same rule without dropping.

    Examples
    --------
    >>> rule = RULES["auto"]
    >>> unscreened(rule).candidates == rule.candidates
    True
    """
    return Unscreened(**{field.name: getattr(rule, field.name) for field in fields(rule)})


def reproduce_screening(
    *,
    datasets: Sequence[str] = DATASETS,
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work",
    finished: bool = False,
) -> Cells:
    """Repair every panel with and without dropping candidates; returns all finished cells by key.

    Panels are those of `experiments.row_aware`: fitted on calibration rows, judged on test rows.
    """
    store = CellStore(results, "screening")
    if not finished:
        measure_panels(
            store,
            {name: list_panels(name, data, Path(work), LEFT_OUT) for name in datasets},
            measure,
            {"measures": MEASURES},
            command="python -m experiments screening --dataset {}",
        )
    cells = {
        key: cell["values"] | {"cpu": [cell["cpu_screened"], cell["cpu_whole"]]}
        for key, cell in sorted(store.cells().items())
    }
    return store.require(cells)


def measure(panel: Panel, timings: dict[str, float]) -> dict[str, Any]:
    """Choices and test metrics of a repair that drops candidates, and of one that does not."""
    scored = panel.load()
    k = check_k(scored.k, scored.truth.shape[1])
    values: dict[str, Any] = {
        "k": k,
        "n_rows": len(scored.truth),
        "raw": float(average_precision_at_k(scored.test, scored.test_truth, k=k)),
    }
    rule = RULES["auto"]
    for name, each in (("screened", rule), ("whole", unscreened(rule))):
        started = time.process_time()
        repair = Repair(k=k, rule=each, prior=scored.prior, weights=scored.weights)
        repair.fit(scored.calibration, scored.truth, threads=1)
        timings[f"cpu_{name}"] = round(time.process_time() - started, 3)
        repaired = repair.fitted_.transform(scored.test, dtype=np.float64, threads=1)
        tried = np.array(repair.table_.repeats)
        values[name] = {
            "chosen": repair.chosen_,
            "map": float(average_precision_at_k(repaired, scored.test_truth, k=k)),
            "candidates": tried.size,
            "dropped": int((tried < repair.table_.n_repeats).sum()),
        }
    return values


def write_page(cells: Cells) -> str:
    """The page as Markdown."""
    return "\n".join(_lines(cells)) + "\n"


def _lines(cells: Cells) -> Iterator[str]:
    yield "# Does dropping candidates early change a choice?"
    yield ""
    yield from paragraph(
        "Made by `python -m experiments screening --finished --page docs/paper/screening.md` from "
        "`experiments/results/screening.jsonl`. `Repair` draws the folds of small panels several "
        "times. Candidates that surely cannot be chosen after the first draw are not tried in the "
        "others. Here every panel is repaired twice by `auto`, with this and without, on the same "
        "folds. Panels are those of [the row-aware study](row-aware.md), and besides LightGBM and "
        "XGBoost of bibtex and XGBoost of corel5k. Delicious by boosters is missing. MAP@K is of "
        "the test rows."
    )
    yield ""
    changed = {
        key: cell
        for key, cell in cells.items()
        if cell["screened"]["chosen"] != cell["whole"]["chosen"]
    }
    dropped = sum(cell["screened"]["dropped"] for cell in cells.values())
    candidates = sum(cell["screened"]["candidates"] for cell in cells.values())
    cpu = np.array([cell["cpu"] for cell in cells.values()])
    yield from paragraph(
        f"The choice is the same in {len(cells) - len(changed)} of {len(cells)} panels. "
        f"{dropped / candidates:.0%} of the candidates are dropped; all repairs together take "
        f"{cpu[:, 0].sum():.0f} CPU seconds in place of {cpu[:, 1].sum():.0f}."
    )
    yield ""
    yield "| data set | panels | same choice | candidates dropped | CPU of both |"
    yield "|---|---|---|---|---|"
    names = np.array([next(n for n in DATASETS if key.startswith(f"{n}-")) for key in cells])
    for name in (name for name in DATASETS if name in names):
        inside = [cell for cell, each in zip(cells.values(), names, strict=True) if each == name]
        same = sum(cell["screened"]["chosen"] == cell["whole"]["chosen"] for cell in inside)
        share = np.mean([c["screened"]["dropped"] / c["screened"]["candidates"] for c in inside])
        first, second = cpu[names == name].sum(axis=0)
        yield (
            f"| {name} | {len(inside)} | {same} | {share:.0%} "
            f"| {first:.1f} s in place of {second:.1f} s |"
        )
    if changed:
        yield ""
        yield "Panels in which the choice differs:"
        yield ""
        yield "| panel | rows | raw | with dropping | MAP@K | without | MAP@K | less |"
        yield "|---|---|---|---|---|---|---|---|"
    for key, cell in changed.items():
        screened, whole = cell["screened"], cell["whole"]
        yield (
            f"| {key} | {cell['n_rows']:,} | {cell['raw']:.4f} | {screened['chosen']} "
            f"| {screened['map']:.4f} | {whole['chosen']} | {whole['map']:.4f} "
            f"| {screened['map'] - whole['map']:+.4f} |"
        )
