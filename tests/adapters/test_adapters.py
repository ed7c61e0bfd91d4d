"""panel_from: margins where there are margins, from the models people have."""

import subprocess
import sys
import types

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from oddslip.adapters import panel_from
from oddslip.adapters.scorer import Scorer
from oddslip.errors import InvalidInput

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")
torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
Y = (X[:, :3] + RNG.normal(size=(120, 3)) > [0.5, 0, 1]).astype(int)
SMALL = {"n_estimators": 4, "n_jobs": 1}


@pytest.fixture(autouse=True)
def _one_thread():
    """Models this small only wait for a second thread."""
    with threadpool_limits(1):
        yield


def lgbm(**options):
    return lgb.LGBMClassifier(verbose=-1, min_child_samples=3, **SMALL, **options)


def forest():
    return RandomForestClassifier(5, max_depth=3, random_state=0)


def positive_column(model, rows):
    return model.predict_proba(rows)[:, 1]


SKLEARN = {
    "logistic": (LogisticRegression(), "margin"),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), "margin"),
    "search": (GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2), "margin"),
    "sgd": (SGDClassifier(loss="log_loss", random_state=0), "margin"),
    "boosting": (GradientBoostingClassifier(n_estimators=4, random_state=0), "margin"),
    "adaboost loss": (
        GradientBoostingClassifier(loss="exponential", n_estimators=4, random_state=0),
        "probability",
    ),
    "histograms": (HistGradientBoostingClassifier(max_iter=4, random_state=0), "margin"),
    "forest": (forest(), "probability"),
    "lightgbm": (lgbm(), "margin"),
    "xgboost": (xgb.XGBClassifier(**SMALL), "margin"),
}


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, MultiOutputClassifier, list])
@pytest.mark.parametrize("name", SKLEARN)
def test_wrapped_classifiers_give_their_own_probabilities_as_margins_if_they_have_any(
    name, wrapper
):
    from sklearn.base import clone

    inner, kind = SKLEARN[name]
    fitted = [clone(inner).fit(X, Y[:, label]) for label in range(3)]
    model = fitted if wrapper is list else wrapper(inner).fit(X, Y)
    panel = panel_from(model, X, Y, batch_rows=50)
    assert panel.kind == kind
    assert panel.scores.shape == Y.shape
    expected = np.stack([positive_column(part, X) for part in fitted], axis=1)
    chances = expit(panel.scores) if kind == "margin" else panel.scores
    np.testing.assert_allclose(chances, expected, atol=1e-6)


def test_a_single_fitted_classifier_is_a_panel_of_one_label():
    panel = panel_from(LogisticRegression().fit(X, Y[:, 0]), X, Y[:, :1], label_names=["a"])
    assert panel.scores.shape == (120, 1)
    assert panel.name_of(0) == "a"
    assert panel.positives().counts.sum() == Y[:, 0].sum()


def test_float32_probabilities_of_exactly_one_have_finite_log_odds():
    scorer = Scorer(lambda rows: np.float32([0.0, 0.5, 1.0]), kind="probability")
    cells = scorer.block(None, "margin").cells
    np.testing.assert_allclose(cells[:, 0], [logit(1e-12), 0.0, -logit(1e-12)], rtol=1e-4)


@pytest.mark.parametrize("always", [0, 1])
def test_a_label_of_one_class_is_a_constant_inside_one_vs_rest(always):
    truth = Y.copy()
    truth[:, 1] = always
    with pytest.warns(UserWarning, match="present in all training"):
        model = OneVsRestClassifier(LogisticRegression()).fit(X, truth)
    panel = panel_from(model, X, truth).checked()
    assert panel.kind == "margin"
    np.testing.assert_allclose(panel.scores[:, 1], (2 * always - 1) * logit(1 - 1e-12), rtol=1e-3)
    with pytest.warns(UserWarning, match="present in all training"):
        model = OneVsRestClassifier(forest()).fit(X, truth)
    panel = panel_from(model, X).checked()
    assert panel.kind == "probability"
    np.testing.assert_array_equal(panel.scores[:, 1], always)


def test_a_classifier_that_saw_one_class_is_a_constant_inside_multi_output():
    truth = Y.copy()
    truth[:, 1] = 0
    for inner in (forest(), DummyClassifier(strategy="prior")):
        panel = panel_from(MultiOutputClassifier(inner).fit(X, truth), X)
        np.testing.assert_array_equal(panel.scores[:, 1], 0)


def test_one_label_without_margins_makes_all_of_them_probabilities():
    logistic = LogisticRegression().fit(X, Y[:, 0])
    trees = forest().fit(X, Y[:, 1])
    panel = panel_from([logistic, trees], X)
    assert panel.kind == "probability"
    expected = np.stack([positive_column(logistic, X), positive_column(trees, X)], axis=1)
    np.testing.assert_allclose(panel.scores, expected, atol=1e-12)


