"""`by_rounds`: stages of every library, and the table against each stage measured alone."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oddslip
from oddslip.adapters.stages import stages_of
from oddslip.datasets import synthetic_rows
from oddslip.errors import InvalidInput
from oddslip.metrics import average_precision_at_k

N_ROUNDS = 9
DATA = synthetic_rows(900, 6, prevalence=(0.1, 0.4), seed=5)
X, Y = np.asarray(DATA.X, np.float64), np.asarray(DATA.labels).astype(int)
WEIGHTS = (Y == 0).sum(axis=0) / Y.sum(axis=0)


def lightgbm_models():
    import lightgbm

    settings = {"objective": "binary", "verbose": -1, "num_leaves": 5}
    return [
        lightgbm.train(settings | {"scale_pos_weight": w}, lightgbm.Dataset(X, y), N_ROUNDS)
        for y, w in zip(Y.T, WEIGHTS, strict=True)
    ]


def xgboost_model():
    import xgboost

    return xgboost.XGBClassifier(n_estimators=N_ROUNDS, max_depth=2).fit(X, Y)


MODELS = {
    "lightgbm": lightgbm_models,
    "xgboost": xgboost_model,
    "scikit-learn": lambda: MultiOutputClassifier(
        GradientBoostingClassifier(n_estimators=N_ROUNDS, max_depth=2, random_state=0)
    ).fit(X, Y),
    "histograms in pipelines": lambda: OneVsRestClassifier(
        make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=N_ROUNDS))
    ).fit(X, Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_last_stage_is_the_model(name):
    model = MODELS[name]()
    stages = stages_of(model)
    assert stages.n_rounds == N_ROUNDS
    first, last = stages.margins(X, [2, N_ROUNDS])
    expected = oddslip.panel_from(model, X, kind="margin").scores
    np.testing.assert_allclose(last, expected, rtol=1e-5, atol=1e-5)
    assert np.abs(first - last).max() > 0.01


def test_each_stage_is_a_model_trained_so_far():
    import lightgbm

    short = lightgbm.train(
        {"objective": "binary", "verbose": -1, "num_leaves": 5, "scale_pos_weight": WEIGHTS[0]},
        lightgbm.Dataset(X, Y[:, 0]),
        4,
    )
    (margins,) = stages_of(lightgbm_models()).margins(X, [4])
    np.testing.assert_allclose(margins[:, 0], short.predict(X, raw_score=True), rtol=1e-12)


def test_the_table_is_that_of_each_stage_alone():
    models = lightgbm_models()
    rounds = oddslip.by_rounds(models, X, Y, k=2, weights=WEIGHTS, rounds=[3, N_ROUNDS])
    for at, margins in enumerate(stages_of(models).margins(X, [3, N_ROUNDS])):
        raw = average_precision_at_k(margins, Y, k=2, kind="margin")
        assert rounds.raw[at] == pytest.approx(raw, abs=1e-12)
        table = oddslip.Repair(k=2, rule="hierarchical", kind="margin").fit(margins, Y).table_
        assert rounds.repaired[at] == pytest.approx(table["hierarchical"].mean, abs=1e-12)
    assert rounds.shift_ratio is not None
    assert 0 < rounds.shift_ratio[-1] < 3


def test_a_label_that_stopped_early_keeps_its_margins():
    import lightgbm

    settings = {"objective": "binary", "verbose": -1, "num_leaves": 5}
    models = [
        lightgbm.train(settings, lightgbm.Dataset(X, y), n)
        for y, n in zip(Y.T, (2, 9, 9, 9, 9, 9), strict=True)
    ]
    third, last = stages_of(models).margins(X, [3, 9])
    np.testing.assert_array_equal(third[:, 0], last[:, 0])
    assert (third[:, 1] != last[:, 1]).any()


def test_rounds_are_spread_and_end_with_the_last():
    rounds = oddslip.by_rounds(lightgbm_models(), X, Y, k=2, rounds=4)
    assert rounds.rounds[0] == 1
    assert rounds.rounds[-1] == N_ROUNDS
    assert rounds.best_repaired in rounds.rounds
    assert rounds.cost_of_stopping_by_raw >= 0
    assert list(rounds.to_frame()["rounds"]) == list(rounds.rounds)
    assert rounds.to_dict()["best_raw"] == rounds.best_raw


def test_the_picture_shows_both_lines_and_the_saturated_cells():
    rounds = oddslip.by_rounds(lightgbm_models(), X, Y, k=2, rounds=[1, 5, 9])
    upper, lower = rounds.plot().axes
    lines = {tuple(line.get_ydata()) for line in upper.get_lines()}
    assert {tuple(rounds.raw), tuple(rounds.repaired)} <= lines
    assert list(lower.get_lines()[0].get_ydata()) == [100 * share for share in rounds.saturated]
    assert str(rounds.best_repaired) in str(rounds)


def test_a_training_is_recorded_by_its_callback():
    import xgboost

    matrix = xgboost.DMatrix(X, Y)
    recorder = oddslip.RoundsRecorder(Y, k=2)
    settings = {"objective": "binary:logistic", "max_depth": 2, "tree_method": "hist"}
    booster = xgboost.train(settings, matrix, 6, callbacks=[recorder.xgboost(matrix, every=3)])
    recorded = recorder.result()
    assert recorded.rounds == (3, 6)
    later = oddslip.by_rounds(booster, X, Y, k=2, rounds=[3, 6])
    np.testing.assert_allclose(recorded.raw, later.raw, atol=1e-6)


def test_a_trainer_gets_both_metrics():
    recorder = oddslip.RoundsRecorder(Y, k=2)
    logits = X[:, :6]
    metrics = recorder.compute_metrics(SimpleNamespace(predictions=(logits,), label_ids=Y))
    assert set(metrics) >= {"raw", "repaired"}
    assert recorder.result().rounds == (1,)


def test_what_has_no_rounds_is_refused():
    linear = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    with pytest.raises(InvalidInput, match=r"boosted in rounds .* got LogisticRegression"):
        oddslip.by_rounds(linear, X, Y, k=2)
    with pytest.raises(InvalidInput, match="rounds must be between 1 and 9, got 12"):
        oddslip.by_rounds(lightgbm_models(), X, Y, k=2, rounds=[3, 12])
    with pytest.raises(InvalidInput, match="at least one round"):
        oddslip.RoundsRecorder(Y, k=2).result()
