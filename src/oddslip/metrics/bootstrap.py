"""Row bootstrap: a replicate takes every row a Poisson number of times, with mean 1.

That number depends on the row's key, the seed and the replicate alone. So sums of any part of the
rows add up to those of all, in any order, on any machine, and two metrics of the same rows are
resampled alike.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from oddslip.core.row_ids import Keys
from oddslip.core.tally import MergeableTally, State, nest_states, unnest_states
from oddslip.core.threads import map_threads
from oddslip.core.types import Floats

BLOCK_ROWS = 1 << 15
BATCH = 50
PIECE_ROWS = 512
# Columns added at a time: OpenBLAS starts threads for products of more than 2**18 numbers, and for
# products as small as these threads cost many times what they bring.
MAX_COLUMNS = 2**18 // (BATCH * PIECE_ROWS)


class BootstrapSums(MergeableTally):
    """Sums of columns over rows, and over each replicate of a Poisson bootstrap.

    Parameters
    ----------
    n_columns, n_replicates, seed : int

    Examples
    --------
    >>> sums = BootstrapSums(1, 200, seed=42)
    >>> sums.add_rows(np.ones((1000, 1)), np.arange(1000, dtype=np.uint64))
    >>> sums.total.tolist(), bool(abs(sums.draws.mean() - 1000) < 20)
    ([1000.0], True)
    """

    JOINED: ClassVar = {"total": "add", "draws": "add"}

    def __init__(self, n_columns: int, n_replicates: int, seed: int) -> None:
        self.seed = seed
        self.total = np.zeros(n_columns)
        self.draws = np.zeros((n_replicates, n_columns))

    def add_rows(self, values: Floats, keys: Keys | None) -> None:
        """Add some rows; keys are needed where there are replicates."""
        from oddslip.kernels.resampling import draw_poisson

        self.total += values.sum(axis=0)
        if keys is None or not len(self.draws):
            return
        for start in range(0, len(values), PIECE_ROWS):
            piece = slice(start, start + PIECE_ROWS)
            rows, row_keys = values[piece], np.ascontiguousarray(keys[piece])
            counts = np.empty((BATCH, len(rows)))
            for first in range(0, len(self.draws), BATCH):
                batch = slice(first, first + BATCH)
                times = counts[: len(self.draws[batch])]
                draw_poisson(row_keys, self.seed % 2**64, first, times)
                for at in range(0, values.shape[1], MAX_COLUMNS):
                    columns = slice(at, at + MAX_COLUMNS)
                    self.draws[batch, columns] += times @ rows[:, columns]


class BootstrapTally(MergeableTally):
    """A tally with sums over its rows, and over each replicate's, in ``sums``."""

    sums: BootstrapSums

    def merge(self, other: Self) -> None:
        """Add another's counts and sums."""
        super().merge(other)
        self.sums.merge(other.sums)

    def state(self) -> State:
        """Counts and sums."""
        return nest_states([super().state(), self.sums.state()])

    def restore(self, state: State) -> None:
        """Take over counts and sums."""
        counts, sums = unnest_states(state, 2)
        super().restore(counts)
        self.sums.restore(sums)


def bootstrap_rows(
    values: Floats, keys: Keys, *, n_replicates: int, seed: int, threads: int | None = None
) -> BootstrapSums:
    """Sums over rows that are in memory. Threads do not change a bit.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
    keys : ndarray of shape (n_rows,)
    n_replicates, seed : int
    threads : int, optional

    Returns
    -------
    BootstrapSums

    Examples
    --------
    >>> bootstrap_rows(np.ones((3, 1)), np.arange(3, dtype=np.uint64), n_replicates=0, seed=1).total
    array([3.])
    """

    def add(start: int) -> BootstrapSums:
        part = BootstrapSums(values.shape[1], n_replicates, seed)
        part.add_rows(values[start : start + BLOCK_ROWS], keys[start : start + BLOCK_ROWS])
        return part

    total = BootstrapSums(values.shape[1], n_replicates, seed)
    for part in map_threads(range(0, len(values), BLOCK_ROWS), add, threads=threads):
        total.merge(part)
    return total


def percentile_interval(replicates: Floats, level: float) -> tuple[float, float]:
    """The middle ``level`` of the replicates.

    Examples
    --------
    >>> percentile_interval(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    finite = replicates[np.isfinite(replicates)]
    if not finite.size:
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
