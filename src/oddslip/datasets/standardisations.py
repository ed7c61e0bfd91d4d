"""Features on a common scale."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scale(NamedTuple):
    """Mean and population standard deviation of each feature; 1 where it does not vary."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def measure_scale(X: NDArray[np.float64]) -> Scale:
    """The scale of some rows. NaN cells are left out; a feature of NaN alone keeps its values."""
    table: Any = X if np.isfinite(X).all() else np.ma.masked_invalid(X)
    mean, deviation, low, high = (
        np.asarray(np.ma.filled(each, 0.0))
        for each in (table.mean(axis=0), table.std(axis=0), table.min(axis=0), table.max(axis=0))
    )
    # The mean of equal numbers may miss them by a rounding, and their deviation then be almost 0.
    constant = low == high
    return Scale(np.where(constant, low, mean), np.where(constant, 1.0, deviation))


def apply_scale(X: NDArray[np.float64], scale: Scale) -> None:
    """Standardise in place."""
    X -= scale.mean
    X /= scale.deviation
