"""What the selection rules choose for an arm, and what that is worth in the next period.

The rules were set on MULAN's data sets. Here they meet data they were not set on: calibrated on
the validation period, evaluated on all rows of the test period.
"""

from __future__ import annotations

from typing import Any

from oddslip.datasets.recommendations import Recommendation
from oddslip.metrics import rank
from oddslip.selection import Repair
from oddslip.studies.pair_benches import ArmScores
from oddslip.studies.pair_protocols import mean_gap, open_rows
from oddslip.studies.rankings import row_precisions

RULES = ("paper", "auto")
HARM = 0.01  # below raw by more than this counts as harm, as in the paper's section 4


def compare_choices(scores: ArmScores, data: Recommendation, k: int) -> dict[str, Any]:
    """For each rule: its choice, MAP@K, and the paired difference to raw; deployment protocol."""
    rows = open_rows(scores, data, "deployment")
    truth = rows.evaluated.positives()
    raw = row_precisions(rank(rows.evaluated, k=k), truth, data.n_labels)
    told: dict[str, Any] = {"raw": float(raw.mean())}
    for rule in RULES:
        repair = Repair(k=k, rule=rule, prior=scores.prior).fit(rows.calibration)
        values = row_precisions(repair.rank(rows.evaluated), truth, data.n_labels)
        told[rule] = {
            "chosen": repair.chosen_,
            "map": float(values.mean()),
            "difference": mean_gap(values - raw),
        }
    return told
