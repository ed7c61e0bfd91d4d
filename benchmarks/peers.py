"""What NumPy and scikit-learn need for the same answers, and the panels both are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression


def make_labels(scores: NDArray[np.float32], prevalence: NDArray[np.float32]) -> NDArray[np.bool_]:
    """A label is likelier where its score is high, up to three times its prevalence."""
    chance = prevalence * np.minimum(scores / scores.mean(axis=0), 3)
    return np.asarray(np.random.default_rng(1).random(scores.shape, np.float32) < chance)


def argsort_rows(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Top K by a stable sort of every row."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def argpartition_rows(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Top K by selecting it and sorting what was selected; ties fall as they may."""
    part = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, part, axis=1), axis=1)
    return np.take_along_axis(part, order, axis=1)


def precision_of_rows(top: NDArray[Any], labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Average precision at K of the rows with a true label: take, cumsum."""
    k = top.shape[1]
    hits = np.take_along_axis(labels, top, axis=1)
    precision = np.cumsum(hits, axis=1) / np.arange(1, k + 1)
    true = labels.sum(axis=1)
    rows = true > 0
    gained = (precision * hits).sum(axis=1)[rows] / np.minimum(k, true[rows])
    return np.asarray(gained, np.float64)


def fit_isotonic(
    columns: Iterable[NDArray[Any]], truths: Iterable[NDArray[Any]]
) -> list[IsotonicRegression]:
    """A fit for every label, in a loop. Given float32 it would merge scores closer than 1e-6."""
    return [
        IsotonicRegression(out_of_bounds="clip").fit(*np.asarray([x, y], np.float64))
        for x, y in zip(columns, truths, strict=True)
    ]
