"""Stopping by the metric after a repair, and stages of a trained model."""

import numpy as np
import pytest

import oddslip
from oddslip.datasets import synthetic_rows
from oddslip.errors import InvalidInput
from oddslip.learners import MapAtK, OneVsRest

DATA = synthetic_rows(1200, 8, prevalence=(0.03, 0.3), seed=4)
X, Y = np.asarray(DATA.X), np.asarray(DATA.labels)
SETTINGS = {"weights": "balanced", "parameters": {"num_iterations": 12}, "threads": 1}


@pytest.fixture(scope="module")
def model():
    return OneVsRest(**SETTINGS).fit(X[:600], Y[:600])


def repaired(margins, labels, k=3):
    repair = oddslip.Repair(k=k, rule="hierarchical", kind="margin").fit(margins, labels)
    return repair.table_["hierarchical"].mean


def test_the_last_stage_is_the_model(model):
    first, last = model.staged_margin(X, [4, 12])
    np.testing.assert_allclose(last, model.predict_margin(X), rtol=1e-12, atol=1e-12)
    assert model.n_rounds == 12
    assert np.abs(first - last).max() > 0.01


def test_a_training_stops_where_the_repaired_metric_is_best(model):
    validation = X[600:], Y[600:]
    stopped = OneVsRest(**SETTINGS, early_stopping=12, stop_by="repaired", k=3)
    stopped.fit(X[:600], Y[:600], validation=validation)
    values = [repaired(each, Y[600:]) for each in model.staged_margin(X[600:], range(1, 13))]
    np.testing.assert_allclose(stopped.validation_map_, values, atol=1e-9)
    assert stopped.n_rounds == int(np.argmax(values)) + 1


def test_another_word_is_refused():
    model = OneVsRest(**SETTINGS, early_stopping=2, stop_by="calibrated")
    with pytest.raises(InvalidInput, match='stop_by must be one of "raw", "repaired"'):
        model.fit(X[:600], Y[:600], validation=(X[600:], Y[600:]))


def test_the_metric_of_batches_is_that_of_all_rows():
    margins = np.random.default_rng(0).normal(size=Y.shape) + 2 * Y
    metric = MapAtK(k=3, repaired="margin")
    for start in range(0, 1200, 500):
        metric.update(margins[start : start + 500], Y[start : start + 500])
    assert metric.compute() == pytest.approx(repaired(margins, Y), abs=1e-12)
    assert metric.__name__ == "map_at_3_repaired"
    metric.reset()
    assert np.isnan(metric.compute())


def test_a_folded_model_is_saved_with_its_repair(model, tmp_path):
    panel = model.panel(X[600:], Y[600:])
    repair = oddslip.Repair(k=3, kind="margin", foldable=True).fit(panel)
    folded = oddslip.fold(model, repair, X[:50])
    expected = repair.transform(panel)
    np.testing.assert_allclose(folded.predict_proba(X[600:]), expected, atol=1e-12)
    folded.save(tmp_path / "model.oddmodel")
    loaded = OneVsRest.load(tmp_path / "model.oddmodel")
    np.testing.assert_array_equal(loaded.predict_proba(X[600:]), folded.predict_proba(X[600:]))
    np.testing.assert_array_equal(loaded.predict_stored(X[600:]), folded.predict_proba(X[600:]))
    assert model._line is None


def test_two_repairs_are_folded_one_after_the_other(model):
    one = oddslip.calibrators.Platt(kind="margin").fit(model.panel(X[600:], Y[600:]))
    once = oddslip.fold(model, one)
    two = oddslip.calibrators.Offset(kind="margin").fit(once.predict_margin(X[:600]), Y[:600])
    twice = oddslip.fold(once, two, X[:50])
    expected = two.transform(once.predict_margin(X))
    np.testing.assert_allclose(twice.predict_proba(X), expected, atol=1e-12)


def test_stages_of_a_folded_model_end_in_its_margins_and_a_new_fit_forgets_the_repair(model):
    repair = oddslip.calibrators.Platt(kind="margin").fit(model.panel(X[600:], Y[600:]))
    folded = oddslip.fold(model, repair)
    (last,) = folded.staged_margin(X, [12])
    np.testing.assert_allclose(last, folded.predict_margin(X), rtol=1e-12, atol=1e-12)
    again = folded.fit(X[:600], Y[:600])
    np.testing.assert_array_equal(again.predict_margin(X), model.predict_margin(X))
