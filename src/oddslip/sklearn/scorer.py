"""`map_at_k_scorer`: the deployed metric for `cross_val_score` and `GridSearchCV`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from oddslip.adapters import panel_from
from oddslip.adapters.features import match_tables, split_names, without_index
from oddslip.adapters.scorer import count_rows
from oddslip.core.row_ids import is_frame, row_names
from oddslip.core.types import FeaturesLike, LabelsLike
from oddslip.metrics.at_k import NAMES, check_choice
from oddslip.metrics.evaluation import evaluate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def drop_split_index(X: FeaturesLike, other: Any) -> tuple[Any, Any]:
    """Two tables, without the row numbers that scikit-learn's splitting left in one of them.

    Part of a frame keeps the row numbers of the whole frame, which part of an array does not have.
    Other row ids stay.
    """
    for table, partner in ((X, other), (other, X)):
        numbers = row_names(table)
        if numbers is None or hasattr(partner, "index") or is_frame(partner):
            continue
        are_numbers = numbers.dtype.kind in "iu" and np.unique(numbers).size == numbers.size
        if are_numbers and numbers.min() >= 0 and numbers.max() >= numbers.size:
            return without_index(X), without_index(other)
    return X, other


def order_weights(X: FeaturesLike, sample_weight: ArrayLike | None) -> Any:
    """Weights of the rows of X, in its order."""
    if sample_weight is None or (row_names(X) is None and row_names(sample_weight) is None):
        return sample_weight
    X, sample_weight = drop_split_index(X, sample_weight)
    weights = np.asarray(sample_weight)
    sides = split_names(X), split_names(sample_weight)
    n_rows = count_rows(X), weights.size
    order = match_tables(*sides, ("X", "sample_weight"), n_rows=n_rows)
    return weights if order is None else weights[order]


@dataclass(eq=False)
class RankingScorer:
    """A metric at K of any model that `panel_from` reads: ``scorer(model, X, Y)``.

    Parameters
    ----------
    k : int
        Slots per row; all labels where there are fewer.
    metric : str
        Name of the metric, see `map_at_k_scorer`.
    """

    k: int
    metric: str
    _weight_request: bool | str | None = field(default=None, repr=False)

    def __call__(
        self, model: object, X: FeaturesLike, Y: LabelsLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """The metric of a model on some rows."""
        weights = order_weights(X, sample_weight)
        panel = panel_from(model, *drop_split_index(X, Y))
        k = min(self.k, panel.n_labels)
        panel.row_ids = None  # labels and weights are in the order of X now
        return evaluate(panel, k=k, n_replicates=0, sample_weight=weights)[self.metric].value

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Set whether scikit-learn's metadata routing passes ``sample_weight`` to this scorer.

        Parameters
        ----------
        sample_weight : bool, str or None
            True to receive it, False to ignore it, None to reject it, or its alias.

        Returns
        -------
        RankingScorer
            This scorer.

        Examples
        --------
        >>> import sklearn
        >>> with sklearn.config_context(enable_metadata_routing=True):
        ...     scorer = map_at_k_scorer(k=7).set_score_request(sample_weight=True)
        """
        if not get_config().get("enable_metadata_routing", False):
            raise RuntimeError(
                "set_score_request needs metadata routing, which is off. "
                "Call sklearn.set_config(enable_metadata_routing=True)."
            )
        self._weight_request = sample_weight
        self.get_metadata_routing()  # raises for an invalid request
        return self

    def get_metadata_routing(self) -> Any:
        """The request of this scorer, for scikit-learn's metadata routing."""
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="sample_weight", alias=self._weight_request)
        return request


def map_at_k_scorer(*, k: int = 7, metric: str = "map") -> RankingScorer:
    """A scorer for scikit-learn's tools: higher is better.

    With metadata routing, ``map_at_k_scorer(k=7).set_score_request(sample_weight=True)`` receives
    the weights of the rows it scores.

    Parameters
    ----------
    k : int
        Slots per row; all labels where there are fewer.
    metric : {"map", "precision", "recall", "ndcg", "psp", "hit_rate"}
        Which metric at K.

    Returns
    -------
    RankingScorer

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> X, Y = [[0.0], [1.0], [2.0]], [[0, 1], [1, 1], [1, 0]]
    >>> map_at_k_scorer(k=1)(OneVsRestClassifier(LogisticRegression()).fit(X, Y), X, Y)
    1.0
    """
    check_choice("metric", metric, NAMES)
    return RankingScorer(k, metric)
