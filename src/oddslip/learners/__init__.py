"""One-vs-rest training with a weight per label: LightGBM, XGBoost, logistic regression, MLP.

Learners make panels of margins; matched pairs make two. May import panels and sources.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oddslip.learners.adapters import panel_from
    from oddslip.learners.one_vs_rest import OneVsRest
    from oddslip.learners.pairs import MatchedPair
    from oddslip.learners.scorings import score_to_file

__all__ = ["MatchedPair", "OneVsRest", "panel_from", "score_to_file"]


def _matched_pair() -> Any:
    from oddslip.learners.pairs import MatchedPair

    return MatchedPair


def _one_vs_rest() -> Any:
    from oddslip.learners.one_vs_rest import OneVsRest

    return OneVsRest


def _panel_from() -> Any:
    from oddslip.learners.adapters import panel_from

    return panel_from


def _score_to_file() -> Any:
    from oddslip.learners.scorings import score_to_file

    return score_to_file


# scikit-learn is loaded when one of these is first asked for, not before.
_OPENERS: dict[str, Callable[[], Any]] = {
    "MatchedPair": _matched_pair,
    "OneVsRest": _one_vs_rest,
    "panel_from": _panel_from,
    "score_to_file": _score_to_file,
}


def __getattr__(name: str) -> Any:
    if name not in _OPENERS:
        raise AttributeError(f"module 'oddslip.learners' has no attribute {name!r}")
    return _OPENERS[name]()
