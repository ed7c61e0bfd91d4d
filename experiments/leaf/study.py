"""`reproduce_leaf`: saturation of single trees from their leaf counts, and of boosted ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mulan.reader import MulanData, read_mulan
from experiments.mulan.cells import DECIMALS
from experiments.store import RESULTS, CellStore, check_names, score_ranking
from oddslip.calibrators import Ceiling
from oddslip.core.labels import DenseLabels
from oddslip.core.weights import resolve_weights
from oddslip.io.files import hash_bytes
from oddslip.io.progress import progress_bar
from oddslip.learners import OneVsRest
from oddslip.learners.backends.base import preset_parameters
from oddslip.metrics import average_precision_at_k
from oddslip.shifts import leaf_value

DATASETS = ("enron", "medical", "scene")
WEIGHTS = {"1": "none", "r": "balanced", "10r": "10x", "100r": "100x"}
ROWS_IN_LEAF = (5, 20, 50, 200)  # of the boosted trees
TREE_ROWS = 20  # of the single trees
EPS = 1e-3  # a cell is saturated from 1 - EPS on
SEED = 42
BOOSTER = "paper-default"
MEASURES = 1  # raised when what a cell measures changes

Cells = dict[str, dict[str, Any]]


def reproduce_leaf(
    *,
    datasets: Sequence[str] = DATASETS,
    weights: Sequence[str] = tuple(WEIGHTS),
    rows_in_leaf: Sequence[int] = ROWS_IN_LEAF,
    data: Any = None,
    results: Any = RESULTS,
    finished: bool = False,
) -> Cells:
    """Grow, measure and keep every cell asked for; returns all of them by key.

    Parameters
    ----------
    datasets, weights : sequences of str
        MULAN data sets; weights "1", "r", "10r", "100r".
    rows_in_leaf : sequence of int
        Fewest rows of a leaf of the boosted trees.
    data : path, optional
        Where the data sets are; see `experiments.datasets.mulan.reader.read_mulan`.
    results : path
        Where finished cells are kept and found again.
    finished : bool
        Only read the cells that are finished, without the data.

    Examples
    --------
    >>> reproduce_leaf(datasets=["scene"], weights=["1", "r"])  # doctest: +SKIP
    """
    check_names("weights", weights, WEIGHTS)
    store = CellStore(results, "leaf")
    cells: Cells = {}
    with progress_bar("leaf cells", len(datasets) * len(weights) * (1 + len(rows_in_leaf))) as bar:
        for where in datasets:
            name = Path(where).name
            loaded = None if finished else read_mulan(where, data=data)
            for weight in weights:
                jobs: list[tuple[str, dict[str, Any], Callable[..., Any]]] = [
                    (f"{name}-tree-{weight}", tree_settings(), measure_trees)
                ]
                for rows in rows_in_leaf:
                    key = f"{name}-lightgbm-{rows}-{weight}"
                    jobs.append((key, booster_settings(rows), partial(measure_booster, rows=rows)))
                for key, settings, measure in jobs:
                    settings = settings | {"data": name, "weight": weight, "measures": MEASURES}
                    if loaded is None:
                        cell = store.read_values(key, **settings)
                    else:
                        command = f"python -m experiments leaf --dataset {name} --weight {weight}"
                        whole = settings | {"inputs": loaded.sha256}
                        compute = partial(measure, loaded, weight)
                        cell = store.find(key, whole, compute, command=command)
                    if cell is not None:
                        cells[key] = cell
                    bar(1)
    return cells


def tree_settings() -> dict[str, Any]:
    """What single trees are grown with."""
    return {"learner": "tree", "rows_in_leaf": TREE_ROWS, "seed": SEED, "eps": EPS}


def booster_settings(rows: int) -> dict[str, Any]:
    """What boosted trees are grown with: the paper's default booster, but for the leaves."""
    parameters = preset_parameters(BOOSTER) | {"min_data_in_leaf": rows}
    return {"learner": "lightgbm", "parameters": parameters, "seed": SEED, "eps": EPS}


# ------------------------------------------------------------------------------------ single trees


def grow_tree(
    X: NDArray[Any], truth: NDArray[np.bool_], X_test: NDArray[Any], weight: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of the test rows: by the leaf counts of the fitted rows, and by the tree itself.

    The first is rho(w) = w n+ / (w n+ + n-) of the leaf a row falls into, from whole counts.
    """
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(
        min_samples_leaf=TREE_ROWS, class_weight={False: 1.0, True: weight}, random_state=SEED
    ).fit(X, truth)
    leaves, test_leaves = tree.apply(X), tree.apply(X_test)
    n_rows = np.bincount(leaves, minlength=tree.tree_.node_count)
    n_positives = np.bincount(leaves[truth], minlength=tree.tree_.node_count)
    expected = np.asarray(
        leaf_value(n_positives[test_leaves], (n_rows - n_positives)[test_leaves], weight)
    )
    return expected, tree.predict_proba(X_test)[:, 1]


def measure_trees(data: MulanData, weight: str) -> dict[str, Any]:
    """Table S8: what the leaf counts predict of the test cells, and what the trees say."""
    X, Y = data.X_train[data.fitted], data.Y_train[data.fitted]
    positives = Y.sum(axis=0)
    weights = resolve_weights(WEIGHTS[weight], positives, len(Y))
    measured = np.broadcast_to(data.prevalence, data.Y_test.shape).copy()
    expected = measured.copy()
    for label in np.flatnonzero((positives > 0) & (positives < len(Y))):
        expected[:, label], measured[:, label] = grow_tree(
            X, Y[:, label], data.X_test, float(weights[label])
        )
    return {
        "predicted_share": float((expected >= 1 - EPS).mean()),
        "largest_difference": float(np.abs(expected - measured).max()),
        **_describe(data, measured),
    }


# ------------------------------------------------------------------------------------ boosted trees


def measure_booster(data: MulanData, weight: str, rows: int) -> dict[str, Any]:
    """Table S9: saturated share and ceiling of the paper's booster with leaves of so many rows."""
    model = OneVsRest(
        "lightgbm",
        weights=WEIGHTS[weight],
        preset=BOOSTER,
        parameters={"min_data_in_leaf": rows},
        seed=SEED,
        threads=1,
    ).fit(data.X_train[data.fitted], data.Y_train[data.fitted])
    return _describe(data, model.predict_stored(data.X_test))


def _describe(data: MulanData, scores: NDArray[np.float64]) -> dict[str, Any]:
    ceiling = Ceiling().fit(scores, data.Y_test).rank(scores, k=data.k)
    truth = DenseLabels(data.Y_test).positives(0, len(data.Y_test))
    distinct = [np.unique(np.round(column, DECIMALS)).size for column in scores.T]
    return {
        "saturated_share": float((scores >= 1 - EPS).mean()),
        "raw": float(average_precision_at_k(scores, data.Y_test, k=data.k)),
        "ceiling": score_ranking(ceiling, truth, data.n_labels),
        "distinct": float(np.mean(distinct)),
        "sha256": hash_bytes(np.ascontiguousarray(scores).tobytes()),
    }
