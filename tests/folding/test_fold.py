"""A folded model, saved and loaded by its library alone, has the scores of the repair."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oddslip
from oddslip.calibrators import Beta, Hierarchical, Isotonic, Offset, Platt
from oddslip.errors import InvalidInput

N_ROWS, N_LABELS, N_FEATURES = 1000, 40, 6
SHIFTS = np.linspace(-16.0, 16.0, N_LABELS)  # nat
DEAD = 7  # a label without a positive among the calibration rows


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    slopes = rng.normal(size=(N_FEATURES, N_LABELS))
    odds = X @ slopes - rng.uniform(1, 3, N_LABELS)
    Y = (rng.random((N_ROWS, N_LABELS)) < 1 / (1 + np.exp(-odds))).astype(int)
    return X, Y


X, Y = make_rows()
CALIBRATION = np.where(np.arange(N_LABELS) == DEAD, 0, Y)


def shifted_repair(margins, calibrator=None):
    """A repair with slopes, intercepts up to 16 nat and a dead label at its prior."""
    repair = (Platt() if calibrator is None else calibrator).set_params(kind="margin")
    return repair.fit(margins - SHIFTS, CALIBRATION)


def by_library(code, **arrays):
    """Probabilities that a process without oddslip computes."""
    script = "import sys; sys.modules['oddslip'] = None\nimport json\nimport numpy as np\n" + code
    script += "\nprint(json.dumps(np.asarray(probabilities, dtype=float).tolist()))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return np.array(json.loads(run.stdout.splitlines()[-1]))


def assert_same(probabilities, expected, tolerance):
    """Equal to rounding, with the same top 7 except among cells closer than that."""
    assert np.abs(probabilities - expected).max() <= tolerance
    ours, theirs = oddslip.rank(probabilities, k=7), oddslip.rank(expected, k=7)
    rows, slots = np.nonzero(ours != theirs)
    gaps = expected[rows, ours[rows, slots]] - expected[rows, theirs[rows, slots]]
    assert np.abs(gaps).max(initial=0.0) <= 2 * tolerance


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, X)
    return path


# ---------------------------------------------------------------------------------------- LightGBM


@pytest.fixture(scope="module")
def boosters():
    import lightgbm

    settings = {"objective": "binary", "verbose": -1, "num_leaves": 7, "seed": 1}
    return [
        lightgbm.train(settings | {"scale_pos_weight": 9.0}, lightgbm.Dataset(X, y), 20)
        for y in Y.T
    ]


def lightgbm_margins(boosters):
    return np.stack([booster.predict(X, raw_score=True) for booster in boosters], axis=1)


def test_lightgbm_boosters_after_saving_and_loading(boosters, rows_file, tmp_path):
    margins = lightgbm_margins(boosters)
    repair = shifted_repair(margins)
    for at, booster in enumerate(oddslip.fold(boosters, repair)):
        booster.save_model(tmp_path / f"{at}.txt")
    probabilities = by_library(
        f"import lightgbm\nX = np.load({str(rows_file)!r})\n"
        f"models = [lightgbm.Booster(model_file={str(tmp_path)!r} + f'/{{at}}.txt') for at in range({N_LABELS})]\n"
        "probabilities = np.stack([model.predict(X) for model in models], axis=1)"
    )
    assert_same(probabilities, repair.transform(margins), 1e-12)
    prior = repair.fitted_.record.prior[DEAD]
    np.testing.assert_allclose(probabilities[:, DEAD], prior, rtol=1e-12)


def test_the_model_that_was_passed_in_is_not_changed(boosters):
    before = [booster.model_to_string() for booster in boosters[:3]]
    oddslip.fold(boosters, shifted_repair(lightgbm_margins(boosters)))
    assert [booster.model_to_string() for booster in boosters[:3]] == before


@pytest.mark.parametrize(
    "settings",
    [
        {"sigmoid": 0.7},
        {"linear_tree": True},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
        {"boosting": "dart"},
        {"objective": "cross_entropy"},
    ],
    ids=str,
)
def test_lightgbm_of_every_kind(settings):
    import lightgbm

    base = {"objective": "binary", "verbose": -1, "num_leaves": 7, "seed": 1}
    boosters = [lightgbm.train(base | settings, lightgbm.Dataset(X, y), 8) for y in Y.T[:3]]
    probabilities = np.stack([booster.predict(X) for booster in boosters], axis=1)
    repair = Platt().fit(probabilities, Y[:, :3])
    folded = oddslip.fold(boosters, repair, X)
    after = np.stack([booster.predict(X) for booster in folded], axis=1)
    assert_same_small(after, repair.transform(probabilities), 1e-12)


def assert_same_small(probabilities, expected, tolerance):
    assert np.abs(probabilities - expected).max() <= tolerance


def test_lightgbm_one_against_all_classes():
    import lightgbm

    classes = Y[:, :3].argmax(axis=1)
    settings = {"objective": "multiclassova", "num_class": 3, "verbose": -1, "num_leaves": 5}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, classes), 5)
    margins = booster.predict(X, raw_score=True)
    repair = Platt(kind="margin").fit(margins, np.eye(3, dtype=int)[classes])
    after = oddslip.fold(booster, repair, X).predict(X, raw_score=True)
    assert_same_small(1 / (1 + np.exp(-after)), repair.transform(margins), 1e-12)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'")
def test_a_classifier_keeps_its_class_and_its_best_rounds():
    import lightgbm

    models = []
    for y in Y.T[:3]:
        model = lightgbm.LGBMClassifier(n_estimators=60, num_leaves=5, verbose=-1)
        stop = lightgbm.early_stopping(3, verbose=False)
        models.append(model.fit(X[:700], y[:700], eval_set=[(X[700:], y[700:])], callbacks=[stop]))
    before = np.stack([model.predict_proba(X)[:, 1] for model in models], axis=1)
    repair = Platt().fit(before, Y[:, :3])
    folded = oddslip.fold(models, repair)
    after = np.stack([model.predict_proba(X)[:, 1] for model in folded], axis=1)
    assert type(folded[0]) is lightgbm.LGBMClassifier
    assert_same_small(after, repair.transform(before), 1e-12)


def test_a_dict_of_models_goes_by_name(boosters):
    names = [f"item {at}" for at in range(N_LABELS)]
    margins = lightgbm_margins(boosters)
    repair = Platt(kind="margin").fit(margins - SHIFTS, CALIBRATION, label_names=names)
    backwards = dict(zip(names[::-1], boosters[::-1], strict=True))
    folded = oddslip.fold(backwards, repair)
    assert list(folded) == names[::-1]
    after = np.stack([folded[name].predict(X) for name in names], axis=1)
    named = repair.transform(pd.DataFrame(margins, columns=names))
    assert_same(after, np.asarray(named), 1e-12)


def test_names_that_differ_are_refused(boosters):
    repair = Offset().fit([[0.5, 0.5], [0.4, 0.6]], [[1, 0], [0, 1]], label_names=["a", "b"])
    with pytest.raises(InvalidInput, match="'c'"):
        oddslip.fold({"a": boosters[0], "c": boosters[1]}, repair)


# ----------------------------------------------------------------------------------------- XGBoost


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_xgboost_of_many_labels_after_saving_and_loading(strategy, rows_file, tmp_path):
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=12, max_depth=3, multi_strategy=strategy).fit(X, Y)
    margins = model.predict(X, output_margin=True).astype(np.float64)
    repair = shifted_repair(margins)
    folded = oddslip.fold(model, repair, X)
    assert type(folded) is xgboost.XGBClassifier
    folded.save_model(tmp_path / "model.json")
    probabilities = by_library(
        f"import xgboost\nX = np.load({str(rows_file)!r})\n"
        f"model = xgboost.XGBClassifier()\nmodel.load_model({str(tmp_path / 'model.json')!r})\n"
        "probabilities = model.predict_proba(X)"
    )
    assert_same(probabilities, repair.transform(margins), 2e-5)


def test_xgboost_boosters_one_for_each_label(rows_file, tmp_path):
    import xgboost

    data = [xgboost.DMatrix(X, y) for y in Y.T]
    settings = {"objective": "binary:logistic", "max_depth": 3, "scale_pos_weight": 9.0}
    boosters = [xgboost.train(settings, each, 12) for each in data]
    margins = np.stack([b.predict(data[0], output_margin=True) for b in boosters], axis=1)
    repair = shifted_repair(margins.astype(np.float64))
    for at, booster in enumerate(oddslip.fold(boosters, repair)):
        booster.save_model(tmp_path / f"{at}.ubj")
    probabilities = by_library(
        f"import xgboost\nX = xgboost.DMatrix(np.load({str(rows_file)!r}))\n"
        f"models = [xgboost.Booster(model_file={str(tmp_path)!r} + f'/{{at}}.ubj') for at in range({N_LABELS})]\n"
        "probabilities = np.stack([model.predict(X) for model in models], axis=1)"
    )
    assert_same(probabilities, repair.transform(margins.astype(np.float64)), 2e-5)


def test_an_xgboost_model_without_trees_of_its_own_is_refused():
    import xgboost

    linear = xgboost.XGBClassifier(booster="gblinear", n_estimators=3).fit(X, Y[:, 0])
    repair = Platt().fit(linear.predict_proba(X)[:, 1:], Y[:, :1])
    with pytest.raises(InvalidInput, match='"gbtree", got "gblinear"'):
        oddslip.fold([linear], repair)


# ---------------------------------------------------------------------------------------- CatBoost


class CatBoostStandIn:
    """The two methods of CatBoost that a fold needs; its raw value is scale x sum + bias."""

    def __init__(self, scale=1.0, bias=0.0):
        self.scale, self.bias = scale, bias

    def get_scale_and_bias(self):
        return self.scale, self.bias

    def set_scale_and_bias(self, scale, bias):
        self.scale, self.bias = scale, bias

    def copy(self):
        return type(self)(self.scale, self.bias)

    def is_fitted(self):
        return True

    def get_all_params(self):
        return {"loss_function": "Logloss" if np.ndim(self.bias) == 0 else "MultiLogloss"}

    feature_names_ = ("0",)
    classes_ = (0, 1)

    def predict(self, rows, prediction_type):
        return self.scale * np.asarray(rows)[:, 0] + self.bias


CatBoostStandIn.__module__ = "catboost.core"


def test_catboost_gets_scale_and_bias():
    model = CatBoostStandIn(2.0, -1.0)
    sums = X[:, :1]
    repair = Platt(kind="margin").fit(model.predict(sums, "RawFormulaVal")[:, None], Y[:, :1])
    folded = oddslip.fold([model], repair, sums)
    after = folded[0].predict(sums, "RawFormulaVal")[:, None]
    expected = repair.transform(model.predict(sums, "RawFormulaVal")[:, None])
    assert_same_small(1 / (1 + np.exp(-after)), expected, 1e-12)
    assert (model.scale, model.bias) == (2.0, -1.0)


def test_catboost_of_many_labels_has_one_scale():
    repair = Platt(kind="margin").fit(X[:, :2], Y[:, :2])
    with pytest.raises(InvalidInput, match="slopes must be equal"):
        oddslip.fold(CatBoostStandIn(1.0, [0.0, 0.0]), repair)


# ------------------------------------------------------------------------------------ scikit-learn

ESTIMATORS = {
    "logistic": OneVsRestClassifier(LogisticRegression(class_weight="balanced")),
    "sgd": OneVsRestClassifier(
        SGDClassifier(loss="log_loss", random_state=0, max_iter=20, tol=None)
    ),
    "multi-output": MultiOutputClassifier(LogisticRegression()),
    "pipeline": make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
    "pipelines inside": OneVsRestClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
    "layers": MLPClassifier((8,), max_iter=30, random_state=0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_after_saving_and_loading(name, rows_file, tmp_path):
    import joblib

    model = ESTIMATORS[name].fit(X, Y)
    margins = np.asarray(oddslip.panel_from(model, X).scores)
    repair = shifted_repair(margins)
    joblib.dump(oddslip.fold(model, repair, X), tmp_path / "model.joblib")
    probabilities = by_library(
        f"import joblib\nmodel = joblib.load({str(tmp_path / 'model.joblib')!r})\n"
        f"probabilities = model.predict_proba(np.load({str(rows_file)!r}))\n"
        "if isinstance(probabilities, list):\n"
        "    probabilities = np.stack([each[:, 1] for each in probabilities], axis=1)"
    )
    assert_same(probabilities, repair.transform(margins), 1e-12)


def test_a_label_of_one_class_in_training_is_folded_too():
    truths = Y[:, :3].copy()
    truths[:, 1] = 0
    with pytest.warns(UserWarning, match="Label not 1"):
        model = OneVsRestClassifier(LogisticRegression()).fit(X, truths)
    margins = np.asarray(oddslip.panel_from(model, X, kind="margin").scores)
    repair = Platt(kind="margin").fit(margins, Y[:, :3])
    folded = oddslip.fold(model, repair, X)
    assert_same_small(folded.predict_proba(X), repair.transform(margins), 1e-12)


def test_a_chain_is_refused_because_its_links_read_each_other():
    chain = ClassifierChain(LogisticRegression()).fit(X, Y[:, :3])
    repair = Offset().fit(np.asarray(chain.predict_proba(X)), Y[:, :3])
    with pytest.raises(InvalidInput, match=r"ClassifierChain.*oddslip\.Repaired"):
        oddslip.fold(chain, repair)


# ------------------------------------------------------------------------------------------- torch


def make_network(dtype):
    import torch

    torch.manual_seed(0)
    parts = [torch.nn.Linear(N_FEATURES, 8), torch.nn.ReLU(), torch.nn.Linear(8, N_LABELS)]
    return torch.nn.Sequential(*parts).to(dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_torch_after_saving_and_loading(dtype, tolerance, rows_file, tmp_path):
    import torch

    model = make_network(getattr(torch, dtype))
    with torch.no_grad():
        margins = model(torch.as_tensor(X, dtype=getattr(torch, dtype))).numpy().astype(np.float64)
    repair = shifted_repair(margins)
    folded = oddslip.fold(model, repair, X)
    torch.save(folded.state_dict(), tmp_path / "model.pt")
    probabilities = by_library(
        "import torch\n"
        f"parts = [torch.nn.Linear({N_FEATURES}, 8), torch.nn.ReLU(), torch.nn.Linear(8, {N_LABELS})]\n"
        f"model = torch.nn.Sequential(*parts).to(torch.{dtype})\n"
        f"model.load_state_dict(torch.load({str(tmp_path / 'model.pt')!r}))\n"
        f"rows = torch.as_tensor(np.load({str(rows_file)!r}), dtype=torch.{dtype})\n"
        "probabilities = torch.sigmoid(model(rows)).detach().numpy()"
    )
    assert_same(probabilities, repair.transform(margins), tolerance)


def test_a_layer_without_a_bias_gets_one_and_shared_weights_stay():
    import torch

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(3, 2)
            self.out = torch.nn.Linear(2, 3, bias=False)
            self.out.weight = self.embedding.weight

        def forward(self, rows):
            return self.out(rows)

    model = Tied().to(torch.float64)
    rows = torch.as_tensor(X[:, :2])
    margins = model(rows).detach().numpy()
    repair = Platt(kind="margin").fit(margins, Y[:, :3])
    folded = oddslip.fold(model, repair)
    after = torch.sigmoid(folded(rows)).detach().numpy()
    assert_same_small(after, repair.transform(margins), 1e-12)
    assert torch.equal(folded.embedding.weight, model.embedding.weight)


def test_several_possible_heads_must_be_named():
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)).to(torch.float64)
    repair = Platt(kind="margin").fit(X[:, :3], Y[:, :3])
    with pytest.raises(InvalidInput, match="'0', '1'"):
        oddslip.fold(model, repair)
    folded = oddslip.fold(model, repair, X[:, :3], head="1")
    assert torch.equal(folded[0].weight, model[0].weight)


def test_a_wrong_head_is_found_on_rows():
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)).to(torch.float64)
    repair = Platt(kind="margin").fit(X[:, :3], Y[:, :3])
    with pytest.raises(InvalidInput, match="must have the log-odds of the repair"):
        oddslip.fold(model, repair, X[:, :3], head="0")


# -------------------------------------------------------------------------------------------- ONNX


@pytest.mark.parametrize("sigmoid", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_onnx_after_saving_and_loading(dtype, tolerance, sigmoid, rows_file, tmp_path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(2)
    weight = rng.normal(size=(N_FEATURES, N_LABELS)).astype(dtype)
    kind = {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}[dtype]
    nodes = [helper.make_node("MatMul", ["X", "W"], ["logits"])]
    nodes += [helper.make_node("Sigmoid", ["logits"], ["p"])] * sigmoid
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("X", kind, ["rows", N_FEATURES])],
        [helper.make_tensor_value_info("p" if sigmoid else "logits", kind, ["rows", N_LABELS])],
        [numpy_helper.from_array(weight, "W")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    before = model.SerializeToString()
    margins = (X.astype(dtype) @ weight).astype(np.float64)
    repair = shifted_repair(margins)
    onnx.save(oddslip.fold(model, repair), tmp_path / "model.onnx")
    output = by_library(
        "import onnxruntime\n"
        f"session = onnxruntime.InferenceSession({str(tmp_path / 'model.onnx')!r})\n"
        f"(probabilities,) = session.run(None, {{'X': np.load({str(rows_file)!r}).astype({dtype!r})}})"
    )
    probabilities = output if sigmoid else 1 / (1 + np.exp(-output))
    assert_same(probabilities, repair.transform(margins), tolerance)
    assert model.SerializeToString() == before
    with pytest.raises(InvalidInput, match="folded already"):
        oddslip.fold(oddslip.fold(model, repair), repair)


# ------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(("calibrator", "form"), [(Isotonic(), "isotonic"), (Beta(), "beta")])
def test_maps_that_are_no_lines_are_refused(boosters, calibrator, form):
    repair = shifted_repair(lightgbm_margins(boosters), calibrator)
    with pytest.raises(InvalidInput, match=rf"got {form} maps .*foldable=True"):
        oddslip.fold(boosters, repair)


def test_a_hierarchical_repair_is_folded(boosters):
    margins = lightgbm_margins(boosters)
    repair = Hierarchical(kind="margin").fit(margins, Y)
    after = np.stack([each.predict(X) for each in oddslip.fold(boosters, repair)], axis=1)
    assert_same(after, repair.transform(margins), 1e-12)


def test_an_excluded_label_is_ranked_last(boosters):
    margins = lightgbm_margins(boosters)
    repair = Platt(kind="margin", dead="exclude").fit(margins, CALIBRATION)
    folded = oddslip.fold(boosters, repair)
    after = np.stack([each.predict(X, raw_score=True) for each in folded], axis=1)
    assert (after.argmin(axis=1) == DEAD).all()
    assert folded[DEAD].predict(X).max() < 1e-300


def test_another_number_of_labels_is_refused(boosters):
    repair = Platt(kind="margin").fit(lightgbm_margins(boosters)[:, :3], Y[:, :3])
    with pytest.raises(InvalidInput, match="the repair's 3 labels, got a list of models with 40"):
        oddslip.fold(boosters, repair)


def test_what_holds_no_repair_is_refused(boosters):
    repair = Platt(kind="margin").fit(X[:, :1], Y[:, :1])
    with pytest.raises(InvalidInput, match=r"Serve it with oddslip\.Repaired"):
        oddslip.fold(lambda rows: rows, repair)
    with pytest.raises(InvalidInput, match="repair must be a fitted repair, got str"):
        oddslip.fold(boosters, "repair.oddslip")
