"""Features on a common scale."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scale(NamedTuple):
    """Mean and population standard deviation of each feature; 1 where it does not vary."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    def apply(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """A standardised copy."""
        scaled = X - self.mean
        scaled /= self.deviation
        return scaled


def measure_scale(X: NDArray[np.float64]) -> Scale:
    """The scale of some rows. NaN cells are left out; a feature of NaN alone keeps its values."""
    table: Any = X if np.isfinite(X).all() else np.ma.masked_invalid(X)
    mean, deviation = table.mean(axis=0), table.std(axis=0)
    low, high = table.min(axis=0), table.max(axis=0)
    # The mean of equal numbers may miss them by a rounding, and its deviation then be almost 0.
    constant = low == high
    mean = np.where(constant, low, mean) if table is X else np.ma.where(constant, low, mean)
    return Scale(_plain(mean, 0.0), np.where(_plain(constant, True), 1.0, _plain(deviation, 1.0)))


def _plain(values: Any, empty: Any) -> NDArray[Any]:
    return np.asarray(np.ma.filled(values, empty))
