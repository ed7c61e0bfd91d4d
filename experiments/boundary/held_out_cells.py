"""Cells of other studies that the boundary was not fitted on, with the label counts they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.boundary.features import Booster, describe_training
from experiments.boundary.model import Training, retained_share
from experiments.mulan.study import DATASETS
from experiments.pairs.arms import Arm
from experiments.store import WEIGHTS, CellStore
from oddslip.errors import UnreadableFile
from oddslip.learners.pairs import CAPS

MULAN = (*DATASETS, "tmc2007-500")
LEARNERS = ("lightgbm", "lightgbm-regularised")
PAIRS = ("tafeng", "santander-sample")
SOURCES = ("MULAN", "Ta-Feng", "Santander sample")
COUNTING = 1  # raised when what is counted changes

Counts = dict[str, dict[str, Any]]


def _count_mulan(name: str, data: Any) -> dict[str, Any]:
    from experiments.datasets.mulan.reader import read_mulan

    rows = read_mulan(name, data=data, standardise=False, download=False)
    return {
        "counts": rows.Y_train[rows.fitted].sum(axis=0),
        "n_rows": rows.fitted.size,
        "k": rows.k,
    }


def _count_pairs(name: str, data: Any) -> dict[str, Any]:
    from experiments.datasets.baskets.tafeng import read_tafeng
    from experiments.datasets.santander.sample import read_santander_sample

    rows = read_tafeng(data, n_labels=1000) if name == "tafeng" else read_santander_sample(data)
    return {"counts": rows.positives.tolist(), "n_rows": rows.train.n_rows, "k": 7}


def count_labels(store: CellStore, *, data: Any = None, finished: bool = False) -> Counts:
    """Positives of each label and fitted rows, by data set; sets that are not here are left out."""
    counts: Counts = {}
    for name in (*MULAN, *PAIRS):
        count: Callable[[str, Any], dict[str, Any]] = (
            _count_pairs if name in PAIRS else _count_mulan
        )
        compute = None if finished else partial(count, name, data)
        settings = {"data": name, "counting": COUNTING}
        try:
            cell = store.find(
                f"counts-{name}", settings, compute, command="python -m experiments boundary"
            )
        except UnreadableFile:  # not at hand
            continue
        if cell is not None:
            counts[name] = cell
    return counts


def read_unseen(counts: Counts, folder: Any) -> dict[str, list[Training]]:
    """Every weighted LightGBM cell of the other studies with its twin, by `SOURCES`."""
    root = Path(folder)
    trainings: dict[str, list[Training]] = {source: [] for source in SOURCES}
    for name, label_counts in counts.items():
        if name in PAIRS:
            source = SOURCES[1 + PAIRS.index(name)]
            trainings[source].extend(_pair_cells(name, label_counts, root))
        else:
            trainings[SOURCES[0]].extend(_mulan_cells(name, label_counts, root))
    return trainings


def _describe(
    label_counts: dict[str, Any], weight: str, parameters: dict[str, Any], cap: float | None = None
) -> dict[str, float]:
    return describe_training(
        np.asarray(label_counts["counts"]),
        label_counts["n_rows"],
        WEIGHTS[weight],
        Booster.of(parameters, cap),
        label_counts["k"],
    )


def _mulan_cells(name: str, label_counts: dict[str, Any], root: Path) -> Iterator[Training]:
    cells = CellStore(root, "mulan-paper").cells()
    for learner in LEARNERS:
        twin = cells.get(f"{name}-{learner}-1")
        for weight in WEIGHTS:
            cell = cells.get(f"{name}-{learner}-{weight}")
            if weight != "1" and cell is not None and twin is not None:
                features = _describe(label_counts, weight, cell["configuration"]["parameters"])
                raw = [each["values"]["map"]["raw"] for each in (cell, twin)]
                label = f"{name}, {learner}, {weight}"
                yield Training(name, label, features, retained_share(*raw))


def _pair_cells(name: str, label_counts: dict[str, Any], root: Path) -> Iterator[Training]:
    cells = CellStore(root, name).values()
    arms = [Arm("lightgbm", weight) for weight in WEIGHTS if weight != "1"]
    arms += [Arm("lightgbm", "r", cap=cap) for cap in CAPS if cap is not None]
    for arm in arms:
        if arm.key in cells and arm.twin.key in cells:
            raw = [
                cells[each.key]["test-split"]["ladder"]["rungs"]["raw"]["map"]["value"]
                for each in (arm, arm.twin)
            ]
            parameters = arm.configuration()["parameters"]
            features = _describe(label_counts, arm.weight, parameters, arm.cap)
            label = f"{name}, {arm.weight}" + (f", cap {arm.cap:g}" if arm.cap else "")
            yield Training(name, label, features, retained_share(*raw))
