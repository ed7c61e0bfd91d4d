"""`map_at_k_scorer`: the deployed metric for `cross_val_score` and `GridSearchCV`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oddslip.learners.adapters import panel_from
from oddslip.metrics.at_k import check_choice
from oddslip.metrics.evaluation import NAMES, evaluate


@dataclass(frozen=True)
class RankingScorer:
    """A metric at K of any model that `panel_from` reads: ``scorer(model, X, Y)``."""

    k: int
    metric: str

    def __call__(self, model: Any, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """The metric of this model on these rows."""
        panel = panel_from(model, X, Y)
        k = min(self.k, panel.n_labels)
        seen = evaluate(panel, k=k, n_replicates=0, sample_weight=sample_weight)
        return seen[self.metric].value


def map_at_k_scorer(*, k: int = 7, metric: str = "map") -> RankingScorer:
    """A scorer for scikit-learn's tools: higher is better.

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
