"""One-vs-rest training with a weight per label: boosting, logistic regression, MLP.

Learners make panels of margins; matched pairs make two. May import panels, sources, metrics
and engines.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oddslip.adapters import panel_from
    from oddslip.learners.callbacks import MapAtK
    from oddslip.learners.one_vs_rest import OneVsRest
    from oddslip.learners.pairs import MatchedPair
    from oddslip.learners.scoring import score_to_file

# scikit-learn is loaded when one of these is first asked for, not before.
_HOMES = {
    "MapAtK": "oddslip.learners.callbacks",
    "MatchedPair": "oddslip.learners.pairs",
    "OneVsRest": "oddslip.learners.one_vs_rest",
    "panel_from": "oddslip.adapters",
    "score_to_file": "oddslip.learners.scoring",
}

__all__ = ["MapAtK", "MatchedPair", "OneVsRest", "panel_from", "score_to_file"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
