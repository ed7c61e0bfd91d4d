"""Which calibrator, by the deployed metric: folds, candidates, rules, and the `Repair` estimator.

May import metrics, calibrators and everything below them; knows nothing of shifts or diagnosis.
"""

from oddslip.selection.candidates import Candidate
from oddslip.selection.repairs import Repair
from oddslip.selection.rules import Rule
from oddslip.selection.tables import SelectionTable

__all__ = ["Candidate", "Repair", "Rule", "SelectionTable"]
