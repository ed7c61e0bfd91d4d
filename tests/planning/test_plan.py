"""What a plan says before training, against the formulas and against what then happens."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import oddslip
from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.planning import plan

PAIR = synthetic_pair(1500, 25, seed=3)
COUNTS = PAIR.labels.sum(axis=0)
BOOSTER = {"rounds": 60, "learning_rate": 0.05}


def test_labels_in_any_form_and_their_counts_plan_alike(tmp_path):
    sp.save_npz(tmp_path / "y.npz", sp.csr_array(PAIR.labels.astype(np.int8)))
    lists = [np.flatnonzero(row).tolist() for row in PAIR.labels]
    wanted = plan(counts=COUNTS, n_rows=1500, **BOOSTER).to_dict()
    for labels in (PAIR.labels, sp.csr_array(PAIR.labels), lists, tmp_path / "y.npz"):
        assert plan(labels, **BOOSTER).to_dict() == wanted


def test_balanced_weights_are_negatives_over_positives():
    found = plan(PAIR.labels, **BOOSTER)
    assert np.allclose(found.weights, (1500 - COUNTS) / COUNTS)
    assert np.allclose(found.intended, np.log(found.weights))
    assert np.allclose(plan(PAIR.labels, weights="sqrt", **BOOSTER).intended, found.intended / 2)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 499), min_size=1, max_size=8),
    st.integers(1, 500),
    st.floats(0.001, 1),
    st.floats(0, 5),
)
def test_a_label_is_beyond_the_budget_exactly_if_its_shift_is(counts, rounds, rate, cap):
    found = plan(counts=counts, n_rows=500, rounds=rounds, learning_rate=rate, max_delta_step=cap)
    assert found.capped == (cap > 0)
    assert np.array_equal(found.unrealizable, np.abs(found.intended) > found.budget)
    assert np.array_equal(found.unrealizable, found.over_correction > 0)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=2, max_size=8, unique=True))
def test_the_two_caps_do_what_they_say(counts):
    found = plan(counts=counts, n_rows=500, **BOOSTER)
    admitted = plan(counts=counts, n_rows=500, max_delta_step=found.admitting_cap, **BOOSTER)
    assert not admitted.unrealizable.any()
    start = np.log(found.prior / (1 - found.prior)).max()
    assert start + 3.0 * found.unsaturating_cap < 25 * np.log(2)


def test_a_leaf_is_driven_to_its_weighted_frequency():
    found = plan(counts=[10], n_rows=1000, rows_in_leaf=20, **BOOSTER)
    assert found.leaf_value[0] == pytest.approx(99 / (99 + 19))
    assert not found.leaf_saturates.any()
    assert plan(counts=[10], n_rows=1000, weights=1e10, **BOOSTER).leaf_saturates.all()
    assert found.leaf_ratio[0] == pytest.approx(99 * 2.0**-25)


def test_the_what_if_loss_is_that_of_the_ideal_weighted_arm():
    found = plan(PAIR.labels, weights=PAIR.weights, unweighted=PAIR.unweighted, k=5, **BOOSTER)
    before = oddslip.evaluate(PAIR.unweighted, PAIR.labels, k=5, seed=42)
    after = oddslip.evaluate(PAIR.weighted_margin, PAIR.labels, k=5, kind="margin", seed=42)
    assert found.what_if.unweighted.value == pytest.approx(before["map"].value, abs=1e-14)
    assert found.what_if.weighted.value == pytest.approx(after["map"].value, abs=1e-3)
    wanted = before.compare(after)["map"]
    assert found.what_if.loss.value == pytest.approx(wanted.value, abs=1e-3)
    assert found.what_if.loss.low == pytest.approx(wanted.low, abs=2e-3)


def test_counts_and_scores_without_labels_still_tell_the_overlap():
    found = plan(counts=COUNTS, n_rows=1500, unweighted=PAIR.unweighted, k=5, **BOOSTER).what_if
    assert 0 < found.mean_overlap < 5
    assert found.loss is None


def test_unweighted_scores_of_other_rows_bring_their_labels():
    part = (PAIR.unweighted[:300], PAIR.labels[:300])
    found = plan(PAIR.labels, unweighted=part, k=5, **BOOSTER)
    assert found.what_if.n_rows == 300
    with pytest.raises(InvalidInput, match="other rows"):
        plan(PAIR.labels, unweighted=part[0], k=5, **BOOSTER)


def test_a_common_weight_is_recommended_as_it_is():
    for weights in ("none", 5.0):
        found = plan(PAIR.labels, weights=weights, unweighted=PAIR.unweighted, k=5, **BOOSTER)
        assert found.recommendation.startswith("Train as planned")
        assert found.what_if.loss.value == 0
        assert found.what_if.share_changed == 0


def test_label_specific_weights_are_advised_against_with_their_price():
    found = plan(PAIR.labels, unweighted=PAIR.unweighted, k=5, **BOOSTER)
    assert found.recommendation.startswith("Train without label-specific weights")
    assert f"{found.what_if.loss.value:.4f}" in found.recommendation


def test_a_recommendation_is_that_of_the_numbers_beside_it():
    early = plan(PAIR.labels, **BOOSTER)
    common = replace(early, weights=np.full_like(early.weights, 3.0))
    assert common.recommendation.startswith("Train as planned: the weight 3 is common")


def test_the_advice_on_the_cap_fits_the_window():
    open_window = plan(counts=[500, 10], n_rows=1000, **BOOSTER)
    assert open_window.admitting_cap < open_window.unsaturating_cap
    assert "set one" in open_window.recommendation
    inside = plan(counts=[500, 10], n_rows=1000, max_delta_step=2, **BOOSTER)
    assert "is right" in inside.recommendation
    weights = [1.0, 1e9]
    closed = plan(counts=[500, 10], n_rows=1000, weights=weights, **BOOSTER)
    assert closed.admitting_cap > closed.unsaturating_cap
    assert "no cap" in closed.recommendation
    short = plan(counts=[500, 10], n_rows=1000, weights=weights, max_delta_step=1, **BOOSTER)
    assert "leaves 1 label short" in short.recommendation


def test_the_json_is_plain_and_versioned():
    told = plan(PAIR.labels, unweighted=PAIR.unweighted, k=5, **BOOSTER).to_dict()
    told = json.loads(json.dumps(told, allow_nan=False))
    assert told["schema"] == "oddslip.plan/1"
    assert told["budget"] is None
    assert told["capped"] is False
    assert {len(column) for column in told["labels"].values()} == {25}


def test_the_frame_has_a_line_per_label():
    pytest.importorskip("pandas")
    assert len(plan(PAIR.labels, **BOOSTER).to_frame()) == 25


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, "either labels or counts"),
        ({"labels": PAIR.labels, "counts": COUNTS}, "either labels or counts"),
        ({"counts": COUNTS}, "number of rows"),
        ({"labels": PAIR.labels, "n_rows": 3}, "n_rows with counts"),
        ({"counts": [0.5], "n_rows": 3}, "whole numbers"),
        ({"counts": [5], "n_rows": 3}, "between 0 and n_rows"),
        ({"labels": PAIR.labels, "weights": "heavy"}, "weights must be"),
        ({"labels": PAIR.labels, "weights": [1.0]}, "weights must hold"),
        ({"labels": PAIR.labels, "rounds": 0}, "rounds must be"),
        ({"labels": PAIR.labels, "max_delta_step": -1}, "max_delta_step must be"),
        ({"labels": PAIR.labels, "rows_in_leaf": 0}, "rows_in_leaf must be"),
        ({"labels": PAIR.labels, "unweighted": PAIR.unweighted, "k": 99}, "k must be"),
        ({"labels": PAIR.labels, "label_names": ["a"]}, "label_names must hold"),
    ],
)
def test_bad_input_is_refused(told, message):
    with pytest.raises(InvalidInput, match=message):
        plan(**BOOSTER | told)


def test_a_plan_says_whether_the_inversion_can_be_exact():
    bounds = plan(PAIR.labels, max_delta_step=0.1, **BOOSTER)
    assert bounds.inversion.gap == 2 * bounds.budget
    assert bounds.inversion.can_be_exact == (np.abs(bounds.intended).max() <= 2 * bounds.budget)
    assert bounds.to_dict()["inversion"]["spread"] == 4 * bounds.budget
    assert "inverting by ln w" in str(bounds)
    assert plan(PAIR.labels, **BOOSTER).inversion.can_be_exact


def test_a_flood_is_warned_of():
    rare = [3, 4, 5, 6, 8, 10] * 40
    early = plan(counts=rare, n_rows=4000, rounds=100, learning_rate=0.1, k=5)
    assert early.floods
    assert f"flood is {early.flood:.2f}" in early.recommendation
    capped = plan(counts=rare, n_rows=4000, rounds=100, learning_rate=0.1, k=5, max_delta_step=0.5)
    assert capped.flood < early.flood
    common = plan(counts=rare, n_rows=4000, rounds=100, learning_rate=0.1, k=5, weights="none")
    assert common.flood == 0
    assert not common.floods
    assert "flood" not in common.recommendation
