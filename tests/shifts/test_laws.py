"""The statements of the paper's section 2, each as a law over drawn cases."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, logit

from oddslip.shifts import (
    flips,
    invert_odds,
    leaf_saturation_weight,
    leaf_value,
    over_correction,
    realized_shift,
    shift_odds,
    step_budget,
    unrealizable,
    what_if,
)

few = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)
shares = st.floats(0.001, 0.999)
weight = st.floats(1e-3, 1e3)

# Slopes in q of two strictly proper losses, for a positive and for a negative.
SLOPES = {
    "log": (lambda q: -1 / q, lambda q: 1 / (1 - q)),
    "squared": (lambda q: -2 * (1 - q), lambda q: 2 * q),
}


def order(scores):
    return np.argsort(-scores, axis=1, kind="stable")


def draw_margins(rng, n_rows=30, n_labels=6):
    return rng.normal(-1, 2, (n_rows, n_labels))


# Proposition: odds shift, after Elkan.


@few
@given(p=shares, w=weight, loss=st.sampled_from(sorted(SLOPES)))
def test_odds_shift_the_minimizer_of_a_weighted_proper_loss_has_its_odds_times_the_weight(
    p, w, loss
):
    positive, negative = SLOPES[loss]
    least = 1e-9
    q = brentq(lambda q: w * p * positive(q) + (1 - p) * negative(q), least, 1 - least, xtol=1e-15)
    assert_allclose(shift_odds([[p]], [w])[0, 0], q, rtol=1e-9)
    assert logit(q) == pytest.approx(logit(p) + np.log(w), abs=1e-6)


@few
@given(p=st.tuples(shares, shares), w=st.tuples(weight, weight))
def test_odds_shift_a_pair_is_reversed_exactly_under_the_flip_condition(p, w):
    high, low = logit(max(p)), logit(min(p))
    gap, pull = high - low, np.log(w[1]) - np.log(w[0])
    assume(gap > 1e-9 and abs(gap - pull) > 1e-9)
    shifted = shift_odds([[high, low]], w, kind="margin")[0]
    assert (shifted[0] < shifted[1]) == (gap < pull) == flips(high, low, *w)


# Corollary (a), (b), (c).


@few
@given(seed=seeds, w=weight, dtype=st.sampled_from([np.float32, np.float64]))
def test_a_weight_common_to_all_labels_never_changes_the_order(seed, w, dtype):
    margins = draw_margins(np.random.default_rng(seed)).astype(dtype)
    common = np.full(6, w)
    # Rounding may tie two cells but must never invert them.
    plain = np.take_along_axis(shift_odds(margins, common, kind="margin"), order(margins), axis=1)
    assert (np.diff(plain, axis=1) <= 0).all()
    for scores, kind in ((margins, "margin"), (expit(margins), "probability")):
        result = what_if(scores, common, k=6, kind=kind)
        assert_array_equal(result.ranking, order(scores))
        assert (result.mean_overlap, result.share_changed) == (6, 0)


@few
@given(seed=seeds)
def test_the_what_if_equals_weighted_training_of_a_learner_that_realizes_the_shift(seed):
    rng = np.random.default_rng(seed)
    n_cells, n_labels = 5, 6  # a row falls into one of five cells, each with its own parameter
    positives = rng.integers(1, 40, (n_cells, n_labels))
    negatives = rng.integers(1, 400, (n_cells, n_labels))
    w = np.exp(rng.normal(0, 2, n_labels))
    unweighted = positives / (positives + negatives)
    weighted = w * positives / (w * positives + negatives)
    close = np.diff(np.sort(logit(weighted), axis=1), axis=1)
    assume((close > 1e-9).all())
    assert_array_equal(what_if(unweighted, w, k=n_labels).ranking, order(weighted))


@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_the_what_if_equals_a_weighted_logistic_fit_with_a_parameter_per_cell(seed):
    rng = np.random.default_rng(seed)
    cell = rng.integers(0, 3, 300)
    x = np.eye(3)[cell]
    y = rng.random((300, 4)) < expit(rng.normal(-1, 1, (3, 4)))[cell]
    counts = x.T @ y
    assume(((counts > 0) & (counts < x.sum(axis=0)[:, None])).all())
    w = np.exp(rng.normal(0, 1.5, 4))

    def fit(y, w):
        """Weighted logistic regression by a general optimizer."""

        def loss(theta):
            margin = x @ theta
            value = -np.where(y, w * log_expit(margin), log_expit(-margin)).sum()
            slope = np.where(y, -w * expit(-margin), expit(margin))
            return value, x.T @ slope

        return minimize(loss, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-9}).x

    unweighted, weighted = (
        np.column_stack([fit(y[:, j], v[j]) for j in range(4)]) for v in (np.ones(4), w)
    )
    assert_allclose(weighted, unweighted + np.log(w), atol=1e-5)
    assume((np.diff(np.sort(weighted, axis=1), axis=1) > 1e-4).all())
    assert_array_equal(what_if(unweighted, w, k=4, kind="margin").ranking, order(weighted))


@few
@given(p=st.floats(1e-9, 0.5), w=st.floats(1, 1e3))
def test_a_small_weighted_probability_is_the_weight_times_the_probability(p, w):
    q = shift_odds([[p]], [w])[0, 0]
    assert abs(q - w * p) <= (w * p) ** 2 + 1e-15 * w * p


# Lemma: leaf saturation.


@few
@given(n_pos=st.integers(1, 1000), n_neg=st.integers(1, 10**6), w=st.floats(1e-2, 1e6))
def test_leaf_saturation_the_best_constant_is_the_weighted_frequency(n_pos, n_neg, w):
    rho = leaf_value(n_pos, n_neg, w)

    def loss(margin):
        return -w * n_pos * log_expit(margin) - n_neg * log_expit(-margin)

    at = logit(rho)
    for step in (1e-3, 0.1, 3.0):
        assert loss(at) < min(loss(at - step), loss(at + step))
    assert rho >= 1 - n_neg / (w * n_pos) - 1e-15


@few
@given(
    n_pos=st.integers(1, 1000),
    n_neg=st.integers(1, 10**6),
    eps=st.floats(1e-6, 0.5),
    more=st.floats(1, 100),
)
def test_leaf_saturation_a_leaf_is_within_eps_of_one_from_the_bound_on(n_pos, n_neg, eps, more):
    w = more * leaf_saturation_weight(n_pos, n_neg, eps)
    assert 1 - leaf_value(n_pos, n_neg, w) <= eps
    # The bound is loose by the factor 1 / (1 - eps) and no more.
    short = (1 - eps) * (1 - 1e-6) * leaf_saturation_weight(n_pos, n_neg, eps)
    assert 1 - leaf_value(n_pos, n_neg, short) > eps


# Proposition: the step budget bounds the realized shift.


def boost(rng, start, rounds, rate, cap, n_rows, pull):
    """Margins of a booster: every round adds a clipped leaf value, pulled one way."""
    leaves = rng.normal(pull, 2, (rounds, n_rows)) * cap
    return start + (rate * np.clip(leaves, -cap, cap)).sum(axis=0)


@few
@given(
    seed=seeds,
    prior=st.floats(0.001, 0.9),
    rounds=st.integers(1, 30),
    rate=st.floats(0.01, 0.3),
    cap=st.floats(0.05, 2),
    pull=st.floats(-5, 5),
)
def test_step_budget_bounds_margins_and_the_realized_shift(seed, prior, rounds, rate, cap, pull):
    rng = np.random.default_rng(seed)
    start, budget = logit(prior), step_budget(rounds, rate, cap)
    weighted, unweighted = (boost(rng, start, rounds, rate, cap, 50, x) for x in (pull, 0.0))
    room = budget + 1e-9
    assert np.abs(weighted - start).max() <= room
    assert np.abs(unweighted - start).max() <= room
    assert np.abs(weighted - unweighted).max() <= 2 * room
    b = realized_shift(weighted[:, None], [prior], kind="margin").shift[0]
    if not np.isnan(b):
        assert abs(b) <= room


@few
@given(seed=seeds, prior=st.floats(0.001, 0.3), beyond=st.floats(0.1, 5))
def test_step_budget_the_inversion_overshoots_by_at_least_the_shortfall(seed, prior, beyond):
    budget = step_budget(20, 0.1, 1.0)
    w = np.exp(budget + beyond)
    assert unrealizable([w], budget)[0]
    weighted = boost(np.random.default_rng(seed), logit(prior), 20, 0.1, 1.0, 50, 1.0)
    b = realized_shift(weighted[:, None], [prior], kind="margin").shift[0]
    assert np.log(w) - b >= over_correction([w], budget)[0] - 1e-9


def test_step_budget_is_reached_by_a_booster_that_always_takes_the_full_step():
    start, budget = logit(0.02), step_budget(40, 0.05, 0.7)
    weighted = boost(np.random.default_rng(0), start, 40, 0.05, 0.7, 50, 1e6)
    b = realized_shift(weighted[:, None], [0.02], kind="margin").shift[0]
    assert b == pytest.approx(budget, abs=1e-9)


# Corollary: when the inversion is exact.


@few
@given(seed=seeds)
def test_inversion_is_exact_if_the_residual_is_constant_within_a_row(seed):
    rng = np.random.default_rng(seed)
    unweighted, w = draw_margins(rng), np.exp(rng.normal(0, 2, 6))
    residual = rng.normal(0, 3, (30, 1))
    assume((np.diff(np.sort(unweighted, axis=1), axis=1) > 1e-9).all())
    inverted = invert_odds(unweighted + np.log(w) + residual, w, kind="margin")
    assert_array_equal(order(inverted), order(unweighted))


@few
@given(seed=seeds, extra=st.floats(0.01, 5))
def test_inversion_is_not_exact_if_the_residual_of_one_label_outgrows_a_gap(seed, extra):
    rng = np.random.default_rng(seed)
    unweighted, w = draw_margins(rng, n_rows=1), np.exp(rng.normal(0, 2, 6))
    first, second = order(unweighted)[0, :2]
    residual = np.zeros(6)
    residual[second] = unweighted[0, first] - unweighted[0, second] + extra
    inverted = invert_odds(unweighted + np.log(w) + residual, w, kind="margin")
    assert order(inverted)[0, 0] == second != order(unweighted)[0, 0]


@few
@given(seed=seeds)
def test_a_map_of_stored_probabilities_orders_saturated_cells_the_same_way_in_every_row(seed):
    rng = np.random.default_rng(seed)
    stored = expit(rng.uniform(17.4, 40, (20, 6))).astype(np.float32)
    weights = np.exp(rng.normal(0, 2, 6))
    mapped = stored ** rng.uniform(0.1, 2, 6) * rng.random(6)  # separable, one map per label
    assert len({tuple(row) for row in order(mapped).tolist()}) == 1
    assert_array_equal(invert_odds(stored, weights), stored)


# Remark: shared maps never invert, distinct maps can.


@few
@given(seed=seeds, n_knots=st.integers(1, 12))
def test_shared_maps_never_invert(seed, n_knots):
    rng = np.random.default_rng(seed)
    scores = rng.random((40, 6))
    knots, values = np.sort(rng.random(n_knots)), np.sort(rng.random(n_knots))
    steps = values[np.clip(np.searchsorted(knots, scores) - 1, 0, None)]
    for mapped in (np.interp(scores, knots, values), steps):
        best_first = np.take_along_axis(mapped, order(scores), axis=1)
        assert (np.diff(best_first, axis=1) <= 0).all()


@few
@given(weights=st.tuples(weight, weight), a=st.floats(0.01, 0.99))
def test_distinct_maps_can_invert(weights, a):
    w_low, w_high = sorted(weights)
    assume(w_high > w_low * 1.001)
    # Two continuous maps with g_j(a) < g_k(a): by continuity some b > a still has g_j(b) < g_k(a).
    b = (a + shift_odds([[a]], [w_high / w_low])[0, 0]) / 2
    mapped = shift_odds([[b, a]], [w_low, w_high])[0]
    assert b > a
    assert mapped[0] < mapped[1]


# Remark: dead-label takeover.


@few
@given(seed=seeds, n_dead=st.integers(0, 8), k=st.integers(1, 8), ceiling=st.floats(0.05, 0.9))
def test_dead_labels_above_the_largest_calibrated_value_take_min_m_k_slots(
    seed, n_dead, k, ceiling
):
    rng = np.random.default_rng(seed)
    dead = rng.permutation(8)[:n_dead]
    raw = rng.uniform(ceiling + 1e-6, 1, (25, 8))
    mapped = ceiling * rng.random((25, 8))  # what maps bounded by the ceiling can return
    mapped[:, dead] = raw[:, dead]
    ranking = what_if(mapped, np.ones(8), k=k).ranking
    assert_array_equal(np.isin(ranking, dead).sum(axis=1), min(n_dead, k))
    # The identity is to blame: with their priors, all below any calibrated value, they take none.
    mapped[:, dead] = 0.0
    ranking = what_if(mapped, np.ones(8), k=k).ranking
    assert_array_equal(np.isin(ranking, dead).sum(axis=1), max(0, k - (8 - n_dead)))
