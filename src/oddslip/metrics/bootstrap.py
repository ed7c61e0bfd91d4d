"""Row bootstrap: a replicate takes every row a Poisson number of times, with mean 1.

That number depends on the row's key, the seed and the replicate alone. So sums of any part of the
rows add up to those of all, in any order, on any machine, and two metrics of the same rows are
resampled alike.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.core.row_keys import Keys
from oddslip.core.tally import MergeableTally, State, map_threads, nest_states, unnest_states

Floats = NDArray[np.float64]

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
    >>> percentile_interval(np.arange(101.0), 0.9)
    (5.0, 95.0)
    """
    finite = replicates[np.isfinite(replicates)]
    if not finite.size:
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bootstrap_sums(
    values: NDArray[np.float64],
    *,
    n_replicates: int,
    seed: int = DEFAULT_SEED,
    n_rows: int | None = None,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """Sums of each column of ``values`` over resampled rows, shape (n_replicates, columns).

    ``n_rows`` larger than the rows given adds rows of zeros, without their being there.
    """
    if n_replicates == 0:
        return np.empty((0, values.shape[1]))
    n = len(values)
    n_all = n if n_rows is None else n_rows
    starts = list(range(0, n, BLOCK_ROWS))
    sizes = [min(BLOCK_ROWS, n - start) for start in starts]
    dealer, *seeders = np.random.SeedSequence(seed).spawn(1 + len(starts))
    shares = np.array([*sizes, n_all - n], np.float64) / max(n_all, 1)
    dealt = np.random.default_rng(dealer).multinomial(n_all, shares, size=n_replicates)

    def resample(block: int) -> NDArray[np.float64]:
        from oddslip.kernels.resampling import count_draws

        part = values[starts[block] : starts[block] + sizes[block]]
        multiples = round_values(part)
        seeds = seeders[block].generate_state(n_replicates, np.uint64)
        counts = np.empty((BATCH, sizes[block]))
        sums = np.empty((n_replicates, values.shape[1]))
        for first in range(0, n_replicates, BATCH):
            batch = slice(first, min(first + BATCH, n_replicates))
            drawn = counts[: batch.stop - first]
            count_draws(seeds[batch], np.ascontiguousarray(dealt[batch, block]), drawn)
            sums[batch] = _add(multiples, drawn)
        return sums

    total = np.zeros((n_replicates, values.shape[1]))
    for sums in map_threads(range(len(starts)), resample, threads=threads):
        total += sums
    return total


def round_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values as multiples of a power of 2, of which the draws of a piece of rows add up exactly.

    A piece is drawn from about once per row; four times as often does not happen.

    Examples
    --------
    >>> bool(abs(round_values(np.array([[1 / 3], [1.0]]))[0, 0] - 1 / 3) < 1e-13)
    True
    """
    largest = np.abs(values).max(axis=0, initial=0.0)
    # The least power of 2 that is not below the largest value; 1 where there is none.
    mantissa, exponent = np.frexp(np.where(np.isfinite(largest) & (largest > 0), largest, 1.0))
    exponent = np.maximum(exponent - (mantissa == 0.5), -900)
    step = np.ldexp(1.0, exponent + (4 * PIECE_ROWS).bit_length() - 1 - 53)
    rounded: NDArray[np.float64] = np.rint(values / step)
    rounded *= step
    return rounded


def _add(values: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of each column over each replicate's draws, shape (replicates, columns)."""
    total = np.zeros((len(drawn), values.shape[1]))
    for start in range(0, len(values), PIECE_ROWS):
        rows = slice(start, start + PIECE_ROWS)
        for first in range(0, values.shape[1], MAX_COLUMNS):
            columns = slice(first, first + MAX_COLUMNS)
            total[:, columns] += drawn[:, rows] @ values[rows, columns]
    return total
