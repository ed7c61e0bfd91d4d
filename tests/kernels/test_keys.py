"""Keys keep the order of scores, and put everything invalid above the limit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oddslip.kernels.keys import LIMITS, UNSIGNED, keys_of, largest_key, scores_of

FLOATS = {np.float32: 32, np.float64: 64}


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from([np.float32, np.float64]))
def test_margins_keep_their_order_and_come_back(data, dtype):
    finite = st.floats(allow_nan=False, allow_infinity=False, width=FLOATS[dtype])
    scores = np.array([data.draw(st.lists(finite, min_size=1, max_size=30))], dtype)
    keys = keys_of(scores, "margin")
    less = scores[0][:, None] < scores[0][None, :]
    np.testing.assert_array_equal(less, keys[0][:, None] < keys[0][None, :])
    np.testing.assert_array_equal(scores_of(keys, "margin"), scores)
    assert keys.max() <= LIMITS[keys.dtype, "margin"]


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from([np.float32, np.float64]))
def test_probabilities_are_their_own_keys(data, dtype):
    unit = st.floats(0, 1, width=FLOATS[dtype]).map(abs)
    scores = np.array([data.draw(st.lists(unit, min_size=1, max_size=30))], dtype)
    keys = keys_of(scores, "probability")
    assert np.shares_memory(keys, scores)
    less = scores[0][:, None] < scores[0][None, :]
    np.testing.assert_array_equal(less, keys[0][:, None] < keys[0][None, :])
    assert keys.max() <= LIMITS[keys.dtype, "probability"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_every_invalid_cell_has_a_key_above_the_limit(dtype, kind, sign, value):
    cell = np.copysign(np.array([[value]], dtype), dtype(sign))
    limit = LIMITS[UNSIGNED[np.dtype(dtype)], kind]
    assert int(keys_of(cell, kind)[0, 0]) > limit


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_next_float_outside_the_unit_interval_is_above_the_limit(dtype):
    limit = LIMITS[UNSIGNED[np.dtype(dtype)], "probability"]
    for outside in (np.nextafter(dtype(1), dtype(2)), np.nextafter(dtype(0), dtype(-1))):
        assert int(keys_of(np.array([[outside]], dtype), "probability")[0, 0]) > limit
    assert int(largest_key(keys_of(np.array([[0.25, 1.0]], dtype), "probability"))) == limit


def test_both_zeros_of_a_margin_share_a_key():
    for dtype in (np.float32, np.float64):
        keys = keys_of(np.array([[0.0, -0.0]], dtype), "margin")
        assert keys[0, 0] == keys[0, 1]
