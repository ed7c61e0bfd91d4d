"""scikit-learn estimators with an affine map of their log-odds in the coefficients."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import numpy as np

from oddslip.adapters.scorer import clipped_log_odds
from oddslip.errors import InvalidInput
from oddslip.folding.affine import Affine


def fold_sklearn(model: Any, affine: Affine, fold_part: Any) -> Any:
    """A fitted estimator; ``fold_part`` folds the estimators inside it."""
    if hasattr(model, "best_estimator_"):
        return fold_part(model.best_estimator_, affine)
    if hasattr(model, "steps"):
        folded = copy(model)
        name, last = model.steps[-1]
        folded.steps = [*model.steps[:-1], (name, fold_part(last, affine))]
        return folded
    if type(model).__name__ in ("OneVsRestClassifier", "MultiOutputClassifier"):
        affine.check_labels(len(model.estimators_), type(model).__name__)
        folded = copy(model)
        folded.estimators_ = [
            _fold_constant(part, affine.take([label]), model)
            if type(part).__name__ == "_ConstantPredictor"
            else fold_part(part, affine.take([label]))
            for label, part in enumerate(model.estimators_)
        ]
        return folded
    if hasattr(model, "out_activation_") and hasattr(model, "coefs_"):
        return _fold_layers(model, affine)
    if _is_linear(model):
        return _fold_linear(model, affine)
    raise InvalidInput(
        "model must end in a linear layer or in trees of LightGBM, XGBoost or CatBoost to hold a "
        f"repair, got {type(model).__name__}. Serve it with oddslip.Repaired(model, repair)."
    )


def _is_linear(model: Any) -> bool:
    names = {kind.__name__ for kind in type(model).__mro__}
    if "SGDClassifier" in names:
        return bool(model.loss == "log_loss")
    return bool(names & {"LogisticRegression", "LogisticRegressionCV"})


def _fold_linear(model: Any, affine: Affine) -> Any:
    """Log-odds X @ coef + intercept; one label has one row of coefficients."""
    affine.check_labels(model.coef_.shape[0], type(model).__name__)
    folded = deepcopy(model)
    if hasattr(model.coef_, "tocsr"):  # after `sparsify`
        folded.coef_ = model.coef_.multiply(affine.slope[:, None]).tocsr()
    else:
        folded.coef_ = model.coef_ * affine.slope[:, None]
    folded.intercept_ = affine.intercept + affine.slope * model.intercept_
    return folded


def _fold_layers(model: Any, affine: Affine) -> Any:
    """`MLPClassifier`: the last layer."""
    if model.out_activation_ != "logistic":
        raise InvalidInput(
            "an MLPClassifier must have one logistic output per label, got a softmax over classes."
        )
    affine.check_labels(model.n_outputs_, "an MLPClassifier")
    folded = deepcopy(model)
    folded.coefs_[-1] = model.coefs_[-1] * affine.slope
    folded.intercepts_[-1] = affine.intercept + affine.slope * model.intercepts_[-1]
    return folded


def _fold_constant(part: Any, affine: Affine, model: Any) -> Any:
    """A label of a single class in training, as a model of that log-odds alone."""
    from sklearn.linear_model import LogisticRegression

    level = clipped_log_odds(np.ravel(part.y_)[:1].astype(np.float64))
    constant = LogisticRegression()
    constant.classes_ = np.array([0, 1])
    n_features = next(
        (each.coef_.shape[1] for each in model.estimators_ if hasattr(each, "coef_")),
        getattr(model, "n_features_in_", None),
    )
    if n_features is None:
        raise InvalidInput(
            "a label of a single class needs the number of features to be folded, which "
            f"{type(model).__name__} does not store. Train on a table of numbers."
        )
    constant.n_features_in_ = n_features
    constant.coef_ = np.zeros((1, n_features))
    constant.intercept_ = affine.intercept + affine.slope * level
    return constant
