"""`reproduce_rounds`: weighted boosters by rounds, on rows to stop by and on rows to judge by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.datasets.mulan.reader import read_mulan
from experiments.store import RESULTS, CellStore
from oddslip.core.types import Array, Bools
from oddslip.datasets import synthetic_rows
from oddslip.io.progress import progress_bar
from oddslip.learners import OneVsRest
from oddslip.learners.backends.base import preset_parameters
from oddslip.planning.rounds import Rounds, by_rounds

GENERATED = "generated"
DATASETS = ("scene", "yeast", "medical", "enron", GENERATED)
PRESET = "paper-default"
SEED = 42
N_ROUNDS = 12  # numbers of rounds that are measured
GENERATED_SHAPE = (6000, 60)  # rows and labels; a third each to train, to stop by and to judge by
MEASURES = 1  # raised when what a cell measures changes

Cells = dict[str, dict[str, Any]]


class Rows(NamedTuple):
    """Rows to train on, to stop by and to judge by, and the slots of a row."""

    train: tuple[Array, Bools]
    stop: tuple[Array, Bools]
    judge: tuple[Array, Bools]
    k: int
    inputs: dict[str, str]


def reproduce_rounds(
    *,
    datasets: Sequence[str] = DATASETS,
    data: Any = None,
    results: Any = RESULTS,
    finished: bool = False,
) -> Cells:
    """Train, measure and keep every cell asked for; returns all of them by key.

    Parameters
    ----------
    datasets : sequence of str
        MULAN data sets, or "generated".
    data : path, optional
        Where the data sets are; see `experiments.datasets.mulan.reader.read_mulan`.
    results : path
        Where finished cells are kept and found again.
    finished : bool
        Only read the cells that are finished, without the data.
    """
    store = CellStore(results, "rounds")
    settings = {
        "preset": PRESET,
        "parameters": preset_parameters(PRESET),
        "weight": "balanced",
        "seed": SEED,
        "measures": MEASURES,
    }
    cells: Cells = {}
    with progress_bar("data sets", len(datasets)) as advance:
        for name in datasets:
            if finished:
                cell = store.read_values(name, **settings)
            else:
                rows = read_rows(name, data)
                whole = settings | {"data": name, "inputs": rows.inputs}
                command = f"python -m experiments rounds --dataset {name}"
                cell = store.find(name, whole, partial(measure, rows), command=command)
            if cell is not None:
                cells[name] = cell
            advance(1)
    return cells


def read_rows(name: str, data: Any = None) -> Rows:
    """Rows of a data set by the paper's protocol, or generated ones."""
    if name != GENERATED:
        mulan = read_mulan(name, data=data)
        X, Y = mulan.X_train, mulan.Y_train
        return Rows(
            train=(X[mulan.fitted], Y[mulan.fitted]),
            stop=(X[mulan.calibration], Y[mulan.calibration]),
            judge=(mulan.X_test, mulan.Y_test),
            k=mulan.k,
            inputs=mulan.sha256,
        )
    n_rows, n_labels = GENERATED_SHAPE
    rows = synthetic_rows(n_rows, n_labels, seed=SEED)
    X, Y = np.asarray(rows.X), np.asarray(rows.labels, np.bool_)
    train, stop, judge = (slice(at * n_rows // 3, (at + 1) * n_rows // 3) for at in range(3))
    return Rows((X[train], Y[train]), (X[stop], Y[stop]), (X[judge], Y[judge]), 7, {})


def measure(rows: Rows) -> dict[str, Any]:
    """Both tables by rounds, and what the judged rows get by each way to stop."""
    model = OneVsRest("lightgbm", weights="balanced", preset=PRESET, seed=SEED, threads=1)
    model.fit(*rows.train)
    options: dict[str, Any] = {
        "k": rows.k,
        "weights": model.weights_,
        "rounds": N_ROUNDS,
        "seed": SEED,
    }
    stop = by_rounds(model, *rows.stop, **options)
    judge = by_rounds(model, *rows.judge, **options)
    return {
        "k": rows.k,
        "n_labels": model.n_labels,
        "n_rows": [len(part[1]) for part in (rows.train, rows.stop, rows.judge)],
        "stop": stop.to_dict(),
        "judge": judge.to_dict(),
        "by_raw": _judged(judge, stop.best_raw),
        "by_repaired": _judged(judge, stop.best_repaired),
    }


def _judged(judge: Rounds, number: int) -> dict[str, float]:
    """The repaired metric of the judged rows after so many rounds."""
    return {"rounds": number, "repaired": judge.repaired[judge.rounds.index(number)]}
