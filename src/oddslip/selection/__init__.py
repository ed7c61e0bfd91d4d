"""Which calibrator, by the deployed metric: folds, candidates, rules, and the `Repair` estimator.

May import metrics, calibrators and everything below them; knows nothing of shifts or diagnosis.
"""

from oddslip.selection.candidates import Candidate
from oddslip.selection.repair import Repair, SelectionTable
from oddslip.selection.rules import Rule

__all__ = ["Candidate", "Repair", "Rule", "SelectionTable"]
