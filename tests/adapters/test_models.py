"""panel_from on chains, texts, pools, loaders, outputs, sessions, dicts and callables."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from oddslip import InvalidInput, panel_from

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")
torch = pytest.importorskip("torch")

RNG = np.random.default_rng(1)
X = RNG.normal(size=(90, 4))
Y = (X[:, :3] + RNG.normal(size=(90, 3)) > [0.5, 0, 1]).astype(int)
NAMES = ["red", "green", "blue"]


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


# ------------------------------------------------------------------------------------ scikit-learn


@pytest.mark.parametrize("order", [None, [2, 0, 1]])
def test_a_chain_of_log_odds_gives_margins_that_are_its_own_probabilities(order):
    chain = ClassifierChain(LogisticRegression(), order=order).fit(X, Y)
    panel = panel_from(chain, X, Y, batch_rows=40)
    assert panel.kind == "margin"
    np.testing.assert_allclose(expit(panel.scores), chain.predict_proba(X), atol=1e-12)


def test_a_chain_without_log_odds_gives_probabilities():
    chain = ClassifierChain(RandomForestClassifier(3, max_depth=2, random_state=0)).fit(X, Y)
    panel = panel_from(chain, X)
    assert panel.kind == "probability"
    np.testing.assert_array_equal(panel.scores, chain.predict_proba(X))


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("truth", [Y, Y[:, 0]], ids=["labels", "one label"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_mlp_classifiers_give_the_logits_below_their_probabilities(activation, truth):
    model = MLPClassifier((5,), activation=activation, max_iter=3, random_state=0).fit(X, truth)
    panel = panel_from(model, X)
    chances = model.predict_proba(X)
    chances = chances[:, 1:] if truth.ndim == 1 else chances
    assert panel.kind == "margin"
    np.testing.assert_allclose(expit(panel.scores), chances, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_mlp_with_a_softmax_is_refused():
    model = MLPClassifier((5,), max_iter=3, random_state=0).fit(X, Y.sum(axis=1))
    with pytest.raises(InvalidInput, match="softmax"):
        panel_from(model, X)


TEXTS = [f"{'sun' if red else 'rain'} {'sea' if blue else 'wood'} day" for red, _, blue in Y]


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, pl.Series])
def test_pipelines_over_texts_take_texts_in_any_form(form):
    inside = OneVsRestClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    outside = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LogisticRegression()))
    for model in (inside, outside):
        model.fit(TEXTS, Y)
        panel = panel_from(model, form(TEXTS), Y, batch_rows=40)
        assert panel.kind == "margin"
        np.testing.assert_allclose(expit(panel.scores), model.predict_proba(TEXTS), atol=1e-12)


def test_texts_are_refused_by_a_model_of_tables():
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    with pytest.raises(InvalidInput, match=r"shape \(rows, features\) for this model, got texts"):
        panel_from(model, TEXTS)


# -------------------------------------------------------------------------------- names and labels


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_labels_names_the_panel(frame):
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    truth = frame(dict(zip(NAMES, Y.T, strict=True)))
    panel = panel_from(model, X, truth)
    assert panel.label_names == tuple(NAMES)
    np.testing.assert_array_equal(panel.truths(), Y)


def test_a_dict_of_models_names_its_labels_and_goes_by_name_to_a_frame():
    models = {
        name: LogisticRegression().fit(X, truth) for name, truth in zip(NAMES, Y.T, strict=True)
    }
    turned = pd.DataFrame(Y, columns=NAMES)[["blue", "red", "green"]]
    panel = panel_from(models, X, turned)
    assert panel.label_names == tuple(NAMES)
    np.testing.assert_array_equal(panel.truths(), Y)
    np.testing.assert_array_equal(panel.scores[:, 2], models["blue"].decision_function(X))
    with pytest.raises(InvalidInput, match="empty"):
        panel_from({}, X)


# --------------------------------------------------------------------------------------- callables


def margins(rows):
    return 3 * np.asarray(rows)[:, :3]


def test_a_callable_is_taken_at_its_word():
    panel = panel_from(margins, X, Y, kind="margin", batch_rows=7)
    np.testing.assert_array_equal(panel.scores, margins(X))
    assert (
        panel_from(lambda rows: expit(margins(rows)), X, kind="probability").kind == "probability"
    )


def test_scores_beyond_zero_and_one_are_margins_and_others_have_to_be_said():
    assert panel_from(margins, X).kind == "margin"
    with pytest.raises(InvalidInput, match=r'kind must be said.*Pass kind="probability"'):
        panel_from(lambda rows: expit(margins(rows)), X)


def test_a_dict_of_callables_and_models_mixes_where_the_kind_is_said():
    logistic = LogisticRegression().fit(X, Y[:, 0])
    panel = panel_from({"a": logistic, "b": lambda rows: expit(rows[:, 1])}, X, kind="probability")
    np.testing.assert_allclose(panel.scores[:, 0], logistic.predict_proba(X)[:, 1], atol=1e-12)
    np.testing.assert_array_equal(panel.scores[:, 1], expit(X[:, 1]))


@pytest.mark.parametrize(
    "wrong", [lambda rows: rows[:3], lambda rows: 1.0, lambda rows: rows[None]]
)
def test_a_callable_of_another_shape_is_refused(wrong):
    with pytest.raises(InvalidInput, match=r"scores of shape \(rows, labels\)"):
        panel_from(wrong, X, kind="margin")


def test_the_class_of_a_model_is_no_model():
    with pytest.raises(InvalidInput, match="the class LogisticRegression"):
        panel_from(LogisticRegression, X)


def test_a_model_that_knows_its_kind_is_converted_when_another_is_asked_for():
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    panel = panel_from(model, X, kind="probability")
    np.testing.assert_allclose(panel.scores, model.predict_proba(X), atol=1e-12)
    forest = MultiOutputClassifier(RandomForestClassifier(3, random_state=0)).fit(X, Y)
    odds = panel_from(forest, X, kind="margin")
    chances = np.clip(panel_from(forest, X).scores, 1e-12, 1 - 1e-12)
    np.testing.assert_allclose(odds.scores, logit(chances), atol=1e-9)


# ---------------------------------------------------------------------------------------- boosters


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_both_strategies_of_xgboost_are_read_from_rows_and_from_a_matrix(strategy):
    model = xgb.XGBClassifier(n_estimators=4, multi_strategy=strategy, n_jobs=1).fit(X, Y)
    from_rows = panel_from(model, X, Y)
    np.testing.assert_allclose(expit(from_rows.scores), model.predict_proba(X), atol=1e-6)
    for reader in (model, model.get_booster()):
        matrix = panel_from(reader, xgb.DMatrix(X), Y)
        np.testing.assert_array_equal(matrix.scores, from_rows.scores)
    with pytest.raises(InvalidInput, match="4 features of training, got 2"):
        panel_from(model, xgb.DMatrix(X[:, :2]))


def test_an_xgboost_that_was_stopped_early_keeps_its_best_rounds_on_a_matrix():
    options = {"n_estimators": 30, "early_stopping_rounds": 1, "n_jobs": 1, "learning_rate": 1.0}
    model = xgb.XGBClassifier(**options).fit(X[:60], Y[:60], eval_set=[(X[60:], Y[60:])], verbose=0)
    assert model.best_iteration < 28
    np.testing.assert_array_equal(
        panel_from(model, xgb.DMatrix(X)).scores, panel_from(model, X).scores
    )


class Pool:
    """CatBoost's form of rows, by the names it has there."""

    def __init__(self, rows):
        self.rows = rows

    def num_row(self):
        return len(self.rows)

    def num_col(self):
        return self.rows.shape[1]


