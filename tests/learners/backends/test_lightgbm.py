"""LightGBM: the grouped mode grows the trees of the plain loop, the exact mode is that loop."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

lgb = pytest.importorskip("lightgbm")

from scipy import sparse  # noqa: E402

from oddslip.adapters.forest import LAY_AFTER  # noqa: E402
from oddslip.errors import InvalidInput, UnreadableFile  # noqa: E402
from oddslip.learners import MatchedPair, OneVsRest, score_to_file  # noqa: E402
from oddslip.learners.backends.lightgbm import BACKEND  # noqa: E402

N_ROWS, ROUNDS = 1200, 15
PARAMETERS = {"num_iterations": ROUNDS, "num_leaves": 7, "learning_rate": 0.1}


def make_rows(form, seed=0):
    rng = np.random.default_rng(seed)
    if form == "dense":
        X = rng.normal(size=(N_ROWS, 12))
        X[rng.random(X.shape) < 0.05] = np.nan
        cells = np.nan_to_num(X)
    else:
        X = sparse.random(N_ROWS, 60, density=0.1, format=form, random_state=seed)
        X.data = np.ceil(X.data * 6)
        cells = X.toarray()
    margins = cells @ rng.normal(size=(cells.shape[1], 6))
    margins += rng.logistic(size=margins.shape)
    shares = np.array([0.4, 0.1, 0.03, 0.9, 0.2, 0.01])
    Y = margins > [np.quantile(margins[:, j], 1 - share) for j, share in enumerate(shares)]
    return X, Y.astype(np.uint8)


def users_loop(X, Y, weights, cap):
    """What a person writes by hand, with no word on bins or layouts."""
    models = []
    for j in range(Y.shape[1]):
        parameters = {"objective": "binary", "scale_pos_weight": weights[j], "max_delta_step": cap}
        parameters |= {"num_leaves": 7, "learning_rate": 0.1, "verbosity": -1, "num_threads": 1}
        models.append(lgb.train(parameters, lgb.Dataset(X, Y[:, j]), num_boost_round=ROUNDS))
    return models


def trees_of(booster, place=0, together=1):
    """Splits, thresholds and leaf sizes of one label's trees."""
    trees = booster.dump_model()["tree_info"][place::together]

    def walk(node):
        if "leaf_value" in node:
            return node.get("leaf_count")
        split = (node["split_feature"], node["threshold"], node["default_left"])
        return (*split, walk(node["left_child"]), walk(node["right_child"]))

    # A label that is done gets trees of a single leaf while the rest of its group goes on.
    return [walk(tree["tree_structure"]) for tree in trees if tree["num_leaves"] > 1]


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
@pytest.mark.parametrize(("weights", "cap"), [("none", 0), ("balanced", 0), ("10x", 0.3)])
def test_exact_is_the_users_loop_bit_for_bit_and_grouped_grows_the_same_trees(form, weights, cap):
    X, Y = make_rows(form)
    arm = OneVsRest(weights=weights, max_delta_step=cap, parameters=PARAMETERS, threads=2)
    exact = arm.set_params(mode="exact").fit(X, Y)
    by_hand = users_loop(X, Y, exact.weights_, cap)
    expected = np.column_stack([model.predict(X, raw_score=True) for model in by_hand])
    assert np.array_equal(exact.predict_margin(X), expected)

    arm = OneVsRest(weights=weights, max_delta_step=cap, parameters=PARAMETERS, threads=2)
    grouped = arm.fit(X, Y)
    assert len(grouped._groups) == 2
    assert np.abs(grouped.predict_margin(X) - expected).max() <= 1e-12
    for group, model in zip(grouped._groups, grouped._models, strict=True):
        for place, label in enumerate(group):
            trees = trees_of(model.boosters[0], place, group.size)
            assert trees == trees_of(by_hand[label])


def test_how_labels_are_grouped_never_changes_a_bit():
    X, Y = make_rows("csr", seed=3)
    ready = BACKEND.prepare(X, BACKEND.defaults() | PARAMETERS)
    parameters = BACKEND.defaults() | PARAMETERS
    weights = np.array([1.0, 5.0, 40.0, 0.1, 3.0, 100.0])

    def margins(groups):
        return np.column_stack(
            [
                BACKEND.predict_margin(BACKEND.train(ready, Y[:, g], weights[g], parameters, 0), X)
                for g in groups
            ]
        )

    together = margins([[0, 1, 2, 3, 4, 5]])
    assert np.array_equal(together, margins([[0], [1, 2], [3, 4, 5]]))


def test_both_arms_start_from_the_unweighted_label_mean():
    X, Y = make_rows("dense", seed=1)
    # One round with a leaf step capped at next to nothing leaves the start alone.
    parameters = {"num_iterations": 1, "learning_rate": 1.0, "num_leaves": 3}
    mean = Y.mean(axis=0)
    start = np.log(mean / (1 - mean))
    for weights in ("none", "balanced", "10x"):
        for mode in ("grouped", "exact"):
            arm = OneVsRest(weights=weights, max_delta_step=1e-9, mode=mode, parameters=parameters)
            assert np.abs(arm.fit(X, Y).predict_margin(X) - start).max() <= 2e-9


