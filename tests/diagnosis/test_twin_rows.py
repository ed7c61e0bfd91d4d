"""A twin follows the scores unless its rows are others, however little order saturation leaves."""

from functools import cache

import numpy as np
import pytest

from oddslip.core.panel import Panel
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.diagnosis.comparison import twin_standing
from oddslip.diagnosis.signal import NORMAL, find_likeness
from oddslip.learners import OneVsRest


def saturated(seed, n_rows=1500, n_labels=60):
    """A pair that shares a trace of order within labels, and saturates in a third of its cells."""
    return synthetic_pair(
        n_rows, n_labels, signal=0.5, weights="10x", noise=6.0, saturate=0.35, seed=seed
    )


@cache
def boosted():
    """A boosted pair without a cap, on labels so rare that weighted leaves saturate."""
    rng = np.random.default_rng(0)
    X = (rng.random((3000, 20)) < 0.1) * rng.gamma(1, 1, (3000, 20))
    rate = 1 / (1 + np.exp(9 - 0.9 * X @ rng.normal(size=(20, 15))))
    Y = rng.random(rate.shape) < rate
    scores = [
        OneVsRest("lightgbm", weights=weights, preset="paper-booster", seed=1)
        .fit(X[:1500], Y[:1500])
        .predict_proba(X[1500:])
        for weights in ("none", "10x")
    ]
    return (*scores, Y[1500:])


def shuffle(twin, seed=0):
    return twin[np.random.default_rng(seed).permutation(len(twin))]


@pytest.mark.parametrize("seed", range(10))
def test_a_genuine_twin_of_a_saturated_model_is_not_doubted(seed):
    pair = saturated(seed)
    found = find_likeness((pair.weighted, pair.unweighted), seed=1)
    assert found.mean.high < 0.2  # so little is left of the order
    assert found.follows


@pytest.mark.parametrize("seed", range(10))
def test_a_shuffled_twin_of_a_saturated_model_is_noticed(seed):
    pair = saturated(seed)
    assert not find_likeness((pair.weighted, shuffle(pair.unweighted, seed)), seed=1).follows


def test_a_boosted_twin_is_doubted_only_when_its_rows_are_shuffled():
    unweighted, weighted, labels = boosted()
    told = {"weights": "10x", "k": 3, "n_replicates": 0}
    found = diagnose(weighted, labels, unweighted=unweighted, **told)
    assert found.saturation.share > 0.005
    assert found.likeness.mean.high < 0.2
    assert found.finding("OS206") is None
    shuffled = diagnose(weighted, labels, unweighted=shuffle(unweighted), **told)
    assert shuffled.finding("OS206").severity == "critical"


def test_keys_doubt_a_twin_as_row_numbers_do():
    pair = saturated(3)
    for twin in (pair.unweighted, shuffle(pair.unweighted)):
        told = {"k": 5, "n_replicates": 0}
        by_number = diagnose(pair.weighted, pair.labels, unweighted=twin, **told)
        panel = Panel(pair.weighted, pair.labels, row_ids=np.arange(pair.n_rows))
        by_key = diagnose(panel, unweighted=twin, keyed=True, **told)
        assert by_key.twin_follows == by_number.twin_follows == (twin is pair.unweighted)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_the_reach_of_chance_is_that_of_all_orders_of_the_rows(shape):
    rng = np.random.default_rng(1)
    common = rng.normal(size=(shape[0], 1))  # labels move together, in both
    one, other = (common + rng.normal(size=shape) for _ in range(2))
    drawn = [find_likeness((one, shuffle(other, seed)), seed=1).mean.value for seed in range(2000)]
    found = find_likeness((one, other), seed=1).mean
    assert (found.high - found.value) / NORMAL == pytest.approx(np.std(drawn), rel=0.06)


def test_absent_cells_are_left_out_of_the_comparison_label_by_label():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(2)
    one = rng.normal(size=(80, 6))
    other = one + rng.normal(size=one.shape)
    one[rng.random(one.shape) < 0.2] = np.nan
    other[rng.random(one.shape) < 0.2] = np.nan
    found = find_likeness((one, other), seed=1)
    each = []
    for j in range(6):
        there = ~np.isnan(one[:, j]) & ~np.isnan(other[:, j])
        each.append(spearmanr(one[there, j], other[there, j]).statistic)
    assert found.mean.value == pytest.approx(np.mean(each))


def move_columns(twin, seed=0):
    return twin[:, np.random.default_rng(seed).permutation(twin.shape[1])]


@pytest.mark.parametrize("seed", range(5))
def test_a_twin_with_its_columns_in_another_order_is_noticed(seed):
    pair = synthetic_pair(1500, 30, noise=0.8, seed=seed)
    found = find_likeness((pair.weighted, pair.unweighted), seed=1)
    assert (found.n_moved, found.follows) == (0, True)
    found = find_likeness((pair.weighted, move_columns(pair.unweighted, seed)), seed=1)
    assert found.n_moved > 0.8 * found.n_sought
    assert not found.follows


def test_labels_that_resemble_each_other_are_not_taken_for_moved_ones():
    """Half of the labels have the scores of the others, but for noise."""
    rng = np.random.default_rng(0)
    shared = np.tile(rng.normal(size=(1500, 20)), 2)
    arm, twin = (shared + 0.5 * rng.normal(size=shared.shape) for _ in range(2))
    assert find_likeness((arm, twin), seed=1).follows


def test_a_boosted_twin_is_not_said_to_have_moved_columns():
    unweighted, weighted, _ = boosted()
    assert not find_likeness((weighted, unweighted), seed=1).columns_moved


def test_a_diagnosis_names_moved_columns_and_trusts_the_twin_in_nothing():
    pair = synthetic_pair(2000, 30, noise=0.8, seed=1)
    found = diagnose(
        pair.weighted,
        pair.labels,
        k=5,
        n_replicates=0,
        weights=pair.weights,
        unweighted=move_columns(pair.unweighted),
    )
    assert found.finding("OS206").evidence["n_moved"] > 20
    assert found.finding("OS206").severity == "critical"
    assert not found.twin_follows
    assert twin_standing(found) is None
