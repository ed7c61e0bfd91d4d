"""MAP at K while a model trains: rounds kept by it, and a metric object for other loops."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import oddslip
from oddslip import InvalidInput, OneVsRest
from oddslip.learners import MapAtK
from oddslip.learners.backends.base import get_backend

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")
torch = pytest.importorskip("torch")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(240, 5))
Y = (X[:, :4] + RNG.normal(size=(240, 4)) > [0.0, 0.8, 1.2, 9.0]).astype(int)
TRAIN, VALIDATION = (X[:160], Y[:160]), (X[160:], Y[160:])
ROUNDS = {"lightgbm": "num_iterations", "xgboost": "n_estimators", "hist": "max_iter"}


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


def model(learner, rounds, **options):
    parameters = {ROUNDS[learner]: rounds, "learning_rate": 0.5}
    return OneVsRest(learner, weights="balanced", parameters=parameters, **options)


def map_after(learner, rounds):
    scores = model(learner, rounds).fit(*TRAIN).predict_margin(VALIDATION[0])
    return oddslip.evaluate(scores, VALIDATION[1], k=2, kind="margin", n_replicates=0)["map"].value


@pytest.mark.parametrize("learner", ROUNDS)
def test_the_model_is_cut_where_the_validation_map_is_highest(learner, tmp_path):
    stopped = model(learner, 12, early_stopping=3, k=2).fit(*TRAIN, validation=VALIDATION)
    values = stopped.validation_map_
    expected = [map_after(learner, rounds) for rounds in range(1, len(values) + 1)]
    np.testing.assert_allclose(values, expected, atol=1e-9)
    best = int(np.argmax(values)) + 1
    assert len(values) in (12, best + 3)
    backend = get_backend(learner)
    assert {backend.n_rounds(part) for part in stopped._models} == {best}
    short = model(learner, best).fit(*TRAIN)
    np.testing.assert_array_equal(stopped.predict_margin(X), short.predict_margin(X))
    stopped.save(tmp_path / "model.oddmodel")
    again = OneVsRest.load(tmp_path / "model.oddmodel")
    np.testing.assert_array_equal(again.predict_margin(X), short.predict_margin(X))


def test_a_checkpoint_keeps_whole_trainings_whatever_they_are_cut_to(tmp_path):
    options = {"checkpoint": tmp_path / "kept"}
    whole = model("lightgbm", 12, **options).fit(*TRAIN)
    stopped = model("lightgbm", 12, early_stopping=3, k=2, **options).fit(
        *TRAIN, validation=VALIDATION
    )
    again = model("lightgbm", 12, **options).fit(*TRAIN)
    np.testing.assert_array_equal(again.predict_margin(X), whole.predict_margin(X))
    assert len(stopped.validation_map_) <= 12


@pytest.mark.parametrize(
    ("options", "validation", "message"),
    [
        ({"early_stopping": 3}, None, "given together"),
        ({}, VALIDATION, "given together"),
        ({"early_stopping": 0}, VALIDATION, "early_stopping must be"),
        ({"early_stopping": 3}, VALIDATION[0], "pair"),
        ({"early_stopping": 3, "k": 5}, VALIDATION, "k must be between 1 and n_labels=4"),
        (
            {"early_stopping": 3, "learner": "logistic"},
            VALIDATION,
            "'logistic', which has no rounds",
        ),
        (
            {"early_stopping": 3, "mode": "exact", "parameters": {"boosting": "dart"}},
            VALIDATION,
            "'dart'",
        ),
    ],
)
def test_invalid_early_stopping_is_rejected(options, validation, message):
    with pytest.raises(InvalidInput, match=message):
        OneVsRest(**options).fit(*TRAIN, validation=validation)


# ------------------------------------------------------------------------------------------ MapAtK


@pytest.mark.parametrize("name", ["map", "precision", "recall", "ndcg", "hit_rate"])
def test_batches_give_the_metric_of_all_rows(name):
    scores, metric = RNG.normal(size=Y.shape), MapAtK(k=2, metric=name)
    for start in range(0, len(Y), 50):
        part = slice(start, start + 50)
        metric.update(torch.tensor(scores[part]), torch.tensor(Y[part], dtype=torch.float32))
    expected = oddslip.evaluate(scores, Y, k=2, kind="margin", n_replicates=0)[name].value
    assert metric.compute() == pytest.approx(expected, abs=1e-12)
    assert metric(Y, scores) == pytest.approx(expected, abs=1e-12)
    metric.reset()
    assert np.isnan(metric.compute())


def test_xgboost_stops_by_it():
    matrices = xgb.DMatrix(*TRAIN[:1], TRAIN[1]), xgb.DMatrix(VALIDATION[0], VALIDATION[1])
    stop = xgb.callback.EarlyStopping(rounds=3, metric_name="map_at_2", maximize=True)
    history = {}
    booster = xgb.train(
        {"objective": "binary:logistic", "nthread": 1, "learning_rate": 0.5},
        matrices[0],
        30,
        evals=[(matrices[1], "validation")],
        custom_metric=MapAtK(k=2).xgboost,
        callbacks=[stop],
        evals_result=history,
        verbose_eval=False,
    )
    values = history["validation"]["map_at_2"]
    assert booster.best_iteration == int(np.argmax(values))
    scores = booster.predict(matrices[1])
    expected = oddslip.evaluate(scores, VALIDATION[1], k=2, n_replicates=0)["map"].value
    assert values[-1] == pytest.approx(expected, abs=1e-6)  # XGBoost writes six digits


def test_lightgbm_reports_it_for_one_booster_of_many_labels():
    one = RNG.integers(0, 3, len(X))
    parameters = {"objective": "multiclassova", "num_class": 3, "verbose": -1, "num_threads": 1}
    data = lgb.Dataset(X[:160], one[:160], free_raw_data=False)
    validation = data.create_valid(X[160:], one[160:])
    for labels in (None, np.eye(3, dtype=int)[one[160:]]):
        history = {}
        booster = lgb.train(
            parameters | {"metric": "none"},
            data,
            3,
            valid_sets=[validation],
            feval=MapAtK(k=2).lightgbm(labels),
            callbacks=[lgb.record_evaluation(history)],
        )
        truth = np.eye(3, dtype=int)[one[160:]]
        expected = oddslip.evaluate(booster.predict(X[160:]), truth, k=2, n_replicates=0)
        assert history["valid_0"]["map_at_2"][-1] == pytest.approx(expected["map"].value, abs=1e-9)
    with pytest.raises(InvalidInput, match="all labels, got those of one"):
        MapAtK(k=2).lightgbm()(np.zeros(5), None)


def test_an_unknown_metric_is_refused():
    with pytest.raises(InvalidInput, match="metric must be one of"):
        MapAtK(k=2, metric="psp")
