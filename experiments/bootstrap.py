"""The paper's row bootstrap: every replicate draws as many rows as there are, with replacement.

The package weights rows by their keys instead (`oddslip.metrics.bootstrap`). The cells on record
were drawn with this one.

Drawing n rows one by one, B times, jumps all over memory once n is large. So the n draws of each
replicate are first divided among blocks of rows (a multinomial), then drawn inside each block: the
same distribution, with counters that stay in cache. Each block has its own random numbers.

Values are rounded to whole multiples of a power of 2, by less than 1e-13 of their column's largest,
so coarse that a piece of rows adds up without any rounding; pieces and blocks are added in their
order. So the outcome depends on the seed alone, and not on the threads of the linear algebra.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.metrics.bootstrap import percentile_interval
from oddslip.metrics.evaluation import Estimate, Evaluation

Floats = NDArray[np.float64]

N_REPLICATES = 2000  # the paper's B
LEVEL = 0.95
BLOCK_ROWS = 1 << 15
BATCH = 50
PIECE_ROWS = 512
# Columns added at a time: OpenBLAS starts threads for products of more than 2**18 numbers, and for
# products as small as these threads cost many times what they bring.
MAX_COLUMNS = 2**18 // (BATCH * PIECE_ROWS)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mean_with_interval(
    values: Floats,
    *,
    n_replicates: int = N_REPLICATES,
    level: float = LEVEL,
    seed: int = DEFAULT_SEED,
) -> Estimate:
    """The mean of one number per row, with its percentile interval.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
    n_replicates : int
    level : float
    seed : int

    Returns
    -------
    Estimate

    Examples
    --------
    >>> mean_with_interval(np.ones(3), n_replicates=10)
    Estimate(value=1.0, low=1.0, high=1.0)
    """
    sums = multinomial_sums(values[:, None], n_replicates=n_replicates, seed=seed)[:, 0]
    return Estimate(float(values.mean()), *percentile_interval(sums / len(values), level))


def interval_of_draws(
    values: Floats,
    *,
    n_replicates: int = N_REPLICATES,
    level: float = LEVEL,
    seed: int = DEFAULT_SEED,
) -> Estimate:
    """The mean of one number per row, with the interval by the paper's own draws.

    Each replicate takes ``numpy.random.default_rng(seed).integers(0, n, n)``, one after the other.
    So the digits can be those of the paper; `mean_with_interval` is the faster on many rows.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
    n_replicates : int
    level : float
    seed : int

    Returns
    -------
    Estimate

    Examples
    --------
    >>> interval_of_draws(np.ones(3), n_replicates=10)
    Estimate(value=1.0, low=1.0, high=1.0)
    """
    random, n = np.random.default_rng(seed), len(values)
    means = np.array([values[random.integers(0, n, n)].mean() for _ in range(n_replicates)])
    return Estimate(float(values.mean()), *percentile_interval(means, level))


def map_gap(first: Evaluation, second: Evaluation, *, seed: int = DEFAULT_SEED) -> Estimate:
    """MAP of a ranking less that of another of the same rows, with the paper's paired interval.

    Parameters
    ----------
    first, second : Evaluation
    seed : int

    Returns
    -------
    Estimate
    """
    gaps = first.per_row("map") - second.per_row("map")
    return mean_with_interval(gaps, seed=seed)


def multinomial_sums(
    values: Floats, *, n_replicates: int, seed: int = DEFAULT_SEED, n_rows: int | None = None
) -> Floats:
    """Sums of each column of ``values`` over resampled rows.

    Parameters
    ----------
    values : ndarray of shape (n_values, n_columns)
    n_replicates : int
    seed : int
    n_rows : int, optional
        More rows than there are values: the others count zero.

    Returns
    -------
    ndarray of shape (n_replicates, n_columns)

    Examples
    --------
    >>> multinomial_sums(np.ones((4, 1)), n_replicates=2)
    array([[4.],
           [4.]])
    """
    total = np.zeros((n_replicates, values.shape[1]))
    if n_replicates == 0:
        return total
    n = len(values)
    n_all = n if n_rows is None else n_rows
    starts = list(range(0, n, BLOCK_ROWS))
    sizes = [min(BLOCK_ROWS, n - start) for start in starts]
    divider, *streams = np.random.SeedSequence(seed).spawn(1 + len(starts))
    shares = np.array([*sizes, n_all - n], np.float64) / max(n_all, 1)
    n_draws = np.random.default_rng(divider).multinomial(n_all, shares, size=n_replicates)
    for block, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        multiples = round_values(values[start : start + size])
        seeds = streams[block].generate_state(n_replicates, np.uint64).astype(np.uint64)
        for first in range(0, n_replicates, BATCH):
            batch = slice(first, first + BATCH)
            total[batch] += _add(multiples, count_draws(seeds[batch], n_draws[batch, block], size))
    return total


def count_draws(seeds: NDArray[np.uint64], n_draws: NDArray[np.int64], n_rows: int) -> Floats:
    """How often each replicate draws each row, by the random numbers of splitmix64.

    Examples
    --------
    >>> count_draws(np.array([7], np.uint64), np.array([5]), 3).sum(axis=1)
    array([5.])
    """
    counts = np.empty((len(seeds), n_rows))
    for replicate, (seed, n) in enumerate(zip(seeds, n_draws, strict=True)):
        bits = seed + GOLDEN * np.arange(1, n + 1, dtype=np.uint64)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
        # 53 bits as a fraction of one, times the number of rows.
        rows = ((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 * n_rows).astype(np.int64)
        counts[replicate] = np.bincount(rows, minlength=n_rows)
    return counts


def round_values(values: Floats) -> Floats:
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
    return np.asarray(np.rint(values / step) * step)


def _add(values: Floats, draws: Floats) -> Floats:
    """Sums of each column over each replicate's draws, shape (replicates, columns)."""
    total = np.zeros((len(draws), values.shape[1]))
    for start in range(0, len(values), PIECE_ROWS):
        rows = slice(start, start + PIECE_ROWS)
        for first in range(0, values.shape[1], MAX_COLUMNS):
            columns = slice(first, first + MAX_COLUMNS)
            total[:, columns] += draws[:, rows] @ values[rows, columns]
    return total
