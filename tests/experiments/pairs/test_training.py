"""Scores of arms on disk are those of the same model trained alone in memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.pairs.arms import Arm
from experiments.pairs.training import Bench, draw_rows
from oddslip.learners import OneVsRest


@pytest.fixture
def data(products):
    return products()


def trained_alone(data, arm, rows=slice(None)):
    presets = {"lightgbm": "paper-booster", "mlp": "paper-mlp-pairs"}
    weights = {"1": "none", "r": "balanced"}[arm.weight]
    model = OneVsRest(
        arm.learner, weights=weights, max_delta_step=arm.cap, preset=presets[arm.learner], seed=42
    )
    return model.fit(data.train.X[rows], data.train.Y[rows])


@pytest.mark.parametrize(
    "arm", [Arm("lightgbm", "r", cap=0.7), Arm("mlp", "r")], ids=lambda arm: arm.key
)
def test_shared_features_and_files_change_no_score(data, arm, tmp_path):
    bench = Bench(data, tmp_path)
    bench.scores(arm.twin)
    scores, alone = bench.scores(arm), trained_alone(data, arm)
    for name in ("validation", "test"):
        expected = alone.predict_proba(getattr(data, name).X).astype(np.float32)
        np.testing.assert_array_equal(np.load(getattr(scores, name)), expected)
    np.testing.assert_array_equal(scores.weights, alone.weights_)
    np.testing.assert_array_equal(scores.prior, data.prevalence)


def test_a_draw_trains_weighs_and_counts_its_own_rows(data, tmp_path):
    arm = Arm("lightgbm", "r", draw=2)
    rows = draw_rows(data.train.n_rows, 2)
    scores, alone = Bench(data, tmp_path).scores(arm), trained_alone(data, arm, rows)
    np.testing.assert_array_equal(
        np.load(scores.test), alone.predict_proba(data.test.X).astype(np.float32)
    )
    np.testing.assert_array_equal(scores.weights, alone.weights_)
    np.testing.assert_array_equal(scores.prior, alone.prevalence_)


@given(n_rows=st.integers(1, 5000), draw=st.integers(1, 9))
@settings(deadline=None, max_examples=50)
def test_every_row_of_a_draw_is_drawn_by_chance_and_in_order(n_rows, draw):
    rows = draw_rows(n_rows, draw)
    mask = np.random.default_rng(draw - 1).random(n_rows) < 0.9
    np.testing.assert_array_equal(rows, np.arange(n_rows)[mask])


def test_draws_of_the_papers_data_have_as_many_rows_as_its_supplement_prints():
    assert [draw_rows(131_209, draw).size for draw in (1, 2, 3)] == [118_219, 118_053, 118_070]
    santander = [draw_rows(8_248_933, draw).size for draw in (1, 2, 3)]
    assert santander == [7_424_755, 7_424_681, 7_422_492]


def test_draws_of_other_seeds_are_other_rows_and_no_draw_is_all_of_them():
    assert len({draw_rows(1000, seed).tobytes() for seed in (1, 2, 3)}) == 3
    assert draw_rows(1000, 0) is None


def test_finished_scores_are_not_trained_again(data, tmp_path, monkeypatch):
    first = Bench(data, tmp_path).scores(Arm("mlp", "1"))
    monkeypatch.setattr(
        "experiments.pairs.training.OneVsRest", lambda *_, **__: pytest.fail("trained")
    )
    again = Bench(data, tmp_path).scores(Arm("mlp", "1"))
    assert again.test == first.test
    assert again.stages == first.stages


def test_other_data_and_other_features_have_other_folders(data, products, tmp_path):
    first = Bench(data, tmp_path).scores(Arm("mlp", "1")).test
    assert Bench(products(seed=1), tmp_path).scores(Arm("mlp", "1")).test != first
    data.train.X.data[0] += 1  # as if its reader had changed
    assert Bench(data, tmp_path).scores(Arm("mlp", "1")).test != first


def test_models_are_dropped_once_all_rows_are_scored(data, tmp_path):
    scores = Bench(data, tmp_path).scores(Arm("lightgbm", "1"))
    assert {path.name for path in scores.test.parent.iterdir()} == {
        "finished.json",
        "test.npy",
        "validation.npy",
    }
