"""oddslip: has a per-label class weight broken your top-K ranker, and how to repair it.

>>> import oddslip
>>> oddslip.rank([[0.9, 0.2, 0.6]], k=2)
array([[0, 2]], dtype=int32)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"
DEFAULT_SEED = 42  # of everything that is drawn, unless told; here, where nothing is loaded for it

if TYPE_CHECKING:
    from oddslip import calibrators as calibrators
    from oddslip import datasets as datasets
    from oddslip import learners as learners
    from oddslip import metrics as metrics
    from oddslip import mlflow as mlflow
    from oddslip import selection as selection
    from oddslip import serving as serving
    from oddslip import shifts as shifts
    from oddslip.adapters import panel_from
    from oddslip.calibrators.fitted_repair import FittedRepair, load_repair
    from oddslip.core.panel import Panel
    from oddslip.diagnosis.diagnose import diagnose
    from oddslip.diagnosis.plan import Plan, plan
    from oddslip.diagnosis.result import Diagnosis
    from oddslip.errors import InvalidInput, MissingDependency, OddslipError, UnreadableFile
    from oddslip.learners.one_vs_rest import OneVsRest
    from oddslip.learners.pairs import MatchedPair
    from oddslip.metrics.evaluation import Comparison, Estimate, Evaluation, evaluate
    from oddslip.metrics.ranking import rank
    from oddslip.selection.repair import Repair
    from oddslip.serving.check import CheckResult, check
    from oddslip.sklearn.classifier import RepairedClassifier
    from oddslip.sklearn.repaired import Repaired
    from oddslip.sklearn.scorer import map_at_k_scorer
    from oddslip.sources import open_source

# Where each public name lives. Nothing is loaded before it is asked for.
_HOMES = {
    "CheckResult": "oddslip.serving.check",
    "Comparison": "oddslip.metrics.evaluation",
    "Diagnosis": "oddslip.diagnosis.result",
    "Estimate": "oddslip.metrics.evaluation",
    "Evaluation": "oddslip.metrics.evaluation",
    "FittedRepair": "oddslip.calibrators.fitted_repair",
    "InvalidInput": "oddslip.errors",
    "MatchedPair": "oddslip.learners.pairs",
    "MissingDependency": "oddslip.errors",
    "OddslipError": "oddslip.errors",
    "OneVsRest": "oddslip.learners.one_vs_rest",
    "Panel": "oddslip.core.panel",
    "Plan": "oddslip.diagnosis.plan",
    "Repair": "oddslip.selection.repair",
    "Repaired": "oddslip.sklearn.repaired",
    "RepairedClassifier": "oddslip.sklearn.classifier",
    "UnreadableFile": "oddslip.errors",
    "check": "oddslip.serving.check",
    "diagnose": "oddslip.diagnosis.diagnose",
    "evaluate": "oddslip.metrics.evaluation",
    "load_repair": "oddslip.calibrators.fitted_repair",
    "map_at_k_scorer": "oddslip.sklearn.scorer",
    "open_source": "oddslip.sources",
    "panel_from": "oddslip.adapters",
    "plan": "oddslip.diagnosis.plan",
    "rank": "oddslip.metrics.ranking",
}
# Rooms whose own names are public too: oddslip.calibrators.Isotonic and the like.
_ROOMS = (
    "calibrators", "datasets", "learners", "metrics", "mlflow", "selection", "serving", "shifts",
)  # fmt: skip

__all__ = [
    "CheckResult",
    "Comparison",
    "Diagnosis",
    "Estimate",
    "Evaluation",
    "FittedRepair",
    "InvalidInput",
    "MatchedPair",
    "MissingDependency",
    "OddslipError",
    "OneVsRest",
    "Panel",
    "Plan",
    "Repair",
    "Repaired",
    "RepairedClassifier",
    "UnreadableFile",
    "check",
    "diagnose",
    "evaluate",
    "load_repair",
    "map_at_k_scorer",
    "open_source",
    "panel_from",
    "plan",
    "rank",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"oddslip.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'oddslip' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
