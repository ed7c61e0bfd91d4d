"""One-vs-rest LightGBM pairs on product files of one tenth and of full size, a few labels trained.

The files are generated, read and binned; then a few labels of both arms are trained and scored,
spread over the popularity of products, and what all labels would take follows. Each in its own
process, so that peaks are its own. It takes a quarter of an hour, and gigabytes in ``.bench``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.reading import INSTACART, READERS, SANTANDER, Product, generate
from benchmarks.timing import (
    Stage,
    Stages,
    agree,
    alone,
    line,
    lines,
    scaled,
    take_time,
    title,
    total,
    work_folder,
)
from benchmarks.training import CHECKED, warm_up
from oddslip import OneVsRest

PRESET = "paper-booster"


class Scale(NamedTuple):
    """Generated files, and how many of their labels are trained."""

    product: Product
    size: int
    trained: int


Size = tuple[Scale, ...]
REAL: Size = (
    Scale(INSTACART, 19_681, 16),
    Scale(INSTACART, 196_810, 8),
    Scale(SANTANDER, 13_600_000, 2),
)
TOY: Size = (Scale(INSTACART, 300, 2), Scale(SANTANDER, 5_000, 2))


def train_pair(scale: Scale, folder: Path) -> None:
    """In a process of its own: prints what reading, binning, and both arms take."""
    warm_up()
    stages = Stages()
    reader = READERS[scale.product.name]
    data = stages("read, to features", lambda: reader(folder, cache=folder / "cache"))
    by_popularity = np.argsort(-data.positives, kind="stable")
    places = (np.arange(scale.trained) + 0.5) / scale.trained * np.count_nonzero(data.positives)
    chosen = by_popularity[places.astype(int)]
    truth = data.train.Y.tocsc()[:, chosen].tocsr()
    prepared = stages("bin", lambda: OneVsRest(preset=PRESET).prepare(data.train.X))
    lines(stages.done)
    spent = 0.0
    for weights in ("none", "balanced"):
        stages.done.clear()
        arm = OneVsRest(preset=PRESET, weights=weights)
        stages(f"train {scale.trained} labels, {weights}", lambda a=arm: a.fit(prepared, truth))
        trained = stages.done[0]
        for period in ("validation", "test"):
            X = getattr(data, period).X
            stages(f"score {period}, {weights}", lambda a=arm, X=X: a.predict_proba(X))
        lines(stages.done)
        spent += total(stages.done).cpu
        compare(arm, trained, data, truth)
    hours = spent / scale.trained * data.n_labels / 3600
    print(f"  both arms of {data.n_labels:,} labels, extrapolated: {hours:.2g} CPU hours")


def compare(arm: OneVsRest, trained: Stage, data: Any, truth: Any) -> None:
    """LightGBM's own classifier on two of the labels."""
    from lightgbm import LGBMClassifier

    some = np.arange(truth.shape[1])[:: max(1, truth.shape[1] // 2)]
    told = {name: arm.parameters_[name] for name in ("learning_rate", "num_leaves")}
    told |= {"n_estimators": arm.parameters_["num_iterations"], "verbosity": -1}
    told |= {"force_col_wise": True, "n_jobs": 1}  # sums in the order of ours

    def train_loop() -> list[Any]:
        return [
            LGBMClassifier(**told, scale_pos_weight=arm.weights_[label]).fit(
                data.train.X, truth[:, [label]].toarray().ravel()
            )
            for label in some
        ]

    models, times = take_time(train_loop)
    theirs = scaled(times, truth.shape[1] / some.size)
    line(f"LGBMClassifier, one thread, {some.size} labels (scaled up)", theirs, trained.times)
    rows = data.test.X[:CHECKED]
    expected = [model.predict_proba(rows)[:, 1] for model in models]
    agree("probabilities", arm.predict_proba(rows)[:, some], np.stack(expected, axis=1), 1e-6)


def run(size: Size) -> None:
    for scale in size:
        with work_folder() as folder:
            title(f"{scale.product.name}, {scale.product.size_name} = {scale.size:,}, generated")
            lines([alone(generate, scale.product, folder, scale.size)])
            alone(train_pair, scale, folder)
