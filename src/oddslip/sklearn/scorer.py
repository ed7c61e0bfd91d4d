"""`map_at_k_scorer`: the deployed metric for `cross_val_score` and `GridSearchCV`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from oddslip.adapters import panel_from
from oddslip.adapters.features import match_tables, split_names, without_index
from oddslip.adapters.scorer import count_rows
from oddslip.core.row_ids import is_frame, row_names
from oddslip.metrics.at_k import check_choice
from oddslip.metrics.evaluation import NAMES, evaluate


def parts_alike(X: Any, other: Any) -> tuple[Any, Any]:
    """Rows as scikit-learn's tools cut them: part of a frame keeps its numbers of the whole.

    Beside part of an array these numbers name nothing, so both go without. Other ids stay.
    """
    ids = row_names(X), row_names(other)
    for named, beside in ((0, other), (1, X)):
        numbers = ids[named]
        if numbers is None or hasattr(beside, "index") or is_frame(beside):
            continue
        whole = numbers.dtype.kind in "iu" and np.unique(numbers).size == numbers.size
        if whole and numbers.min() >= 0 and numbers.max() >= numbers.size:
            return without_index(X), without_index(other)
    return X, other


def order_weights(X: Any, sample_weight: Any) -> Any:
    """Weights of the rows of X, in its order."""
    if sample_weight is None or (row_names(X) is None and row_names(sample_weight) is None):
        return sample_weight
    X, sample_weight = parts_alike(X, sample_weight)
    weights = np.asarray(sample_weight)
    sides = split_names(X), split_names(sample_weight)
    n_rows = count_rows(X), weights.size
    order = match_tables(*sides, ("X", "sample_weight"), n_rows=n_rows)
    return weights if order is None else weights[order]


@dataclass(eq=False)
class RankingScorer:
    """A metric at K of any model that `panel_from` reads: ``scorer(model, X, Y)``."""

    k: int
    metric: str
    _weight_request: bool | str | None = field(default=None, repr=False)

    def __call__(self, model: Any, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """The metric of this model on these rows."""
        weights = order_weights(X, sample_weight)
        panel = panel_from(model, *parts_alike(X, Y))
        k = min(self.k, panel.n_labels)
        panel.row_ids = None  # labels and weights stand in the order of X by now
        seen = evaluate(panel, k=k, n_replicates=0, sample_weight=weights)
        return seen[self.metric].value

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Say whether scikit-learn's tools pass ``sample_weight`` on, as to its own scorers.

        Parameters
        ----------
        sample_weight : bool, str or None
            True to be given it, False not to, None to refuse it, or the name it goes by.

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
        self.get_metadata_routing()  # refuses what is no request
        return self

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's metadata routing asks every scorer."""
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="sample_weight", alias=self._weight_request)
        return request


def map_at_k_scorer(*, k: int = 7, metric: str = "map") -> RankingScorer:
    """A scorer for scikit-learn's tools: higher is better.

    With metadata routing, ``map_at_k_scorer(k=7).set_score_request(sample_weight=True)`` is given
    the weights of the rows it scores.

    Parameters
    ----------
    k : int
        Slots per row; all labels where there are fewer.
    metric : {"map", "precision", "recall", "ndcg", "psp", "hit_rate"}
        Which metric at K.

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
