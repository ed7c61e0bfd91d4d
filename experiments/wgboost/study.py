"""`reproduce_wgboost`: the ladder of Table S1's third model, on public data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.store import RESULTS, CellStore, Stages, check_names, stage
from experiments.wgboost.learner import Settings, score_label
from experiments.wgboost.panels import READERS, Panel, read_panel
from oddslip.calibrators import Isotonic
from oddslip.core.provenance import digest_of
from oddslip.core.types import Bools, Floats
from oddslip.diagnosis import diagnose
from oddslip.io.arrays import read_arrays
from oddslip.io.files import atomic_write
from oddslip.io.progress import progress_bar
from oddslip.metrics import mean_auc, rank

DATASETS = tuple(READERS)
# Rungs of Table S1, by their name in the library's ladder.
RUNGS = {
    "raw": "raw",
    "isotonic, identity": "isotonic, dead labels keep their raw score",
    "isotonic": "isotonic, dead labels at their prior",
    "isotonic, exclude": "isotonic, dead labels excluded",
    "offset": "offset",
    "platt": "Platt",
    "beta": "beta",
    "pooled": "pooled isotonic",
    "ceiling": "ceiling",
}
SEED = 42
N_REPLICATES = 2000
MEASURES = 1  # raised when what a cell measures changes

Cells = dict[str, dict[str, Any]]


def reproduce_wgboost(
    *,
    datasets: Sequence[str] = DATASETS,
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work/wgboost",
    finished: bool = False,
) -> Cells:
    """Train, measure and keep every cell asked for; returns all of them by key.

    Parameters
    ----------
    datasets : sequence of str
        Of `DATASETS`.
    data : path, optional
        Where the data sets are.
    results, work : path
        Where finished cells and scores of labels are kept and found again.
    finished : bool
        Only read the cells that are finished, without the data.
    """
    check_names("datasets", datasets, DATASETS)
    store, settings = CellStore(results, "wgboost"), Settings()
    cells: Cells = {}
    for name in datasets:
        if finished:
            cell = store.read_values(name, learner=settings.to_dict(), measures=MEASURES)
        else:
            panel = read_panel(name, data)
            whole = {"data": name, "learner": settings.to_dict(), "seed": SEED, **panel.about}
            compute = partial(_measure, panel, Path(work) / digest_of(whole), settings)
            command = f"python -m experiments wgboost --dataset {name}"
            cell = store.find(name, whole | {"measures": MEASURES}, compute, command=command)
        if cell is not None:
            cells[name] = cell
    return cells


def _measure(panel: Panel, folder: Path, settings: Settings) -> dict[str, Any]:
    stages: Stages = {}
    with stage(stages, "train"):
        calibration, test = train_labels(panel, folder, settings)
    with stage(stages, "diagnose"):
        cell = measure_scores(panel, calibration, test)
    return cell | {"stages": stages}


def train_labels(panel: Panel, folder: Path, settings: Settings) -> tuple[Floats, Floats]:
    """Scores of the calibration and test rows, label by label; finished labels are read."""
    folder.mkdir(parents=True, exist_ok=True)
    (X, Y), others = panel.train, (panel.calibration[0], panel.test[0])
    tables = [np.empty((rows.shape[0], Y.shape[1])) for rows in others]
    with progress_bar("labels", Y.shape[1]) as advance:
        for label in range(Y.shape[1]):
            path = folder / f"{label}.npz"
            if not path.exists():
                calibration, test = score_label(X, Y[:, label], others, settings)
                with atomic_write(path) as unfinished:
                    np.savez(unfinished, calibration=calibration, test=test)
            columns = read_arrays(path)
            for table, part in zip(tables, ("calibration", "test"), strict=True):
                table[:, label] = columns[part]
            advance(1)
    return tables[0], tables[1]


def measure_scores(panel: Panel, calibration: Floats, test: Floats) -> dict[str, Any]:
    """The ladder with intervals, and where dead labels stand if they keep their raw score."""
    truth, judged = panel.calibration[1], panel.test[1]
    ladder = diagnose(
        test,
        judged,
        k=panel.k,
        calibration=(calibration, truth),
        prior=panel.prior,
        seed=SEED,
        n_replicates=N_REPLICATES,
    ).ladder
    return {
        "k": panel.k,
        "n_labels": judged.shape[1],
        "n_features": panel.train[0].shape[1],
        "n_rows": [len(part[1]) for part in (panel.train, panel.calibration, panel.test)],
        "n_evaluated": ladder.n_evaluated,
        "rungs": {
            name: ladder.estimate(name).to_dict() | {"minus_raw": ladder.gain(name).to_dict()}
            for name in RUNGS
        },
        "auc": mean_auc(test, judged),
        "lowest_score": float(test.min()),
        "highest_score": float(test.max()),
        "dead": find_dead(calibration, truth, test, panel.prior, panel.k),
    }


def find_dead(
    calibration: Floats, truth: Bools, test: Floats, prior: Floats, k: int
) -> dict[str, Any] | None:
    """How dead labels fare beside calibrated ones if they keep their raw score; None without any.

    Examples
    --------
    >>> truth = np.array([[True, False], [False, False]])
    >>> scores = np.array([[0.2, 0.9], [0.1, 0.9]])
    >>> find_dead(scores, truth, scores, np.array([0.5, 0.0]), 1)["rows_share"]
    0.5
    """
    dead: Bools = truth.sum(axis=0) == 0
    if not dead.any():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # dead labels rise: that is measured here
        fitted = Isotonic(dead="identity", prior=prior).fit(calibration, truth)
    repaired = np.asarray(fitted.transform(test))
    shown = dead[rank(repaired, k=k)].sum(axis=1)
    return {
        "n": int(dead.sum()),
        "mean_raw": float(test[:, dead].mean()),
        "highest_living_mean": None if dead.all() else float(repaired[:, ~dead].mean(axis=0).max()),
        "rows_share": float((shown > 0).mean()),
        "mean_shown": float(shown.mean()),
    }
