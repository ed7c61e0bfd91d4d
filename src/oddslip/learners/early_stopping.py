"""How many rounds to keep, by MAP at K of all labels together on validation rows.

Labels are trained in groups, one after another, and no booster sees the other groups; so a training
can not stop in the middle. It is run to its end, and then cut where it would have stopped: round by
round the validation rows are ranked again, until ``patience`` rounds have brought nothing better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.core.panel import Panel
from oddslip.io.progress import progress_bar
from oddslip.learners.backends.base import Backend
from oddslip.metrics.at_k import average_precision_at_k


def follow_rounds(
    backend: Backend,
    groups: Sequence[NDArray[np.int64]],
    models: Sequence[Any],
    panel: Panel,
    rows: Any,
    *,
    k: int,
    patience: int,
) -> NDArray[np.float64]:
    """MAP at K of the validation rows after each round that was looked at.

    ``panel`` holds the margins to begin with, those of labels without a model, and is filled here.
    """
    margins = panel.scores
    for group in groups:
        margins[:, group] = 0.0
    most = max((backend.n_rounds(model) for model in models), default=0)
    values: list[float] = []
    with progress_bar("rounds", most) as advance:
        for number in range(most):
            for group, model in zip(groups, models, strict=True):
                margins[:, group] += backend.stage(model, rows, number, number + 1)
            values.append(float(average_precision_at_k(panel, k=k)))
            advance(1)
            if len(values) - 1 - int(np.argmax(values)) >= patience:
                break
    return np.array(values)
