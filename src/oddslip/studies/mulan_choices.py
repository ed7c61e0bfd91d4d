"""What the selection rules choose in a cell, and what that is worth on the test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.calibrators import Isotonic
from oddslip.datasets.mulans import MulanData
from oddslip.metrics import Evaluation, evaluate
from oddslip.selection import Repair
from oddslip.studies.mulan_arms import Arm

RULES = ("paper", "auto")


def compare_rules(data: MulanData, arm: Arm) -> dict[str, Any]:
    """For each rule: what it chose, MAP@K on the test rows, and the paired difference to raw."""
    raw = _evaluate(arm.test, data)
    truth = data.Y_train[data.calibration]
    told: dict[str, Any] = {}
    for rule in RULES:
        repair = Repair(k=data.k, rule=rule, prior=data.prevalence).fit(arm.calibration, truth)
        told[rule] = {
            "chosen": repair.chosen_,
            **_against(repair.fitted_.transform(arm.test), raw, data),
        }
    fixed = Isotonic(prior=data.prevalence).fit(arm.calibration, truth)
    told["tau 0"] = {"chosen": "isotonic", **_against(fixed.transform(arm.test), raw, data)}
    return told


def _evaluate(scores: NDArray[np.float64], data: MulanData) -> Evaluation:
    return evaluate(scores, data.Y_test, k=data.k, seed=0)  # as the cells on record were drawn


def _against(scores: NDArray[np.float64], raw: Evaluation, data: MulanData) -> dict[str, float]:
    found = _evaluate(scores, data)
    difference = found.compare(raw)["map"]
    return {
        "map": found["map"].value,
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
    }
