"""XGBoost one-vs-rest: groups on one matrix against its own multi-label mode and a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import Stages, agree, line, lines, title, total
from benchmarks.training import Data, make_rows, train_in_stages
from oddslip import OneVsRest

Trained = tuple[Stages, NDArray[Any]]
REPEATS = 2


class Size(NamedTuple):
    dense: Data
    sparse: Data
    rounds: int


REAL = Size(Data(8_000, 100, 1.0, 12), Data(8_000, 2_000, 0.01, 12), rounds=12)
TOY = Size(Data(400, 10, 1.0, 3), Data(400, 40, 0.1, 3), rounds=3)


def parameters(rounds: int) -> dict[str, Any]:
    return {"n_estimators": rounds, "learning_rate": 0.05, "max_depth": 6}


def train_multi_label(X: Any, Y: NDArray[np.uint8], rounds: int) -> Trained:
    """XGBoost's multi-label mode. It has no weight per label: this is the unweighted arm."""
    import xgboost as xgb

    stages = Stages()
    model = xgb.XGBClassifier(**parameters(rounds), n_jobs=1)
    stages("binning and growing", lambda: model.fit(X, Y))
    return stages, stages("predicting", lambda: model.predict(X, output_margin=True))


def train_loop(X: Any, Y: NDArray[np.uint8], weights: NDArray[np.float64], rounds: int) -> Trained:
    """A model for every label, started from the label's unweighted mean as ours are."""
    import xgboost as xgb

    stages = Stages()
    models = [
        xgb.XGBClassifier(
            **parameters(rounds),
            n_jobs=1,
            scale_pos_weight=float(np.float32(weight)),
            base_score=float(truth.mean()),
        )
        for truth, weight in zip(Y.T, weights, strict=True)
    ]
    stages(
        "binning and growing",
        lambda: [model.fit(X, truth) for model, truth in zip(models, Y.T, strict=True)],
    )
    margins = stages(
        "predicting", lambda: [model.predict(X, output_margin=True) for model in models]
    )
    return stages, np.stack(margins, axis=1)


def best(train: Callable[[], Trained]) -> Trained:
    """The run that took the least CPU time."""
    return min((train() for _ in range(REPEATS)), key=lambda trained: total(trained[0].done).cpu)


def compare(name: str, data: Data, rounds: int) -> None:
    X, Y = make_rows(data)
    balanced = (1 - Y.mean(axis=0)) / Y.mean(axis=0)
    shape = f"{data.n_rows:,} x {data.n_features:,} {name}"
    title(f"XGBoost, {shape}, {data.n_labels} labels, {rounds} trees each, one thread")
    arms: tuple[tuple[str, Any, str, Callable[[], Trained]], ...] = (
        (
            "weighted",
            balanced,
            "a loop of XGBClassifier",
            lambda: train_loop(X, Y, balanced, rounds),
        ),
        ("unweighted", "none", "its own multi-label mode", lambda: train_multi_label(X, Y, rounds)),
    )
    for arm, weights, peer, train_peer in arms:
        model = OneVsRest("xgboost", weights=weights, threads=1, parameters=parameters(rounds))
        stages, margins = best(lambda m=model: train_in_stages(m, X, Y))
        ours = total(stages.done)
        line(f"oddslip, {arm}", ours)
        lines(stages.done, "    of which ")
        stages, expected = best(train_peer)
        line(f"{peer}, {arm}", total(stages.done), ours)
        agree("margins", margins, expected, 1e-5)


def run(size: Size) -> None:
    compare("dense", size.dense, size.rounds)
    compare("sparse", size.sparse, size.rounds)