def test_a_forest_of_several_outputs_gives_every_label():
    truth = np.column_stack([Y, np.zeros(120, int), np.ones(120, int)])
    model = forest().fit(X, truth)
    panel = panel_from(model, X, truth)
    np.testing.assert_allclose(panel.scores[:, 0], model.predict_proba(X)[0][:, 1])
    np.testing.assert_array_equal(panel.scores[:, 3:], truth[:, 3:])


def test_one_vs_rest_on_classes_names_its_labels():
    model = OneVsRestClassifier(LogisticRegression()).fit(
        X, np.array(["u", "v", "w"])[Y.sum(1) % 3]
    )
    assert panel_from(model, X).label_names == ("u", "v", "w")


@pytest.mark.parametrize("sigmoid", [1.0, 2.5])
def test_lightgbm_boosters_give_log_odds_whatever_their_sigmoid(sigmoid):
    parameters = {"objective": "binary", "sigmoid": sigmoid, "verbose": -1, "num_threads": 1}
    boosters = [lgb.train(parameters, lgb.Dataset(X, Y[:, label]), 4) for label in range(3)]
    panel = panel_from(boosters, X, batch_rows=7)
    expected = np.stack([booster.predict(X) for booster in boosters], axis=1)
    np.testing.assert_allclose(expit(panel.scores), expected, atol=1e-12)


def test_a_lightgbm_booster_of_many_labels_is_one_panel():
    parameters = {"objective": "multiclassova", "num_class": 3, "verbose": -1, "num_threads": 1}
    booster = lgb.train(parameters, lgb.Dataset(X, Y.sum(1) % 3), 4)
    panel = panel_from(booster, X)
    np.testing.assert_array_equal(panel.scores, booster.predict(X, raw_score=True))


def test_a_saved_lightgbm_booster_is_known_again():
    booster = lgbm().fit(X, Y[:, 0]).booster_
    back = lgb.Booster(model_str=booster.model_to_string())
    np.testing.assert_array_equal(panel_from(back, X).scores, panel_from(booster, X).scores)


def test_xgboost_multi_label_models_are_panels():
    model = xgb.XGBClassifier(**SMALL).fit(X, Y)
    panel = panel_from(model, X, Y)
    assert panel.kind == "margin"
    np.testing.assert_allclose(expit(panel.scores), model.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(panel_from(model.get_booster(), X).scores, panel.scores)


def test_a_data_frame_reaches_the_model_as_a_data_frame():
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = MultiOutputClassifier(lgbm()).fit(frame, Y)
    panel = panel_from(model, frame, Y, batch_rows=32)
    np.testing.assert_allclose(expit(panel.scores[:, 0]), model.predict_proba(frame)[0][:, 1])


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix, sp.coo_array])
def test_sparse_rows_are_scored_block_by_block(form):
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    np.testing.assert_allclose(
        panel_from(model, form(X), batch_rows=11).scores, panel_from(model, X).scores, atol=1e-12
    )


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)
    )


class Wrapped(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, rows):
        assert not torch.is_grad_enabled()
        assert not self.training
        return self.inner(rows)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, torch.tensor])
