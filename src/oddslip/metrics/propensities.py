"""Label propensities of Jain et al. (2016): how likely a true rare label is to be seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddslip.errors import InvalidInput


def label_propensities(
    label_counts: ArrayLike, n_rows: int, *, a: float = 0.55, b: float = 1.5
) -> NDArray[np.float64]:
    """Propensity of each label: ``1 / (1 + C exp(-a ln(count + b)))``.

    ``C = (ln n_rows - 1) (b + 1)^a``. The defaults of a and b are those of the extreme
    classification repository for data sets of its own kind.

    Examples
    --------
    >>> label_propensities([1, 1000], 10_000).round(3)
    array([0.109, 0.767])
    """
    counts = np.asarray(label_counts, np.float64)
    c = (np.log(n_rows) - 1.0) * (b + 1.0) ** a
    return np.asarray(1.0 / (1.0 + max(c, 0.0) * np.exp(-a * np.log(counts + b))))


def check_propensities(given: Any, n_labels: int) -> NDArray[np.float64]:
    """Propensities as float64, one per label, each in (0, 1]."""
    array = np.asarray(given, np.float64)
    if array.shape != (n_labels,):
        raise InvalidInput(
            f"propensities must hold one number per label, n_labels={n_labels}, "
            f"got shape {array.shape}."
        )
    wrong = np.flatnonzero(~((array > 0) & (array <= 1)))
    if wrong.size:
        raise InvalidInput(
            f"propensities must be above 0 and at most 1, got {array[wrong[0]]:g} "
            f"for label {wrong[0]}."
        )
    return array
