"""A model and its repair as one object; the meta-estimator in scikit-learn's own tools."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import oddslip
from oddslip import (
    InvalidInput,
    OneVsRest,
    Repair,
    Repaired,
    RepairedClassifier,
    map_at_k_scorer,
    panel_from,
)
from oddslip.calibrators import Isotonic

RNG = np.random.default_rng(2)
X = RNG.normal(size=(360, 5))
Y = (X[:, :4] + RNG.normal(size=(360, 4)) > [-0.5, 0.5, 1.2, 1.6]).astype(int)
NAMES = ["a", "b", "c", "d"]
pytestmark = pytest.mark.filterwarnings("ignore:labels of .* are matched by position:UserWarning")


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


def weighted():
    return OneVsRestClassifier(LogisticRegression(class_weight="balanced"))


MODEL = weighted().fit(X[:200], Y[:200])
CALIBRATION = panel_from(MODEL, X[200:], Y[200:], label_names=NAMES)
REPAIR = Repair(k=2, kind="margin", rule="isotonic-5").fit(CALIBRATION)


# ---------------------------------------------------------------------------------------- Repaired


def test_repaired_is_the_repair_of_the_models_panel(tmp_path):
    REPAIR.save(tmp_path / "repair.oddslip")
    panel = panel_from(MODEL, X, label_names=NAMES)
    for repair in (REPAIR, REPAIR.fitted_, tmp_path / "repair.oddslip"):
        repaired = Repaired(MODEL, repair)
        expected = REPAIR.fitted_.transform(panel, dtype=np.float64)
        np.testing.assert_array_equal(repaired.predict_proba(X), expected)
        np.testing.assert_array_equal(repaired.predict_topk(X), REPAIR.rank(panel, k=2))
        np.testing.assert_array_equal(repaired.predict_topk(X, k=3), REPAIR.rank(panel, k=3))
        label_names = np.array(NAMES)[REPAIR.rank(panel, k=2)]
        np.testing.assert_array_equal(repaired.predict_topk(X, names=True), label_names)
        clipped = expected.clip(1e-12, 1 - 1e-12)
        np.testing.assert_allclose(repaired.decision_function(X), logit(clipped), rtol=1e-4)


def test_a_repair_of_probabilities_gets_probabilities_from_a_model_of_margins():
    chances = MODEL.predict_proba(X[200:])
    repair = Repair(k=2, rule="isotonic-5").fit(chances, Y[200:])
    np.testing.assert_allclose(
        Repaired(MODEL, repair).predict_proba(X),
        repair.transform(MODEL.predict_proba(X)),
        atol=1e-9,
    )


def test_a_repaired_model_travels_and_is_a_panel_and_can_be_evaluated():
    served = pickle.loads(pickle.dumps(Repaired(MODEL, REPAIR)))
    panel = panel_from(served, X, Y)
    assert (panel.kind, panel.label_names) == ("probability", tuple(NAMES))
    expected = oddslip.evaluate(panel, k=2, n_replicates=0)["map"].value
    assert map_at_k_scorer(k=2)(served, X, Y) == expected
    assert repr(served) == "Repaired(OneVsRestClassifier, Repair, 4 labels)"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Repaired(MODEL, Repair(k=2)), "fitted Repair"),
        (lambda: Repaired(MODEL, "isotonic"), "no such|isotonic"),
        (lambda: Repaired(weighted(), REPAIR), "must be fitted"),
        (lambda: Repaired(object(), REPAIR), "got object"),
        (lambda: Repaired(MODEL, REPAIR).predict_topk(X, k=9), "n_labels=4"),
        (lambda: Repaired(MODEL, REPAIR).predict_proba(X[:, :2]), "5 features"),
        (
            lambda: Repaired(MODEL, Isotonic(kind="margin").fit(CALIBRATION)).predict_topk(X),
            "k must",
        ),
        (
            lambda: Repaired(
                MODEL, Repair(k=2, kind="margin", rule="raw").fit(CALIBRATION.scores, Y[200:])
            ).predict_topk(X, names=True),
            "names are not known",
        ),
    ],
)
def test_what_can_not_be_repaired_is_refused_in_words(call, words):
    with pytest.raises(oddslip.OddslipError, match=words):
        call()


# ------------------------------------------------------------------------------- RepairedClassifier


def test_the_repair_is_fitted_on_scores_out_of_fold_and_the_model_on_all_rows():
    fitted = RepairedClassifier(weighted(), k=2, rule="isotonic-5", cv=3, seed=7).fit(X, Y)
    scores = np.empty(Y.shape)
    for train, test in KFold(3, shuffle=True, random_state=7).split(X):
        scores[test] = panel_from(weighted().fit(X[train], Y[train]), X[test]).scores
    repair = Repair(k=2, rule="isotonic-5", kind="margin", prior=Y.mean(axis=0), seed=7)
    repair.fit(scores, Y)
    whole = weighted().fit(X, Y)
    expected = repair.transform(panel_from(whole, X))
    np.testing.assert_array_equal(fitted.predict_proba(X), expected)
    np.testing.assert_array_equal(fitted.predict(X), expected >= 0.5)
    np.testing.assert_array_equal(fitted.predict_topk(X), repair.rank(panel_from(whole, X)))
    assert fitted.repair_.chosen_ == "isotonic-5"


def test_it_undoes_a_weight_and_beats_the_raw_model_on_rows_it_has_not_seen():
    train, test = slice(0, 240), slice(240, None)
    scorer = map_at_k_scorer(k=2)
    raw = scorer(weighted().fit(X[train], Y[train]), X[test], Y[test])
    fitted = RepairedClassifier(weighted(), k=2).fit(X[train], Y[train])
    assert fitted.score(X[test], Y[test]) > raw + 0.05


def test_it_works_in_pipelines_searches_and_cross_validation():
    model = make_pipeline(
        StandardScaler(), RepairedClassifier(weighted(), k=2, rule="hierarchical", cv=2)
    )
    values = cross_val_score(model, X, Y, cv=3, scoring=map_at_k_scorer(k=2))
    np.testing.assert_array_equal(values, cross_val_score(model, X, Y, cv=3))  # its own score
    assert values.mean() > 0.6
    search = GridSearchCV(model, {"repairedclassifier__rule": ["raw", "hierarchical"]}, cv=2)
    assert search.fit(X, Y).best_params_ == {"repairedclassifier__rule": "hierarchical"}
    assert search.predict_proba(X).shape == Y.shape
    assert panel_from(search, X, Y).kind == "probability"


@pytest.mark.parametrize(
    "estimator",
    [None, OneVsRest("logistic", weights="balanced"), RandomForestClassifier(5, random_state=0)],
    ids=["default", "ours", "forest"],
)
def test_it_wraps_what_gives_margins_and_what_gives_probabilities(estimator):
    fitted = RepairedClassifier(estimator, k=2, rule="isotonic-5", cv=2).fit(X, Y)
    again = clone(fitted).fit(X, Y)
    np.testing.assert_array_equal(fitted.predict_proba(X), again.predict_proba(X))
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(fitted.predict_proba(X), copied.predict_proba(X))


def test_it_takes_frames_texts_and_sparse_rows():
    model = RepairedClassifier(weighted(), k=2, rule="isotonic-5", cv=2)
    dense = clone(model).fit(X, Y).predict_proba(X)
    for rows in (sp.csr_matrix(X), sp.csr_array(X)):
        np.testing.assert_allclose(clone(model).fit(rows, Y).predict_proba(rows), dense, atol=1e-6)
    np.testing.assert_array_equal(clone(model).fit(X, sp.csr_matrix(Y)).predict_proba(X), dense)
    frame, truth = pd.DataFrame(X, columns=list("pqrst")), pd.DataFrame(Y, columns=NAMES)
    named_model = clone(model).fit(frame, truth)
    np.testing.assert_allclose(named_model.predict_proba(frame), dense, atol=1e-9)
    assert named_model.label_names_ == tuple(NAMES)
    assert set(np.unique(named_model.predict_topk(frame, k=1, names=True))) <= set(NAMES)
    words = [" ".join(f"w{j}" if true else f"v{j}" for j, true in enumerate(row)) for row in Y]
    over_text = make_pipeline(TfidfVectorizer(), weighted())
    text_model = RepairedClassifier(over_text, k=2, rule="raw", cv=2).fit(words, Y)
    assert text_model.score(words, Y) > 0.95


IDS = [f"u{row}" for row in range(len(X))]
FEATURES = list("pqrst")
ROWS, TRUTH = pd.DataFrame(X, columns=FEATURES), pd.DataFrame(Y, columns=NAMES)


def quick(estimator=None):
    return RepairedClassifier(estimator or weighted(), k=2, rule="isotonic-5", cv=2)


def test_the_columns_of_y_are_the_classes():
    model = quick().fit(ROWS, TRUTH)
    assert model.classes_.tolist() == NAMES
    assert model.predict_topk(ROWS, names=True).columns.tolist() == ["label_1", "label_2"]
    assert quick().fit(X, Y).classes_.tolist() == [0, 1, 2, 3]
    assert panel_from(model, ROWS, TRUTH[NAMES[::-1]]).label_names == tuple(NAMES)


@pytest.mark.parametrize("estimator", [weighted(), OneVsRest("logistic")], ids=["sklearn", "ours"])
def test_rows_of_x_and_y_are_matched_by_their_ids(estimator):
    expected = quick(estimator).fit(ROWS, TRUTH)
    rows_with_ids, reversed_truth = ROWS.set_axis(IDS), TRUTH.set_axis(IDS).iloc[::-1]
    for rows, truth in ((rows_with_ids, reversed_truth), (ROWS, TRUTH.iloc[::-1])):
        model = quick(estimator).fit(rows, truth)
        np.testing.assert_array_equal(model.predict_proba(rows), expected.predict_proba(ROWS))
        assert model.score(rows, truth) == expected.score(ROWS, TRUTH)
    assert model.predict_topk(rows_with_ids, names=True).index.tolist() == IDS
    for rows, truth in ((rows_with_ids, TRUTH), (rows_with_ids, Y), (X, TRUTH.set_axis(IDS))):
        with pytest.raises(InvalidInput, match="row ids"):
            quick(estimator).fit(rows, truth)


def test_weights_of_rows_are_matched_by_their_ids():
    model = MultiOutputClassifier(LogisticRegression())
    weight = pd.Series(np.linspace(0.1, 3, len(X)), IDS)
    rows, truth = ROWS.set_axis(IDS), TRUTH.set_axis(IDS)
    expected = quick(model).fit(ROWS, TRUTH, sample_weight=weight.to_numpy())
    fitted = quick(model).fit(rows, truth, sample_weight=weight.iloc[::-1])
    np.testing.assert_array_equal(fitted.predict_proba(rows), expected.predict_proba(ROWS))
    score = fitted.score(rows, truth, sample_weight=weight.iloc[::-1])
    assert score == expected.score(ROWS, TRUTH, sample_weight=weight.to_numpy())


@pytest.mark.parametrize("estimator", [weighted(), OneVsRest("logistic")], ids=["sklearn", "ours"])
def test_parts_of_frames_that_scikit_learn_cuts_go_with_parts_of_arrays(estimator):
    """A part of a frame keeps its numbers of the whole; beside an array these name nothing."""
    cv = KFold(3, shuffle=True, random_state=0)
    expected = cross_val_score(quick(estimator), ROWS, TRUTH, cv=cv)
    ids = ROWS.set_axis(IDS), TRUTH.set_axis(IDS)
    for rows, truth in ((ROWS, Y), (X, TRUTH), ids):
        scores = cross_val_score(quick(estimator), rows, truth, cv=cv)
        np.testing.assert_array_equal(scores, expected)
        scorer_scores = cross_val_score(
            quick(estimator), rows, truth, cv=cv, scoring=map_at_k_scorer(k=2)
        )
        np.testing.assert_array_equal(scorer_scores, expected)


def test_inputs_keep_their_index():
    rows, truth = ROWS.iloc[::-1], TRUTH.iloc[::-1]
    quick().fit(rows, truth).score(rows, truth)
    assert rows.index.equals(ROWS.index[::-1])
    assert truth.index.equals(ROWS.index[::-1])


def test_sample_weights_reach_the_model_and_the_repair():
    model = RepairedClassifier(
        MultiOutputClassifier(LogisticRegression()), k=2, rule="isotonic-5", cv=2
    )
    weight = RNG.uniform(0.1, 3, len(X))
    alike = clone(model).fit(X, Y).predict_proba(X)
    ones = clone(model).fit(X, Y, sample_weight=np.ones(len(X))).predict_proba(X)
    np.testing.assert_allclose(ones, alike, atol=1e-9)
    assert (
        np.abs(clone(model).fit(X, Y, sample_weight=weight).predict_proba(X) - alike).max() > 0.01
    )


@pytest.mark.parametrize(
    ("changed", "rows", "truth", "words"),
    [
        ({}, X, Y[:, 0], r"shape \(360,\)"),
        ({}, X, Y[:, 0] + Y[:, 1], "Only binary classification is supported"),
        ({}, X, 2 * Y, "0 or 1 in every cell, got 2 at row"),
        ({}, X, X[:, :2], "[Cc]ontinuous"),
        ({}, X[:50], Y, "same rows, got 50 and 360"),
        ({}, X, None, "requires y"),
        ({"cv": 1}, X, Y, "cv must be"),
        ({"cv": 400}, X, Y, "n_samples=360"),
        ({"cv": [(np.arange(300), np.arange(300, 360))]}, X, Y, "row 0 in 0"),
        ({"k": 0}, X, Y, "k must be"),
        ({"rule": "best"}, X, Y, "rule"),
    ],
)
def test_what_can_not_be_fitted_is_refused_in_words(changed, rows, truth, words):
    model = RepairedClassifier(weighted(), cv=2).set_params(**changed)
    with pytest.raises(InvalidInput, match=words):
        model.fit(rows, truth)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_a_scorer_gets_the_weights_that_scikit_learn_routes_to_it(routing):
    weight = np.random.default_rng(5).uniform(0.1, 3, len(X))
    cv = KFold(3)
    scorer = map_at_k_scorer(k=2).set_score_request(sample_weight=True)
    model = weighted()
    model.estimator.set_fit_request(sample_weight=False)
    params = {"sample_weight": weight}
    expected = [
        map_at_k_scorer(k=2)(clone(model).fit(X[train], Y[train]), X[test], Y[test], weight[test])
        for train, test in cv.split(X)
    ]
    results = cross_validate(model, X, Y, cv=cv, scoring=scorer, params=params)["test_score"]
    np.testing.assert_array_equal(results, expected)
    several = {"map": scorer, "ndcg": map_at_k_scorer(k=2, metric="ndcg")}
    several["ndcg"].set_score_request(sample_weight=False)
    results = cross_validate(model, X, Y, cv=cv, scoring=several, params=params)
    np.testing.assert_array_equal(results["test_map"], expected)
    ndcg = cross_validate(model, X, Y, cv=cv, scoring=map_at_k_scorer(k=2, metric="ndcg"))
    np.testing.assert_array_equal(results["test_ndcg"], ndcg["test_score"])
    search = GridSearchCV(model, {"estimator__C": [1.0]}, cv=cv, scoring=scorer)
    results = search.fit(X, Y, **params).cv_results_["mean_test_score"]
    np.testing.assert_allclose(results, [np.mean(expected)])


def test_a_scorer_that_was_not_told_refuses_weights_as_scikit_learn_does(routing):
    with pytest.raises(ValueError, match="sample_weight"):
        cross_validate(
            weighted(), X, Y, scoring=map_at_k_scorer(k=2), params={"sample_weight": X[:, 0]}
        )


def test_a_scorer_asks_for_weights_only_where_metadata_are_routed():
    with pytest.raises(RuntimeError, match="enable_metadata_routing"):
        map_at_k_scorer(k=2).set_score_request(sample_weight=True)


def test_a_scorer_of_an_unknown_metric_is_refused():
    with pytest.raises(InvalidInput, match="metric must be one of"):
        map_at_k_scorer(k=3, metric="accuracy")


# --------------------------------------------------------------------------------- names of columns


def test_calibrators_name_their_columns_and_give_frames_when_asked():
    truth = pd.DataFrame(Y, columns=NAMES)
    scores = pd.DataFrame(MODEL.predict_proba(X), columns=NAMES)
    for estimator in (Isotonic(), Repair(k=2, rule="isotonic-5")):
        fitted = estimator.fit(scores, truth)
        assert fitted.get_feature_names_out().tolist() == NAMES
        plain = fitted.transform(scores)
        framed = fitted.set_output(transform="pandas").transform(scores)
        assert framed.columns.tolist() == NAMES
        np.testing.assert_array_equal(framed.to_numpy(), plain)
        assert framed.index.equals(scores.index)
    unnamed = Isotonic().fit(scores.to_numpy(), Y)
    assert unnamed.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    assert unnamed.get_feature_names_out(NAMES).tolist() == NAMES
