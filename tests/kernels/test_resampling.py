"""Draws against the generator written out in Python's own integers."""

import numpy as np

from oddslip.kernels.resampling import count_draws

ALL = 2**64 - 1


def draws(seed, n_draws, n):
    counts, state = [0] * n, seed
    for _ in range(n_draws):
        state = (state + 0x9E3779B97F4A7C15) & ALL
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ALL
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL
        z ^= z >> 31
        counts[int((z >> 11) * 2.0**-53 * n)] += 1
    return counts


def test_draws_are_those_of_splitmix64(frozen):
    seeds, n_draws = np.array([0, 7, ALL], np.uint64), np.array([5, 0, 400])
    counts = np.full((3, 37), 9.0)
    count_draws(*frozen(seeds, n_draws), counts)
    expected = [draws(s, n, 37) for s, n in zip(seeds.tolist(), n_draws.tolist(), strict=True)]
    np.testing.assert_array_equal(counts, expected)


def test_every_row_is_drawn_about_as_often():
    counts = np.empty((1, 50))
    count_draws(np.array([3], np.uint64), np.array([500_000]), counts)
    assert counts.sum() == 500_000
    assert abs(counts - 10_000).max() < 500  # five standard deviations
