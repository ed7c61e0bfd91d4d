"""Scoring boosted trees of many labels against LightGBM's own ``predict`` of the same trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.timing import agree, line, measure, title, work_folder
from benchmarks.training import Data, booster_parameters, make_rows
from oddslip import OneVsRest


class Size(NamedTuple):
    sparse: Data
    dense: Data
    rounds: int
    repeats: int


REAL = Size(Data(20_000, 1_000, 0.02, 32), Data(20_000, 30, 1.0, 32), rounds=60, repeats=3)
TOY = Size(Data(600, 50, 0.1, 4), Data(600, 10, 1.0, 4), rounds=5, repeats=2)


def compare(name: str, data: Data, size: Size) -> None:
    X, Y = make_rows(data)
    if data.density >= 1:
        X = X.astype(np.float32)
    model = OneVsRest(parameters=booster_parameters(size.rounds)).fit(X, Y)
    boosters = [booster for group in model._models for booster in group.boosters]
    shape = f"{data.n_rows:,} x {data.n_features:,}"
    title(f"{name}: {shape}, {data.n_labels} labels of {size.rounds} trees")
    ours = measure(lambda: model.predict_margin(X), size.repeats)
    line("OneVsRest.predict_margin", ours)

    def predict_boosters() -> list[np.ndarray]:
        return [booster.predict(X, raw_score=True) for booster in boosters]

    line("LightGBM's predict, the same trees", measure(predict_boosters, size.repeats), ours)
    starts = np.concatenate([group.starts for group in model._models])
    order = np.concatenate(model._groups)
    expected = np.column_stack(predict_boosters()) + starts
    agree("margins", model.predict_margin(X)[:, order], expected, 1e-12)
    with work_folder() as folder:
        model.save(folder / "model")
        loaded = [OneVsRest.load(folder / "model") for _ in range(size.repeats)]
    first = measure(lambda: loaded.pop().predict_margin(X), size.repeats)
    line("OneVsRest.predict_margin, just loaded", first)


def run(size: Size) -> None:
    compare("Sparse counts", size.sparse, size)
    compare("Dense", size.dense, size)
