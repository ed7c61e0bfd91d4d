"""The retained share MAP@K(w) / MAP@K(1) from six numbers: fitted on worlds, judged elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.boundary.features import DIRECTIONS, FEATURES

Floats = NDArray[np.float64]
COLLAPSE = 0.5
N_FOLDS, SEED = 5, 0
INTERVAL = 0.8  # share of the cells that an interval is to hold
# What "predicts well" means, on unseen cells: decided before any of them was predicted.
MIN_AUC, MAX_ERROR = 0.9, 0.1


class Training(NamedTuple):
    """One weighted training: where it belongs, what was known before it, and what it kept."""

    group: str  # the world or the data set
    name: str
    features: dict[str, float]
    retained: float  # cut to 0..1


def retained_share(weighted: float, unweighted: float) -> float:
    """What a weighted arm keeps of its twin's metric, from 0 to 1: gains count as 1."""
    return float(np.clip(weighted / unweighted, 0.0, 1.0)) if unweighted > 0 else 1.0


def as_table(trainings: Sequence[Training]) -> tuple[Floats, Floats]:
    """Features, a line per training, and what each kept."""
    lines = [[training.features[name] for name in FEATURES] for training in trainings]
    return np.array(lines, np.float64), np.array([each.retained for each in trainings])


Predictor = Callable[[Floats], Floats]


def fit_logistic(X: Floats, y: Floats) -> Predictor:
    """A logistic curve in the six numbers: each share counts as so many kept and so many lost."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000))
    targets = np.repeat([1, 0], len(y))
    model.fit(np.tile(X, (2, 1)), targets, logisticregression__sample_weight=np.append(y, 1 - y))
    return lambda inputs: np.asarray(model.predict_proba(inputs)[:, 1])


def fit_monotone(X: Floats, y: Floats) -> Predictor:
    """Small boosted trees that are held to `DIRECTIONS`."""
    import lightgbm

    parameters: dict[str, Any] = {
        "objective": "regression",
        "learning_rate": 0.05,
        "num_leaves": 6,
        "min_data_in_leaf": 10,
        "monotone_constraints": list(DIRECTIONS.values()),
        "seed": SEED,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    model = lightgbm.train(parameters, lightgbm.Dataset(X, y), num_boost_round=150)
    return lambda inputs: np.clip(np.asarray(model.predict(inputs, num_threads=1)), 0.0, 1.0)


MODELS: dict[str, Callable[[Floats, Floats], Predictor]] = {
    "logistic": fit_logistic,
    "monotone trees": fit_monotone,
}


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """The model that cross-validation on worlds chose, and how far it was off there."""

    model: str
    predict: Predictor
    errors: dict[str, float]  # mean absolute error out of fold, by model
    out_of_fold: Floats  # of the chosen model, a number per training
    low: float  # to add to a prediction for the ends of the interval
    high: float

    def of(self, trainings: Sequence[Training]) -> Floats:
        """Predicted retained shares."""
        return self.predict(as_table(trainings)[0])


def fit_boundary(trainings: Sequence[Training]) -> Boundary:
    """Choose a model out of fold, worlds kept whole, and fit it on all worlds."""
    X, y = as_table(trainings)
    groups = list(dict.fromkeys(each.group for each in trainings))
    order = np.random.default_rng(SEED).permutation(len(groups)) % N_FOLDS
    fold_of = dict(zip(groups, order.tolist(), strict=True))
    folds = np.array([fold_of[each.group] for each in trainings])
    predictions = {}
    for name, fit in MODELS.items():
        predictions[name] = np.empty(len(y))
        for fold in np.unique(folds):
            inside = folds == fold
            predictions[name][inside] = fit(X[~inside], y[~inside])(X[inside])
    errors = {name: float(np.abs(values - y).mean()) for name, values in predictions.items()}
    best = min(errors, key=lambda name: errors[name])
    tail = (1 - INTERVAL) / 2
    low, high = np.quantile(y - predictions[best], [tail, 1 - tail]).tolist()
    return Boundary(best, MODELS[best](X, y), errors, predictions[best], low, high)


def judge(predicted: Floats, retained: Floats, low: float, high: float) -> dict[str, Any]:
    """How well shares were predicted. Numbers that a set cannot give are None."""
    from scipy.stats import spearmanr
    from sklearn.metrics import roc_auc_score

    collapsed = retained < COLLAPSE
    mixed = 0 < int(collapsed.sum()) < len(retained)
    spread = float(((retained - retained.mean()) ** 2).sum())
    inside = (retained >= predicted + low - 1e-9) & (retained <= predicted + high + 1e-9)
    varied = np.ptp(predicted) > 0 and np.ptp(retained) > 0
    return {
        "n": len(retained),
        "n_collapsed": int(collapsed.sum()),
        "rank_correlation": float(spearmanr(predicted, retained)[0]) if varied else None,
        "r2": 1 - float(((retained - predicted) ** 2).sum()) / spread if spread else None,
        "error": float(np.abs(predicted - retained).mean()),
        "auc": float(roc_auc_score(collapsed, -predicted)) if mixed else None,
        "in_interval": float(inside.mean()),
    }


def predicts_well(score: dict[str, Any]) -> bool:
    """Whether unseen cells were predicted as well as was asked for."""
    auc = score["auc"]
    return auc is not None and auc >= MIN_AUC and score["error"] <= MAX_ERROR
