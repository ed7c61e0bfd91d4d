"""The synthetic pair keeps the laws that later features are measured against."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2

from oddslip.datasets import SyntheticPair, synthetic_pair
from oddslip.errors import InvalidInput

EVERYTHING = [field.name for field in fields(SyntheticPair)]
TRUTH = ("marginals", "labels", "unweighted_margin", "calibration", "prior", "dead")
KNOBS = {"realized": 0.3, "cap": 0.5, "noise": 1.0, "saturate": 0.2, "weights": "common"}
few = settings(max_examples=20, deadline=None)


def as_bytes(pair, names):
    return {name: np.asarray(getattr(pair, name)).tobytes() for name in names}


def agreement(labels, probabilities, groups):
    """Chi-square p-value of the positives in each group of cells against their probabilities."""
    p, y = probabilities.ravel(), labels.ravel()
    z2 = [(y[g].sum() - p[g].sum()) ** 2 / (p[g] * (1 - p[g])).sum() for g in groups]
    return chi2.sf(sum(z2), len(z2))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not():
    knobs = {"realized": 0.7, "noise": 0.3, "saturate": 0.01, "n_dead": 2}
    first, again, other = (synthetic_pair(300, 9, seed=seed, **knobs) for seed in (5, 5, 6))
    assert as_bytes(first, EVERYTHING) == as_bytes(again, EVERYTHING)
    for name in ("marginals", "labels", "calibration", "weighted_margin", "weights"):
        assert as_bytes(first, [name]) != as_bytes(other, [name]), name


@pytest.mark.parametrize(("knob", "value"), KNOBS.items())
def test_a_knob_of_the_weighted_arm_leaves_marginals_and_labels_untouched(knob, value):
    plain, turned = (synthetic_pair(300, 9, n_dead=1, **knobs) for knobs in ({}, {knob: value}))
    assert as_bytes(plain, TRUTH) == as_bytes(turned, TRUTH)
    assert not np.array_equal(plain.weighted_margin, turned.weighted_margin)


@few
@given(
    n_rows=st.integers(2, 300),
    n_labels=st.integers(1, 12),
    signal=st.floats(0, 100),
    ends=st.tuples(st.floats(1e-6, 0.99), st.floats(1e-6, 0.99)).map(sorted),
)
def test_every_mean_marginal_equals_its_prevalence(n_rows, n_labels, signal, ends):
    pair = synthetic_pair(n_rows, n_labels, signal=signal, prevalence=tuple(ends))
    means = np.sort(pair.marginals.mean(axis=0))
    assert_allclose(means, np.geomspace(*ends, n_labels), rtol=0, atol=1e-9)


def test_log_odds_spread_by_the_signal_and_share_eight_row_factors():
    margin = synthetic_pair(20000, 30, signal=2.0).unweighted_margin
    assert_allclose(margin.std(axis=0), 2.0, rtol=0.05)
    assert np.linalg.matrix_rank(margin - margin.mean(axis=0), tol=1e-6) == 8


@few
@given(seed=st.integers(0, 2**32), signal=st.floats(0, 5))
def test_a_fully_realized_weight_shifts_every_margin_by_its_logarithm(seed, signal):
    pair = synthetic_pair(150, 8, signal=signal, prevalence=(0.02, 0.3), seed=seed)
    moved = pair.weighted_margin - pair.unweighted_margin
    assert_allclose(moved, np.tile(np.log(pair.weights), (150, 1)), rtol=0, atol=1e-12)
    assert np.abs(pair.shift).max() > 0.5


def test_a_weight_realized_in_part_shifts_each_label_by_its_share():
    assert_allclose(synthetic_pair(9, 2, realized=[0.2, 0.5], weights=[np.e] * 2).shift, [0.2, 0.5])


def test_a_weight_not_realized_leaves_the_arms_equal_to_the_truth():
    pair = synthetic_pair(300, 9, realized=0.0)
    assert pair.weights.max() > 2
    assert_array_equal(pair.weighted_margin, pair.unweighted_margin)
    assert_array_equal(pair.weighted, pair.marginals.astype(np.float32))


@few
@given(cap=st.floats(0.01, 3.0))
def test_the_cap_bounds_the_shift_and_leaves_smaller_shifts_alone(cap):
    pair = synthetic_pair(50, 5, weights=np.exp([-4.0, -0.005, 0.0, 0.005, 4.0]), cap=cap)
    assert_allclose(pair.shift, [-cap, -0.005, 0.0, 0.005, cap], rtol=1e-12)
    moved = pair.weighted_margin - pair.unweighted_margin
    assert_allclose(moved, np.tile(pair.shift, (50, 1)), rtol=0, atol=1e-12)


def test_noise_has_the_size_asked_for_and_a_fixed_stream():
    quiet, small, large = (synthetic_pair(noise=s).weighted_margin for s in (0.0, 0.5, 1.0))
    assert np.std(small - quiet) == pytest.approx(0.5, rel=0.03)
    assert_allclose(2 * (small - quiet), large - quiet, rtol=0, atol=1e-12)


@few
@given(saturate=st.floats(0, 0.99), noise=st.sampled_from([0.0, 2.0]))
def test_saturated_cells_tie_as_probabilities_and_keep_their_order_as_margins(saturate, noise):
    plain, pair = (synthetic_pair(120, 7, noise=noise, saturate=s) for s in (0.0, saturate))
    before, after, ones = plain.weighted_margin, pair.weighted_margin, pair.weighted == 1.0
    assert plain.weighted.max() < 1
    assert abs(ones.sum() - saturate * ones.size) <= 1
    assert_array_equal(ones, after >= 20)
    assert_array_equal(after[~ones], before[~ones])
    assert_array_equal(np.argsort(after, None), np.argsort(before, None))
    assert np.unique(after).size == np.unique(before).size == ones.size


def test_the_saturated_share_is_exact_when_margins_tie():
    assert (synthetic_pair(100, 4, signal=0.0, saturate=0.1).weighted == 1.0).sum() == 40


def test_no_cell_is_lowered_when_some_saturate_by_themselves():
    pairs = (synthetic_pair(100, 2, weights=[1, np.exp(40)], saturate=s) for s in (0, 0.05))
    before, after = (pair.weighted_margin for pair in pairs)
    assert before.max() > 30
    assert (after >= before).all()
    assert_array_equal(np.argsort(after, None), np.argsort(before, None))


def test_a_dead_label_loses_its_calibration_positives_and_no_other():
    plain, pair = (synthetic_pair(4000, 12, prevalence=(0.02, 0.2), n_dead=n) for n in (0, 4))
    assert pair.calibration.sum() == 1200
    removed = pair.calibration[:, None] & (np.arange(12) >= 8)
    assert pair.dead.tolist() == [8, 9, 10, 11]
    assert plain.labels[removed].any()
    assert not pair.labels[removed].any()
    assert_array_equal(pair.labels[~removed], plain.labels[~removed])


def test_a_common_weight_keeps_the_order_of_every_row_and_balanced_weights_do_not():
    common, balanced = (synthetic_pair(1000, 20, weights=w) for w in ("common", "balanced"))
    share = common.prior.mean()  # of all cells together
    assert_allclose(common.weights, (1 - share) / share, rtol=1e-12)
    truth = np.argsort(common.unweighted_margin, axis=1)
    assert_array_equal(np.argsort(common.weighted_margin, axis=1), truth)
    assert (np.argsort(balanced.weighted_margin, axis=1) != truth).any(axis=1).mean() > 0.5


def test_balanced_weights_are_negatives_over_positives_of_a_draw_of_their_own():
    pair = synthetic_pair(1000, 20, prevalence=(0.02, 0.3))
    assert_allclose(pair.weights, (1 - pair.prior) / pair.prior, rtol=1e-12)
    deviation = np.sqrt((pair.marginals * (1 - pair.marginals)).sum(axis=0)) / 1000
    assert (np.abs(pair.prior - pair.marginals.mean(axis=0)) < 4 * deviation).all()
    assert not np.array_equal(pair.prior, pair.labels.mean(axis=0))


@pytest.mark.parametrize("share", [1e-9, 1 - 1e-9])
def test_a_label_of_one_class_in_the_training_draw_weighs_one(share):
    pair = synthetic_pair(50, 1, prevalence=(share, share))
    assert (pair.prior[0], pair.weights[0]) == (round(share), 1.0)


def test_labels_are_as_frequent_as_their_marginals_say_and_not_as_the_weighted_arm_says():
    pair = synthetic_pair(seed=11)
    by_label = np.arange(pair.labels.size).reshape(pair.labels.shape).T
    by_probability = np.array_split(np.argsort(pair.marginals, None), 20)
    for groups in (by_label, by_probability):
        assert 0.001 < agreement(pair.labels, pair.marginals, groups) < 0.999
        assert agreement(pair.labels, pair.weighted.astype(np.float64), groups) < 1e-6


def test_probabilities_in_float64_are_stored_apart_from_the_truth():
    pair = synthetic_pair(20, 8, weights="none", dtype=np.float64)
    assert_array_equal(pair.weighted, pair.marginals)
    assert not np.shares_memory(pair.unweighted, pair.marginals)
    assert repr(pair) == "SyntheticPair(n_rows=20, n_labels=8, n_dead=0, seed=42)"
    assert pair.label_names[7] == "item-007"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_rows", 1, "n_rows must be at least 2, got n_rows=1."),
        ("n_rows", 10.5, "n_rows must be an integer, got n_rows=10.5."),
        ("n_labels", 0, "n_labels must be at least 1, got n_labels=0."),
        ("n_dead", 4, "n_dead must be at most n_labels=3, got n_dead=4."),
        ("prevalence", (0.3, 0.1), "two numbers with 0 < low <= high < 1, got prevalence=(0.3"),
        ("signal", float("nan"), "signal must be between 0 and 100, got signal=nan."),
        ("noise", -0.5, "noise must be finite and at least 0, got noise=-0.5."),
        ("saturate", 1.0, "saturate must be at least 0 and below 1, got saturate=1.0."),
        ("cap", 0.0, "cap must be positive and finite, or None for no cap, got cap=0.0."),
        ("dtype", np.int64, "dtype must be numpy.float32 or numpy.float64, got dtype="),
        ("realized", 1.5, "1 or n_labels=3 numbers between 0 and 1, got realized=1.5."),
        ("realized", [1, 1], "1 or n_labels=3 numbers between 0 and 1, got realized=[1, 1]."),
        ("weights", "heavy", "or in a file, got 'heavy', and there is no such file."),
        ("weights", [1, 2], "weights must hold one number per label, n_labels=3, got shape (2,)."),
        ("weights", [1, 0, 2], "weights must be positive and finite, got 0 at label '1'."),
        ("weights", [1, "x", 2], "weights must be numbers, got [1, 'x', 2]."),
    ],
)
def test_a_bad_argument_is_refused_with_what_must_hold_and_what_came(name, value, message):
    with pytest.raises(InvalidInput) as error:
        synthetic_pair(**{"n_rows": 20, "n_labels": 3, name: value})
    assert message in str(error.value)
