"""Diagnosis: the repair ladder, the parts of the loss, and findings with codes.

May import metrics, shifts, calibrators, selection and what they stand on; prints nothing.
"""

from oddslip.core.lazy import moved_names
from oddslip.diagnosis.diagnose import diagnose
from oddslip.diagnosis.findings import CODES, Finding
from oddslip.diagnosis.ladder import Ladder, Rung
from oddslip.diagnosis.result import Diagnosis, Verdict

__all__ = [
    "CODES",
    "Diagnosis",
    "Finding",
    "Ladder",
    "Rung",
    "Verdict",
    "diagnose",
]

__getattr__ = moved_names(
    __name__, dict.fromkeys(("Plan", "WhatIfLoss", "plan"), "oddslip.planning")
)
