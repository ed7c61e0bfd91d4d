"""`panel_from` and `ModelReader`: the adapter of each model, and its scores as a panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oddslip.adapters.boosters import from_catboost, from_lightgbm, from_xgboost
from oddslip.adapters.estimators import from_sklearn
from oddslip.adapters.features import frame_ids, label_panel
from oddslip.adapters.inputs import Rows, read_rows
from oddslip.adapters.networks import (
    check_shape,
    from_onnxruntime,
    from_torch,
    in_order,
    is_output,
    read_output,
    split_batch,
)
from oddslip.adapters.scorer import Scorer, Scores, as_cells, of_library, refusal, side_by_side
from oddslip.core.panel import Kind, Panel, check_names
from oddslip.core.row_ids import match_labels
from oddslip.core.types import FeaturesLike, LabelsLike, ScoresLike
from oddslip.errors import InvalidInput

_BATCH_ROWS = 16_384


def panel_from(
    model: object,
    X: FeaturesLike = None,
    labels: LabelsLike = None,
    *,
    kind: Kind | None = None,
    label_names: Sequence[str] | Mapping[int, str] | None = None,
    batch_rows: int | None = None,
) -> Panel:
    """Score rows with a fitted model.

    Parameters
    ----------
    model : fitted model, a list of them with one label each, or a dict of name to model
        LightGBM ``Booster`` or ``LGBMClassifier``; XGBoost ``Booster`` or ``XGBClassifier``,
        multi-label or not; CatBoost; scikit-learn's ``OneVsRestClassifier``,
        ``MultiOutputClassifier``, ``ClassifierChain``, ``MLPClassifier`` or binary classifiers,
        in a ``Pipeline`` or not; a torch module; an onnxruntime ``InferenceSession``; any callable
        that takes rows and returns scores; `oddslip.learners.OneVsRest`. Or, without X, the
        output of a model: a tensor, an object with ``logits``, a ``PredictionOutput``.
    X : array, scipy.sparse matrix, data frame or tensor of shape (n_rows, n_features)
        In the form the model was trained on. Also texts, for a pipeline over texts; a ``Pool`` or
        ``DMatrix``, for their boosters; a ``DataLoader`` or tables by name, for a torch module.
    labels : optional
        True labels, as for `Panel`. A frame has column names. A ``DataLoader`` and a
        ``PredictionOutput`` may hold labels themselves.
    kind : {"probability", "margin"}, optional
        Kind of the panel's scores. It also states the kind of a model that does not declare one
        (a callable, a session, a module that does not end in a sigmoid); scores of other models
        are converted. By default, scores of such a model are margins if any lies outside 0 to 1,
        and an error otherwise.
    label_names : sequence of str or dict of number to name, optional
        Names of the labels. If the model has names, they must be the same in any order; the
        columns are put in the order of ``label_names``.
    batch_rows : int, optional
        Rows scored at a time; default: 16,384.

    Returns
    -------
    Panel
        Of margins (log-odds) where the model has them, since probabilities can be tied at 1.0. Of
        probabilities otherwise. A label that was always or never true in training has a
        probability of 1 or 0, or the log-odds of a probability clipped at 1e-12.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> X, Y = [[0.0], [1.0], [2.0]], [[0, 1], [1, 1], [1, 0]]
    >>> panel_from(OneVsRestClassifier(LogisticRegression()).fit(X, Y), X, Y)
    Panel(3 rows x 2 labels, margin, float64, labels: yes)
    """
    if is_output(model):
        if X is not None:
            raise InvalidInput(
                f"X must be left out where model is the output of a model, "
                f"got a {type(model).__name__} and X. Pass labels=... by name."
            )
        scores, output_labels = read_output(model)
        return _panel(scores, output_labels if labels is None else labels, kind, label_names)
    reader = ModelReader(model)
    if X is None:
        raise InvalidInput(f"X must be given to score it with a {type(model).__name__}.")
    return reader.panel(X, labels, kind=kind, label_names=label_names, batch_rows=batch_rows)


class ModelReader:
    """A fitted model whose adapter is chosen once, for many calls of `panel`.

    Parameters
    ----------
    model
        As for `panel_from`.
    """

    def __init__(self, model: object) -> None:
        from sklearn.exceptions import NotFittedError

        try:
            self.scorer = _scorer(model)
        except NotFittedError as error:
            raise InvalidInput(
                f"model must be fitted, got a {type(model).__name__} that is not. Call fit first."
            ) from error

    def panel(
        self,
        X: FeaturesLike,
        labels: LabelsLike = None,
        *,
        kind: Kind | None = None,
        label_names: Sequence[str] | Mapping[int, str] | None = None,
        batch_rows: int | None = None,
    ) -> Panel:
        """Score rows; the arguments are those of `panel_from`."""
        scorer = self.scorer
        rows = read_rows(X, free=scorer.free)
        widths = {scorer.n_features, rows.n_features} - {None}
        if len(widths) > 1:
            raise InvalidInput(
                f"X must have the {scorer.n_features} features of training, got {rows.n_features}."
            )
        step = _BATCH_ROWS if batch_rows is None else int(batch_rows)
        if step < 1:
            raise InvalidInput(f"batch_rows must be at least 1, got {batch_rows!r}.")
        if rows.n_rows is None:
            scores, batch_labels = self._batches(rows, kind)
            labels = batch_labels if labels is None else labels
        else:
            scores = self._fill(rows, kind, step)
            if isinstance(X, Mapping) and labels is None:
                labels = X.get("labels")
        return _panel(scores, labels, kind, label_names, scorer.names, X)

    def _fill(self, rows: Rows, kind: Kind | None, step: int) -> Scores:
        """Scores of a known number of rows, block by block into one array."""
        scores, start, kinds = np.empty((0, 0)), 0, set()
        for block in rows.blocks(step):
            cells, block_kind = self._block(block, kind)
            if start == 0:
                scores = np.empty((rows.n_rows or 0, cells.shape[1]), cells.dtype)
            scores[start : start + len(cells)] = cells
            start += len(cells)
            kinds.add(block_kind)
        return Scores(scores, "unsaid" if "unsaid" in kinds else kinds.pop())

    def _block(self, rows: FeaturesLike, kind: Kind | None) -> Scores:
        default: Kind = "probability" if self.scorer.kind == "probability" else "margin"
        return self.scorer.block(rows, kind or default)

    def _batches(self, rows: Rows, kind: Kind | None) -> tuple[Scores, LabelsLike]:
        """Scores of all batches, and their labels if every batch has labels."""
        blocks, truths = [], []
        for batch in rows.blocks(0):
            blocks.append(self._block(batch, kind))
            _, truth = split_batch(batch)
            if truth is not None:
                truths.append(np.asarray(truth))
        if not blocks:
            raise InvalidInput("X must hold at least one row, got a DataLoader without batches.")
        kinds = {block.kind for block in blocks}
        cells = np.concatenate([block.cells for block in blocks])
        labels = np.concatenate(truths) if len(truths) == len(blocks) else None
        return Scores(cells, "unsaid" if "unsaid" in kinds else kinds.pop()), labels


def _panel(
    scored: Scores,
    labels: LabelsLike,
    kind: Kind | None,
    label_names: Sequence[str] | Mapping[int, str] | None,
    model_names: Sequence[str] | None = None,
    X: FeaturesLike = None,
) -> Panel:
    scores, unsaid = as_cells(scored.cells), scored.kind == "unsaid"
    if kind is None and unsaid and scores.size and scores.min() >= 0 and scores.max() <= 1:
        raise InvalidInput(
            "kind must be said of a model that does not say what it returns, and whose scores all "
            'lie between 0 and 1. Pass kind="probability", or kind="margin" if these are log-odds.'
        )
    model_kind: Any = "margin" if unsaid else scored.kind
    names = in_order(label_names) if isinstance(label_names, Mapping) else label_names
    if names is None:
        names = model_names
    elif model_names is not None:
        names = check_names(names, scores.shape[1])
        counts = scores.shape[1], len(model_names)
        order = match_labels(names, model_names, ("label_names", "model"), n_labels=counts)
        scores = scores if order is None else scores[:, order]
    panel = Panel(scores, kind=kind or model_kind, label_names=names, row_ids=frame_ids(X))
    return label_panel(panel, X, labels)


def _scorer(model: object) -> Scorer:
    if isinstance(model, list | tuple):
        return side_by_side([_scorer(part) for part in model])
    if isinstance(model, Mapping):
        return side_by_side([_scorer(model[name]) for name in model], [str(n) for n in model])
    makers: dict[str, Callable[[Any], Scorer]] = {
        "lightgbm": from_lightgbm,
        "xgboost": from_xgboost,
        "catboost": from_catboost,
        "sklearn": lambda model: from_sklearn(model, _scorer),
        "torch": from_torch,
        "onnxruntime": from_onnxruntime,
        "oddslip": _from_oddslip,
    }
    maker = of_library(makers, model)
    if maker is not None:
        return maker(model)
    if isinstance(model, type) or not callable(model):
        raise refusal(model, f"the class {model.__name__}" if isinstance(model, type) else "")
    return _from_callable(model)


def _from_oddslip(model: Any) -> Scorer:
    if hasattr(model, "predict_margin"):
        _ = model.n_labels  # raises if the model is not fitted
        # No n_features: the model checks features itself, by name, and drops row ids.
        return Scorer(model.predict_margin, names=getattr(model, "label_names_", None))
    if not hasattr(model, "predict_topk"):
        raise refusal(model)
    if hasattr(model, "get_params"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)
    names = getattr(model, "label_names_", getattr(model, "label_names", None))
    return Scorer(model.predict_proba, "probability", names=names, free=True)


def _from_callable(model: Callable[[FeaturesLike], ScoresLike]) -> Scorer:
    def score(rows: FeaturesLike) -> ScoresLike:
        return check_shape(model(rows), rows, f"a callable ({type(model).__name__})")

    return Scorer(score, "unsaid", free=True)
