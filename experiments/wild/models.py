"""The models of the study: two that others published, and two of texts with class weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.row_aware.panels import (
    PUBLISHED,
    TEXT,
    ScoreText,
    describe_text,
    find_folder,
    hash_published,
    load_text,
    read_published,
)
from experiments.wild.network import SETTINGS, score_with_network

Floats = NDArray[np.float64]
MODELS = {
    "jamendo": "Jamendo, moods of music: VGGish, published scores",
    "chexnet": "CheXNet, findings in x-rays: DenseNet, published scores",
    "texts-balanced": 'GoEmotions: tf-idf, logistic regression, `class_weight="balanced"`',
    "texts-pos-weight": "GoEmotions: small torch network, `pos_weight` = negatives / positives",
}


class Rows(NamedTuple):
    """Scored rows of one model, none of which trained it.

    ``groups`` are artists, patients or texts. ``weights`` and ``prior`` are those of training
    where they are known; ``unweighted`` are scores of the same model without weights.
    """

    scores: Floats
    truth: NDArray[np.bool_]
    groups: NDArray[np.int64]
    weights: Floats | None = None
    prior: Floats | None = None
    unweighted: Floats | None = None


class Model(NamedTuple):
    """A model by name: what its scores depend on, and how to load them."""

    name: str
    configuration: dict[str, Any]
    load: Callable[[], Rows]


def find_model(name: str, data: Any, work: Path) -> Model:
    """A model of `MODELS`. Scores of texts that are missing in ``work`` are trained on loading."""
    if name in PUBLISHED:
        folder = find_folder(f"published/{name}", data)
        about = {"data": name, "inputs": hash_published(name, folder)}
        return Model(name, about, partial(_load_published, name, folder))
    folder = find_folder(TEXT, data)
    weighted, unweighted = (describe_text(folder, weight) for weight in ("r", "1"))
    score: ScoreText | None = None
    if name == "texts-pos-weight":
        settings = {"learner": "network", "features": "word vectors", "settings": SETTINGS}
        weighted, unweighted, score = weighted | settings, unweighted | settings, score_with_network
    load = partial(_load_texts, folder, weighted, unweighted, work / TEXT, score)
    return Model(name, weighted, load)


def _load_published(name: str, folder: Path) -> Rows:
    scores, truth, names = read_published(name, folder)
    groups = np.unique(names, return_inverse=True)[1].astype(np.int64)
    return Rows(np.asarray(scores, np.float64), np.asarray(truth, np.bool_), groups)


def _load_texts(
    folder: Path,
    weighted: dict[str, Any],
    unweighted: dict[str, Any],
    work: Path,
    score: ScoreText | None,
) -> Rows:
    """Texts that did not train: those for development and those for the test."""
    rows, twin = (load_text(folder, about, work, score) for about in (weighted, unweighted))
    return Rows(
        np.concatenate([rows.calibration, rows.test]),
        np.concatenate([rows.truth, rows.test_truth]),
        np.arange(len(rows.truth) + len(rows.test_truth)),
        rows.weights,
        rows.prior,
        np.concatenate([twin.calibration, twin.test]),
    )
