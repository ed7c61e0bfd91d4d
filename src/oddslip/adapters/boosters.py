"""Adapters for LightGBM, XGBoost and CatBoost, whose raw sums are log-odds."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from oddslip.adapters.scorer import Scorer, check_classes, refusal
from oddslip.core.types import FeaturesLike, ScoresLike


def from_lightgbm(model: Any) -> Scorer:
    """``Booster`` or ``LGBMClassifier``."""
    # Look at the class: the property of an unfitted model raises AttributeError.
    booster = model.booster_ if hasattr(type(model), "booster_") else model
    constant = check_classes(model)
    if constant is not None:
        return constant
    if not hasattr(booster, "model_to_string"):
        raise refusal(model)
    head = booster.model_to_string(num_iteration=1, importance_type="split")
    objective = re.search(r"^objective=(.*)$", head, re.MULTILINE)
    words = objective.group(1).split() if objective else ["custom"]
    if words[0] not in ("binary", "cross_entropy", "multiclassova", "custom"):
        raise refusal(model, f"objective {words[0]}")
    sigmoid = next((float(word[8:]) for word in words if word.startswith("sigmoid:")), 1.0)

    # Raw scores of a random forest are sums, of which `predict` takes the mean.
    averaged = re.search(r"^average_output$", head, re.MULTILINE)
    factor = sigmoid / booster.current_iteration() if averaged else sigmoid

    def score(rows: FeaturesLike) -> ScoresLike:
        margins = booster.predict(rows, raw_score=True)
        return margins if factor == 1 else factor * np.asarray(margins)

    single_label = factor == 1 and booster.num_model_per_iteration() == 1
    n_features = int(booster.num_feature())
    return Scorer(score, n_features=n_features, trees=booster if single_label else None)


def from_xgboost(model: Any) -> Scorer:
    """``Booster`` or ``XGBClassifier`` of either multi-output strategy, on rows or a DMatrix."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    if not hasattr(booster, "save_config"):
        raise refusal(model)
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    if objective not in ("binary:logistic", "binary:logitraw", "reg:logistic"):
        raise refusal(model, f"objective {objective}")
    import xgboost

    # As the classifier's `predict`: use the best rounds of a training that stopped early.
    best = (0, 0)
    if booster is not model and booster.attr("best_iteration") is not None:
        best = (0, int(booster.attr("best_iteration")) + 1)

    def score(rows: FeaturesLike) -> ScoresLike:
        if isinstance(rows, xgboost.DMatrix):
            return booster.predict(rows, output_margin=True, iteration_range=best)
        if booster is not model:
            return model.predict(rows, output_margin=True)
        return booster.predict(xgboost.DMatrix(rows), output_margin=True)

    return Scorer(score, n_features=int(booster.num_features()))


def from_catboost(model: Any) -> Scorer:
    """Classifiers of 0/1 labels, one or many, on rows or a Pool."""
    if not hasattr(model, "is_fitted"):
        raise refusal(model)
    if not model.is_fitted():
        from sklearn.exceptions import NotFittedError

        raise NotFittedError
    loss = str(model.get_all_params().get("loss_function", "")).split(":")[0]
    single = loss in ("Logloss", "CrossEntropy")
    if not single and loss not in ("MultiLogloss", "MultiCrossEntropy", "MultiClassOneVsAll"):
        raise refusal(model, f"loss {loss}")
    names = [] if single else list(getattr(model, "classes_", ()))
    return Scorer(
        lambda rows: model.predict(rows, prediction_type="RawFormulaVal"),
        n_features=len(model.feature_names_),
        names=names if names and all(isinstance(name, str) for name in names) else None,
    )