def test_a_torch_module_is_scored_in_eval_mode_and_left_as_it_was(form):
    net = Wrapped(network())
    net.train()
    net.inner[1].eval()
    modes = [part.training for part in net.modules()]
    state = {name: value.clone() for name, value in net.state_dict().items()}
    panel = panel_from(net, form(X), Y, batch_rows=32)
    assert [part.training for part in net.modules()] == modes
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())
    assert torch.is_grad_enabled()
    net.eval()
    expected = net.inner(torch.tensor(X, dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(panel.scores, expected, atol=1e-6)
    assert (panel.kind, panel.scores.dtype) == ("margin", np.float32)


def test_a_torch_module_that_fails_is_left_as_it_was():
    net = network()
    with pytest.raises(RuntimeError):
        panel_from(net, X[:, :2])
    assert net.training


def test_a_network_that_ends_in_a_sigmoid_gives_its_logits():
    net = network()
    ended = torch.nn.Sequential(*net, torch.nn.Sigmoid())
    np.testing.assert_array_equal(panel_from(ended, X).scores, panel_from(net, X).scores)


def test_a_torch_module_in_half_or_double_gives_a_panel():
    with pytest.warns(UserWarning, match=r"bfloat16, which tells apart 2 digits.*ties"):
        panel = panel_from(torch.nn.Linear(5, 3).to(torch.bfloat16), X)
    assert panel.scores.dtype == np.float32
    assert panel_from(torch.nn.Linear(5, 3).to(torch.float64), X).scores.dtype == np.float64


def test_a_torch_module_that_returns_no_logits_is_refused():
    class Pair(torch.nn.Module):
        def forward(self, rows):
            return rows, rows

    with pytest.raises(InvalidInput, match="tensor of logits"):
        panel_from(Pair(), X)


def catboost_double(loss, fitted=True):
    """A stand-in with CatBoost's names: it is known by its module, and asked for raw values."""

    class CatBoostClassifier:
        feature_names_ = ("a", "b", "c", "d", "e")

        def is_fitted(self):
            return fitted

        def get_all_params(self):
            return {"loss_function": loss}

        def predict(self, rows, prediction_type):
            assert prediction_type == "RawFormulaVal"
            return rows[:, 0] if loss == "Logloss" else rows[:, :3]

    CatBoostClassifier.__module__ = "catboost.core"
    return CatBoostClassifier()


def test_catboost_gives_raw_values():
    np.testing.assert_array_equal(panel_from(catboost_double("Logloss"), X).scores, X[:, :1])
    panel = panel_from(catboost_double("MultiLogloss"), X)
    np.testing.assert_array_equal(panel.scores, X[:, :3])
    assert panel.kind == "margin"
    with pytest.raises(InvalidInput, match="loss MultiClass"):
        panel_from(catboost_double("MultiClass"), X)
    with pytest.raises(InvalidInput, match="must be fitted"):
        panel_from(catboost_double("Logloss", fitted=False), X)


def refused_models():
    three = Y.sum(1) % 3
    yield "regressor", Ridge().fit(X, Y), "Ridge"
    yield "no probabilities", LinearSVC().fit(X, Y[:, 0]), "neither log-odds nor probabilities"
    yield "three classes", LogisticRegression().fit(X, three), "3 classes"
    yield "softmax lightgbm", lgbm().fit(X, three), "3 classes"
    yield "softmax booster", lgbm().fit(X, three).booster_, "objective multiclass"
    yield "softmax xgboost", xgb.XGBClassifier(**SMALL).fit(X, three), "multi:softprob"
    yield "regression", xgb.XGBRegressor(**SMALL).fit(X, X[:, 0]), "reg:squarederror"
    yield "lightgbm data", lgb.Dataset(X), "Dataset"
    yield "not a model", types.SimpleNamespace(), "SimpleNamespace"
    yield "a function", len, "builtin_function"
    yield "empty", [], "empty list"
    for model in (lgbm(), xgb.XGBClassifier(), OneVsRestClassifier(LogisticRegression())):
        yield f"unfitted {type(model).__name__}", model, "must be fitted"
    wide = LogisticRegression().fit(X, Y[:, 0]), LogisticRegression().fit(X[:, :2], Y[:, 1])
    yield "other features", list(wide), "got 5 and, at place 1, 2"


@pytest.mark.parametrize(
    ("model", "words"),
    [pytest.param(model, words, id=name) for name, model, words in refused_models()],
)
def test_what_has_no_odds_is_refused_in_words(model, words):
    with pytest.raises(InvalidInput, match=words):
        panel_from(model, X)


def test_rows_of_other_features_are_refused():
    model = lgbm().fit(X, Y[:, 0])
    with pytest.raises(InvalidInput, match="X must have the 5 features of training, got 2"):
        panel_from(model, X[:, :2])
    with pytest.raises(InvalidInput, match="shape"):
        panel_from(model, X[0])
    with pytest.raises(InvalidInput, match="batch_rows"):
        panel_from(model, X, batch_rows=0)


def test_one_vs_rest_of_ours_is_a_panel_with_its_names():
    from oddslip.learners import OneVsRest

    model = OneVsRest("logistic", weights="balanced").fit(X, Y, label_names=["a", "b", "c"])
    panel = panel_from(model, X, Y, batch_rows=50)
    assert panel.label_names == ("a", "b", "c")
    np.testing.assert_allclose(panel.scores, model.predict_margin(X), atol=1e-12)


def test_no_library_is_loaded_that_the_model_did_not_load():
    code = (
        "import sys\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from oddslip.adapters import panel_from\n"
        "panel_from(LogisticRegression().fit([[0.], [1.]], [0, 1]), [[0.]])\n"
        "print({'lightgbm', 'xgboost', 'torch', 'catboost'} & set(sys.modules))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "set()"


def test_a_random_forest_of_lightgbm_has_the_log_odds_of_its_probabilities():
    import lightgbm

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1200, 4))
    truth = rng.random(1200) < 0.3
    settings = {"objective": "binary", "boosting": "rf", "bagging_freq": 1, "verbose": -1}
    forest = lightgbm.train(
        settings | {"bagging_fraction": 0.6}, lightgbm.Dataset(rows, truth), num_boost_round=8
    )
    margins = panel_from([forest], rows).scores[:, 0]
    np.testing.assert_allclose(1 / (1 + np.exp(-margins)), forest.predict(rows), rtol=1e-12)
