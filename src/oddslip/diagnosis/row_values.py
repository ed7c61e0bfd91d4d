"""Metrics of every row with a true label, from a ranking already made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oddslip.labels import Positives
from oddslip.metrics.at_k import metric_values
from oddslip.metrics.propensities import label_propensities
from oddslip.metrics.rankings import Rankings
from oddslip.selection.folds import take_positives


def score_ranking(
    ranking: NDArray[np.int32], positives: Positives, n_labels: int
) -> NDArray[np.float64]:
    """Columns of `oddslip.kernels.hits.METRICS`, one line per row with a true label.

    Examples
    --------
    >>> truth = Positives(np.array([0, 1, 1]), np.array([2], np.int32))
    >>> score_ranking(np.array([[1, 2], [0, 1]], np.int32), truth, 3)[:, 0]
    array([0.5])
    """
    n_rows, k = ranking.shape
    rows = np.flatnonzero(positives.counts)
    part = take_positives(positives, rows)
    counts = np.bincount(positives.indices, minlength=n_labels)
    # Ties are decided already, by label index, so nothing needs to be known of them.
    rankings = Rankings(
        n_rows=n_rows,
        n_labels=n_labels,
        rows=rows,
        columns=np.ascontiguousarray(ranking[rows]),
        joined=np.zeros((rows.size, k), np.uint8),
        at_kth=np.ones(rows.size, np.int64),
        indptr=part.indptr,
        indices=part.indices,
        sides=np.zeros(part.indices.size, np.int8),
    )
    return metric_values(rankings, propensities_given=label_propensities(counts, n_rows))
