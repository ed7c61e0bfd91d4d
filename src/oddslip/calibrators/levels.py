"""The levels ranking sweeps at: chosen from some rows, and turned into keys of each label.

See `oddslip.kernels.fused` for what they are for. They decide how fast rows are ranked, never how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.panels import Kind

if TYPE_CHECKING:
    from oddslip.calibrators.maps import LabelMaps


class Levels(NamedTuple):
    """Levels, descending, the keys of each label at each of them, and those to sweep at."""

    taus: NDArray[np.float64]
    ladder: NDArray[Any]
    sweeps: NDArray[np.int64]
    sieves: NDArray[Any]


def no_levels(dtype: np.dtype[Any], n_labels: int) -> Levels:
    """Nothing to sweep at: every cell is evaluated."""
    from oddslip.kernels.keys import UNSIGNED

    none = np.empty((0, n_labels), UNSIGNED[dtype])
    return Levels(np.full(1, np.inf), none, np.empty(0, np.int64), none)


def choose_levels(maps: LabelMaps, scores: NDArray[Any], values: NDArray[Any], k: int) -> Levels:
    """Levels around the k-th values of a sample of rows. Needs ``4 * k <= n_labels``."""
    from oddslip.kernels.fused import LEVELS

    kth, later, latest = np.sort(values, axis=1)[:, [-k, -2 * k, -4 * k]].T
    kth = np.sort(kth)
    taus = np.empty(LEVELS)
    taus[0] = maps.evaluate(
        np.full((1, maps.n_labels), bounds_of(maps.kind, scores.dtype)[1])
    ).max()
    shares = np.linspace(1, 0, LEVELS - 3)
    taus[1:-2] = kth[np.rint(shares * (kth.size - 1)).astype(np.int64)]
    # Rows poorer than any of the sample have their k-th value about where these have a later one.
    taus[-2] = later.min()
    taus[-1] = latest.min()
    np.maximum(taus, np.finfo(np.float64).min, out=taus)
    keys = _invert(maps, taus, scores.dtype)
    # Sweep where the cells to look at and the rows to sweep again cost least (in nanoseconds).
    collected = np.array([np.count_nonzero(values >= tau) for tau in taus]) / len(values)
    again = np.array([np.mean(kth < tau) for tau in taus])
    cost = 4 * collected + again * (0.5 * maps.n_labels + 4 * collected[-1])
    sweeps = np.array([np.argmin(cost), LEVELS - 1], np.int64)
    return Levels(taus, np.ascontiguousarray(keys.T), sweeps, keys[sweeps])


def bounds_of(kind: Kind, dtype: Any) -> tuple[float, float]:
    """The lowest and the highest valid score."""
    top = 1.0 if kind == "probability" else float(np.finfo(dtype).max)
    return (0.0 if kind == "probability" else -top), top


def _invert(maps: LabelMaps, taus: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Keys below which no cell of a label reaches a level; shape (levels, labels)."""
    from oddslip.kernels.keys import LIMITS, UNSIGNED, keys_of, scores_of

    low, high = bounds_of(maps.kind, dtype)
    unsigned = UNSIGNED[dtype]
    limit = LIMITS[unsigned, maps.kind]
    with np.errstate(over="ignore"):
        targets = taus[:, None] - _slack(maps, taus)
    guesses = maps.invert(targets, low, high)
    nearest = np.clip(guesses, low, high).astype(dtype) + dtype.type(0)
    keys = keys_of(nearest, maps.kind).copy()
    keys[guesses > high] = limit + 1
    # A key is right once the one below does not reach the level. Go down until it is.
    stride = np.ones_like(keys)
    while True:
        below = np.maximum(keys, 1) - unsigned.type(1)
        reached = (maps.evaluate(scores_of(below, maps.kind)) >= targets) & (keys > 0)
        if not reached.any():
            return keys
        keys = np.where(reached, keys - np.minimum(keys, stride), keys)
        stride = np.where(reached, np.minimum(stride, limit // 2) * unsigned.type(2), stride)


def _slack(maps: LabelMaps, taus: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far rounding may keep a map from being monotone, generously. Knots are exact."""
    from oddslip.kernels.maps import AFFINE, BETA, IDENTITY

    size = np.where(np.isfinite(taus), np.abs(taus), 0.0)[:, None]
    if maps.scale == "probability":
        rough = (maps.code == IDENTITY) & (maps.kind == "margin")
        return np.where(rough, 1e-12 * size + 1e-300, 0.0)
    reach = 1.0 + 30.0 * (maps.a + np.abs(maps.b)) + np.abs(maps.c)
    rough = np.isin(maps.code, (AFFINE, BETA, IDENTITY))
    return np.where(rough, 1e-13 * (size + reach), 0.0)
