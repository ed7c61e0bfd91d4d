"""Trees laid out for scoring give LightGBM's sums to the last bit."""

from __future__ import annotations

from copy import deepcopy

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from oddslip.adapters.forest import LAY_AFTER, Forests, lay_forest
from oddslip.learners import OneVsRest, panel_from
from oddslip.learners.backends.lightgbm import BACKEND

QUIET = {"verbosity": -1, "num_threads": 1, "seed": 1, "deterministic": True}
SMALL = {"num_iterations": 10, "min_data_in_leaf": 5}


def sparse_features(rng, n_rows=600, n_features=12):
    X = np.round(rng.normal(size=(n_rows, n_features)), 1)
    X[rng.random(X.shape) < 0.6] = 0.0
    return X


def grow(X, y, rounds=8, **parameters):
    options = {**QUIET, "objective": "binary", "min_data_in_leaf": 5, **parameters}
    categories = options.pop("categorical_feature", "auto")
    return lgb.train(
        options, lgb.Dataset(X, y, params=options, categorical_feature=categories), rounds
    )


def their_sums(boosters, X):
    return np.column_stack([booster.predict(X, raw_score=True) for booster in boosters])


def lay(*boosters):
    return lay_forest([booster.model_to_string() for booster in boosters])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), leaves=st.sampled_from([2, 3, 7, 31, 64]))
def test_sums_have_the_bits_of_lightgbm(seed, leaves):
    rng = np.random.default_rng(seed)
    X = sparse_features(rng)
    noise = rng.normal(size=(3, X.shape[0]))
    boosters = [grow(X, X[:, j] + X[:, 3] + noise[j] > 0.5, num_leaves=leaves) for j in range(3)]
    forest = lay(*boosters)
    rows = sparse_features(rng, 200)
    expected = their_sums(boosters, rows)
    for form in (rows, csr_matrix(rows), np.asfortranarray(rows)):
        np.testing.assert_array_equal(forest.sum_rows(form), expected)
    narrow = rows.astype(np.float32)
    np.testing.assert_array_equal(forest.sum_rows(narrow), their_sums(boosters, narrow))
    np.testing.assert_array_equal(forest.sum_rows(csr_matrix(narrow)), forest.sum_rows(narrow))


def test_a_group_of_labels_grown_together_is_summed_label_by_label():
    rng = np.random.default_rng(3)
    X = sparse_features(rng)
    Y = (X[:, :5] + rng.normal(size=(600, 5)) > 1.0).astype(np.uint8)
    model = OneVsRest("lightgbm", threads=1, parameters=SMALL).fit(X, Y)
    (group,) = model._models
    forest = lay(*group.boosters)
    assert forest.n_labels == 5
    np.testing.assert_array_equal(forest.sum_rows(X), group.boosters[0].predict(X, raw_score=True))


def test_values_at_a_threshold_near_zero_and_without_bound_go_where_lightgbm_sends_them():
    rng = np.random.default_rng(4)
    X = sparse_features(rng)
    booster = grow(X, X[:, 0] - X[:, 1] > 0.3)
    forest = lay(booster)
    edges = np.unique(forest.thresholds)
    odd = [*edges, *np.nextafter(edges, -np.inf), *np.nextafter(edges, np.inf)]
    odd += [0.0, -0.0, 1e-36, -1e-36, 1e-35, -1e-35, 1.1e-35, -1.1e-35, 5e-324]
    odd += [np.inf, -np.inf, np.nan, 1e308, -1e308]
    rows = rng.choice(np.array(odd), size=(3000, X.shape[1]))
    expected = their_sums([booster], rows)
    np.testing.assert_array_equal(forest.sum_rows(rows), expected)
    np.testing.assert_array_equal(forest.sum_rows(csr_matrix(rows)), expected)


def test_a_tree_of_one_leaf_is_its_value():
    X = np.zeros((100, 2))
    booster = grow(X, np.arange(100) < 30)
    forest = lay(booster)
    assert forest.leaves.shape[1] == 1
    np.testing.assert_array_equal(forest.sum_rows(X), their_sums([booster], X))


def test_cells_given_twice_are_added_and_the_rows_stay_as_they_were():
    rng = np.random.default_rng(5)
    X = sparse_features(rng)
    forest = lay(grow(X, X[:, 0] > 0.3))
    twice = csr_matrix((np.array([0.2, 0.3]), np.array([0, 0]), np.array([0, 2])), shape=(1, 12))
    once = np.zeros((1, 12))
    once[0, 0] = 0.5
    np.testing.assert_array_equal(forest.sum_rows(twice), forest.sum_rows(once))
    assert twice.nnz == 2


