"""Early stopping by MAP at K of all labels on validation rows.

Groups of labels are trained one after another, so a training cannot stop in the middle. It runs to
its end, and is then cut where it would have stopped: the validation rows are ranked after every
round, until ``patience`` rounds have brought no improvement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oddslip.core.panel import Panel
from oddslip.core.types import FeaturesLike, Floats, Ints
from oddslip.io.progress import progress_bar
from oddslip.learners.backends.base import Backend
from oddslip.metrics.at_k import average_precision_at_k


def measure_raw(panel: Panel, k: int) -> float:
    """MAP at K of the scores as they are."""
    return float(average_precision_at_k(panel, k=k))


def measure_repaired(panel: Panel, k: int, metric: str = "map") -> float:
    """A metric at K after a hierarchical repair, cross-fitted on the same rows."""
    from oddslip.selection.repair import Repair

    rule = "hierarchical"
    repair = Repair(k=k, metric=metric, rule=rule, kind=panel.kind).fit(panel)
    return float(repair.table_[rule].mean)


STOP_BY: dict[str, Callable[[Panel, int], float]] = {
    "raw": measure_raw,
    "repaired": measure_repaired,
}


def follow_rounds(
    backend: Backend,
    groups: Sequence[Ints],
    models: Sequence[object],
    panel: Panel,
    rows: FeaturesLike,
    *,
    measure: Callable[[Panel, int], float],
    k: int,
    patience: int,
) -> Floats:
    """A metric of the validation rows after each round, up to where training would stop.

    ``panel`` holds the margins before the first round, which are filled in here.
    """
    margins = panel.scores
    n_rounds = max((backend.n_rounds(model) for model in models), default=0)
    values: list[float] = []
    with progress_bar("ranking after each round", n_rounds) as advance:
        for round_number in range(n_rounds):
            for group, model in zip(groups, models, strict=True):
                margins[:, group] += backend.stage(model, rows, round_number, round_number + 1)
            values.append(measure(panel, k))
            advance(1)
            if len(values) - 1 - int(np.argmax(values)) >= patience:
                break
    return np.array(values)
