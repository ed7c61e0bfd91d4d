"""The pairs of a study beside those of the same study with other numbers of labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.pairs.arms import LEARNERS, Arm
from experiments.pairs.cells import rung_values
from experiments.pairs.tables import Cells, has_loss, markdown
from experiments.store import CellStore

_RUNGS = ("unweighted", "what-if", "raw", "inversion", "isotonic", "popularity", "ceiling")


def label_count_section(study: str, file: Path) -> list[str]:
    """A table of all pairs of a study, by label count; empty if there is one label count.

    Other counts are in files beside ``file``, named ``STUDY-LABELS.jsonl``.
    """
    paths = [file.with_name(f"{study}.jsonl"), *file.parent.glob(f"{study}-[0-9]*.jsonl")]
    studies = [CellStore(path.parent, path.stem).values() for path in paths]
    studies = [cells for cells in studies if "data" in cells]
    if len(studies) < 2:
        return []
    studies.sort(key=lambda cells: cells["data"]["n_labels"])
    return [
        "## By the number of labels",
        "",
        "MAP@K by the test-split protocol. Twin isotonic: the unweighted model under the same",
        "calibrator. Odds share: the ideal shift's part of the loss.",
        "",
        markdown(
            ["labels", "learner", *_RUNGS, "twin isotonic", "odds share"],
            [row for cells in studies for row in _pair_rows(cells)],
        ),
    ]


def _pair_rows(cells: Cells) -> Iterator[list[str]]:
    for learner in LEARNERS:
        arm = Arm(learner, "r")
        if arm.key in cells and arm.twin.key in cells:
            cell: Any = cells[arm.key]
            values = rung_values(cell, "test-split")
            twin = rung_values(cells[arm.twin.key], "test-split")["isotonic"]
            numbers = [*(values[name] for name in _RUNGS), twin]
            odds = cell["test-split"]["decomposition"]["shares"]["odds"]
            share = f"{odds:.0%}" if has_loss(cell) and odds is not None else "--"
            yield [
                f"{cells['data']['n_labels']:,}",
                learner,
                *(f"{each:.4f}" for each in numbers),
                share,
            ]
