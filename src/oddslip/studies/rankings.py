"""MAP@K of rankings that are made already, row by row or as a mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oddslip.labels import Positives
from oddslip.metrics.at_k import Column, metric_values
from oddslip.metrics.rankings import Rankings


def row_precisions(
    ranking: NDArray[np.int32], truth: Positives, n_labels: int
) -> NDArray[np.float64]:
    """Average precision at K of every row with a true label."""
    values = metric_values(Rankings.made(ranking, truth, n_labels))
    return np.asarray(values[:, Column.MAP])


def score_ranking(ranking: NDArray[np.int32], truth: Positives, n_labels: int) -> float:
    """MAP@K: the mean of `row_precisions`."""
    return float(row_precisions(ranking, truth, n_labels).mean())
