"""The boundary: its features against LightGBM itself, its model, its judgement, its page."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit

from experiments.boundary import study, worlds
from experiments.boundary.features import FEATURES, Booster, describe_training
from experiments.boundary.held_out_cells import read_unseen
from experiments.boundary.model import (
    Training,
    fit_boundary,
    judge,
    predicts_well,
    retained_share,
)
from experiments.boundary.page import feature_values, fit_threshold
from experiments.store import CellStore
from oddslip.learners import OneVsRest
from oddslip.shifts.flood import FLOOD_THRESHOLD, first_step

ROOT = Path(__file__).parents[3]


# ------------------------------------------------------------------------------------- the features


@pytest.mark.parametrize("weight", [1.0, 30.0, 5000.0])
@pytest.mark.parametrize("cap", [0.0, 2.0])
@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_the_first_step_is_the_one_that_lightgbm_takes(weight, cap, l2):
    """Twenty rows, one of them positive, against rows without any: the leaf after one round."""
    n_rows, in_leaf = 400, 20
    X = np.zeros((n_rows, 1))
    X[:in_leaf] = 1
    Y = np.zeros((n_rows, 1), bool)
    Y[0] = True
    model = OneVsRest(
        "lightgbm",
        weights=[weight],
        max_delta_step=cap,
        parameters={
            "num_iterations": 1,
            "learning_rate": 0.05,
            "num_leaves": 2,
            "min_data_in_leaf": in_leaf,
            "lambda_l2": l2,
            "min_sum_hessian_in_leaf": 0.0,
        },
        threads=1,
    ).fit(X, Y)
    prior = np.array([1 / n_rows])
    moved = model.predict_margin(X[:1])[0, 0] - logit(prior[0])
    booster = Booster(1, 0.05, 2, in_leaf, l2, cap)
    assert first_step(prior, np.array([weight]), **booster.settings())[0] == pytest.approx(
        moved, rel=1e-4
    )


def test_an_unweighted_training_has_no_spread_no_overshoot_and_no_flood():
    features = describe_training([400, 40, 4, 0], 1000, "none", Booster(60, 0.05), k=2)
    assert features.keys() == FEATURES.keys()
    assert features["spread"] == features["overshoot"] == features["flood"] == 0


def test_heavier_weights_overshoot_more_and_a_cap_less():
    counts = [400, 40, 4]
    free, capped = Booster(60, 0.05), Booster(60, 0.05, cap=0.5)
    some, more = (describe_training(counts, 1000, w, free, k=2) for w in ("sqrt", "balanced"))
    capped_features = describe_training(counts, 1000, "balanced", capped, k=2)
    for name in ("spread", "overshoot", "flood"):
        assert some[name] < more[name]
        assert capped_features[name] < more[name]


def test_labels_of_a_single_class_do_not_count():
    booster = Booster(60, 0.05)
    alone = describe_training([40, 4], 1000, "balanced", booster, k=2)
    assert describe_training([40, 4, 0, 1000], 1000, "balanced", booster, k=2) == alone


# --------------------------------------------------------------------------------------- the worlds


def test_a_longer_design_begins_with_a_shorter_one_and_stays_in_its_ranges():
    design = worlds.draw_design(64)
    assert worlds.draw_design(20) == design[:20]
    for world in design:
        for name, (low, high) in worlds.RANGES.items():
            if name not in ("max_delta_step", "num_iterations"):
                assert low <= world[name] <= high
        assert world["num_iterations"] * world["n_labels"] <= max(
            worlds.MAX_TREES, world["n_labels"]
        )
    assert 8 <= sum(world["max_delta_step"] > 0 for world in design) <= 24


def test_rows_of_a_world_have_as_many_true_labels_as_were_drawn():
    for world in worlds.draw_design(16):
        high = worlds.commonest(world)
        prevalence = np.geomspace(high * 10 ** -world["decades"], high, world["n_labels"])
        if high < worlds.MAX_PREVALENCE:
            assert prevalence.sum() == pytest.approx(world["true_labels"], rel=0.15)


def test_a_world_is_trained_once(tmp_path, monkeypatch):
    store = CellStore(tmp_path, "boundary")
    first = study.train_worlds(2, store, most_trees=40)
    monkeypatch.setattr(study, "train_world", lambda _: pytest.fail("was trained again"))
    assert study.train_worlds(2, store, most_trees=40) == first
    assert study.train_worlds(2, store, most_trees=41, finished=True) == {}
    key, cell = next(iter(first.items()))
    trainings = study.world_trainings(key, cell)
    assert [each.name.split(", ")[1] for each in trainings] == ["sqrt", "r", "10r"]
    assert all(0 <= each.retained <= 1 for each in trainings)


# ---------------------------------------------------------------------------------------- the model


def plant(n_worlds=60, noise=0.02, seed=0):
    """Trainings whose retained share falls with flood alone."""
    rng = np.random.default_rng(seed)
    trainings = []
    for world in range(n_worlds):
        for weight in ("sqrt", "r", "10r"):
            features = dict(zip(FEATURES, rng.normal(size=6), strict=True))
            features["flood"] = float(rng.uniform(0, 2))
            retained = 1 / (1 + np.exp(4 * (features["flood"] - 1))) + rng.normal(0, noise)
            trainings.append(Training(f"{world}", weight, features, float(np.clip(retained, 0, 1))))
    return trainings


def test_a_planted_boundary_is_found_out_of_fold_and_on_unseen_cells():
    boundary = fit_boundary(plant())
    unseen = plant(20, seed=1)
    retained = np.array([each.retained for each in unseen])
    score = judge(boundary.of(unseen), retained, boundary.low, boundary.high)
    assert min(boundary.errors.values()) < 0.1
    assert predicts_well(score)
    assert 0.6 < score["in_interval"] < 0.95


def test_noise_is_not_predicted_well():
    rng = np.random.default_rng(0)
    retained = rng.random(200)
    assert not predicts_well(judge(rng.random(200), retained, -0.1, 0.1))


def test_a_threshold_is_the_most_accurate_one_and_of_equals_the_least():
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    assert fit_threshold(values, values > 0.35) == 0.4
    assert fit_threshold(values, np.array([False, True, False, True, True])) == 0.2


def test_a_judgement_counts_what_it_says():
    score = judge(np.array([0.9, 0.8, 0.1]), np.array([1.0, 0.8, 0.3]), -0.1, 0.1)
    assert (score["n"], score["n_collapsed"], score["auc"]) == (3, 1, 1.0)
    assert score["error"] == pytest.approx(0.1)
    assert score["in_interval"] == pytest.approx(2 / 3)
    assert judge(np.array([0.9, 0.8]), np.array([0.9, 0.9]), 0, 0)["auc"] is None


def test_gains_count_as_one_and_nothing_to_lose_as_nothing_lost():
    assert [retained_share(*pair) for pair in ((0.6, 0.5), (0.1, 0.4), (0.0, 0.0))] == [1, 0.25, 1]


# ----------------------------------------------------------------------------------- unseen, and page


def test_every_unseen_cell_is_a_weighted_one_with_its_twin(tmp_path):
    store = CellStore(tmp_path, "mulan-paper")
    parameters = {"num_iterations": 9, "learning_rate": 0.1, "num_leaves": 7, "min_data_in_leaf": 5}
    for weight, value in (("1", 0.8), ("r", 0.2)):
        store.write(
            f"flags-lightgbm-{weight}",
            {"parameters": parameters},
            {"map": {"raw": value}},
            seconds=0.0,
            command="-",
        )
    counts = {"flags": {"counts": [30, 3], "n_rows": 79, "k": 2}}
    (training,) = read_unseen(counts, tmp_path)["MULAN"]
    assert (training.name, training.retained) == ("flags, lightgbm, r", 0.25)
    assert training.features == describe_training(
        [30, 3], 79, "balanced", Booster.of(parameters), 2
    )


def test_the_threshold_of_the_plan_is_that_of_the_generated_worlds():
    trainings = study.reproduce_boundary(results=ROOT / "experiments/results", finished=True).worlds
    collapsed = np.array([training.retained < 0.5 for training in trainings])
    threshold = fit_threshold(feature_values(trainings, "flood"), collapsed)
    assert round(threshold, 3) == FLOOD_THRESHOLD