def test_a_leaf_of_a_one_round_model_is_the_newton_step_from_that_mean():
    X = np.repeat([[0.0], [1.0]], 60, axis=0)
    y = np.r_[np.zeros(50), np.ones(10), np.zeros(30), np.ones(30)].astype(np.uint8)[:, None]
    weight, parameters = 7.0, {"num_iterations": 1, "learning_rate": 1.0}
    margins = OneVsRest(weights=[weight], parameters=parameters).fit(X, y).predict_margin(X)
    p = y.mean()
    for rows in (slice(0, 60), slice(60, 120)):
        up, down = y[rows].sum(), 60 - y[rows].sum()
        gradient = down * p - weight * up * (1 - p)
        step = -gradient / (p * (1 - p) * (down + weight * up))
        assert margins[rows.start, 0] == pytest.approx(math.log(p / (1 - p)) + step, rel=1e-6)


def test_a_label_that_stops_splitting_leaves_the_others_of_its_group_alone():
    rng = np.random.default_rng(5)
    X = np.c_[rng.normal(size=(400, 2))]
    Y = np.zeros((400, 3), np.uint8)
    Y[:, 0] = X[:, 0] > 0
    Y[:2, 1] = 1  # too few rows for two leaves of 20 to differ much
    Y[:, 2] = X[:, 1] > 1
    parameters = {**PARAMETERS, "min_gain_to_split": 5.0}
    grouped = OneVsRest(parameters=parameters, threads=1).fit(X, Y)
    exact = OneVsRest(parameters=parameters, mode="exact").fit(X, Y)
    assert np.ptp(exact.predict_margin(X)[:, 1]) == 0
    assert np.abs(grouped.predict_margin(X) - exact.predict_margin(X)).max() <= 1e-12


def make_few_rows():
    """So few rows that no feature can be split into two leaves of 50."""
    X, Y = make_rows("dense")
    return X[:79], Y[:79, :4]


UNSPLITTABLE = {"num_iterations": 5, "min_data_in_leaf": 50}


@pytest.mark.parametrize("mode", ["grouped", "exact"])
@pytest.mark.parametrize("parameters", [{}, {"boost_from_average": False}])
@pytest.mark.parametrize("weights", ["none", "balanced"])
def test_where_no_feature_can_be_split_every_label_predicts_its_mean(mode, parameters, weights):
    X, Y = make_few_rows()
    model = OneVsRest(weights=weights, mode=mode, parameters=UNSPLITTABLE | parameters).fit(X, Y)
    means = [math.log(y.mean() / (1 - y.mean())) for y in Y.T]
    np.testing.assert_allclose(model.predict_margin(X), np.tile(means, (79, 1)), rtol=1e-14)


