"""Rows known by their keys: the same folds, draws and intervals in any order of the rows."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, poisson

from oddslip import InvalidInput, Panel, evaluate
from oddslip.core.row_ids import hash_ids, sample_keys
from oddslip.kernels.resampling import draw_poisson
from oddslip.metrics.bootstrap import BootstrapSums, bootstrap_rows
from oddslip.selection.folds import assign_folds
from oddslip.sources import open_source

N = 400
RNG = np.random.default_rng(3)
SCORES = RNG.random((N, 6))
LABELS = RNG.random((N, 6)) < 0.3 * SCORES
IDS = np.array([f"customer {row}" for row in range(N)])


def panel_of(order):
    return Panel(SCORES[order], LABELS[order], row_ids=IDS[order])


def assert_alike(one, other):
    for name, estimate in one.metrics.items():
        theirs = other[name]
        for mine, value in zip(
            (estimate.value, estimate.low, estimate.high),
            (theirs.value, theirs.low, theirs.high),
            strict=True,
        ):
            assert mine == pytest.approx(value, abs=1e-12)


def test_ids_of_any_width_and_form_hash_by_value():
    numbers = np.arange(-3, 50)
    assert np.array_equal(hash_ids(numbers), hash_ids(numbers.astype(np.int16)))
    texts = np.array(["a", "ä", "", "a" * 40])
    assert np.array_equal(hash_ids(texts), hash_ids(texts.astype(object)))
    assert np.unique(hash_ids(texts)).size == 4


def test_many_ids_have_keys_of_their_own():
    assert np.unique(hash_ids(np.arange(200_000))).size == 200_000
    assert np.unique(hash_ids(np.array([f"id-{n:06d}" for n in range(50_000)]))).size == 50_000


def test_draws_are_poisson_with_mean_one():
    counts = np.empty((60, 20_000))
    draw_poisson(hash_ids(np.arange(20_000)), 42, 0, counts)
    seen = np.bincount(counts.astype(int).ravel().clip(max=6), minlength=7)
    wanted = np.append(poisson.pmf(range(6), 1.0), poisson.sf(5, 1.0)) * counts.size
    assert chisquare(seen, wanted).pvalue > 1e-4


def test_draws_of_neighbouring_replicates_and_rows_are_not_related():
    counts = np.empty((40, 20_000))
    draw_poisson(hash_ids(np.arange(20_000)), 42, 0, counts)
    related = np.corrcoef(counts)[np.triu_indices(40, 1)]
    assert np.abs(related).max() < 5 / np.sqrt(20_000)
    assert abs(np.corrcoef(counts[:, :-1].ravel(), counts[:, 1:].ravel())[0, 1]) < 0.01


def test_a_draw_depends_on_key_seed_and_replicate_alone():
    keys = hash_ids(np.arange(30))
    whole, part = np.empty((10, 30)), np.empty((4, 7))
    draw_poisson(keys, 1, 0, whole)
    draw_poisson(keys[5:12].copy(), 1, 6, part)
    assert np.array_equal(part, whole[6:10, 5:12])
    draw_poisson(keys, 2, 0, other := np.empty((10, 30)))
    assert not np.array_equal(whole, other)


def test_an_odd_number_of_replicates_is_filled():
    odd, even = np.full((3, 5), -1.0), np.empty((4, 5))
    keys = hash_ids(np.arange(5))
    draw_poisson(keys, 1, 0, odd)
    draw_poisson(keys, 1, 0, even)
    assert np.array_equal(odd, even[:3])


def test_folds_and_samples_hold_about_their_share_and_repeats_differ():
    keys = hash_ids(np.arange(50_000))
    source = open_source(np.broadcast_to(0.5, (70_000, 1)))
    first, second = (each.of_keys(keys) for each in assign_folds(source, 5, seed=1, n_repeats=2))
    assert chisquare(np.bincount(first)).pvalue > 1e-4
    assert np.mean(first == second) == pytest.approx(0.2, abs=0.02)
    assert sample_keys(keys, 0.1, seed=1).mean() == pytest.approx(0.1, abs=0.01)
    assert sample_keys(keys, 1.0, seed=1).all()


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(N)))
def test_the_order_of_rows_changes_no_interval(order):
    order = np.array(order)
    first = evaluate(panel_of(np.arange(N)), k=3, keyed=True, n_replicates=60)
    assert_alike(first, evaluate(panel_of(order), k=3, keyed=True, n_replicates=60, threads=1))


@pytest.mark.parametrize(
    "options", [{}, {"rows": "all"}, {"ties": "expected"}, {"auc": True}], ids=str
)
def test_keyed_requires_ids_and_changes_nothing_else(options):
    panel = panel_of(np.arange(N))
    one, other = evaluate(panel, k=3, **options), evaluate(panel, k=3, keyed=True, **options)
    assert one.to_dict() == other.to_dict()
    assert np.array_equal(one.per_row(), other.per_row())


def test_ids_that_count_the_rows_give_the_intervals_of_rows_without_ids():
    numbered = evaluate(Panel(SCORES, LABELS, row_ids=np.arange(N)), k=3)
    assert evaluate(SCORES, LABELS, k=3).to_dict() == numbered.to_dict()


def test_weighted_rows_in_any_order_have_the_same_interval():
    weight = pd.Series(RNG.integers(1, 4, N), index=IDS)
    one = evaluate(panel_of(np.arange(N)), k=3, sample_weight=weight)
    assert_alike(one, evaluate(panel_of(RNG.permutation(N)), k=3, sample_weight=weight))


BETTER = SCORES + 0.2 * LABELS


def margins(scores, order, ids=None):
    return Panel(scores[order], LABELS[order], row_ids=ids, kind="margin")


def test_differences_are_paired_in_any_order_of_the_rows():
    whole, turned = np.arange(N), RNG.permutation(N)
    one = evaluate(margins(BETTER, whole, IDS), k=3)
    straight = one.compare(evaluate(margins(SCORES, whole, IDS), k=3))
    crossed = one.compare(evaluate(margins(SCORES, turned, IDS[turned]), k=3))
    for name in straight.differences:
        mine, theirs = straight[name], crossed[name]
        assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize("other", [{"seed": 7}, {"n_replicates": 0}], ids=str)
def test_rows_that_were_drawn_otherwise_are_drawn_again_as_the_first_were(other):
    whole = np.arange(N)
    one = evaluate(margins(BETTER, whole, IDS), k=3)
    wanted = one.compare(evaluate(margins(SCORES, whole, IDS), k=3))
    second = margins(SCORES, whole, IDS)
    drawn = one.compare(evaluate(second, k=3, **other))
    for name in wanted.differences:
        mine, theirs = wanted[name], drawn[name]
        assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_rows_without_ids_are_refused_where_ids_decide_and_only_there():
    with pytest.raises(InvalidInput, match="drawing rows by keys needs row ids"):
        evaluate(SCORES, LABELS, k=3, keyed=True)
    assert evaluate(SCORES, LABELS, k=3, keyed=True, n_replicates=0)["map"].value > 0


def test_sums_of_parts_add_up():
    keys, values = hash_ids(IDS), RNG.random((N, 3))
    whole, one, other = (BootstrapSums(3, 20, 1) for _ in range(3))
    whole.add_rows(values, keys)
    one.add_rows(values[:150], keys[:150])
    other.add_rows(values[150:], keys[150:])
    one.merge(other)
    assert np.allclose(one.draws, whole.draws, rtol=1e-13)
    assert np.allclose(one.total, whole.total, rtol=1e-13)


def test_replicates_have_the_mean_and_spread_of_resampled_rows():
    values = np.random.default_rng(0).random((5000, 2))
    sums = bootstrap_rows(values, hash_ids(np.arange(5000)), n_replicates=4000, seed=3).draws
    spread = np.sqrt((values**2).sum(axis=0))  # a Poisson number of rows
    np.testing.assert_allclose(sums.mean(axis=0), values.sum(axis=0), atol=4 * spread.max() / 63)
    np.testing.assert_allclose(sums.std(axis=0), spread, rtol=0.05)


def test_columns_of_nothing_stay_nothing():
    values = np.zeros((20, 2))
    values[:, 1] = np.nan
    draws = bootstrap_rows(values, hash_ids(np.arange(20)), n_replicates=5, seed=1).draws
    assert np.array_equal(draws[:, 0], np.zeros(5))
    assert np.isnan(draws[:, 1]).all()


SCRIPT = """
import numpy as np
from oddslip.metrics.bootstrap import bootstrap_rows

values = np.random.default_rng(0).random((40_000, 12)) / 3
keys = np.arange(40_000, dtype=np.uint64)
for threads in (1, 3):
    sums = bootstrap_rows(values, keys, n_replicates=120, seed=1, threads=threads)
    print(sums.draws.tobytes().hex()[:4000])
"""


def test_no_thread_changes_a_bit_of_the_sums():
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")
    lines = [
        line
        for n in ("1", "7")
        for line in subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            check=True,
            env={**os.environ, **dict.fromkeys(names, n)},
        ).stdout.splitlines()
    ]
    assert len(lines) == 4
    assert len(set(lines)) == 1
