"""Step budgets, caps and leaves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from oddslip.errors import InvalidInput
from oddslip.shifts import (
    SATURATED_MARGIN,
    largest_unsaturating_cap,
    leaf_saturation_weight,
    leaf_value,
    over_correction,
    smallest_admitting_cap,
    step_budget,
    unrealizable,
)

few = settings(max_examples=60, deadline=None)
weights = st.lists(st.floats(1e-5, 1e5), min_size=1, max_size=6)
rounds = st.integers(1, 2000)
rates = st.floats(1e-3, 1.0)


def test_the_budget_is_rounds_times_rate_times_cap():
    assert step_budget(200, 0.05, 0.5) == pytest.approx(5.0)


@pytest.mark.parametrize("none", [None, 0, 0.0])
def test_without_a_cap_there_is_no_bound(none):
    budget = step_budget(60, 0.05, none)
    assert budget == np.inf
    assert not unrealizable([1e9, 1e-9], budget).any()
    assert_array_equal(over_correction([1e9], budget), [0.0])


def test_what_lies_beyond_the_budget_is_unrealizable_by_as_much():
    w = np.exp([0.5, 1.5, -0.5, -1.5])
    assert unrealizable(w, 1.0).tolist() == [False, True, False, True]
    assert_allclose(over_correction(w, 1.0), [0, 0.5, 0, 0.5], atol=1e-15)


@few
@given(w=weights, rounds=rounds, rate=rates)
def test_the_smallest_admitting_cap_admits_and_a_smaller_one_does_not(w, rounds, rate):
    cap = smallest_admitting_cap(w, rounds, rate)
    if cap == 0:  # every weight is 1; as a cap, 0 would mean none
        assert np.allclose(w, 1)
        return
    assert not unrealizable(w, step_budget(rounds, rate, cap)).any()
    assert unrealizable(w, step_budget(rounds, rate, cap * (1 - 1e-12))).any()


@few
@given(prior=st.lists(st.floats(1e-6, 1 - 1e-6), min_size=1, max_size=6), rounds=rounds, rate=rates)
def test_the_largest_unsaturating_cap_stays_below_the_margin_and_a_larger_one_does_not(
    prior, rounds, rate
):
    cap = largest_unsaturating_cap(prior, rounds, rate)
    start = np.log(max(prior) / (1 - max(prior)))
    assert start + step_budget(rounds, rate, cap) < SATURATED_MARGIN
    assert start + step_budget(rounds, rate, cap * (1 + 1e-9)) >= SATURATED_MARGIN - 1e-12


def test_a_label_that_starts_saturated_leaves_no_cap_and_one_without_positives_any():
    assert largest_unsaturating_cap([0.5, 1.0], 60, 0.05) == 0
    assert largest_unsaturating_cap([0.9], 60, 0.05, margin=1.0) == 0
    assert largest_unsaturating_cap([0.0], 60, 0.05) == np.inf


def test_leaves_broadcast():
    assert_allclose(leaf_value([1, 0, 5], [9, 9, 0], 9.0), [0.5, 0.0, 1.0])
    assert_allclose(leaf_saturation_weight([1, 2], [8, 8], 0.5), [16.0, 8.0])


def test_what_is_no_budget_is_refused():
    for wrong in (
        lambda: step_budget(0, 0.1, 1),
        lambda: step_budget(5, 0.0, 1),
        lambda: step_budget(5, 0.1, -1),
        lambda: step_budget(5, 0.1, np.nan),
        lambda: unrealizable([1.0], -1.0),
        lambda: unrealizable([0.0], 1.0),
        lambda: smallest_admitting_cap([], 5, 0.1),
        lambda: largest_unsaturating_cap([1.5], 5, 0.1),
        lambda: leaf_value(0, 0, 1.0),
        lambda: leaf_value(-1, 5, 1.0),
        lambda: leaf_saturation_weight(0, 5, 0.1),
    ):
        with pytest.raises(InvalidInput):
            wrong()