class CatBoostClassifier:
    feature_names_ = ("0", "1", "2", "3")

    def __init__(self, names):
        self.classes_ = np.array(names)

    def is_fitted(self):
        return True

    def get_all_params(self):
        return {"loss_function": "MultiLogloss"}

    def predict(self, rows, prediction_type):
        assert prediction_type == "RawFormulaVal"
        return margins(rows.rows)


Pool.__module__ = CatBoostClassifier.__module__ = "catboost.core"


def test_a_pool_is_scored_whole_and_catboost_names_its_labels():
    panel = panel_from(CatBoostClassifier(NAMES), Pool(X), Y, batch_rows=7)
    np.testing.assert_array_equal(panel.scores, margins(X))
    assert panel.label_names == tuple(NAMES)
    assert panel_from(CatBoostClassifier([0, 1, 2]), Pool(X)).label_names is None
    with pytest.raises(InvalidInput, match="4 features of training, got 3"):
        panel_from(CatBoostClassifier(NAMES), Pool(X[:, :3]))


# ------------------------------------------------------------------------------------------- torch


class Ending(torch.nn.Module):
    """A network that ends in a sigmoid in the way that is asked for."""

    def __init__(self, end):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.end = torch.nn.Linear(4, 3), end

    def forward(self, rows):
        return self.end(torch.tanh(self.layer(rows)))


