"""Within-label AUC: how well a label's scores order its own rows.

A weight that only shifts a label's odds leaves it unchanged. A drop says that the label's scores
have lost order, which no monotone map of the label brings back.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from oddslip.core.passes import run
from oddslip.core.types import Floats, LabelsLike, ScoresLike
from oddslip.sources.open import RowOptions, open_rows


def auc_per_label(
    scores: ScoresLike, labels: LabelsLike = None, **options: Unpack[RowOptions]
) -> Floats:
    """Area under the ROC curve of every label, over the rows. Higher is better.

    It is the chance that a row with the label scores above a row without it; equal scores count
    one half. NaN where a label is true for no row or for every row.

    Parameters
    ----------
    scores, labels : anything `open_source` takes
        Of shape (n_rows, n_labels).
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    exclude, nan
        Cells that count for nothing, as in `oddslip.rank`.
    threads : int, optional
        Threads to use; all available cores by default.

    Examples
    --------
    >>> auc_per_label([[0.1, 0.5], [0.4, 0.5], [0.8, 0.5]], [[0, 0], [1, 0], [0, 0]])
    array([0.5, nan])
    """
    from oddslip.tallies.cell_counts import count_cells

    source = open_rows(scores, labels, **options, purpose="evaluate")
    return run(source, count_cells(source), what="counting cells").auc()


def mean_auc(scores: ScoresLike, labels: LabelsLike = None, **options: Unpack[RowOptions]) -> float:
    """Mean of `auc_per_label` over the labels where it is defined; NaN if there is none.

    Parameters
    ----------
    scores, labels, **options
        As for `auc_per_label`.

    Examples
    --------
    >>> mean_auc([[0.1, 0.5], [0.4, 0.5], [0.8, 0.5]], [[0, 0], [1, 0], [0, 0]])
    0.5
    """
    areas = auc_per_label(scores, labels, **options)
    defined = areas[~np.isnan(areas)]
    return float(defined.mean()) if defined.size else float("nan")
