"""Peak memory of training and scoring 100 and then 500 labels of LightGBM, each on its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import (
    Stage,
    Stages,
    agree,
    alone,
    line,
    lines,
    scaled,
    title,
    total,
    work_folder,
)
from benchmarks.training import CHECKED, Data, booster_parameters, make_rows, warm_up
from oddslip import OneVsRest
from oddslip.learners import score_to_file


class Size(NamedTuple):
    data: Data  # with the labels that the peer trains; its time is scaled up
    n_labels: tuple[int, ...]
    rounds: int
    memory_bytes: int


REAL = Size(Data(100_000, 2_000, 0.01, 20), (100, 500), rounds=10, memory_bytes=256 * 1024**2)
TOY = Size(Data(500, 40, 0.1, 4), (4, 8), rounds=2, memory_bytes=1024**2)


class Measured(NamedTuple):
    stages: list[Stage]
    probabilities: NDArray[np.float64]  # of the first rows


def train(size: Size, n_labels: int) -> Measured:
    """Ours, scored into a file."""
    X, Y = make_rows(size.data._replace(n_labels=n_labels))
    warm_up()
    stages = Stages()
    model = OneVsRest(parameters=booster_parameters(size.rounds), memory_bytes=size.memory_bytes)
    stages("train", lambda: model.fit(X, Y))
    with work_folder() as folder:
        path = folder / "scores.npy"
        stages("score to a file", lambda: score_to_file(model, X, path))
        first = np.load(path, mmap_mode="r")[:CHECKED].astype(np.float64)
        stages("save", lambda: model.save(folder / "model"))
    return Measured(stages.done, first)


def train_loop(size: Size) -> Measured:
    """scikit-learn's, every model kept."""
    from lightgbm import LGBMClassifier
    from sklearn.multioutput import MultiOutputClassifier

    X, Y = make_rows(size.data)
    warm_up()
    stages = Stages()
    booster = LGBMClassifier(**booster_parameters(size.rounds), verbosity=-1, n_jobs=1)
    model = stages("train", lambda: MultiOutputClassifier(booster).fit(X, Y))
    scores = stages("score", lambda: [cells[:CHECKED, 1] for cells in model.predict_proba(X)])
    return Measured(stages.done, np.stack(scores, axis=1))


def run(size: Size) -> None:
    data = size.data
    limit = size.memory_bytes // 1024**2
    shape = f"{data.n_rows:,} x {data.n_features:,} sparse rows"
    title(f"training within {limit} MB: {shape}, {size.rounds} trees a label")
    peer = alone(train_loop, size)
    for n_labels in size.n_labels:
        found = alone(train, size, n_labels)
        lines(found.stages, f"{n_labels} labels: ")
        line(
            f"one thread of scikit-learn, {data.n_labels} labels (scaled up)",
            scaled(total(peer.stages), n_labels / data.n_labels),
            total(found.stages),
            f"its {data.n_labels} labels held {peer.stages[-1].peak_bytes / 1e6:.0f} MB",
        )
        agree("scores", found.probabilities[:, : data.n_labels], peer.probabilities, 1e-7)
