"""MCGrad (package ``mcgrad``) with its default settings: every study fits it here.

A cell of a panel is a line of MCGrad's table: its score as a probability, its label as the
segment, and optionally numbers that describe its row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput

SEED = 42
MIN_CHANCE = 1e-6  # MCGrad takes log-odds of what it is given

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Numbers = Mapping[str, Floats]  # of each cell, by name
Predict = Callable[[Ints, Floats, Numbers], Floats]


def find_version() -> str:
    """The installed version of MCGrad."""
    try:
        return version("mcgrad")
    except PackageNotFoundError as error:
        raise InvalidInput(
            "--mcgrad needs mcgrad. Run: pip install --no-deps mcgrad psutil"
        ) from error


def fit_mcgrad(labels: Ints, chance: Floats, truth: Bools, numbers: Numbers) -> Predict:
    """Fit on cells; returns the calibrated probabilities of other cells.

    Parameters
    ----------
    labels, chance, truth : ndarray of shape (n_cells,)
        Label, probability and truth of each cell.
    numbers : mapping of str to ndarray of shape (n_cells,)
        Further features, which may be none.

    Returns
    -------
    callable
        Takes labels, probabilities and numbers of the same names.
    """
    import pandas

    methods = import_module("mcgrad.methods")  # without types
    names = {
        "categorical_feature_column_names": ["label"],
        "numerical_feature_column_names": list(numbers) or None,
    }

    def frame(labels: Ints, chance: Floats, numbers: Numbers) -> Any:
        clipped = chance.clip(MIN_CHANCE, 1 - MIN_CHANCE)
        return pandas.DataFrame({"label": labels, **numbers, "chance": clipped})

    model = methods.MCGrad(lightgbm_params={"num_threads": 1}, random_state=SEED)
    with _quiet():
        model.fit(frame(labels, chance, numbers).assign(truth=truth), "chance", "truth", **names)

    def predict(labels: Ints, chance: Floats, numbers: Numbers) -> Floats:
        with _quiet():
            return np.asarray(model.predict(frame(labels, chance, numbers), "chance", **names))

    return predict


def calibrate_with_mcgrad(
    scores: Floats, truth: Bools, others: Floats, *, by_row: bool = False
) -> Floats:
    """Fit on all cells of a panel of probabilities; returns those of another, calibrated.

    Parameters
    ----------
    scores, truth : ndarray of shape (n_rows, n_labels)
    others : ndarray of shape (n_others, n_labels)
    by_row : bool
        Also describe each cell by its place in the row, the row's highest and its sum.

    Returns
    -------
    ndarray of shape (n_others, n_labels)
    """
    describe = describe_rows if by_row else _describe_nothing
    predict = fit_mcgrad(_label_ids(scores), scores.ravel(), truth.ravel(), describe(scores))
    return predict(_label_ids(others), others.ravel(), describe(others)).reshape(others.shape)


def describe_rows(scores: Floats) -> dict[str, Floats]:
    """Of every cell, its place in the row, the row's highest score and the row's sum.

    Examples
    --------
    >>> describe_rows(np.array([[0.2, 0.5]]))["place"]
    array([1., 0.])
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    place = np.argsort(order, axis=1, kind="stable")
    table = {
        "place": place,
        "highest": scores.max(axis=1, keepdims=True),
        "sum": scores.sum(axis=1, keepdims=True),
    }
    return {
        name: np.broadcast_to(values, scores.shape).astype(np.float64).ravel()
        for name, values in table.items()
    }


def _describe_nothing(scores: Floats) -> dict[str, Floats]:
    return {}


def _label_ids(scores: Floats) -> Ints:
    return np.tile(np.arange(scores.shape[1]), len(scores))


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back the log lines that MCGrad writes in every round."""
    logger = logging.getLogger("mcgrad")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
