"""Rows known by their keys: the same folds, draws and intervals in any order of the rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, poisson

from oddslip import InvalidInput, Panel, evaluate
from oddslip.core.row_keys import hash_ids, sample_keys
from oddslip.kernels.resampling import draw_poisson
from oddslip.metrics.bootstrap import KeyedSums
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
    "told", [{}, {"rows": "all"}, {"ties": "expected"}, {"auc": True}], ids=str
)
def test_values_are_those_of_rows_in_order(told):
    panel = panel_of(np.arange(N))
    one, other = evaluate(panel, k=3, **told), evaluate(panel, k=3, keyed=True, **told)
    for name in one.metrics:
        assert one[name].value == pytest.approx(other[name].value, abs=1e-12)
        width, keyed_width = (each[name].high - each[name].low for each in (one, other))
        assert keyed_width == pytest.approx(width, rel=0.15)
    for name in ("n_rows", "n_evaluated", "n_tied", "mean_auc"):
        assert getattr(one, name) == getattr(other, name)
    assert one.map_worst == pytest.approx(other.map_worst)


def test_weighed_rows_are_drawn_by_keys_too():
    panel, weight = panel_of(np.arange(N)), pd.Series(RNG.integers(1, 4, N), index=IDS)
    one = evaluate(panel, k=3, sample_weight=weight)
    other = evaluate(panel, k=3, sample_weight=weight, keyed=True)
    assert one["map"].value == pytest.approx(other["map"].value, abs=1e-12)
    assert one["map"].low == pytest.approx(other["map"].low, abs=0.01)


def test_two_rankings_are_compared_in_pairs():
    better = Panel(SCORES + 0.2 * LABELS, LABELS, row_ids=IDS, kind="margin")
    worse = Panel(SCORES, LABELS, row_ids=IDS, kind="margin")
    numbered = evaluate(better, k=3).compare(evaluate(worse, k=3))["map"]
    keyed = evaluate(better, k=3, keyed=True).compare(evaluate(worse, k=3, keyed=True))["map"]
    assert keyed.value == pytest.approx(numbered.value)
    assert keyed.low == pytest.approx(numbered.low, abs=0.01)
    with pytest.raises(InvalidInput, match="keys in both or in neither"):
        evaluate(better, k=3, keyed=True).compare(evaluate(worse, k=3))


def test_rows_without_ids_are_refused_where_ids_decide_and_only_there():
    with pytest.raises(InvalidInput, match="drawing rows by keys needs row ids"):
        evaluate(SCORES, LABELS, k=3, keyed=True)
    assert evaluate(SCORES, LABELS, k=3, keyed=True, n_replicates=0)["map"].value > 0


def test_rows_that_were_summed_are_not_shown_one_by_one():
    with pytest.raises(InvalidInput, match="summed and not kept"):
        evaluate(panel_of(np.arange(N)), k=3, keyed=True).per_row()


def test_sums_of_parts_add_up():
    keys, values = hash_ids(IDS), RNG.random((N, 3))
    whole, one, other = (KeyedSums(3, 20, 1) for _ in range(3))
    whole.take(values, keys)
    one.take(values[:150], keys[:150])
    other.take(values[150:], keys[150:])
    one.merge(other)
    assert np.allclose(one.draws, whole.draws, rtol=1e-13)
    assert np.allclose(one.sums, whole.sums, rtol=1e-13)
