"""`panel_from`: a panel from a model someone has already, margins wherever there are margins.

Which library a model comes from is read off its class; none is loaded that the model did not
load itself. Every model becomes a `_Scorer`, which says what it returns and how many features it
wants; a list of models becomes one scorer of their columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput
from oddslip.learners.forest import Forests
from oddslip.panels import Kind, Panel
from oddslip.sparse import as_rows

_BATCH_ROWS = 16_384
_CLIP = 1e-12  # a label that was always or never true has the log-odds of this probability
_KNOWN = ("lightgbm", "xgboost", "catboost", "sklearn", "torch", "oddslip")
# Classifiers of scikit-learn whose decision function is the log-odds, or is under this loss.
_LOG_ODDS = {
    "LogisticRegression": None,
    "LogisticRegressionCV": None,
    "LinearDiscriminantAnalysis": None,
    "HistGradientBoostingClassifier": None,
    "GradientBoostingClassifier": "log_loss",
    "SGDClassifier": "log_loss",
}
_ADVICE = 'Compute its scores yourself and pass them to Panel(scores, labels, kind="margin").'


class _Scorer(NamedTuple):
    """Scores of a block of rows, shape (rows, labels) or (rows,)."""

    score: Callable[[Any], Any]
    kind: Kind | None = "margin"  # None: a constant probability, which can be either
    n_features: int | None = None
    names: Sequence[str] | None = None
    trees: Any = None  # a LightGBM Booster of one label, if that is all it is

    def block(self, rows: Any, kind: Kind) -> NDArray[Any]:
        """Scores in this kind, always with a column per label."""
        scores = np.asarray(self.score(rows))
        scores = scores.reshape(scores.shape[0], -1)
        if self.kind == kind:
            return scores
        if kind == "probability":
            from scipy.special import expit

            return scores if self.kind is None else np.asarray(expit(scores))
        chances = np.clip(scores, _CLIP, 1 - _CLIP)
        return np.asarray(np.log(chances) - np.log1p(-chances))


def panel_from(
    model: Any,
    X: Any,
    labels: Any = None,
    *,
    label_names: Sequence[str] | None = None,
    batch_rows: int | None = None,
) -> Panel:
    """A panel of what a fitted model says about some rows.

    Parameters
    ----------
    model : fitted model, or a list of them with one label each
        LightGBM ``Booster`` or ``LGBMClassifier``; XGBoost ``Booster`` or ``XGBClassifier``,
        multi-label or not; CatBoost; scikit-learn's ``OneVsRestClassifier``,
        ``MultiOutputClassifier`` or binary classifiers, in a ``Pipeline`` or not; a torch module
        that returns logits; `oddslip.learners.OneVsRest`.
    X : array, scipy.sparse matrix, data frame or tensor of shape (n_rows, n_features)
        In the form the model was trained on.
    labels : optional
        What was true, as for `Panel`.
    label_names : sequence of str, optional
        Names of the labels; a model that knows them brings its own.
    batch_rows : int, optional
        Rows scored at a time, 16,384 unless told.

    Returns
    -------
    Panel
        Of margins (log-odds) where the model has them, which order cells that as probabilities
        would be tied at 1.0. Of probabilities otherwise; ``kind`` says which. A label that was
        always or never true in training has a probability of 1 or 0, or the log-odds of 1e-12.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> X, Y = [[0.0], [1.0], [2.0]], [[0, 1], [1, 1], [1, 0]]
    >>> panel_from(OneVsRestClassifier(LogisticRegression()).fit(X, Y), X, Y)
    Panel(3 rows x 2 labels, margin, float64, labels: yes)
    """
    from sklearn.exceptions import NotFittedError

    try:
        scorer = _scorer(model)
    except NotFittedError as error:
        raise InvalidInput(
            f"model must be fitted, got a {type(model).__name__} that is not. Call fit first."
        ) from error
    rows = _as_rows(X)
    if scorer.n_features is not None and rows.shape[1] != scorer.n_features:
        raise InvalidInput(
            f"X must have the {scorer.n_features} features of training, got {rows.shape[1]}."
        )
    step = _BATCH_ROWS if batch_rows is None else int(batch_rows)
    if step < 1:
        raise InvalidInput(f"batch_rows must be at least 1, got {batch_rows!r}.")
    kind: Kind = scorer.kind or "margin"
    n_rows, scores = int(rows.shape[0]), np.empty((0, 0))
    for start in range(0, n_rows, step):
        block = scorer.block(_take(rows, start, min(start + step, n_rows)), kind)
        if start == 0:
            scores = np.empty((n_rows, block.shape[1]), block.dtype)
        scores[start : start + step] = block
    names = scorer.names if label_names is None else label_names
    return Panel(scores, labels, kind=kind, label_names=names)


def _scorer(model: Any) -> _Scorer:
    if isinstance(model, list | tuple):
        return _side_by_side([_scorer(part) for part in model])
    makers = {
        "lightgbm": _from_lightgbm,
        "xgboost": _from_xgboost,
        "catboost": _from_catboost,
        "sklearn": _from_sklearn,
        "torch": _from_torch,
        "oddslip": _from_oddslip,
    }
    # A user's own class is known by the library class it is built on.
    for root in (kind.__module__.split(".")[0] for kind in type(model).__mro__):
        if root in makers:
            return makers[root](model)
    raise _refusal(model)


def _side_by_side(parts: list[_Scorer]) -> _Scorer:
    """One scorer of all columns. One label without margins makes all of them probabilities."""
    if not parts:
        raise InvalidInput("model must be at least one fitted model, got an empty list.")
    widths = [part.n_features for part in parts]
    n_features = next((width for width in widths if width is not None), None)
    for at, width in enumerate(widths):
        if width not in (None, n_features):
            raise InvalidInput(
                f"models in a list must have the same number of features, "
                f"got {n_features} and, at place {at}, {width}."
            )
    kinds = {part.kind for part in parts}
    kind: Kind = "probability" if "probability" in kinds else "margin"

    boosters = {at: part.trees for at, part in enumerate(parts) if part.trees is not None}
    forests = Forests(boosters if kind == "margin" else {})

    def score(rows: Any) -> NDArray[Any]:
        sums = forests.sum_rows(rows)
        blocks = (
            sums[at] if at in sums else part.block(rows, kind) for at, part in enumerate(parts)
        )
        return np.column_stack(list(blocks))

    return _Scorer(score, kind, n_features)


def _from_lightgbm(model: Any) -> _Scorer:
    # Asked of the class: an unfitted model's own properties hide behind an AttributeError.
    booster = model.booster_ if hasattr(type(model), "booster_") else model
    constant = _check_classes(model)
    if constant is not None:
        return constant
    if not hasattr(booster, "model_to_string"):
        raise _refusal(model)
    head = booster.model_to_string(num_iteration=1, importance_type="split")
    objective = re.search(r"^objective=(.*)$", head, re.MULTILINE)
    words = objective.group(1).split() if objective else ["custom"]
    if words[0] not in ("binary", "cross_entropy", "multiclassova", "custom"):
        raise _refusal(model, f"objective {words[0]}")
    sigmoid = next((float(word[8:]) for word in words if word.startswith("sigmoid:")), 1.0)

    def score(rows: Any) -> Any:
        margins = booster.predict(rows, raw_score=True)
        return margins if sigmoid == 1 else sigmoid * np.asarray(margins)

    alone = sigmoid == 1 and booster.num_model_per_iteration() == 1
    n_features = int(booster.num_feature())
    return _Scorer(score, n_features=n_features, trees=booster if alone else None)


def _from_xgboost(model: Any) -> _Scorer:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    if not hasattr(booster, "save_config"):
        raise _refusal(model)
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    if objective not in ("binary:logistic", "binary:logitraw", "reg:logistic"):
        raise _refusal(model, f"objective {objective}")
    n_features = int(booster.num_features())
    if booster is not model:
        return _Scorer(lambda rows: model.predict(rows, output_margin=True), n_features=n_features)
    import xgboost

    return _Scorer(
        lambda rows: booster.predict(xgboost.DMatrix(rows), output_margin=True),
        n_features=n_features,
    )


def _from_catboost(model: Any) -> _Scorer:
    if not hasattr(model, "is_fitted"):
        raise _refusal(model)
    if not model.is_fitted():
        from sklearn.exceptions import NotFittedError

        raise NotFittedError
    loss = str(model.get_all_params().get("loss_function", "")).split(":")[0]
    single = loss in ("Logloss", "CrossEntropy")
    if not single and loss not in ("MultiLogloss", "MultiCrossEntropy", "MultiClassOneVsAll"):
        raise _refusal(model, f"loss {loss}")
    return _Scorer(
        lambda rows: model.predict(rows, prediction_type="RawFormulaVal"),
        n_features=len(model.feature_names_),
    )


def _from_sklearn(model: Any) -> _Scorer:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if hasattr(model, "best_estimator_"):
        return _scorer(model.best_estimator_)
    if hasattr(model, "steps"):
        return _from_pipeline(model)
    name, n_features = type(model).__name__, getattr(model, "n_features_in_", None)
    if name == "_ConstantPredictor":
        return _constant(float(np.ravel(model.y_)[0]), n_features)
    if name in ("OneVsRestClassifier", "MultiOutputClassifier"):
        names = None
        if not getattr(model, "multilabel_", True) and len(model.estimators_) > 1:
            names = [str(label) for label in model.classes_]
        return _side_by_side([_scorer(part) for part in model.estimators_])._replace(
            n_features=n_features, names=names
        )
    constant = _check_classes(model)
    if constant is not None:
        return constant
    for kind in type(model).__mro__:
        loss = _LOG_ODDS.get(kind.__name__, "no log-odds")
        if loss in (None, getattr(model, "loss", None)):
            return _Scorer(model.decision_function, "margin", n_features)
    if not hasattr(model, "predict_proba"):
        raise _refusal(model, "neither log-odds nor probabilities")

    def score(rows: Any) -> NDArray[Any]:
        # A classifier of several outputs gives a table for each of them.
        chances = model.predict_proba(rows)
        tables = chances if isinstance(chances, list) else [chances]
        classes = model.classes_ if isinstance(chances, list) else [model.classes_]
        pairs = zip(tables, classes, strict=True)
        return np.stack([t[:, 1] if len(c) == 2 else c[0] * t[:, 0] for t, c in pairs], axis=1)

    return _Scorer(score, "probability", n_features)


def _from_pipeline(model: Any) -> _Scorer:
    last = _scorer(model.steps[-1][1])
    before = model[:-1]
    if len(before) == 0:
        return last
    return last._replace(
        score=lambda rows: last.score(before.transform(rows)),
        n_features=getattr(model, "n_features_in_", None),
    )


def _from_torch(model: Any) -> _Scorer:
    import torch

    if not isinstance(model, torch.nn.Module):
        raise _refusal(model)
    logits = model
    if isinstance(model, torch.nn.Sequential) and isinstance(model[-1], torch.nn.Sigmoid):
        logits = model[:-1]  # the same layers up to the logits
    first = next(model.parameters(), torch.empty(0))

    def score(rows: Any) -> Any:
        if not isinstance(rows, torch.Tensor):
            cells = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
            rows = torch.from_numpy(np.array(cells))
        modes = [(part, part.training) for part in model.modules()]
        try:
            model.eval()
            with torch.no_grad():
                scores = logits(rows.to(device=first.device, dtype=first.dtype))
        finally:
            for part, training in modes:
                part.training = training
        tensor = isinstance(scores, torch.Tensor)
        if not tensor or scores.ndim > 2 or len(scores) != len(rows):
            raise InvalidInput(
                "a torch module must return a tensor of logits of shape (rows, labels), got "
                f"{tuple(scores.shape) if tensor else type(scores).__name__}."
            )
        wide = scores.dtype if scores.dtype == torch.float64 else torch.float32
        return scores.to(device="cpu", dtype=wide).numpy()

    return _Scorer(score)


def _from_oddslip(model: Any) -> _Scorer:
    if not hasattr(model, "predict_margin"):
        raise _refusal(model)
    return _Scorer(
        model.predict_margin,
        n_features=getattr(model, "n_features_in_", None),
        names=getattr(model, "label_names_", None),
    )


def _check_classes(model: Any) -> _Scorer | None:
    """Refuse more than two classes. A single class is a constant label."""
    classes = getattr(model, "classes_", None)
    for values in classes if isinstance(classes, list) else [] if classes is None else [classes]:
        if len(values) > 2:
            raise _refusal(model, f"{len(values)} classes")
        if len(values) == 1 and values[0] not in (0, 1):
            raise _refusal(model, f"the single class {values[0]!r}")
    if classes is None or isinstance(classes, list) or len(classes) == 2:
        return None
    return _constant(float(classes[0]), getattr(model, "n_features_in_", None))


def _constant(chance: float, n_features: int | None) -> _Scorer:
    return _Scorer(lambda rows: np.full(rows.shape[0], chance), None, n_features)


def _refusal(model: Any, what: str = "") -> InvalidInput:
    came = type(model).__name__ + (f" with {what}" if what else "")
    return InvalidInput(
        f"model must give log-odds or probabilities of 0/1 labels and come from one of "
        f"{', '.join(_KNOWN)}; got {came}. {_ADVICE}"
    )


def _as_rows(X: Any) -> Any:
    if hasattr(X, "tocsr"):
        return as_rows(X, "X")
    rows = X if hasattr(X, "shape") else np.asarray(X)
    if len(rows.shape) != 2 or rows.shape[0] == 0:
        raise InvalidInput(
            f"X must be of shape (rows, features) with at least one row, got {tuple(rows.shape)}."
        )
    return rows


def _take(rows: Any, start: int, stop: int) -> Any:
    return cast("Any", rows.iloc[start:stop] if hasattr(rows, "iloc") else rows[start:stop])