@pytest.mark.parametrize(
    "end",
    [torch.sigmoid, torch.nn.Sigmoid(), torch.special.expit, lambda cells: cells.sigmoid()],
    ids=["function", "module", "expit", "method"],
)
def test_a_module_that_ends_in_a_sigmoid_is_recognised_however_it_is_written(end):
    logits = panel_from(Ending(torch.nn.Identity()), X, kind="margin")
    panel = panel_from(Ending(end), X)
    assert panel.kind == "margin"
    np.testing.assert_array_equal(panel.scores, logits.scores)


def test_a_sigmoid_within_a_module_is_not_its_end():
    module = Ending(lambda cells: 5 * torch.sigmoid(cells) - 1)
    with torch.no_grad():
        expected = module(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_array_equal(panel_from(module, X).scores, expected)


def test_a_module_whose_end_can_not_be_seen_says_its_kind():
    module = Ending(lambda cells: 1 / (1 + torch.exp(-cells)))
    with pytest.raises(InvalidInput, match="kind must be said"):
        panel_from(module, X)
    assert panel_from(module, X, kind="probability").checked().kind == "probability"


@pytest.mark.parametrize("batches", ["rows", "pairs", "dicts"])
def test_a_loader_brings_rows_and_the_labels_it_holds(batches):
    rows, truth = torch.tensor(X, dtype=torch.float32), torch.tensor(Y, dtype=torch.float32)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3))
    model = net if batches != "dicts" else Shaped(net)
    if batches == "dicts":
        data = [{"inputs": row, "labels": true} for row, true in zip(rows, truth, strict=True)]
    else:
        data = torch.utils.data.TensorDataset(rows, *([truth] if batches == "pairs" else []))
    loader = torch.utils.data.DataLoader(data, batch_size=32)
    panel = panel_from(model, loader, kind="margin")
    alike = panel_from(net, X, kind="margin", batch_rows=32)  # float32 sums depend on the batch
    np.testing.assert_array_equal(panel.scores, alike.scores)
    assert (panel.labels is None) == (batches == "rows")
    if batches != "rows":
        np.testing.assert_array_equal(panel.truths(), Y)


def test_a_loader_is_refused_by_a_model_of_tables():
    loader = torch.utils.data.DataLoader(torch.tensor(X), batch_size=32)
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    with pytest.raises(InvalidInput, match="got a DataLoader"):
        panel_from(model, loader)


def test_a_network_over_indices_gets_indices():
    words = RNG.integers(0, 9, size=(20, 6))
    net = torch.nn.Sequential(torch.nn.EmbeddingBag(9, 4), torch.nn.Linear(4, 3))
    with torch.no_grad():
        expected = net(torch.tensor(words)).numpy()
    np.testing.assert_array_equal(panel_from(net, words, kind="margin").scores, expected)


# ------------------------------------------------------------------------------ Hugging Face-shaped