def with_missing(X):
    holed = X.copy()
    holed[::7, 0] = np.nan
    return holed


@pytest.mark.parametrize(
    ("features", "parameters"),
    [
        (with_missing, {}),
        (lambda X: X, {"zero_as_missing": True}),
        (lambda X: np.abs(np.round(X)), {"categorical_feature": [0], "min_data_per_group": 1}),
        (lambda X: X, {"num_leaves": 65, "min_data_in_leaf": 1}),
        (lambda X: X, {"linear_tree": True}),
        (lambda X: X, {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1}),
    ],
    ids=["missing", "zero is missing", "categories", "65 leaves", "linear leaves", "averages"],
)
def test_trees_it_does_not_know_are_left_to_lightgbm(features, parameters):
    rng = np.random.default_rng(6)
    X = features(sparse_features(rng))
    truth = (np.nan_to_num(X[:, 0]) + X[:, 1] + rng.normal(size=600) > 0.4).astype(float)
    assert lay(grow(X, truth, **parameters)) is None


@pytest.mark.parametrize("mode", ["grouped", "exact"])
def test_scoring_on_past_the_first_thousand_rows_changes_no_bit(mode):
    rng = np.random.default_rng(7)
    X = sparse_features(rng)
    Y = (X[:, :4] + rng.normal(size=(600, 4)) > 1.0).astype(np.uint8)
    model = OneVsRest("lightgbm", threads=1, parameters=SMALL, mode=mode).fit(X, Y)
    (group,) = model._models
    rows = sparse_features(rng, LAY_AFTER)
    fresh = BACKEND.load(BACKEND.dump(group))
    first = BACKEND.predict_margin(fresh, rows[: LAY_AFTER - 1])
    assert fresh.forest is None
    rest = BACKEND.predict_margin(fresh, rows[LAY_AFTER - 1 :])
    assert fresh.forest is not None
    expected = their_sums(group.boosters, rows) + group.starts
    np.testing.assert_array_equal(np.vstack([first, rest]), expected)
    np.testing.assert_array_equal(BACKEND.predict_margin(fresh, rows), expected)
    np.testing.assert_array_equal(BACKEND.predict_margin(deepcopy(fresh), rows), expected)


def test_missing_values_in_training_are_scored_by_lightgbm_for_ever():
    rng = np.random.default_rng(8)
    X = with_missing(sparse_features(rng))
    Y = (np.nan_to_num(X[:, :2]) + rng.normal(size=(600, 2)) > 1.0).astype(np.uint8)
    model = OneVsRest("lightgbm", threads=1, parameters=SMALL).fit(X, Y)
    (group,) = model._models
    for _ in range(3):
        margins = BACKEND.predict_margin(group, X)
    assert group.forest is None
    np.testing.assert_array_equal(margins, their_sums(group.boosters, X) + group.starts)


def test_a_list_of_boosters_is_scored_together_to_the_same_bits():
    rng = np.random.default_rng(9)
    X = sparse_features(rng)
    boosters = [grow(X, X[:, j] + rng.normal(size=600) > 0.5, rounds=3 + j % 2) for j in range(5)]
    rows = sparse_features(rng, LAY_AFTER)
    expected = their_sums(boosters, rows)
    np.testing.assert_array_equal(lay(*boosters).sum_rows(rows), expected)
    for form in (rows, csr_matrix(rows)):
        np.testing.assert_array_equal(panel_from(boosters, form).scores, expected)
        few = panel_from(boosters, form, batch_rows=100).scores
        np.testing.assert_array_equal(few, expected)


def test_unsupported_boosters_share_a_list_with_others():
    rng = np.random.default_rng(10)
    X = sparse_features(rng, LAY_AFTER)
    plain, holed = grow(X, X[:, 0] > 0.4), grow(with_missing(X), X[:, 1] > 0.4)
    constant = lgb.LGBMClassifier(verbosity=-1).fit(X, np.r_[1, np.zeros(LAY_AFTER - 1)])
    scores = panel_from([plain, holed, constant, plain], X).scores
    np.testing.assert_array_equal(scores[:, :2], their_sums([plain, holed], X))
    np.testing.assert_array_equal(scores[:, 3], scores[:, 0])


def test_rows_that_are_few_or_no_plain_numbers_are_left_to_lightgbm():
    rng = np.random.default_rng(11)
    X = sparse_features(rng, LAY_AFTER)
    forests = Forests({3: grow(X, X[:, 0] > 0.4)})
    assert list(forests.sum_rows(X)) == [3]
    assert forests.sum_rows(X[:-1]) == {}
    assert forests.sum_rows(X.astype(np.float16)) == {}
