"""Bootstrap sums are the same to the bit, whoever adds and in whatever order."""

import os
import subprocess
import sys

import numpy as np
import pytest

from oddslip.metrics.bootstrap import PIECE_ROWS, _add, bootstrap_sums, round_values

SCRIPT = """
import numpy as np
from oddslip.metrics.bootstrap import bootstrap_sums

values = np.random.default_rng(0).random((40_000, 6)) / 3
print(bootstrap_sums(values, n_replicates=120, threads=1).tobytes().hex()[:4000])
"""


def test_sums_do_not_depend_on_the_threads_of_the_linear_algebra():
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")
    told = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            check=True,
            env={**os.environ, **dict.fromkeys(names, n)},
        ).stdout
        for n in ("1", "2", "7")
    ]
    assert len(told[0]) > 4000
    assert told[0] == told[1] == told[2]


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
    sums = bootstrap_sums(values, n_replicates=5)
    assert np.array_equal(sums[:, 0], np.zeros(5))
    assert np.isnan(sums[:, 1]).all()
