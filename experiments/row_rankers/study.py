"""`reproduce_row_rankers`: rankers that see the row, on top of the chosen repair (MULAN)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap import map_gap
from experiments.datasets.mulan.reader import MulanData, read_mulan
from experiments.folds import PaperRepair
from experiments.mulan.arms import Arm, arm_configuration, train_arm
from experiments.row_rankers.ranker import NAMES, RANKERS, SEED, describe_cells, find_space
from experiments.store import RESULTS, CellStore, check_names, score_ranking
from oddslip.calibrators import Ceiling
from oddslip.core.labels import DenseLabels
from oddslip.io.progress import progress_bar
from oddslip.metrics import average_precision_at_k, evaluate

DATASETS = ("emotions", "birds", "medical", "enron", "yeast", "scene")
WEIGHTS = ("1", "r")
LEARNER = "lightgbm"
N_FOLDS = 5
MEASURES = 1  # raised when what a cell measures changes

Cells = dict[str, dict[str, Any]]


def reproduce_row_rankers(
    *,
    datasets: Sequence[str] = DATASETS,
    weights: Sequence[str] = WEIGHTS,
    data: Any = None,
    results: Any = RESULTS,
    work: Any = ".work/mulan",
    finished: bool = False,
) -> Cells:
    """Train, rank, measure and keep every cell asked for; returns all of them by key.

    Parameters
    ----------
    datasets, weights : sequences of str
        MULAN data sets; weights "1" and "r".
    data : path, optional
        Where the data sets are; see `experiments.datasets.mulan.reader.read_mulan`.
    results, work : path
        Where finished cells and trained scores are kept; scores are those of the MULAN study.
    finished : bool
        Only read the cells that are finished, without the data.

    Examples
    --------
    >>> reproduce_row_rankers(datasets=["emotions"], weights=["r"])  # doctest: +SKIP
    """
    check_names("weights", weights, WEIGHTS)
    store = CellStore(results, "row-rankers")
    cells: Cells = {}
    with progress_bar("row ranker cells", len(datasets) * len(weights)) as advance:
        for where in datasets:
            name = Path(where).name
            loaded = None if finished else read_mulan(where, data=data)
            for weight in weights:
                key = f"{name}-{LEARNER}-{weight}"
                if loaded is None:
                    cell = store.read_values(key, data=name, measures=MEASURES)
                else:
                    settings = arm_configuration(loaded, LEARNER, weight) | {
                        "columns": NAMES,
                        "n_folds": N_FOLDS,
                        "measures": MEASURES,
                    }
                    compute = partial(_measure, loaded, weight, Path(work) / "paper")
                    command = (
                        f"python -m experiments row-rankers --dataset {name} --weight {weight}"
                    )
                    cell = store.find(key, settings, compute, command=command)
                if cell is not None:
                    cells[key] = cell
                advance(1)
    return cells


def _measure(data: MulanData, weight: str, folder: Path) -> dict[str, Any]:
    return measure_rankers(data, train_arm(data, LEARNER, weight, folder))


def measure_rankers(data: MulanData, arm: Arm) -> dict[str, Any]:
    """MAP@K on the test rows: raw, the chosen repair, the rankers, and the per-label ceiling.

    A ranker learns from calibration rows whose repaired scores come from a repair that was fitted
    without them, and is judged out of fold there; test rows see the repair of all of them.
    """
    truth, prior, k = data.Y_train[data.calibration], data.prevalence, data.k
    folds = _fold_rows(len(truth))
    repair = _repair(arm.calibration, truth, prior, k)
    repaired = np.empty_like(arm.calibration)
    for fold in range(N_FOLDS):
        in_fold = folds == fold
        fitted = _repair(arm.calibration[~in_fold], truth[~in_fold], prior, k)
        repaired[in_fold] = fitted.transform(arm.calibration[in_fold])
    space = find_space(_dense(data.X_train[data.fitted]), data.Y_train[data.fitted])
    n_positives = truth.sum(axis=0).astype(np.float64)

    def describe(scores: NDArray[Any], margin: NDArray[Any], X: Any) -> NDArray[np.float64]:
        return describe_cells(scores, margin, prior, n_positives, _dense(X), space)

    features = describe(repaired, arm.calibration_margin, data.X_train[data.calibration])
    test_repaired = repair.transform(arm.test)
    unseen = describe(test_repaired, arm.test_margin, data.X_test)
    judged = evaluate(test_repaired, data.Y_test, k=k, n_replicates=0)
    rankers = {}
    for name, fit in RANKERS.items():
        by_row = features.reshape(len(truth), data.n_labels, -1)
        out_of_fold = np.empty(truth.shape)
        for fold in range(N_FOLDS):
            in_fold = folds == fold
            score = fit(by_row[~in_fold].reshape(-1, by_row.shape[2]), truth[~in_fold], k)
            rows = by_row[in_fold].reshape(-1, by_row.shape[2])
            out_of_fold[in_fold] = score(rows).reshape(-1, data.n_labels)
        scores = fit(features, truth, k)(unseen).reshape(data.Y_test.shape)
        evaluation = evaluate(_as_chance(scores), data.Y_test, k=k, n_replicates=0)
        gain = map_gap(evaluation, judged, seed=SEED)
        rankers[name] = {
            "out_of_fold": _map(_as_chance(out_of_fold), truth, k),
            "map": evaluation["map"].value,
            "gain": {"value": gain.value, "low": gain.low, "high": gain.high},
        }
    positives = DenseLabels(data.Y_test).positives(0, len(data.Y_test))
    ceiling = Ceiling().fit(arm.test, data.Y_test).rank(arm.test, k=k)
    return {
        "k": k,
        "raw": _map(arm.test, data.Y_test, k),
        "chosen": repair.chosen_,
        "repaired": judged["map"].value,
        "repaired_out_of_fold": _map(repaired, truth, k),
        "rankers": rankers,
        "ceiling": score_ranking(ceiling, positives, data.n_labels),
        "sha256": arm.hashes(),
    }


def _fold_rows(n_rows: int) -> NDArray[np.int64]:
    return np.random.default_rng(SEED).permutation(n_rows) % N_FOLDS


def _repair(scores: Any, truth: Any, prior: Any, k: int) -> PaperRepair:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few calibration rows: that is the setting
        return PaperRepair(k=k, rule="auto", prior=prior).fit(scores, truth)


def _dense(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)


def _as_chance(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of any size between 0 and 1, in the same order."""
    _, places = np.unique(scores, return_inverse=True)
    return np.asarray((places.reshape(scores.shape) + 0.5) / scores.size)


def _map(scores: Any, truth: Any, k: int) -> float:
    return float(average_precision_at_k(scores, truth, k=k))
