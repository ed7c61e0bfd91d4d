"""oddslip: has a per-label class weight broken your top-K ranker, and how to repair it.

>>> import oddslip
>>> oddslip.rank([[0.9, 0.2, 0.6]], k=2)
array([[0, 2]], dtype=int32)
"""

from typing import TYPE_CHECKING

from oddslip.core.lazy import lazy_names

__version__ = "0.3.0"
DEFAULT_SEED = 42  # defined here to avoid imports

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
    from oddslip.core.panel import Panel
    from oddslip.decisions.decision import Decision
    from oddslip.decisions.fitted_decision import FittedDecision, load_decision
    from oddslip.diagnosis.diagnose import diagnose
    from oddslip.diagnosis.result import Diagnosis
    from oddslip.errors import InvalidInput, MissingDependency, OddslipError, UnreadableFile
    from oddslip.folding.fold import fold
    from oddslip.learners.one_vs_rest import OneVsRest
    from oddslip.learners.pairs import MatchedPair
    from oddslip.metrics.evaluation import Comparison, Estimate, Evaluation, evaluate
    from oddslip.metrics.ranking import rank
    from oddslip.planning.plan import Plan, plan
    from oddslip.planning.rounds import Rounds, RoundsRecorder, by_rounds
    from oddslip.repairs.fitted_repair import FittedRepair, load_repair
    from oddslip.selection.repair import Repair
    from oddslip.serving.check import CheckResult, check
    from oddslip.sklearn.classifier import RepairedClassifier
    from oddslip.sklearn.repaired import Repaired
    from oddslip.sklearn.scorer import map_at_k_scorer
    from oddslip.sources import open_source

# Module of each public name. It is loaded when the name is first used.
_PUBLIC = {
    "CheckResult": "oddslip.serving.check",
    "Comparison": "oddslip.metrics.evaluation",
    "Decision": "oddslip.decisions.decision",
    "Diagnosis": "oddslip.diagnosis.result",
    "Estimate": "oddslip.metrics.evaluation",
    "Evaluation": "oddslip.metrics.evaluation",
    "FittedDecision": "oddslip.decisions.fitted_decision",
    "FittedRepair": "oddslip.repairs.fitted_repair",
    "InvalidInput": "oddslip.errors",
    "MatchedPair": "oddslip.learners.pairs",
    "MissingDependency": "oddslip.errors",
    "OddslipError": "oddslip.errors",
    "OneVsRest": "oddslip.learners.one_vs_rest",
    "Panel": "oddslip.core.panel",
    "Plan": "oddslip.planning.plan",
    "Repair": "oddslip.selection.repair",
    "Repaired": "oddslip.sklearn.repaired",
    "RepairedClassifier": "oddslip.sklearn.classifier",
    "Rounds": "oddslip.planning.rounds",
    "RoundsRecorder": "oddslip.planning.rounds",
    "UnreadableFile": "oddslip.errors",
    "by_rounds": "oddslip.planning.rounds",
    "check": "oddslip.serving.check",
    "diagnose": "oddslip.diagnosis.diagnose",
    "evaluate": "oddslip.metrics.evaluation",
    "fold": "oddslip.folding.fold",
    "load_decision": "oddslip.decisions.fitted_decision",
    "load_repair": "oddslip.repairs.fitted_repair",
    "map_at_k_scorer": "oddslip.sklearn.scorer",
    "open_source": "oddslip.sources",
    "panel_from": "oddslip.adapters",
    "plan": "oddslip.planning.plan",
    "rank": "oddslip.metrics.ranking",
}
# Packages with public names of their own, such as oddslip.calibrators.Isotonic.
_PACKAGES = (
    "calibrators",
    "datasets",
    "learners",
    "metrics",
    "mlflow",
    "selection",
    "serving",
    "shifts",
)

__all__ = [
    "CheckResult",
    "Comparison",
    "Decision",
    "Diagnosis",
    "Estimate",
    "Evaluation",
    "FittedDecision",
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
    "Rounds",
    "RoundsRecorder",
    "UnreadableFile",
    "by_rounds",
    "check",
    "diagnose",
    "evaluate",
    "fold",
    "load_decision",
    "load_repair",
    "map_at_k_scorer",
    "open_source",
    "panel_from",
    "plan",
    "rank",
]


__getattr__, __dir__ = lazy_names(__name__, _PUBLIC, _PACKAGES)
