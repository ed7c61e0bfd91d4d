"""The paper's bootstrap: the same to the bit, whoever adds and in whatever order."""

import os
import subprocess
import sys

import numpy as np
import pytest

import experiments.bootstrap as bootstraps
from experiments.bootstrap import (
    PIECE_ROWS,
    _add,
    count_draws,
    interval_of_draws,
    mean_with_interval,
    multinomial_sums,
    round_values,
)

SCRIPT = """
import numpy as np
from experiments.bootstrap import multinomial_sums

values = np.random.default_rng(0).random((40_000, 6)) / 3
print(multinomial_sums(values, n_replicates=120).tobytes().hex()[:4000])
"""


def test_sums_do_not_depend_on_the_threads_of_the_linear_algebra():
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            check=True,
            env={**os.environ, **dict.fromkeys(names, n)},
        ).stdout
        for n in ("1", "2", "7")
    ]
    assert len(outputs[0]) > 4000
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize("n_rows", [PIECE_ROWS - 3, PIECE_ROWS, 3 * PIECE_ROWS + 5])
@pytest.mark.parametrize("scale", [1.0, 1 / 3, 1e-9, 1e30])
def test_a_piece_adds_up_exactly_in_any_order(n_rows, scale):
    rng = np.random.default_rng(1)
    values = round_values(scale * rng.normal(size=(n_rows, 3)))
    drawn = rng.poisson(1, size=(4, n_rows)).astype(float)
    order = rng.permutation(min(n_rows, PIECE_ROWS))
    turned, counts = values.copy(), drawn.copy()
    turned[: order.size], counts[:, : order.size] = values[order], drawn[:, order]
    assert np.array_equal(_add(turned, counts), _add(values, drawn))


def test_rounding_moves_no_sum_by_as_much_as_1e_12():
    values = np.random.default_rng(2).integers(0, 8, size=(50_000, 2)) / 7
    draws = np.random.default_rng(3).poisson(1, size=(3, 50_000)).astype(float)
    assert np.abs(_add(round_values(values), draws) - draws @ values).max() / 50_000 < 1e-13


def test_columns_of_nothing_stay_nothing():
    values = np.zeros((20, 2))
    values[:, 1] = np.nan
    sums = multinomial_sums(values, n_replicates=5)
    assert np.array_equal(sums[:, 0], np.zeros(5))
    assert np.isnan(sums[:, 1]).all()


ALL = 2**64 - 1


def draw_one_by_one(seed, n_draws, n):
    counts, state = [0] * n, seed
    for _ in range(n_draws):
        state = (state + 0x9E3779B97F4A7C15) & ALL
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ALL
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ALL
        z ^= z >> 31
        counts[int((z >> 11) * 2.0**-53 * n)] += 1
    return counts


def test_draws_are_those_of_splitmix64():
    seeds, n_draws = np.array([0, 7, ALL], np.uint64), np.array([5, 0, 400])
    wanted = [
        draw_one_by_one(seed, n, 37)
        for seed, n in zip(seeds.tolist(), n_draws.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(count_draws(seeds, n_draws, 37), wanted)


def test_every_row_is_drawn_about_as_often():
    counts = count_draws(np.array([3], np.uint64), np.array([500_000]), 50)
    assert counts.sum() == 500_000
    assert abs(counts - 10_000).max() < 500  # five standard deviations


def test_sums_have_the_mean_and_spread_of_resampled_rows():
    rng = np.random.default_rng(0)
    values = rng.random((5000, 2))
    sums = multinomial_sums(values, n_replicates=4000, seed=3)
    spread = values.std(axis=0) * np.sqrt(5000)
    np.testing.assert_allclose(sums.mean(axis=0), values.sum(axis=0), atol=4 * spread.max() / 63)
    np.testing.assert_allclose(sums.std(axis=0), spread, rtol=0.05)


def test_bootstrap_over_many_blocks_has_the_right_spread(monkeypatch):
    values = np.random.default_rng(0).random((5000, 1))
    monkeypatch.setattr(bootstraps, "BLOCK_ROWS", 64)
    sums = multinomial_sums(values, n_replicates=4000, seed=3)
    spread = values.std() * np.sqrt(5000)
    assert sums.std() == pytest.approx(spread, rel=0.05)
    assert sums.mean() == pytest.approx(values.sum(), abs=4 * spread / 63)


def test_zero_rows_that_are_not_there_spread_the_bootstrap_as_if_they_were():
    values = np.ones((100, 1))
    sums = multinomial_sums(values, n_replicates=4000, seed=0, n_rows=400)
    assert sums.mean() == pytest.approx(100, abs=1)
    assert sums.std() == pytest.approx(np.sqrt(400 * 0.25 * 0.75), rel=0.05)


def test_the_papers_draws_are_integers_of_one_generator_replicate_by_replicate():
    values = np.random.default_rng(4).random(37)
    random = np.random.default_rng(42)
    means = sorted(values[random.integers(0, 37, 37)].mean() for _ in range(201))
    estimate = interval_of_draws(values, n_replicates=201)
    assert estimate.value == values.mean()
    assert (estimate.low, estimate.high) == pytest.approx((means[5], means[195]), rel=1e-15)
    assert interval_of_draws(values, n_replicates=201, seed=43) != estimate


def test_both_ways_to_draw_give_about_the_same_interval():
    values = np.random.default_rng(5).normal(size=800)
    one, other = interval_of_draws(values), mean_with_interval(values)
    error = values.std() / np.sqrt(800)
    assert one.value == other.value
    # An end of 2,000 replicates is known to about a fifteenth of a standard error.
    assert abs(one.low - other.low) < 0.3 * error
    assert abs(one.high - other.high) < 0.3 * error
