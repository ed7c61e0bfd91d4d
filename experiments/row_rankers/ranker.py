"""Small rankers over repaired scores that may look at the row, trained on calibration rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

Floats = NDArray[np.float64]
N_COMPONENTS = 5  # principal components of a row's features
CLIP = 1e-6
SEED = 42
NAMES = (
    "repaired",
    "margin",
    "prior",
    "positives",
    "affinity",
    "rank",
    "row_max",
    "row_mean",
    "row_spread",
    *(f"component_{at}" for at in range(N_COMPONENTS)),
)


class Space(NamedTuple):
    """Principal components of the fitted rows' features, and where each label's positives lie."""

    mean: Floats
    axes: Floats  # (n_features, N_COMPONENTS), scaled so that components have deviation 1
    centres: Floats  # (n_labels, N_COMPONENTS)

    def place(self, X: Floats) -> Floats:
        """Components of rows."""
        return np.asarray((X - self.mean) @ self.axes)


def find_space(X: Floats, Y: NDArray[np.bool_]) -> Space:
    """Components of these rows; a label without a positive sits in the middle."""
    mean = X.mean(axis=0)
    _, lengths, directions = np.linalg.svd(X - mean, full_matrices=False)
    n_kept = min(N_COMPONENTS, lengths.size)
    axes = np.zeros((X.shape[1], N_COMPONENTS))
    scale = np.maximum(lengths[:n_kept] / np.sqrt(len(X)), 1e-12)
    axes[:, :n_kept] = directions[:n_kept].T / scale
    places = (X - mean) @ axes
    positives = np.maximum(1, Y.sum(axis=0))[:, None]
    return Space(mean, axes, Y.T.astype(np.float64) @ places / positives)


def describe_cells(
    repaired: Floats, margin: Floats, prior: Floats, n_positives: Floats, X: Floats, space: Space
) -> Floats:
    """One line per cell, row after row: the columns of `NAMES`."""
    n_rows, n_labels = repaired.shape
    odds = logit(np.clip(repaired, CLIP, 1 - CLIP))
    order = np.argsort(np.argsort(-odds, axis=1, kind="stable"), axis=1)
    places = space.place(X)

    def by_row(values: Floats) -> Floats:
        return np.broadcast_to(values[:, None], (n_rows, n_labels))

    def by_label(values: Floats) -> Floats:
        return np.broadcast_to(values, (n_rows, n_labels))

    columns = [
        odds,
        np.clip(margin, -40, 40),
        by_label(logit(np.clip(prior, CLIP, 1 - CLIP))),
        by_label(np.log1p(n_positives)),
        places @ space.centres.T,
        order.astype(np.float64),
        by_row(odds.max(axis=1)),
        by_row(odds.mean(axis=1)),
        by_row(odds.std(axis=1)),
        *(by_row(places[:, at]) for at in range(N_COMPONENTS)),
    ]
    return np.stack([column.ravel() for column in columns], axis=1)


Scorer = Callable[[Floats], Floats]


def fit_logistic(cells: Floats, truth: NDArray[np.bool_], k: int) -> Scorer:
    """A logistic model of the cells, all of them alike."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=500))
    model.fit(cells, truth.ravel())
    return lambda rows: np.asarray(model.decision_function(rows))


def fit_lambdarank(cells: Floats, truth: NDArray[np.bool_], k: int) -> Scorer:
    """LightGBM's lambdarank, a row of labels being one query; small trees."""
    import lightgbm

    n_rows, n_labels = truth.shape
    parameters: dict[str, Any] = {
        "objective": "lambdarank",
        "lambdarank_truncation_level": k,
        "learning_rate": 0.05,
        "num_leaves": 7,
        "min_data_in_leaf": 50,
        "seed": SEED,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(
        cells, truth.ravel().astype(np.int8), group=np.full(n_rows, n_labels, np.int32)
    )
    booster = lightgbm.train(parameters, data, num_boost_round=100)
    return lambda rows: np.asarray(booster.predict(rows, num_threads=1))


RANKERS: dict[str, Callable[[Floats, NDArray[np.bool_], int], Scorer]] = {
    "logistic": fit_logistic,
    "lambdarank": fit_lambdarank,
}
