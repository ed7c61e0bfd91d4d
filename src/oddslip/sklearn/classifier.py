"""`RepairedClassifier`: a scikit-learn estimator that fits a model and its repair out of fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
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
from oddslip.core.types import Array, FeaturesLike, Floats, Ints, LabelsLike
from oddslip.errors import InvalidInput
from oddslip.selection.repair import Repair
from oddslip.sklearn.repaired import Repaired
from oddslip.sklearn.scorer import drop_split_index, map_at_k_scorer, order_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class RepairedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a multi-label model and its repair on the same rows, as CalibratedClassifierCV does.

    A copy of the model is fitted without each fold and scores that fold. The repair is chosen and
    fitted on these out-of-fold scores. Then the model is fitted on all rows, and the repair is
    applied to its scores.

    Parameters
    ----------
    estimator : estimator, optional
        A multi-label classifier that `oddslip.panel_from` reads. Default:
        ``OneVsRest("logistic")``.
    k : int
        Slots per row; all labels where there are fewer.
    rule, metric, dead
        As for `oddslip.Repair`.
    cv : int, splitter or iterable of (train, test)
        Number of shuffled folds, or how to split the rows.
    seed : int
        Seed of the folds and of the choice.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows.
    repair_ : Repair
        Chosen and fitted on the out-of-fold scores; ``repair_.table_`` compares the candidates.
    repaired_ : Repaired
        Both, as one object.
    n_labels_, label_names_ : int, tuple of str or None
        Number and names of the labels.
    classes_ : ndarray
        Names of the labels if the columns of y are named; else their numbers, as in
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

    def fit(
        self,
        X: FeaturesLike,
        y: LabelsLike,
        *,
        sample_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the model on all rows, and its repair out of fold.

        Parameters
        ----------
        X
            In the form the estimator takes.
        y : 0/1 cells of shape (n_rows, n_labels)
            An array, a data frame with named columns, or a scipy.sparse matrix. Rows of two data
            frames are matched by their index, or by a column ``row_id``.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row, passed to the estimator (which must take it) and to the repair.
        **fit_params
            Passed to the estimator.

        Returns
        -------
        RepairedClassifier
            This estimator.
        """
        if y is None:
            raise InvalidInput(
                "RepairedClassifier requires y to be passed, but the target y is None."
            )
        weights = order_weights(X, sample_weight)
        X, y = drop_split_index(X, y)
        rows, target = split_names(X), split_names(y, truths=True)
        truth = _read_cells(target.table)
        n_rows, n_labels = truth.shape
        X = rows.table
        X = X if hasattr(X, "shape") or isinstance(X, list | tuple) else np.asarray(X)
        if count_rows(X) != n_rows:
            raise InvalidInput(
                f"X and y must have the same rows, got {count_rows(X)} and {n_rows}."
            )
        order = match_tables(rows, target, ("X", "y"), n_rows=(n_rows, n_rows))
        truth = truth if order is None else truth[order]
        weights = None if weights is None else np.asarray(weights, np.float64)
        read_sample_weight(weights, n_rows)
        X = without_index(X)  # from here on rows are matched by position

        def train(rows: Ints | None) -> Any:
            options = dict(fit_params)
            if weights is not None:
                options["sample_weight"] = weights if rows is None else weights[rows]
            if rows is None:
                return clone(self._template()).fit(X, truth, **options)
            part = without_index(_safe_indexing(X, rows))
            return clone(self._template()).fit(part, truth[rows], **options)

        self.estimator_ = train(None)
        kind, scores = self._score_out_of_fold(X, truth, train)
        prior = np.asarray(truth.mean(axis=0), np.float64).ravel()
        repair = Repair(
            k=min(check_whole("k", self.k, 1), n_labels),
            rule=self.rule,
            metric=self.metric,
            prior=prior,
            dead=self.dead,  # type: ignore[arg-type]
            kind=kind,
            seed=self.seed,
        )
        panel = Panel(scores, truth, kind=kind, label_names=target.columns)
        self.repair_ = repair.fit(panel, sample_weight=weights)
        self.repaired_ = Repaired._of_pair(self.estimator_, self.repair_.fitted_)
        self.n_labels_, self.label_names_ = n_labels, panel.label_names
        self.classes_ = np.arange(n_labels) if target.columns is None else np.array(target.columns)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _template(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from oddslip.learners import OneVsRest

        return OneVsRest("logistic")

    def _score_out_of_fold(
        self, X: FeaturesLike, truth: LabelsLike, train: Callable[[Ints], Any]
    ) -> tuple[Kind, Array]:
        """Every row's scores by a model that was fitted without it."""
        model_kind = ModelReader(self.estimator_).scorer.kind
        kind: Kind = "probability" if model_kind == "probability" else "margin"
        scores, n_folds = np.empty(truth.shape), np.zeros(truth.shape[0], np.int64)
        for training_rows, test_rows in self._split(X, truth):
            part = without_index(_safe_indexing(X, test_rows))
            scores[test_rows] = ModelReader(train(training_rows)).panel(part, kind=kind).scores
            n_folds[test_rows] += 1
        if (n_folds != 1).any():
            row = int(np.argmax(n_folds != 1))
            raise InvalidInput(
                f"cv must put every row into one test fold, got row {row} in {n_folds[row]}."
            )
        return kind, scores

    def _split(self, X: FeaturesLike, truth: LabelsLike) -> Iterator[tuple[Any, Any]]:
        n_rows = truth.shape[0]
        if isinstance(self.cv, int | np.integer):
            folds = check_whole("cv", self.cv, 2)
            if n_rows < folds:
                raise InvalidInput(f"cv={folds} folds need as many rows, got n_samples={n_rows}.")
            splitter: Any = KFold(folds, shuffle=True, random_state=self.seed)
        else:
            splitter = self.cv
        return iter(splitter.split(X, truth) if hasattr(splitter, "split") else splitter)

    def predict_proba(self, X: FeaturesLike) -> Floats:
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
        model, rows = self._model_and_rows(X)
        return model.predict_proba(rows)

    def decision_function(self, X: FeaturesLike) -> Floats:
        """Log-odds of the repaired probabilities.

        Parameters
        ----------
        X
            In the form the estimator takes.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_labels)
        """
        model, rows = self._model_and_rows(X)
        return model.decision_function(rows)

    def predict(self, X: FeaturesLike) -> Ints:
        """1 for each label with a repaired probability of at least one half.

        Parameters
        ----------
        X
            In the form the estimator takes.

        Returns
        -------
        ndarray of int64, shape (n_rows, n_labels)
        """
        return (self.predict_proba(X) >= 0.5).astype(np.int64)

    def predict_topk(self, X: FeaturesLike, *, k: int | None = None, names: bool = False) -> Any:
        """The k labels to show in each row, best first.

        Parameters
        ----------
        X
            In the form the estimator takes.
        k : int, optional
            Slots per row; default: the k of the repair.
        names : bool
            Whether to return the names of the labels instead of their numbers.

        Returns
        -------
        ndarray of int32, shape (n_rows, k)
            Indices into ``classes_``. With ``names``, an array of names, or for a pandas frame X a
            frame with its index and the columns label_1 to label_k.

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
        model, rows = self._model_and_rows(X)
        return model.predict_topk(rows, k=k, names=names)

    def score(
        self, X: FeaturesLike, Y: LabelsLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """The metric at K that the repair was chosen by.

        Parameters
        ----------
        X
            In the form the estimator takes.
        Y : 0/1 cells of shape (n_rows, n_labels)
            True labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row.

        Returns
        -------
        float
        """
        self._model_and_rows(X)
        return map_at_k_scorer(k=self.k, metric=self.metric)(self, X, Y, sample_weight)

    def _model_and_rows(self, X: FeaturesLike) -> tuple[Repaired, Any]:
        """The fitted model, and the rows without a column of their ids."""
        check_is_fitted(self)
        X = split_names(X).table
        n_features = getattr(self, "n_features_in_", None)
        shape: tuple[int, ...] = tuple(getattr(X, "shape", ()))
        if n_features is not None and len(shape) == 2 and shape[1] != n_features:
            raise InvalidInput(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting {n_features} "
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


def _read_cells(y: LabelsLike) -> Any:
    """0/1 cells as a two-dimensional array or CSR matrix."""
    if hasattr(y, "tocsr"):
        return y.tocsr()
    cells = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    wrong = ~((cells == 0) | (cells == 1))
    if wrong.any():
        try:
            check_classification_targets(cells)
        except ValueError as error:  # scikit-learn's own message: continuous, or unknown
            raise InvalidInput(str(error)) from error
    if cells.ndim != 2 or 0 in cells.shape:
        is_multiclass = cells.ndim == 1 and wrong.any() and type_of_target(cells) == "multiclass"
        raise InvalidInput(
            "y must be 0/1 cells of shape (rows, labels), with at least one of each, got shape "
            f"{cells.shape}."
            + (
                " Only binary classification is supported. The type of the target is multiclass."
                if is_multiclass
                else ""
            )
        )
    if wrong.any():
        row, label = np.argwhere(wrong)[0].tolist()
        raise InvalidInput(
            f"y must be 0 or 1 in every cell, got {cells[row, label]} at row {row}, label {label}."
        )
    return cells
