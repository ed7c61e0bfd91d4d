"""Whether labelled rows keep the guarantee of a decision."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from oddslip.core.types import Ints
from oddslip.decisions.fitted_decision import FittedDecision
from oddslip.sources import Source

MIN_ROWS = 20  # with fewer, an interval by the normal distribution says too often that it is sure
Z99 = 2.5758293035489004  # standard errors of a 99% interval


class GuaranteeCheck(NamedTuple):
    """The risk of new rows beside the one that was guaranteed."""

    loss: str
    target: float
    risk: float
    risk_before: float
    error: float  # standard error of the difference, of both samples of rows
    n_rows: int

    @property
    def broken(self) -> bool:
        """Whether the risk is surely above the target: by a 99% interval."""
        return self.risk - self.target > Z99 * self.error


def check_guarantee(
    decision: FittedDecision, source: Source, order: Ints | None
) -> GuaranteeCheck | None:
    """Compare the risk of labelled rows with the guarantee; None where there is none to compare.

    It takes `MIN_ROWS` rows, and for "missed" only those with a true label count. A guarantee by
    group needs the groups of the rows, which a source does not have.
    """
    stored = decision.summary.get("guarantee")
    if not stored or len(stored) != 1 or stored[0]["group"] is not None or not stored[0]["holds"]:
        return None
    if not (source.has_labels and source.ordered and source.sample_weight is None):
        return None
    loss: Any = decision.goal
    risk, variance, n_rows = decision._total(source, order).loss(loss)
    if n_rows < MIN_ROWS:
        return None
    n_before, target = stored[0]["n_rows"], float(decision.target or 0.0)
    error = math.sqrt(variance * (1 / n_rows + 1 / max(1, n_before)))
    return GuaranteeCheck(loss, target, risk, stored[0]["risk"], error, n_rows)
