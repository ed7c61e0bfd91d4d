"""The estimator: its conventions, constant labels, forms of input, files."""

import json

import numpy as np
import pytest

pytest.importorskip("lightgbm")

from scipy import sparse
from sklearn.base import clone

from oddslip.errors import InvalidInput, MissingDependency, UnreadableFile
from oddslip.learners import OneVsRest
from oddslip.learners.backends import base as backends_module
from oddslip.learners.backends.base import PRESETS, preset_parameters

QUICK = {"num_iterations": 4, "num_leaves": 5}


def make_rows(n_rows=300, n_labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    Y = X @ rng.normal(size=(5, n_labels)) + rng.logistic(size=(n_rows, n_labels)) > 2
    return X, Y.astype(np.uint8)


def test_the_constructor_only_stores_and_clone_gives_the_same():
    weights = np.array([1.0, 2.0])
    model = OneVsRest(weights=weights, preset="nonsense", parameters={"a": 1})
    assert model.weights is weights
    copy = clone(model)
    assert copy.get_params()["preset"] == "nonsense"
    assert copy.parameters == {"a": 1}


def test_probabilities_are_the_sigmoid_of_margins():
    X, Y = make_rows()
    model = OneVsRest(weights="balanced", parameters=QUICK).fit(X, Y)
    margins = model.predict_margin(X)
    assert np.allclose(model.predict_proba(X), 1 / (1 + np.exp(-margins)), rtol=1e-14)


def test_a_label_without_a_positive_or_without_a_negative_predicts_its_prevalence():
    X, Y = make_rows()
    Y[:, 1], Y[:, 2] = 0, 1
    model = OneVsRest(weights="balanced", parameters=QUICK).fit(X, Y)
    assert model.constant_.tolist() == [False, True, True, False]
    chances = model.predict_proba(X)
    assert set(chances[:, 1]) == {0.0}
    assert set(chances[:, 2]) == {1.0}
    margins = model.predict_margin(X)
    assert np.allclose(margins[:, 1], np.log(1e-12), rtol=1e-6)
    assert np.allclose(margins[:, 2], -np.log(1e-12), rtol=1e-4)
    assert model.weights_[1] == 1.0
    model.panel(X, Y).checked()


def test_labels_that_are_all_constant_need_no_learner_at_all(tmp_path):
    X, Y = make_rows()
    model = OneVsRest(parameters=QUICK).fit(X, np.zeros_like(Y))
    model.save(tmp_path / "m.oddmodel")
    assert not OneVsRest.load(tmp_path / "m.oddmodel").predict_proba(X).any()


def test_every_form_of_labels_and_features_gives_the_same_model():
    X, Y = make_rows()
    expected = OneVsRest(parameters=QUICK).fit(X, Y).predict_margin(X)
    lists = [np.flatnonzero(row).tolist() for row in Y]
    lists[0] = sorted({*lists[0], 3})  # the highest label must occur for lists to tell it
    again = Y.copy()
    again[0, 3] = 1
    for form in (Y.astype(bool), Y.tolist(), sparse.csr_matrix(Y), sparse.coo_array(Y)):
        assert np.array_equal(OneVsRest(parameters=QUICK).fit(X, form).predict_margin(X), expected)
    from_lists = OneVsRest(parameters=QUICK).fit(X, lists)
    assert np.array_equal(
        from_lists.predict_margin(X), OneVsRest(parameters=QUICK).fit(X, again).predict_margin(X)
    )
    fortran = OneVsRest(parameters=QUICK).fit(np.asfortranarray(X), Y)
    assert np.array_equal(fortran.predict_margin(np.asfortranarray(X)), expected)


def test_names_of_a_frame_reach_the_panel():
    pandas = pytest.importorskip("pandas")
    X, Y = make_rows()
    frame = pandas.DataFrame(Y, columns=["a", "b", "c", "d"])
    model = OneVsRest(parameters=QUICK).fit(pandas.DataFrame(X), frame)
    assert model.panel(pandas.DataFrame(X), frame).label_names == ("a", "b", "c", "d")


def test_neither_threads_nor_memory_change_a_bit():
    X, Y = make_rows(n_labels=7)
    expected = OneVsRest(parameters=QUICK, threads=1).fit(X, Y).predict_margin(X)
    for threads, memory in ((1, 1), (2, 10**9), (3, 40 * 300 * 6)):
        options = {"threads": threads, "memory_bytes": memory}
        model = OneVsRest(parameters=QUICK, **options).fit(X, Y)
        assert np.array_equal(model.predict_margin(X), expected)


def test_inputs_are_never_changed():
    X, Y = make_rows()
    X.flags.writeable = Y.flags.writeable = False
    model = OneVsRest(weights="balanced", parameters=QUICK).fit(X, Y)
    model.predict_proba(X)


def test_prepared_features_serve_arms_that_differ_in_weights_and_cap_alone():
    X, Y = make_rows()
    arm = OneVsRest(weights="sqrt", max_delta_step=0.5, parameters=QUICK)
    prepared = OneVsRest(parameters=QUICK).prepare(X)
    expected = clone(arm).fit(X, Y).predict_margin(X)
    assert np.array_equal(arm.fit(prepared, Y).predict_margin(X), expected)
    with pytest.raises(InvalidInput, match="prepared by"):
        OneVsRest(parameters={"num_leaves": 9}).fit(prepared, Y)


def test_a_saved_model_predicts_the_same_bits_and_stores_its_options(tmp_path):
    X, Y = make_rows()
    Y[:, 1] = 0
    options = {"weights": "sqrt", "max_delta_step": 0.7, "parameters": {"max_bin": np.int64(63)}}
    model = OneVsRest(preset="paper-booster", **options).fit(X, Y, label_names=list("abcd"))
    model.save(tmp_path / "m.oddmodel")
    loaded = OneVsRest.load(tmp_path / "m.oddmodel")
    assert np.array_equal(loaded.predict_margin(X), model.predict_margin(X))
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.label_names_ == ("a", "b", "c", "d")
    assert loaded.parameters_ == model.parameters_
    assert np.array_equal(loaded.weights_, model.weights_)
    loaded.save(tmp_path / "again.oddmodel")
    assert (tmp_path / "again.oddmodel").read_bytes() == (tmp_path / "m.oddmodel").read_bytes()
    assert loaded.fit(X, Y).predict_margin(X).tolist() == model.predict_margin(X).tolist()


@pytest.mark.parametrize("cut", [0, 10, 0.5, 0.99])
def test_a_file_cut_short_is_refused(tmp_path, cut):
    X, Y = make_rows()
    path = tmp_path / "m.oddmodel"
    OneVsRest(parameters=QUICK).fit(X, Y).save(path)
    data = path.read_bytes()
    path.write_bytes(data[: cut if isinstance(cut, int) else int(len(data) * cut)])
    with pytest.raises(UnreadableFile):
        OneVsRest.load(path)


def test_a_file_with_another_groups_bytes_is_refused(tmp_path):
    X, Y = make_rows()
    OneVsRest(parameters=QUICK).fit(X, Y).save(tmp_path / "m.oddmodel")
    raw = (tmp_path / "m.oddmodel").read_bytes()
    (tmp_path / "n.oddmodel").write_bytes(raw[:-100] + raw[-99:] + raw[-100:-99])
    with pytest.raises(UnreadableFile, match="altered"):
        OneVsRest.load(tmp_path / "n.oddmodel")


def test_a_missing_package_is_named_with_what_to_install(monkeypatch):
    def no_module(_):
        raise ModuleNotFoundError("No module named 'lightgbm'", name="lightgbm")

    monkeypatch.setattr(backends_module, "_import_backend", no_module)
    with pytest.raises(MissingDependency) as caught:
        OneVsRest().fit(*make_rows())
    assert str(caught.value) == (
        'OneVsRest(learner="lightgbm") needs lightgbm. Run: pip install "oddslip[lightgbm]"'
    )


class MeanBackend(backends_module.Backend):
    """Offers what a learner must, and nothing that it may."""

    name, extension = "means", ".json"

    def defaults(self):
        return {"shrink": 1.0}

    def versions(self):
        return {"means": "1"}

    def prepare(self, X, parameters):
        return X

    def group_size(self, n_labels, n_rows, n_features, memory_bytes):
        return 2

    def train(self, prepared, Y, weights, parameters, seed):
        means = np.average(Y, axis=0)
        return parameters["shrink"] * np.log(means / (1 - means))

    def predict_margin(self, model, X):
        return np.tile(model, (X.shape[0], 1))

    def dump(self, model):
        return json.dumps(model.tolist()).encode()

    def load(self, data, n_labels=None, n_features=None):
        return np.array(json.loads(data))


def test_a_learner_that_offers_only_what_it_must_is_trained_kept_and_saved(tmp_path, monkeypatch):
    monkeypatch.setitem(backends_module._INSTALLS, "means", "oddslip")
    monkeypatch.setattr(backends_module, "_import_backend", lambda _: MeanBackend())
    X, Y = make_rows()
    options = {"checkpoint": tmp_path / "kept", "parameters": {"shrink": 0.5}, "threads": 2}
    model = OneVsRest("means", **options).fit(X, Y)
    assert [group.size for group in model._groups] == [2, 2]
    margins = model.predict_margin(X)
    means = Y.mean(axis=0)
    np.testing.assert_allclose(margins[0], 0.5 * np.log(means / (1 - means)))
    manifest = json.loads((tmp_path / "kept" / "training.json").read_text())
    assert manifest["configuration"]["versions"] == {"means": "1"}
    model.save(tmp_path / "m.oddmodel")
    assert np.array_equal(OneVsRest.load(tmp_path / "m.oddmodel").predict_margin(X), margins)


@pytest.mark.parametrize("learner", backends_module.LEARNERS)
def test_every_learner_is_a_backend_and_says_its_versions(learner):
    backend = backends_module.get_backend(learner)
    assert isinstance(backend, backends_module.Backend)
    assert "numpy" in backend.versions()
    assert "json" not in backend.versions()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"learner": "forest"}, "learner must be one of"),
        ({"mode": "both"}, "mode must be"),
        ({"preset": "paper"}, "preset must be one of"),
        ({"preset": "paper-mlp"}, "learner='mlp'"),
        ({"max_delta_step": -1.0}, "at least 0"),
        ({"parameters": {"max_delta_step": 1}}, "OneVsRest itself"),
        ({"weights": [1.0, 2.0]}, "one number per label"),
        ({"threads": 0}, "threads must be at least 1"),
        (
            {"learner": "logistic", "parameters": {"c": 1}},
            "of logistic must be among C, .* got 'c'",
        ),
        (
            {"learner": "mlp", "parameters": {"layers": 1}},
            "of mlp must be among hidden, .*'layers'",
        ),
        ({"learner": "mlp", "parameters": {"epochs": -1}}, "epochs must be at least 0"),
        ({"learner": "mlp", "parameters": {"hidden": "wide"}}, "hidden must list the widths"),
        ({"learner": "mlp", "parameters": {"learning_rate": 0}}, "learning_rate must be above 0"),
        (
            {"learner": "xgboost", "parameters": {"n_estimators": -1}},
            "n_estimators must be at least",
        ),
    ],
)
def test_invalid_arguments_are_rejected_with_the_reason(options, what):
    with pytest.raises(InvalidInput, match=what):
        OneVsRest(**options).fit(*make_rows())


