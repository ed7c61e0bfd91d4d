"""One-vs-rest training with a weight per label: boosting, logistic regression, MLP."""

from typing import TYPE_CHECKING

from oddslip.core.lazy import lazy_names

if TYPE_CHECKING:
    from oddslip.adapters import panel_from
    from oddslip.learners.early_stopping import MapAtK
    from oddslip.learners.one_vs_rest import OneVsRest
    from oddslip.learners.pairs import MatchedPair
    from oddslip.learners.scoring import score_to_file

# Lazy, so that scikit-learn is only imported when one of these is used.
_PUBLIC = {
    "MapAtK": "oddslip.learners.early_stopping",
    "MatchedPair": "oddslip.learners.pairs",
    "OneVsRest": "oddslip.learners.one_vs_rest",
    "panel_from": "oddslip.adapters",
    "score_to_file": "oddslip.learners.scoring",
}

__all__ = ["MapAtK", "MatchedPair", "OneVsRest", "panel_from", "score_to_file"]


__getattr__, __dir__ = lazy_names(__name__, _PUBLIC)
