"""Weights by name."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oddslip.errors import InvalidInput
from oddslip.learners.weightings import balance_ratios, resolve_weights

POSITIVES = st.lists(st.integers(0, 50), min_size=1, max_size=12)


@given(POSITIVES)
@settings(max_examples=50, deadline=None)
def test_balanced_is_negatives_over_positives_and_one_where_either_is_missing(positives):
    expected = [(50 - p) / p if 0 < p < 50 else 1.0 for p in positives]
    assert resolve_weights("balanced", positives, 50).tolist() == expected


@given(POSITIVES, st.sampled_from(["0.5x", "1x", "2x", "10x", "2.25x"]))
@settings(max_examples=50, deadline=None)
def test_a_multiple_is_that_many_times_balanced(positives, name):
    ratios = balance_ratios(positives, 50)
    assert np.array_equal(resolve_weights(name, positives, 50), ratios * float(name[:-1]))


def test_sqrt_is_the_root_of_balanced():
    assert resolve_weights("sqrt", [10, 2], 50).tolist() == [2.0, np.sqrt(24.0)]


def test_none_is_one_for_every_label():
    assert resolve_weights("none", [3, 0], 9).tolist() == [1.0, 1.0]


def test_common_is_one_weight_the_ratio_of_all_cells():
    assert resolve_weights("common", [10, 0, 20], 50).tolist() == [4.0] * 3


def test_numbers_pass_as_they_are():
    given_weights = np.array([0.5, 7.0])
    told = resolve_weights(given_weights, [1, 1], 9)
    assert told.tolist() == [0.5, 7.0]
    assert told is not given_weights


@pytest.mark.parametrize(
    ("weights", "what"),
    [
        ("heavy", "got 'heavy'"),
        ("x", "got 'x'"),
        ("0x", "got '0x'"),
        ([1.0], "one number per label"),
        ([1.0, 0.0], "got 0 at label 1"),
        ([np.nan, 1.0], "got nan at label 0"),
        (["a", "b"], "weights must be"),
    ],
)
def test_other_weights_are_refused_with_the_reason(weights, what):
    with pytest.raises(InvalidInput, match=what):
        resolve_weights(weights, [1, 1], 9)
