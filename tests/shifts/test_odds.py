"""Odds, their shift and its inversion."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit

from oddslip.core.panel import Panel
from oddslip.errors import InvalidInput
from oddslip.shifts import balanced_weights, check_weights, invert_odds, log_odds, shift_odds

few = settings(max_examples=40, deadline=None)
dtypes = st.sampled_from([np.float32, np.float64])
weights = arrays(np.float64, 4, elements=st.floats(1e-4, 1e4))


def cells(low, high):
    return arrays(np.float64, (5, 4), elements=st.floats(low, high))


@few
@given(margins=cells(-40, 40), w=weights)
def test_inverting_a_shift_of_margins_gives_the_margins_back(margins, w):
    back = invert_odds(shift_odds(margins, w, kind="margin"), w, kind="margin")
    assert_allclose(back, margins, rtol=0, atol=1e-12)


@few
@given(margins=cells(-12, 12), w=weights)
def test_a_round_trip_of_probabilities_keeps_all_the_odds_float64_can_hold(margins, w):
    p = expit(margins)
    shifted = shift_odds(p, w)
    # Rounding q, and p on the way back, moves log-odds by eps / (1 - q) and eps / (1 - p).
    room = 1e-12 + 4 * np.finfo(float).eps * (1 / (1 - shifted) + 1 / (1 - p))
    assert (np.abs(logit(invert_odds(shifted, w)) - logit(p)) <= room).all()


@few
@given(margins=cells(-30, 30), w=weights, dtype=dtypes)
def test_shifting_a_probability_adds_ln_w_to_its_log_odds(margins, w, dtype):
    p = expit(margins).astype(dtype)
    shifted = shift_odds(p, w)
    assert shifted.dtype == dtype
    wide = p.astype(np.float64)
    expected = w * wide / (w * wide + (1 - wide))
    assert_allclose(shifted, expected, rtol=4 * np.finfo(dtype).eps)
    moved = shift_odds(margins.astype(dtype), w, kind="margin")
    assert moved.dtype == dtype
    assert_array_equal(moved, (margins.astype(dtype) + np.log(w)).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_and_one_are_fixed_points_of_every_shift(dtype):
    ends = np.array([[0.0, 1.0]], dtype)
    assert_array_equal(shift_odds(ends, [1e-300, 1e-300]), ends)
    assert_array_equal(shift_odds(ends, [1e300, 1e300]), ends)
    assert_array_equal(invert_odds(ends, [1e300, 1e300]), ends)


@few
@given(margins=cells(-27, 27))
def test_log_odds_agree_with_scipy(margins):
    p = expit(margins)
    assert_allclose(log_odds(p), logit(p), rtol=1e-14, atol=1e-15)


def test_log_odds_are_clipped_alike_at_both_ends():
    low, high = log_odds(np.array([[0.0, 1.0]], np.float32))[0]
    assert low == -high == pytest.approx(np.log(1e-12), abs=1e-11)
    beyond = log_odds([[1e-13, 1 - 1e-13]])[0]
    assert_allclose(beyond, [low, high], rtol=0, atol=1e-12)


def test_margins_pass_through_without_a_copy():
    margins = np.array([[-50.0, 3.0]])
    assert log_odds(margins, kind="margin") is margins


def test_inputs_are_never_written_to():
    p = np.array([[0.2, 0.7]])
    p.flags.writeable = False
    before = p.copy()
    shift_odds(p, [2.0, 3.0])
    invert_odds(p, [2.0, 3.0])
    log_odds(p)
    shift_odds(p, [2.0, 3.0], kind="margin")
    assert_array_equal(p, before)


def test_memory_order_makes_no_difference():
    p = np.random.default_rng(0).random((7, 3))
    assert_array_equal(shift_odds(np.asfortranarray(p), [1, 2, 3]), shift_odds(p, [1, 2, 3]))
    assert_array_equal(log_odds(np.asfortranarray(p)), log_odds(p))


def test_a_panel_brings_its_own_kind():
    panel = Panel([[1.0, 2.0]], kind="margin")
    assert_allclose(shift_odds(panel, [1.0, np.e]), [[1.0, 3.0]])


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_a_weight_that_is_none_is_refused_by_the_name_of_its_label(wrong):
    with pytest.raises(InvalidInput, match=r"positive and finite, got .* at label 'b'"):
        check_weights([1.0, wrong], 2, label_names=["a", "b"])
    with pytest.raises(InvalidInput, match="at label '1'"):
        shift_odds([[0.1, 0.2]], [1.0, wrong])


@pytest.mark.parametrize("wrong", [[1.0], [[1.0, 2.0]], 2.0, ["x", "y"]])
def test_weights_must_hold_one_number_per_label(wrong):
    with pytest.raises(InvalidInput, match="weights must"):
        check_weights(wrong, 2)


def test_a_nan_score_is_refused():
    with pytest.raises(InvalidInput, match="NaN"):
        shift_odds([[0.1, np.nan]], [1.0, 1.0])


def test_balanced_weights_are_negatives_over_positives_and_one_without_either():
    assert_array_equal(balanced_weights([1, 5, 0, 10], 10), [9.0, 1.0, 1.0, 1.0])
    with pytest.raises(InvalidInput, match="between 0 and n_rows=3"):
        balanced_weights([4], 3)
