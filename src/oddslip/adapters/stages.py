"""Margins of a boosted model after some of its rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from oddslip.adapters.panel import ModelReader
from oddslip.adapters.scorer import as_cells, of_library
from oddslip.core.types import Array, FeaturesLike
from oddslip.errors import InvalidInput


class Stages(NamedTuple):
    """Rounds of a model, and its margins of rows after each of some ascending numbers of rounds."""

    n_rounds: int
    margins: Callable[[FeaturesLike, Sequence[int]], list[Array]]


def stages_of(model: Any) -> Stages:
    """Stages of a boosted model, or of a list, dict or scikit-learn wrapper with one a label.

    A label whose training stopped early keeps its last margins in later rounds.
    """
    if isinstance(model, Mapping):
        return _side_by_side(list(model.values()))
    if isinstance(model, list | tuple):
        return _side_by_side(model)
    if hasattr(model, "steps"):
        return _after_transformers(model)
    if type(model).__name__ in ("OneVsRestClassifier", "MultiOutputClassifier"):
        return _side_by_side(model.estimators_)
    if hasattr(model, "staged_margin"):  # oddslip.OneVsRest
        return Stages(model.n_rounds, model.staged_margin)
    ModelReader(model)  # raises for a model that is not fitted, or has no log-odds
    maker = of_library({"lightgbm": _lightgbm, "xgboost": _xgboost, "catboost": _catboost}, model)
    if maker is not None:
        return maker(model)
    if hasattr(model, "staged_decision_function"):
        return _sklearn(model)
    raise InvalidInput(
        "model must be boosted in rounds by LightGBM, XGBoost, CatBoost or scikit-learn, got "
        f"{type(model).__name__}."
    )


def _side_by_side(models: Sequence[Any]) -> Stages:
    if not models:
        raise InvalidInput("model must be at least one fitted model, got an empty list.")
    parts = [stages_of(each) for each in models]

    def margins(rows: FeaturesLike, rounds: Sequence[int]) -> list[Array]:
        columns = [part.margins(rows, [min(r, part.n_rounds) for r in rounds]) for part in parts]
        return [np.column_stack(stage) for stage in zip(*columns, strict=True)]

    return Stages(max(part.n_rounds for part in parts), margins)


def _after_transformers(model: Any) -> Stages:
    last, transformers = stages_of(model.steps[-1][1]), model[:-1]

    def margins(rows: FeaturesLike, rounds: Sequence[int]) -> list[Array]:
        return last.margins(transformers.transform(rows) if len(transformers) else rows, rounds)

    return Stages(last.n_rounds, margins)


def _lightgbm(model: Any) -> Stages:
    booster = model.booster_ if hasattr(type(model), "booster_") else model
    text = booster.model_to_string(num_iteration=1)
    if "\naverage_output\n" in text or "[boosting: dart]" in text:
        raise InvalidInput(
            "model must be boosted round by round: first rounds of rf and dart are no models."
        )
    best = booster.best_iteration
    n_rounds = best if best and best > 0 else booster.current_iteration()

    def margins(rows: FeaturesLike, rounds: Sequence[int]) -> list[Array]:
        total, start, stages = 0.0, 0, []
        for stop in rounds:
            if stop > start:
                total = total + booster.predict(
                    rows, raw_score=True, start_iteration=start, num_iteration=stop - start
                )
            start = max(start, stop)
            stages.append(as_cells(total))
        return stages

    return Stages(int(n_rounds), margins)


def _xgboost(model: Any) -> Stages:
    import xgboost

    booster = model.get_booster() if hasattr(model, "get_booster") else model

    def margins(rows: FeaturesLike, rounds: Sequence[int]) -> list[Array]:
        matrix = rows if isinstance(rows, xgboost.DMatrix) else xgboost.DMatrix(rows)
        return [
            as_cells(booster.predict(matrix, output_margin=True, iteration_range=(0, stop)))
            for stop in rounds
        ]

    return Stages(int(booster.num_boosted_rounds()), margins)


def _catboost(model: Any) -> Stages:
    def margins(rows: FeaturesLike, rounds: Sequence[int]) -> list[Array]:
        return [
            as_cells(model.predict(rows, prediction_type="RawFormulaVal", ntree_end=stop))
            for stop in rounds
        ]

    return Stages(int(model.tree_count_), margins)


def _sklearn(model: Any) -> Stages:
    n_rounds = getattr(model, "n_iter_", None) or model.n_estimators_

    def margins(rows: FeaturesLike, rounds: Sequence[int]) -> list[Array]:
        numbers = set(rounds)
        stages = islice(model.staged_decision_function(rows), max(rounds))
        by_round = {at: as_cells(s) for at, s in enumerate(stages, 1) if at in numbers}
        return [by_round[stop] for stop in rounds]

    return Stages(int(n_rounds), margins)
