"""Adapters for scikit-learn estimators and those that follow its conventions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from oddslip.adapters.scorer import Scorer, check_classes, constant, refusal, side_by_side
from oddslip.core.types import Array, FeaturesLike, ScoresLike

# Classifiers whose decision function is the log-odds, some of them only with this loss.
_LOG_ODDS = {
    "LogisticRegression": None,
    "LogisticRegressionCV": None,
    "LinearDiscriminantAnalysis": None,
    "HistGradientBoostingClassifier": None,
    "GradientBoostingClassifier": "log_loss",
    "SGDClassifier": "log_loss",
}
_LAYERS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda sums: sums,
    "relu": lambda sums: np.maximum(sums, 0),
    "tanh": np.tanh,
    "logistic": lambda sums: 1 / (1 + np.exp(-sums)),
}
ReadPart = Callable[[object], Scorer]


def from_sklearn(model: Any, read_part: ReadPart) -> Scorer:
    """Scorer of a fitted estimator; ``read_part`` reads the estimators inside it."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if hasattr(model, "best_estimator_"):
        return read_part(model.best_estimator_)
    if hasattr(model, "steps"):
        return _from_pipeline(model, read_part)
    name, n_features = type(model).__name__, getattr(model, "n_features_in_", None)
    if name == "_ConstantPredictor":
        return constant(float(np.ravel(model.y_)[0]), n_features)
    if name in ("OneVsRestClassifier", "MultiOutputClassifier"):
        names = None
        if not getattr(model, "multilabel_", True) and len(model.estimators_) > 1:
            names = [str(label) for label in model.classes_]
        parts = side_by_side([read_part(part) for part in model.estimators_], names)
        return replace(parts, n_features=n_features)
    if name == "ClassifierChain":
        return _from_chain(model, read_part)
    if hasattr(model, "out_activation_") and hasattr(model, "coefs_"):
        return _from_layers(model)
    constant_scorer = check_classes(model)
    if constant_scorer is not None:
        return constant_scorer
    for kind in type(model).__mro__:
        loss = _LOG_ODDS.get(kind.__name__, "no log-odds")
        if loss in (None, getattr(model, "loss", None)):
            return Scorer(model.decision_function, "margin", n_features)
    if not hasattr(model, "predict_proba"):
        raise refusal(model, "neither log-odds nor probabilities")
    return Scorer(lambda rows: _probabilities(model, rows), "probability", n_features)


def _probabilities(model: Any, rows: FeaturesLike) -> Array:
    # A classifier of several outputs returns a list of tables, one per output.
    tables = model.predict_proba(rows)
    if not isinstance(tables, list) and not hasattr(model, "classes_"):
        return np.asarray(tables)  # columns are labels, not classes
    classes = model.classes_
    if not isinstance(tables, list):
        tables, classes = [tables], [classes]
    pairs = zip(tables, classes, strict=True)
    return np.stack([t[:, 1] if len(c) == 2 else c[0] * t[:, 0] for t, c in pairs], axis=1)


def _from_pipeline(model: Any, read_part: ReadPart) -> Scorer:
    last = read_part(model.steps[-1][1])
    transformers = model[:-1]
    if len(transformers) == 0:
        return last
    n_features = getattr(model, "n_features_in_", None)
    kind: Any = "margin" if last.kind == "constant" else last.kind

    def score(rows: FeaturesLike) -> ScoresLike:
        return last.block(transformers.transform(rows), kind)

    # Without n_features_in_ the input need not be a table: texts have no features.
    free = n_features is None
    return replace(
        last, score=score, kind=kind, n_features=n_features, trees=None, parts=(), free=free
    )


def _from_chain(model: Any, read_part: ReadPart) -> Scorer:
    """Each label's odds given the chain's own predictions of the labels before it."""
    n_features = getattr(model, "n_features_in_", None)
    if {read_part(part).kind for part in model.estimators_} == {"margin"}:
        return Scorer(model.decision_function, "margin", n_features)
    return Scorer(model.predict_proba, "probability", n_features)


def _from_layers(model: Any) -> Scorer:
    """`MLPClassifier`: its layers up to the logits, which are not tied at 1."""
    if model.out_activation_ != "logistic":
        raise refusal(model, f"{len(model.classes_)} classes under one softmax")
    activation = _LAYERS[model.activation]

    def score(rows: FeaturesLike) -> ScoresLike:
        cells = rows if hasattr(rows, "tocsr") else np.asarray(rows)
        for at, (slopes, biases) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
            cells = (activation(cells) if at else cells) @ slopes + biases
        return cells

    return Scorer(score, "margin", model.n_features_in_)
