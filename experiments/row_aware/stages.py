"""Second stages: logit p' = logit p + b_0 + b . f, with features f of the whole row.

A stage ranks the `DEPTH` best labels of a row again. It learns from repaired scores of calibration
rows that the repair was not fitted on. What labels say about each other is learned on other folds
than that of the row, so that no row is described by its own labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from experiments.mcgrad import fit_mcgrad

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SEED = 42
DEPTH = 50  # labels of a row that are ranked again
PSEUDO_COUNT = 5.0  # added to observed and expected co-occurrences
N_DIMENSIONS = 32  # of the label embedding: principal components of the row's probabilities
SHRINKAGE = 1.0  # ridge of the responses to the embedding, in rows
MAX_RESPONSE = 3.0  # nat
RIDGE = 10.0  # penalty of standardised coefficients, in cells
MIN_VARIANCE = 1e-4
MAX_MARGIN = 15.0  # of a feature; the margin that a stage adds to has no limit
N_TREE_DIMENSIONS = 8  # of the embedding among the features of trees
N_BEST = 5  # margins of the row's best labels among the features of trees
BOOSTER = {
    "objective": "binary",
    "learning_rate": 0.05,
    "num_leaves": 7,
    "min_data_in_leaf": 100,
    "lambda_l2": 10.0,
    "feature_fraction": 0.5,
    "seed": SEED,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
N_ROUNDS = 60


class Rows(NamedTuple):
    """What a stage sees: log-odds of the chosen repair, and calibrated probabilities."""

    margin: Floats
    chance: Floats

    def take(self, rows: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.margin[rows], self.chance[rows])

    def best(self) -> Ints:
        """The `DEPTH` best labels of each row, in the order of the labels."""
        depth = min(DEPTH, self.margin.shape[1])
        order = np.argsort(-self.margin, axis=1, kind="stable")
        return np.sort(order[:, :depth], axis=1)


class Relations(NamedTuple):
    """What labels say about each other."""

    prevalence: Floats
    lift: Floats  # log of how often two labels occur together over chance, shrunk towards 0
    axes: Floats  # (n_labels, N_DIMENSIONS or fewer)
    response: Floats  # nat that a label's log-odds rise by another's probability, of low rank


def relate_labels(rows: Rows, truth: Bools) -> Relations:
    """Co-occurrence in some rows, and what their scores leave to be said by other labels' scores.

    The response is one Newton step of a ridge regression of the residuals on the principal
    components of the row's probabilities.

    Examples
    --------
    >>> truth = np.array([[1, 1, 0], [0, 0, 1]] * 10, bool)
    >>> relate_labels(Rows(np.zeros((20, 3)), np.full((20, 3), 0.5)), truth).lift.round(2)
    array([[ 0.  ,  0.41, -0.69],
           [ 0.41,  0.  , -0.69],
           [-0.69, -0.69,  0.  ]])
    """
    ones = truth.astype(np.float64)
    positives = ones.sum(axis=0)
    expected = np.outer(positives, positives) / len(truth)
    lift = np.log((ones.T @ ones + PSEUDO_COUNT) / (expected + PSEUDO_COUNT))
    np.fill_diagonal(lift, 0.0)
    prevalence = ones.mean(axis=0)
    surprise = rows.chance - prevalence
    energy, vectors = np.linalg.eigh(surprise.T @ surprise)
    energy, axes = energy[::-1][:N_DIMENSIONS], vectors[:, ::-1][:, :N_DIMENSIONS]
    residual = axes.T @ (surprise.T @ (ones - rows.chance))
    variance = np.maximum((rows.chance * (1 - rows.chance)).mean(axis=0), MIN_VARIANCE)
    response = axes @ (residual / (energy[:, None] + SHRINKAGE)) / variance
    np.fill_diagonal(response, 0.0)
    return Relations(prevalence, lift, axes, response)


def describe_shared(rows: Rows, best: Ints, relations: Relations) -> Floats:
    """Margin, support by the row's other labels, crowding of the row, distance to its best."""
    margin = np.take_along_axis(rows.margin, best, axis=1).clip(-MAX_MARGIN, MAX_MARGIN)
    support = (rows.chance - relations.prevalence) @ relations.lift
    crowd = np.log(rows.chance.sum(axis=1, keepdims=True) + 1e-6)
    columns = [
        margin,
        np.take_along_axis(support, best, axis=1),
        np.broadcast_to(crowd, margin.shape),
        margin - margin.max(axis=1, keepdims=True),
    ]
    return np.stack(columns, axis=2)


def describe_embedding(rows: Rows, best: Ints, relations: Relations) -> Floats:
    """The shared features and the response to the other labels."""
    surprise = rows.chance - relations.prevalence
    response = (surprise @ relations.response).clip(-MAX_RESPONSE, MAX_RESPONSE)
    response = np.take_along_axis(response, best, axis=1)
    shared = describe_shared(rows, best, relations)
    return np.concatenate([shared, response[:, :, None]], axis=2)


def describe_places(rows: Rows, best: Ints, relations: Relations) -> Floats:
    """Label, place in the row, the row's highest and its sum of probabilities."""
    margin = np.take_along_axis(rows.margin, best, axis=1)
    place = np.argsort(np.argsort(-margin, axis=1, kind="stable"), axis=1)
    columns = [
        best,
        place,
        np.broadcast_to(rows.chance.max(axis=1, keepdims=True), best.shape),
        np.broadcast_to(rows.chance.sum(axis=1, keepdims=True), best.shape),
    ]
    return np.stack(columns, axis=2).astype(np.float64)