def test_a_model_without_a_split_is_scored_saved_and_continued_like_any_other(tmp_path):
    X, Y = make_few_rows()
    options = {"parameters": UNSPLITTABLE, "checkpoint": tmp_path / "kept"}
    model = OneVsRest(**options).fit(X, Y)
    margins = model.predict_margin(X)
    model.save(tmp_path / "m.oddmodel")
    assert np.array_equal(OneVsRest.load(tmp_path / "m.oddmodel").predict_margin(X), margins)
    assert np.array_equal(OneVsRest(**options).fit(X, Y).predict_margin(X), margins)
    score_to_file(model, X, tmp_path / "s.npy", kind="margin")
    assert np.array_equal(np.load(tmp_path / "s.npy"), margins)
    many = np.tile(X, (LAY_AFTER // 79 + 1, 1))  # as many rows as get trees laid out anew
    assert np.array_equal(model.predict_margin(many)[-79:], margins)


def test_a_pair_without_a_split_has_two_equal_arms():
    X, Y = make_few_rows()
    pair = MatchedPair(OneVsRest(parameters=UNSPLITTABLE)).fit(X, Y)
    panels = pair.panels(X, Y)
    assert pair.weights_.max() > 1
    assert np.array_equal(panels.weighted.scores, panels.unweighted.scores)


@pytest.mark.parametrize("rounds", [1, 5])
def test_a_start_from_zero_without_a_split_goes_to_the_mean_in_groups_as_alone(rounds):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = X + rng.normal(size=X.shape) * [0.1, 3, 50] > 1
    parameters = {"num_iterations": rounds, "boost_from_average": False, "min_gain_to_split": 20}
    grouped = OneVsRest(parameters=parameters).fit(X, Y).predict_margin(X)
    exact = OneVsRest(parameters=parameters, mode="exact").fit(X, Y).predict_margin(X)
    assert (np.ptp(exact, axis=0) == 0).tolist() == [False, False, True]
    assert np.abs(grouped - exact).max() <= 1e-12


@pytest.mark.parametrize(
    "parameters", [{"feature_fraction": 0.5}, {"boosting": "dart"}, {"extra_trees": True}]
)
def test_what_draws_per_tree_is_refused_in_groups_and_taken_one_by_one(parameters):
    X, Y = make_rows("dense")
    with pytest.raises(InvalidInput, match='Use mode="exact"'):
        OneVsRest(parameters={**PARAMETERS, **parameters}).fit(X, Y)
    OneVsRest(mode="exact", parameters={**PARAMETERS, **parameters, "num_iterations": 2}).fit(X, Y)


def test_bagged_rows_are_the_same_in_groups_as_alone():
    X, Y = make_rows("dense", seed=2)
    parameters = {**PARAMETERS, "bagging_fraction": 0.5, "bagging_freq": 1}
    grouped = OneVsRest(parameters=parameters).fit(X, Y).predict_margin(X)
    exact = OneVsRest(parameters=parameters, mode="exact").fit(X, Y).predict_margin(X)
    assert np.abs(grouped - exact).max() <= 1e-12


def test_parameters_have_many_names_and_one_meaning():
    parameters = BACKEND.canonical({"n_estimators": 3, "eta": 0.5, "min_child_samples": 2})
    assert parameters == {"num_iterations": 3, "learning_rate": 0.5, "min_data_in_leaf": 2}


@pytest.mark.parametrize("key", ["objective", "scale_pos_weight", "n_jobs", "is_unbalance"])
def test_what_one_vs_rest_says_itself_is_refused_among_parameters(key):
    X, Y = make_rows("dense")
    with pytest.raises(InvalidInput, match=key):
        OneVsRest(parameters={key: 1}).fit(X, Y)


@pytest.mark.parametrize("mode", ["grouped", "exact"])
def test_a_group_survives_being_dumped(mode):
    X, Y = make_rows("csr")
    parameters = BACKEND.defaults() | PARAMETERS | {"mode": mode}
    model = BACKEND.train(BACKEND.prepare(X, parameters), Y, np.ones(6), parameters, 0)
    data = BACKEND.dump(model)
    again = BACKEND.load(data)
    assert np.array_equal(BACKEND.predict_margin(again, X), BACKEND.predict_margin(model, X))
    assert BACKEND.dump(again) == data


def test_a_damaged_group_is_refused():
    with pytest.raises(UnreadableFile):
        BACKEND.load(b"not a model")
    with pytest.raises(UnreadableFile):
        BACKEND.load(b'{"starts": [0.0], "lengths": [4]}\ntree')


def test_a_group_fits_its_memory_and_never_vanishes():
    assert BACKEND.group_size(500, 100_000, 10, 40 * 100_000 * 7) == 7
    assert BACKEND.group_size(500, 10**9, 10, 1) == 1
    assert BACKEND.group_size(3, 10, 10, 10**9) == 3


@pytest.mark.parametrize("mode", ["exact", "grouped"])
def test_rare_binary_features_are_filtered_as_in_the_users_loop(mode):
    # LightGBM drops features too rare for a leaf unless told otherwise, and since it estimates
    # the rows of a leaf, dropping them changes the trees.
    rng = np.random.default_rng(4)
    X = (rng.random((300, 60)) < np.geomspace(0.01, 0.2, 60)).astype(float)
    Y = X[:, :4] + X[:, 20:24] + (rng.random((300, 4)) < 0.05) > 0
    model = OneVsRest(weights="balanced", parameters=PARAMETERS, mode=mode, threads=1).fit(X, Y)
    by_hand = users_loop(X, Y, model.weights_, 0.0)
    expected = np.column_stack([one.predict(X, raw_score=True) for one in by_hand])
    assert np.abs(model.predict_margin(X) - expected).max() <= (0.0 if mode == "exact" else 1e-12)
    unfiltered = PARAMETERS | {"feature_pre_filter": False}
    other = OneVsRest(weights="balanced", parameters=unfiltered, mode=mode, threads=1).fit(X, Y)
    assert np.abs(other.predict_margin(X) - expected).max() > 1e-3


FORKED = """
import os, signal, sys
import numpy as np
from oddslip.learners import OneVsRest

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 6))
Y = X[:, :4] + rng.normal(size=(3000, 4)) > 1

def train():
    told = {"num_iterations": 5}
    return OneVsRest(mode=sys.argv[1], threads=2, parameters=told).fit(X, Y).predict_margin(X)

before = train()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if np.array_equal(train(), before) else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("mode", ["grouped", "exact"])
def test_a_process_forked_after_training_trains_the_same_trees(mode):
    process = subprocess.run([sys.executable, "-c", FORKED, mode], check=False, timeout=240)
    assert process.returncode == 0
