"""Diagnosis: the repair ladder, the parts of the loss, findings with codes, and the plan.

May import metrics, shifts, calibrators, selection and what they stand on; prints nothing.
"""

from oddslip.diagnosis.diagnoses import Diagnosis, Verdict
from oddslip.diagnosis.examinations import diagnose
from oddslip.diagnosis.findings import CODES, Finding
from oddslip.diagnosis.ladders import Ladder, Rung
from oddslip.diagnosis.plannings import plan
from oddslip.diagnosis.plans import Plan, WhatIfLoss

__all__ = [
    "CODES",
    "Diagnosis",
    "Finding",
    "Ladder",
    "Plan",
    "Rung",
    "Verdict",
    "WhatIfLoss",
    "diagnose",
    "plan",
]