class Output(dict):
    """A dict whose keys are attributes too, as their outputs are."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]


class Shaped(torch.nn.Module):
    """Takes tables by name, returns an object with logits, knows its labels by number."""

    def __init__(self, inner, problem_type="multi_label_classification", names=NAMES):
        super().__init__()
        self.inner = inner
        id2label = dict(enumerate(names))
        self.config = SimpleNamespace(problem_type=problem_type, id2label=id2label)

    def forward(self, inputs, attention_mask=None):
        return Output(logits=self.inner(inputs))


class PredictionOutput(NamedTuple):
    predictions: object
    label_ids: object
    metrics: object = None


def test_tables_by_name_go_to_the_module_and_its_configuration_names_the_labels():
    net = torch.nn.Linear(4, 3)
    encoded = {"inputs": X.astype(np.float32), "attention_mask": np.ones((90, 4), int)}
    panel = panel_from(Shaped(net), encoded | {"labels": Y}, batch_rows=40)
    assert (panel.kind, panel.label_names) == ("margin", tuple(NAMES))
    np.testing.assert_array_equal(panel.truths(), Y)
    alike = panel_from(net, X, kind="margin", batch_rows=40)  # float32 sums depend on the batch
    np.testing.assert_array_equal(panel.scores, alike.scores)


def test_default_names_are_no_names_and_a_softmax_is_refused():
    net, encoded = torch.nn.Linear(4, 3), {"inputs": X.astype(np.float32)}
    plain = Shaped(net, names=["LABEL_0", "LABEL_1", "LABEL_2"])
    assert panel_from(plain, encoded).label_names is None
    with pytest.raises(InvalidInput, match="problem_type 'single_label_classification'"):
        panel_from(Shaped(net, "single_label_classification"), encoded)
    with pytest.raises(InvalidInput, match="as many rows"):
        panel_from(plain, {"inputs": X[:3], "attention_mask": X[:2]})


def test_what_a_trainer_predicted_is_a_panel_with_its_labels():
    logits = margins(X).astype(np.float32)
    for data in (logits, (logits, "hidden states")):
        panel = panel_from(PredictionOutput(data, Y), label_names={1: "green", 0: "red", 2: "blue"})
        assert (panel.kind, panel.label_names) == ("margin", tuple(NAMES))
        np.testing.assert_array_equal(panel.scores, logits)
        np.testing.assert_array_equal(panel.truths(), Y)
    with pytest.raises(InvalidInput, match="one class per row"):
        panel_from(PredictionOutput(logits, Y[:, 0]))
    with pytest.raises(InvalidInput, match="kind must be said"):
        panel_from(PredictionOutput(expit(logits), Y))
    with pytest.raises(InvalidInput, match="X must be left out"):
        panel_from(PredictionOutput(logits, Y), X)


def test_what_a_module_returned_is_a_panel():
    logits = torch.tensor(margins(X))
    for output in (SimpleNamespace(logits=logits), Output(logits=logits), logits):
        panel = panel_from(output, labels=Y)
        assert panel.kind == "margin"
        np.testing.assert_array_equal(panel.scores, margins(X))
    with pytest.warns(UserWarning, match="bfloat16"):
        narrow = panel_from(SimpleNamespace(logits=logits.to(torch.bfloat16)))
    np.testing.assert_allclose(narrow.scores, margins(X), rtol=2**-8)


def test_a_model_without_rows_is_asked_for_rows():
    with pytest.raises(InvalidInput, match="X must be given"):
        panel_from(torch.nn.Linear(4, 3))


# --------------------------------------------------------------------------------------------- onnx


def session(*outputs, inputs=("x",)):
    """A session of a table times fixed slopes, under these names."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    slopes = helper.make_tensor("w", TensorProto.FLOAT, (4, 3), np.eye(4, 3).ravel())
    nodes = [helper.make_node("MatMul", [inputs[0], "w"], [name]) for name in outputs]
    graph = helper.make_graph(
        nodes,
        "slopes",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("rows", 4)) for name in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("rows", 3)) for name in outputs],
        [slopes],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def test_a_session_of_onnxruntime_is_scored_in_its_own_type():
    panel = panel_from(session("logits"), X, Y, batch_rows=40)
    assert (panel.kind, panel.scores.dtype) == ("margin", np.float32)
    np.testing.assert_array_equal(panel.scores, X[:, :3].astype(np.float32))
    other = panel_from(session("scores"), X, kind="margin")
    np.testing.assert_array_equal(other.scores, panel.scores)
    with pytest.raises(InvalidInput, match="4 features of training, got 2"):
        panel_from(session("logits"), X[:, :2])
    with pytest.raises(InvalidInput, match="of which one must be a table of scores"):
        panel_from(session("one", "two"), X)