def test_scores_that_are_not_finite_are_never_given():
    X, Y = make_rows()
    model = OneVsRest("logistic").fit(X, Y)
    X[2, 3] = np.nan
    with pytest.raises(InvalidInput, match="scores must be finite, got others for label 0"):
        model.predict_margin(X)


def test_rows_and_columns_must_agree():
    X, Y = make_rows()
    with pytest.raises(InvalidInput, match="same rows, got 299 and 300"):
        OneVsRest().fit(X[1:], Y)
    with pytest.raises(InvalidInput, match="fitted first"):
        OneVsRest().predict_margin(X)
    model = OneVsRest(parameters=QUICK).fit(X, Y)
    with pytest.raises(InvalidInput, match="5 features of training, got 4"):
        model.predict_margin(X[:, 1:])
    with pytest.raises(InvalidInput, match="Encode text"):
        OneVsRest().fit(X.astype(str), Y)


def test_presets_hold_what_the_paper_says():
    default = preset_parameters("paper-default")
    booster = preset_parameters("paper-booster")
    assert (default["num_iterations"], booster["num_iterations"]) == (200, 60)
    for parameters in (default, booster):
        assert (parameters["learning_rate"], parameters["num_leaves"]) == (0.05, 31)
    assert len(PRESETS) == 7


def test_a_preset_that_is_changed_stays_what_it_was():
    preset_parameters("paper-mlp")["hidden"].append(7)
    assert preset_parameters("paper-mlp")["hidden"] == [64, 64]