def describe_trees(rows: Rows, best: Ints, relations: Relations) -> Floats:
    """All of the above but the label, the label's own numbers, and the shape of the row."""
    embedding = describe_embedding(rows, best, relations)
    n_best = min(N_BEST, best.shape[1])
    highest = -np.sort(-embedding[:, :, 0], axis=1)[:, :n_best]
    axes = relations.axes[:, :N_TREE_DIMENSIONS]
    components = (rows.chance - relations.prevalence) @ axes
    by_row = np.concatenate([highest, highest.std(axis=1, keepdims=True), components], axis=1)
    by_label = np.concatenate([relations.prevalence[:, None], axes], axis=1)[best]
    parts = [
        embedding,
        describe_places(rows, best, relations)[:, :, 1:],
        np.take_along_axis(rows.chance, best, axis=1)[:, :, None],
        by_label,
        by_label[:, :, 1:] * components[:, None, :],
        np.broadcast_to(by_row[:, None, :], (*best.shape, by_row.shape[1])),
    ]
    return np.concatenate(parts, axis=2)


Predict = Callable[[Floats, Floats], Floats]  # margins of cells from their features and margins


def learn_logistic(features: Floats, margin: Floats, truth: Bools) -> Predict:
    """Coefficients shared by all cells, added to the margin; by Newton's method."""
    centre, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-9)

    def standardise(cells: Floats) -> Floats:
        return np.column_stack([np.ones(len(cells)), (cells - centre) / scale])

    table = standardise(features)
    penalty = np.diag([1e-6, *[RIDGE] * features.shape[1]])
    coefficients = np.zeros(table.shape[1])

    def loss(at: Floats) -> float:
        odds = margin + table @ at
        return float(np.logaddexp(0, odds).sum() - odds[truth].sum() + at @ penalty @ at / 2)

    for _ in range(50):
        chance = expit(margin + table @ coefficients)
        slope = table.T @ (chance - truth) + penalty @ coefficients
        curvature = (table * (chance * (1 - chance))[:, None]).T @ table + penalty
        step = np.linalg.solve(curvature, slope)
        before = loss(coefficients)
        while loss(coefficients - step) > before and np.abs(step).max() > 1e-9:
            step /= 2
        coefficients = coefficients - step
        if np.abs(step).max() < 1e-7:
            break
    return lambda cells, odds: odds + standardise(cells) @ coefficients


def learn_trees(features: Floats, margin: Floats, truth: Bools) -> Predict:
    """Small LightGBM trees that start from the margin."""
    import lightgbm

    data = lightgbm.Dataset(features, truth.astype(np.int8), init_score=margin)
    booster = lightgbm.train(BOOSTER, data, num_boost_round=N_ROUNDS)
    return lambda cells, odds: (
        odds + np.asarray(booster.predict(cells, raw_score=True, num_threads=1))
    )


def learn_mcgrad(features: Floats, margin: Floats, truth: Bools) -> Predict:
    """MCGrad with its default settings, of the label and the places in the row."""

    def describe(cells: Floats, odds: Floats) -> tuple[Ints, Floats, dict[str, Floats]]:
        numbers = dict(zip(("place", "highest", "sum"), cells[:, 1:].T, strict=True))
        return cells[:, 0].astype(np.int64), np.asarray(expit(odds)), numbers

    labels, chance, numbers = describe(features, margin)
    predict = fit_mcgrad(labels, chance, truth, numbers)
    return lambda cells, odds: predict(*describe(cells, odds))


Describe = Callable[[Rows, Ints, Relations], Floats]
Learn = Callable[[Floats, Floats, Bools], Predict]
STAGES: dict[str, tuple[Describe, Learn]] = {
    "shared": (describe_shared, learn_logistic),
    "embedding": (describe_embedding, learn_logistic),
    "trees": (describe_trees, learn_trees),
    "mcgrad": (describe_places, learn_mcgrad),
}


class Stage(NamedTuple):
    """A fitted stage."""

    relations: Relations
    describe: Describe
    predict: Predict

    def rank(self, rows: Rows, k: int) -> NDArray[np.int32]:
        """Top K of each row; equal scores go to the lower label."""
        best = rows.best()
        features = self.describe(rows, best, self.relations)
        margin = np.take_along_axis(rows.margin, best, axis=1)
        scores = self.predict(features.reshape(-1, features.shape[2]), margin.ravel())
        scores = np.where(np.isneginf(margin), -np.inf, scores.reshape(best.shape))
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(best, order, axis=1).astype(np.int32)


def fit_stage(name: str, rows: Rows, truth: Bools, folds: NDArray[np.int32]) -> Stage:
    """A stage fitted on rows whose scores come from repairs that were fitted without their fold."""
    describe, learn = STAGES[name]
    best = rows.best()
    parts, order = [], []
    for fold in np.unique(folds):
        inside = np.flatnonzero(folds == fold)
        outside = folds != fold
        relations = relate_labels(rows.take(outside), truth[outside])
        parts.append(describe(rows.take(inside), best[inside], relations))
        order.append(inside)
    features = np.concatenate(parts)[np.argsort(np.concatenate(order))]
    predict = learn(
        features.reshape(-1, features.shape[2]),
        np.take_along_axis(rows.margin, best, axis=1).ravel(),
        np.take_along_axis(truth, best, axis=1).ravel(),
    )
    return Stage(relate_labels(rows, truth), describe, predict)
