"""Cells of other studies that the boundary was not fitted on, with the label counts they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from oddslip.errors import UnreadableFile
from oddslip.learners.pairs import CAPS
from oddslip.studies.boundary.features import Booster, describe_training
from oddslip.studies.boundary.model import Training, retained_share
from oddslip.studies.mulan.study import DATASETS
from oddslip.studies.pairs.arms import Arm
from oddslip.studies.store import WEIGHTS, CellStore, read_cell

MULAN = (*DATASETS, "tmc2007-500")
LEARNERS = ("lightgbm", "lightgbm-regularised")
PAIRS = ("tafeng", "santander-sample")
SOURCES = ("MULAN", "Ta-Feng", "Santander sample")
COUNTING = 1  # raised when what is counted changes

Counts = dict[str, dict[str, Any]]


def _count_mulan(name: str, data: Any) -> dict[str, Any]:
    from oddslip.datasets.mulan.reader import read_mulan

    rows = read_mulan(name, data=data, standardise=False, download=False)
    return {
        "counts": rows.Y_train[rows.fitted].sum(axis=0),
        "n_rows": rows.fitted.size,
        "k": rows.k,
    }


def _count_pairs(name: str, data: Any) -> dict[str, Any]:
    from oddslip.datasets.baskets.tafeng import read_tafeng
    from oddslip.datasets.santander.sample import read_santander_sample

    rows = read_tafeng(data, n_labels=1000) if name == "tafeng" else read_santander_sample(data)
    return {"counts": rows.positives.tolist(), "n_rows": rows.train.n_rows, "k": 7}


def count_labels(store: CellStore, *, data: Any = None, finished: bool = False) -> Counts:
    """Positives of each label and fitted rows, by data set; sets that are not here are left out."""
    counted: Counts = {}
    for name in (*MULAN, *PAIRS):
        count: Callable[[str, Any], dict[str, Any]] = (
            _count_pairs if name in PAIRS else _count_mulan
        )
        compute = None if finished else partial(count, name, data)
        settings = {"data": name, "counting": COUNTING}
        try:
            cell = store.find(
                f"counts-{name}", settings, compute, command="oddslip reproduce boundary"
            )
        except UnreadableFile:  # not at hand
            continue
        if cell is not None:
            counted[name] = cell
    return counted


def read_unseen(counts: Counts, folder: Any) -> dict[str, list[Training]]:
    """Every weighted LightGBM cell of the other studies with its twin, by `SOURCES`."""
    root = Path(folder)
    found: dict[str, list[Training]] = {source: [] for source in SOURCES}
    for name, counted in counts.items():
        if name in PAIRS:
            source = SOURCES[1 + PAIRS.index(name)]
            found[source].extend(_pair_cells(name, counted, root))
        else:
            found[SOURCES[0]].extend(_mulan_cells(name, counted, root))
    return found


def _describe(
    counted: dict[str, Any], weight: str, parameters: dict[str, Any], cap: float | None = None
) -> dict[str, float]:
    return describe_training(
        np.asarray(counted["counts"]),
        counted["n_rows"],
        WEIGHTS[weight],
        Booster.of(parameters, cap),
        counted["k"],
    )


def _mulan_cells(name: str, counted: dict[str, Any], root: Path) -> Iterator[Training]:
    for learner in LEARNERS:
        paths = {w: root / "mulan" / "paper" / f"{name}-{learner}-{w}.json" for w in WEIGHTS}
        if not paths["1"].exists():
            continue
        twin = read_cell(paths["1"])["values"]["map"]["raw"]
        for weight, path in paths.items():
            if weight != "1" and path.exists():
                cell = read_cell(path)
                features = _describe(counted, weight, cell["configuration"]["parameters"])
                share = retained_share(cell["values"]["map"]["raw"], twin)
                yield Training(name, f"{name}, {learner}, {weight}", features, share)


def _pair_cells(name: str, counted: dict[str, Any], root: Path) -> Iterator[Training]:
    arms = [Arm("lightgbm", weight) for weight in WEIGHTS if weight != "1"]
    arms += [Arm("lightgbm", "r", cap=cap) for cap in CAPS if cap is not None]
    for arm in arms:
        paths = [root / name / f"{each.key}.json" for each in (arm, arm.twin)]
        if all(path.exists() for path in paths):
            raw = [
                read_cell(path)["values"]["test-split"]["ladder"]["rungs"]["raw"]["map"]["value"]
                for path in paths
            ]
            parameters = arm.configuration()["parameters"]
            features = _describe(counted, arm.weight, parameters, arm.cap)
            shown = f"{name}, {arm.weight}" + (f", cap {arm.cap:g}" if arm.cap else "")
            yield Training(name, shown, features, retained_share(*raw))
