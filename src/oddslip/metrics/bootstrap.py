"""Row bootstrap: rows are drawn with replacement, all metrics read the same draws.

Drawing n rows one by one, B times, jumps all over memory once n is large. So the n draws of each
replicate are first dealt to blocks of rows (a multinomial), then drawn inside each block: the same
distribution, with counters that stay in cache. Each block has its own stream of random numbers.

Sums do not depend on the order in which they are added: values are rounded to whole multiples of a
power of 2, by less than 1e-13 of their column's largest, so coarse that a piece of rows adds up
without any rounding; pieces and blocks are added in their order. So the outcome depends on the seed
alone, and not on threads, neither ours nor those of the linear algebra that adds.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.core.tally import MergeableTally, State, nest_states, unnest_states
from oddslip.core.threads import map_threads

BLOCK_ROWS = 1 << 15
BATCH = 50
PIECE_ROWS = 512
# Columns added at a time: OpenBLAS starts threads for products of more than 2**18 numbers, and for
# products as small as these threads cost many times what they bring.
AT_ONCE = 2**18 // (BATCH * PIECE_ROWS)


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
        for first in range(0, values.shape[1], AT_ONCE):
            columns = slice(first, first + AT_ONCE)
            total[:, columns] += drawn[:, rows] @ values[rows, columns]
    return total


def percentile_interval(replicates: NDArray[np.float64], level: float) -> tuple[float, float]:
    """The middle ``level`` of the replicates."""
    finite = replicates[np.isfinite(replicates)]
    if not finite.size:
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


class KeyedSums(MergeableTally):
    """Sums of columns over rows, and over each replicate of a Poisson bootstrap.

    A replicate takes every row a Poisson number of times, with mean 1, which the row's key, the
    seed and the replicate decide. So sums of any part of the rows add up to those of all, in any
    order, on any machine, and two metrics of the same rows are resampled alike.

    Parameters
    ----------
    n_columns, n_replicates, seed : int

    Examples
    --------
    >>> whole = KeyedSums(1, 200, seed=42)
    >>> whole.take(np.ones((1000, 1)), np.arange(1000, dtype=np.uint64))
    >>> whole.sums.tolist(), bool(abs(whole.draws.mean() - 1000) < 20)
    ([1000.0], True)
    """

    JOINED: ClassVar = {"sums": "add", "draws": "add"}

    def __init__(self, n_columns: int, n_replicates: int, seed: int) -> None:
        self.seed = seed
        self.sums = np.zeros(n_columns)
        self.draws = np.zeros((n_replicates, n_columns))

    def take(self, values: NDArray[np.float64], keys: NDArray[np.uint64] | None) -> None:
        """Take some rows; keys are needed where there are replicates."""
        from oddslip.kernels.resampling import draw_poisson

        self.sums += values.sum(axis=0)
        if keys is None or not len(self.draws):
            return
        for start in range(0, len(values), PIECE_ROWS):
            piece = slice(start, start + PIECE_ROWS)
            part, own = values[piece], np.ascontiguousarray(keys[piece])
            counts = np.empty((BATCH, len(part)))
            for first in range(0, len(self.draws), BATCH):
                batch = slice(first, first + BATCH)
                drawn = counts[: len(self.draws[batch])]
                draw_poisson(own, self.seed % 2**64, first, drawn)
                for at in range(0, values.shape[1], AT_ONCE):
                    columns = slice(at, at + AT_ONCE)
                    self.draws[batch, columns] += drawn @ part[:, columns]


class Resampled(MergeableTally):
    """A tally that keeps sums of its rows, and of each replicate's, in ``kept``."""

    kept: KeyedSums

    def merge(self, other: Self) -> None:
        """Add another's counts and sums."""
        super().merge(other)
        self.kept.merge(other.kept)

    def state(self) -> State:
        """Counts and sums."""
        return nest_states([super().state(), self.kept.state()])

    def restore(self, state: State) -> None:
        """Take over counts and sums."""
        own, kept = unnest_states(state, 2)
        super().restore(own)
        self.kept.restore(kept)
