"""`RepairedClassifier`: a scikit-learn estimator that fits a model and its repair out of fold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from oddslip import DEFAULT_SEED
from oddslip.adapters import ModelReader
from oddslip.adapters.features import match_tables, split_names, without_index
from oddslip.adapters.scorer import count_rows
from oddslip.core.arguments import check_whole
from oddslip.core.panel import Kind, Panel, read_sample_weight
from oddslip.errors import InvalidInput
from oddslip.selection.repair import Repair
from oddslip.sklearn.repaired import Repaired
from oddslip.sklearn.scorer import map_at_k_scorer, order_weights, parts_alike


class RepairedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a multi-label model and its repair on the same rows, as CalibratedClassifierCV does.

    A copy of the model is fitted without each fold and scores that fold; the repair is chosen and
    fitted on these scores, which no row had a part in. Then the model is fitted on all rows, and
    predicts behind the repair.

    Parameters
    ----------
    estimator : estimator, optional
        A multi-label classifier that `oddslip.panel_from` reads. ``OneVsRest("logistic")`` unless
        told.
    k : int
        Slots per row; all labels where there are fewer.
    rule, metric, dead
        As for `oddslip.Repair`.
    cv : int, splitter or iterable of (train, test)
        Folds, which are shuffled; or what cuts them.
    seed : int
        Same seed, same folds and choice.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows.
    repair_ : Repair
        Chosen and fitted on the scores out of fold; ``repair_.table_`` says how.
    repaired_ : Repaired
        Both, as one object.
    n_labels_, label_names_ : int, tuple of str or None
        Of Y.
    classes_ : ndarray
        Names of the labels, as the columns of Y have them; else their numbers, as of
        scikit-learn's multi-label classifiers.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> Y = (X + rng.normal(size=(400, 3)) > [0.0, 1.0, 2.0]).astype(int)
    >>> model = RepairedClassifier(k=2).fit(X, Y)
    >>> model.predict_topk(X[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        k: int = 7,
        rule: Any = "auto",
        metric: str = "map",
        dead: str = "prior",
        cv: Any = 5,
        seed: int = DEFAULT_SEED,
    ) -> None:
        self.estimator = estimator
        self.k = k
        self.rule = rule
        self.metric = metric
        self.dead = dead
        self.cv = cv
        self.seed = seed

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the model on all rows, and its repair out of fold.

        Parameters
        ----------
        X
            In the form the estimator takes.
        y : 0/1 cells of shape (n_rows, n_labels)
            An array, a frame, whose columns are named, or a scipy.sparse matrix. Where X and y
            are frames, their rows are matched by their index, or by a column ``row_id``.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts, for the estimator, which must take it, and for the repair.
        **fit_params
            Passed on to the estimator.
        """
        if y is None:
            raise InvalidInput(
                "RepairedClassifier requires y to be passed, but the target y is None."
            )
        times = order_weights(X, sample_weight)
        X, y = parts_alike(X, y)
        rows, named = split_names(X), split_names(y, truths=True)
        truth = _read_cells(named.table)
        n_rows, n_labels = truth.shape
        X = rows.table
        X = X if hasattr(X, "shape") or isinstance(X, list | tuple) else np.asarray(X)
        if count_rows(X) != n_rows:
            raise InvalidInput(
                f"X and y must have the same rows, got {count_rows(X)} and {n_rows}."
            )
        order = match_tables(rows, named, ("X", "y"), n_rows=(n_rows, n_rows))
        truth = truth if order is None else truth[order]
        times = None if times is None else np.asarray(times, np.float64)
        read_sample_weight(times, n_rows)
        X = without_index(X)  # from here on rows go by position

        def trained(rows: NDArray[np.int64] | None) -> Any:
            told = dict(fit_params)
            if times is not None:
                told["sample_weight"] = times if rows is None else times[rows]
            part = X if rows is None else without_index(_safe_indexing(X, rows))
            return clone(self._template()).fit(part, truth if rows is None else truth[rows], **told)

        self.estimator_ = trained(None)
        kind, scores = self._score_out_of_fold(X, truth, trained)
        prior = np.asarray(truth.mean(axis=0), np.float64).ravel()
        repair = Repair(
            k=min(check_whole("k", self.k, 1), n_labels), rule=self.rule, metric=self.metric,
            prior=prior, dead=self.dead, kind=kind, seed=self.seed,  # type: ignore[arg-type]
        )  # fmt: skip
        panel = Panel(scores, truth, kind=kind, label_names=named.columns)
        self.repair_ = repair.fit(panel, sample_weight=times)
        self.repaired_ = Repaired._trained(self.estimator_, self.repair_.fitted_)
        self.n_labels_, self.label_names_ = n_labels, panel.label_names
        self.classes_ = np.arange(n_labels) if named.columns is None else np.array(named.columns)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _template(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from oddslip.learners import OneVsRest

        return OneVsRest("logistic")

    def _score_out_of_fold(self, X: Any, truth: Any, trained: Any) -> tuple[Kind, NDArray[Any]]:
        """Every row's scores by a model that was fitted without it."""
        n_rows = truth.shape[0]
        known = ModelReader(self.estimator_).scorer.kind
        kind: Kind = "probability" if known == "probability" else "margin"
        scores, seen = np.empty(truth.shape), np.zeros(n_rows, np.int64)
        for train, test in self._cut(X, truth):
            part = without_index(_safe_indexing(X, test))
            scores[test] = ModelReader(trained(train)).panel(part, kind=kind).scores
            seen[test] += 1
        if (seen != 1).any():
            raise InvalidInput(
                f"cv must put every row into one test fold, got row {int(np.argmax(seen != 1))} "
                f"in {int(seen[np.argmax(seen != 1)])}."
            )
        return kind, scores

    def _cut(self, X: Any, truth: Any) -> Iterator[tuple[Any, Any]]:
        n_rows = truth.shape[0]
        if isinstance(self.cv, int | np.integer):
            folds = check_whole("cv", self.cv, 2)
            if n_rows < folds:
                raise InvalidInput(f"cv={folds} folds need as many rows, got n_samples={n_rows}.")
            splitter: Any = KFold(folds, shuffle=True, random_state=self.seed)
        else:
            splitter = self.cv
        return iter(splitter.split(X, truth) if hasattr(splitter, "split") else splitter)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Repaired probabilities of all labels.

        Parameters
        ----------
        X
            In the form the estimator takes.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_labels)
            A column for each of ``classes_``.
        """
        served, rows = self._ready(X)
        return served.predict_proba(rows)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log-odds of the repaired probabilities."""
        served, rows = self._ready(X)
        return served.decision_function(rows)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 for each label with a repaired probability of at least one half."""
        return (self.predict_proba(X) >= 0.5).astype(np.int64)

    def predict_topk(self, X: Any, *, k: int | None = None, names: bool = False) -> Any:
        """The k labels to show in each row, best first.

        Parameters
        ----------
        X
            In the form the estimator takes.
        k : int, optional
            Slots per row; those that the repair was chosen for unless told.
        names : bool
            Names of the labels, as the columns of Y had them, instead of their numbers.

        Returns
        -------
        ndarray of int32, shape (n_rows, k)
            Indices into ``classes_``; with ``names`` an array of names, or where X is a pandas
            frame a frame with its index and the columns label_1 to label_k.

        Examples
        --------
        >>> import pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["age", "income"])
        >>> Y = pd.DataFrame(X.to_numpy() + rng.normal(size=(400, 2)) > 0.5, columns=["a", "b"])
        >>> model = RepairedClassifier(k=1).fit(X, Y)
        >>> model.predict_topk(X[:2], names=True).shape
        (2, 1)
        """
        served, rows = self._ready(X)
        return served.predict_topk(rows, k=k, names=names)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """The metric at K that the repair was chosen by."""
        self._ready(X)
        return map_at_k_scorer(k=self.k, metric=self.metric)(self, X, Y, sample_weight)

    def _ready(self, X: Any) -> tuple[Repaired, Any]:
        """What predicts, and the rows without a column of their ids."""
        check_is_fitted(self)
        X = split_names(X).table
        wanted = getattr(self, "n_features_in_", None)
        shape: tuple[int, ...] = tuple(getattr(X, "shape", ()))
        if wanted is not None and len(shape) == 2 and shape[1] != wanted:
            raise InvalidInput(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting {wanted} "
                "features as input."
            )
        return self.repaired_, X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.required = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        template = self._template()
        if hasattr(template, "__sklearn_tags__"):
            tags.input_tags = template.__sklearn_tags__().input_tags
        return tags


def _read_cells(y: Any) -> Any:
    """0/1 cells as an array or a compressed sparse matrix, each of two dimensions."""
    if hasattr(y, "tocsr"):
        return y.tocsr()
    cells = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    wrong = ~((cells == 0) | (cells == 1))
    if wrong.any():
        try:
            check_classification_targets(cells)
        except ValueError as error:  # in scikit-learn's words: continuous, or unknown
            raise InvalidInput(str(error)) from error
    if cells.ndim != 2 or 0 in cells.shape:
        many = cells.ndim == 1 and wrong.any() and type_of_target(cells) == "multiclass"
        raise InvalidInput(
            "y must be 0/1 cells of shape (rows, labels), with at least one of each, got shape "
            f"{cells.shape}."
            + (
                " Only binary classification is supported. The type of the target is multiclass."
                if many
                else ""
            )
        )
    if wrong.any():
        row, label = np.argwhere(wrong)[0].tolist()
        raise InvalidInput(
            f"y must be 0 or 1 in every cell, got {cells[row, label]} at row {row}, label {label}."
        )
    return cells
