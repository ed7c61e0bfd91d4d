"""`fold`: the same model, with the repair inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from oddslip.adapters import ModelReader
from oddslip.adapters.scorer import of_library
from oddslip.core.row_ids import match_labels
from oddslip.core.types import FeaturesLike
from oddslip.errors import InvalidInput
from oddslip.folding.affine import Affine, affine_of
from oddslip.folding.boosters import fold_catboost, fold_lightgbm, fold_xgboost
from oddslip.folding.estimators import fold_sklearn
from oddslip.folding.networks import fold_onnx, fold_torch
from oddslip.repairs.fitted_repair import FittedRepair


def fold(model: Any, repair: Any, X: FeaturesLike = None, *, head: str | None = None) -> Any:
    """Write a repair into a model: the same library, file format and predict call.

    The repair must be affine in the log-odds: every candidate of ``Repair(foldable=True)`` is.
    Where the repair was fitted on probabilities, the folded model also tells apart the cells whose
    probabilities were tied at 0 or 1.

    Parameters
    ----------
    model : fitted model, a list of them with one label each, or a dict of name to model
        LightGBM ``Booster`` or ``LGBMClassifier``; XGBoost ``Booster`` or ``XGBClassifier`` of one
        label or many; CatBoost; scikit-learn's ``LogisticRegression``, ``SGDClassifier`` with
        ``loss="log_loss"`` and ``MLPClassifier``, in ``OneVsRestClassifier``,
        ``MultiOutputClassifier`` and ``Pipeline``; a torch module or Hugging Face model that ends
        in a ``Linear``; an ``onnx.ModelProto``; `oddslip.OneVsRest`.
    repair : Repair, calibrator or FittedRepair
        Fitted.
    X : optional
        Rows on which the folded model is compared with the repair. Differences above rounding are
        an error.
    head : str, optional
        Name of the ``Linear`` layer of a torch module that computes the logits, where several have
        as many outputs.

    Returns
    -------
    model of the same kind
        The model that was passed in is not changed.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from oddslip.calibrators import Platt
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [1, 1], [0, 0], [1, 0]]
    >>> model = OneVsRestClassifier(LogisticRegression(class_weight="balanced")).fit(X, Y)
    >>> repair = Platt().fit(model.predict_proba(X), Y)
    >>> folded = fold(model, repair)
    >>> bool(np.allclose(folded.predict_proba(X), repair.transform(model.predict_proba(X))))
    True
    """
    repair = getattr(repair, "fitted_", repair)
    if not isinstance(repair, FittedRepair):
        raise InvalidInput(f"repair must be a fitted repair, got {type(repair).__name__}.")
    affine = _in_model_order(affine_of(repair), repair, model)
    folded = _fold(model, affine, kind=repair.maps.kind, head=head)
    if X is not None:
        _compare(model, folded, affine, X)
    return folded


def _in_model_order(affine: Affine, repair: FittedRepair, model: Any) -> Affine:
    """The lines in the order of the model's labels, where both name them."""
    names = [str(name) for name in model] if isinstance(model, Mapping) else None
    if names is None and not _is_onnx(model):
        scorer_names = ModelReader(model).scorer.names
        names = None if scorer_names is None else list(scorer_names)
    if names is None or repair.label_names is None:
        return affine
    counts = len(names), affine.n_labels
    order = match_labels(names, repair.label_names, ("model", "repair"), n_labels=counts)
    return affine if order is None else affine.take(order)


def _fold(model: Any, affine: Affine, *, kind: str, head: str | None) -> Any:
    fold_part = partial(_fold, kind=kind, head=head)
    if isinstance(model, list | tuple):
        affine.check_labels(len(model), "a list of models")
        return type(model)(fold_part(part, affine.take([at])) for at, part in enumerate(model))
    if isinstance(model, Mapping):
        affine.check_labels(len(model), "a dict of models")
        parts = enumerate(model.items())
        return {name: fold_part(part, affine.take([at])) for at, (name, part) in parts}
    if _is_onnx(model):
        return fold_onnx(model, affine, kind)
    folders: dict[str, Callable[[Any, Affine], Any]] = {
        "lightgbm": fold_lightgbm,
        "xgboost": fold_xgboost,
        "catboost": fold_catboost,
        "sklearn": partial(fold_sklearn, fold_part=fold_part),
        "torch": partial(fold_torch, head=head),
        "oddslip": _fold_own,
    }
    folder = of_library(folders, model)
    if folder is not None:
        return folder(model, affine)
    raise InvalidInput(
        f"model must be of {', '.join(folders)} or onnx to hold a repair, got "
        f"{type(model).__name__}. Serve it with oddslip.Repaired(model, repair)."
    )


def _fold_own(model: Any, affine: Affine) -> Any:
    """`oddslip.OneVsRest`."""
    if not hasattr(model, "with_line"):
        raise InvalidInput(f"model must be an oddslip.OneVsRest, got {type(model).__name__}.")
    affine.check_labels(model.n_labels, "a OneVsRest")
    return model.with_line(*affine)


def _is_onnx(model: Any) -> bool:
    return type(model).__name__ == "ModelProto" and hasattr(model, "graph")


def _compare(model: Any, folded: Any, affine: Affine, X: FeaturesLike) -> None:
    """Raise if the folded model has other log-odds than the repair gives."""
    before, after = (ModelReader(each).panel(X, kind="margin") for each in (model, folded))
    expected = affine.intercept + affine.slope * np.asarray(before.scores, np.float64)
    size = np.maximum(1.0, np.abs(affine.slope * before.scores) + np.abs(affine.intercept))
    gap = np.abs(np.asarray(after.scores, np.float64) - expected) / size
    tolerance = 1e-3 if np.dtype(after.dtype) == np.float32 else 1e-9
    if not gap.max() <= tolerance:
        row, label = np.unravel_index(int(np.argmax(gap)), gap.shape)
        raise InvalidInput(
            "the folded model must have the log-odds of the repair, got "
            f"{after.scores[row, label]:.6g} instead of {expected[row, label]:.6g} at row {row}, "
            f"label {label}. Does the model change its logits after their last layer?"
        )
