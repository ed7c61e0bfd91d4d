"""Trained arms of the MULAN study: scores of calibration and test rows, kept on disk."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from experiments.datasets.mulan.reader import MulanData
from experiments.store import WEIGHTS
from oddslip.core.provenance import digest_of
from oddslip.core.results import plain
from oddslip.errors import InvalidInput, UnreadableFile, first_line
from oddslip.io.arrays import DAMAGED, read_arrays
from oddslip.io.files import atomic_write, hash_bytes
from oddslip.learners import OneVsRest
from oddslip.learners.backends.base import preset_learner, preset_parameters

SEED = 42
# Logistic regression of 983 labels on all cells takes hours, on the words of a row minutes.
AS_WORDS = ("delicious",)
LEARNERS = {
    "lightgbm": "paper-default",
    "lightgbm-regularised": "paper-regularised",
    "xgboost": "paper-xgboost",
    "logistic": "paper-logistic",
    "mlp": "paper-mlp",
}


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """Probabilities and margins of the calibration rows and of the test rows.

    Probabilities are those that the learner's own library stores: XGBoost's and the MLP's are
    float32 numbers. ``seconds`` are wall and CPU seconds of the training.
    """

    weights: NDArray[np.float64]
    calibration: NDArray[np.float64]
    test: NDArray[np.float64]
    calibration_margin: NDArray[np.float64]
    test_margin: NDArray[np.float64]
    seconds: NDArray[np.float64]

    def hashes(self) -> dict[str, str]:
        """SHA-256 of the probabilities."""
        return {
            rows: hash_bytes(np.ascontiguousarray(getattr(self, rows)).tobytes())
            for rows in ("calibration", "test")
        }


class Identity(NamedTuple):
    """What cells name of a data set: enough to know them again without its files."""

    name: str
    protocol: str
    sha256: dict[str, str]


def arm_configuration(data: MulanData | Identity, learner: str, weight: str) -> dict[str, Any]:
    """All that an arm's scores depend on."""
    configuration = {
        "data": data.name,
        "protocol": data.protocol,
        "inputs": data.sha256,
        "learner": learner,
        "preset": LEARNERS[learner],
        "parameters": preset_parameters(LEARNERS[learner]),
        "mode": "exact" if learner.startswith("lightgbm") else "grouped",
        "weight": WEIGHTS[weight],
        "seed": SEED,
    }
    if learner == "logistic" and data.name in AS_WORDS:
        configuration["features"] = "words, sparse"
    return configuration


class Words(NamedTuple):
    """Features of two values as words that are there or not, which is all that is standardised."""

    low: NDArray[np.float64]
    gap: NDArray[np.float64]

    @classmethod
    def of(cls, X: NDArray[np.float64]) -> Words:
        """Both values of every feature."""
        low, high = X.min(axis=0), X.max(axis=0)
        if not ((low == X) | (high == X)).all():
            raise InvalidInput("every feature must have two values to be a word, got more.")
        return cls(low, np.where(high > low, high - low, 1.0))

    def within(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows in words: 0 and 1 where they were standardised alike, near them elsewhere."""
        return (X - self.low) / self.gap


def train_arm(data: MulanData, learner: str, weight: str, folder: Path) -> Arm:
    """Scores of one arm: from disk if they were made with this configuration, else trained."""
    configuration = plain(arm_configuration(data, learner, weight))
    path = folder / f"{data.name}-{learner}-{weight}-{digest_of(configuration)}.npz"
    names = tuple(field.name for field in fields(Arm))
    if path.exists():
        try:
            arrays = read_arrays(path)
            return Arm(*(arrays[name] for name in names))
        except DAMAGED as error:
            raise UnreadableFile(
                f"{path} is damaged ({first_line(error)}). Remove it to train that arm again."
            ) from error
    started = time.perf_counter(), time.process_time()
    fitted = data.X_train[data.fitted]
    rows = data.X_train[data.calibration], data.X_test
    if "features" in configuration:
        words = Words.of(fitted)
        fitted = csr_matrix(np.rint(words.within(fitted)))
        rows = words.within(rows[0]), words.within(rows[1])
    model = OneVsRest(
        preset_learner(configuration["preset"]),
        weights=configuration["weight"],
        preset=configuration["preset"],
        mode=configuration["mode"],
        seed=SEED,
        threads=1,  # as in the paper; and small trees gain nothing from more
    ).fit(fitted, data.Y_train[data.fitted])
    seconds = time.perf_counter() - started[0], time.process_time() - started[1]
    margins = [model.predict_margin(X).astype(np.float64) for X in rows]
    probabilities = [model.predict_stored(X) for X in rows]
    arm = Arm(
        weights=model.weights_,
        calibration=probabilities[0],
        test=probabilities[1],
        calibration_margin=margins[0],
        test_margin=margins[1],
        seconds=np.array(seconds),
    )
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as unfinished:
        np.savez(unfinished, **{name: getattr(arm, name) for name in names})
    return arm
