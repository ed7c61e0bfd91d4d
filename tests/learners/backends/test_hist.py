"""Boosting with the base install: the trees of scikit-learn, kept as arrays, scored by us."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from oddslip import InvalidInput, MatchedPair, OneVsRest, UnreadableFile
from oddslip.learners.backends.hist import BACKEND

RNG = np.random.default_rng(4)
X = RNG.normal(size=(300, 5))
X[:, 4] = RNG.integers(-1, 2, 300)
Y = (X[:, :4] + RNG.normal(size=(300, 4)) > [0.0, 0.8, 1.5, 9.0]).astype(int)
SMALL = {"max_iter": 8, "max_leaf_nodes": 6, "min_samples_leaf": 5}


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


def missing(cells):
    cells = cells.copy()
    cells[RNG.random(cells.shape) < 0.2] = np.nan
    return cells


def theirs(rows, truth, weight, **parameters):
    model = HistGradientBoostingClassifier(
        **{
            "learning_rate": 0.05,
            "random_state": 42,
            "early_stopping": False,
            **SMALL,
            **parameters,
        }
    )
    return model.fit(rows, truth, sample_weight=np.where(truth, weight, 1.0))


@pytest.mark.parametrize(
    "rows", [X, missing(X), X.astype(np.float32)], ids=["full", "missing", "float32"]
)
@pytest.mark.parametrize("weights", ["none", "balanced"])
def test_margins_have_the_bits_of_scikit_learns_decision_function(rows, weights):
    ours = OneVsRest("hist", weights=weights, parameters=SMALL, threads=2).fit(rows, Y)
    assert ours.constant_.tolist() == [False, False, False, True]
    unusual = np.vstack([rows, rows * 1e-37, missing(rows), np.full_like(rows[:1], np.inf)])
    for batch in (rows, unusual):
        margins = ours.predict_margin(batch)
        for label in range(3):
            loop = theirs(rows, Y[:, label], ours.weights_[label])
            np.testing.assert_array_equal(margins[:, label], loop.decision_function(batch))


def test_trees_with_more_leaves_than_the_kernel_holds_have_the_same_bits():
    parameters = {"max_iter": 2, "max_leaf_nodes": 90, "min_samples_leaf": 1}
    ours = OneVsRest("hist", parameters=parameters).fit(X, Y)
    assert max(model.n_leaves.max() for model in ours._models) > 64
    expected = theirs(X, Y[:, 0], 1.0, **parameters).decision_function(X)
    np.testing.assert_array_equal(ours.predict_margin(X)[:, 0], expected)


def test_sparse_rows_are_the_rows_they_stand_for():
    cells = np.where(RNG.random(X.shape) < 0.5, X, 0)
    dense = OneVsRest("hist", parameters=SMALL).fit(cells, Y).predict_margin(cells)
    thin = OneVsRest("hist", parameters=SMALL).fit(sp.csr_matrix(cells), Y)
    np.testing.assert_array_equal(thin.predict_margin(sp.csc_matrix(cells)), dense)


def test_it_is_saved_without_pickle_and_continues_from_a_checkpoint(tmp_path):
    options = {"parameters": SMALL, "checkpoint": tmp_path / "kept"}
    model = OneVsRest("hist", **options).fit(X, Y, label_names=list("abcd"))
    margins = model.predict_margin(missing(X))
    model.save(tmp_path / "model.oddmodel")
    loaded = OneVsRest.load(tmp_path / "model.oddmodel")
    continued = OneVsRest("hist", **options).fit(X, Y)
    rows = missing(X)
    for other in (loaded, continued):
        np.testing.assert_array_equal(other.predict_margin(X), model.predict_margin(X))
        np.testing.assert_array_equal(other.predict_margin(rows), model.predict_margin(rows))
    assert loaded.label_names_ == tuple("abcd")
    assert margins.shape == Y.shape
    assert b"pickle" not in BACKEND.dump(model._models[0])


def test_a_cut_model_is_the_model_of_fewer_rounds():
    model = OneVsRest("hist", parameters=SMALL).fit(X, Y)
    for group, trained in zip(model._groups, model._models, strict=True):
        assert BACKEND.n_rounds(trained) == 8
        short = BACKEND.cut(trained, 3)
        assert BACKEND.n_rounds(short) == 3
        for place, label in enumerate(group):
            expected = theirs(X, Y[:, label], 1.0, max_iter=3).decision_function(X)
            np.testing.assert_array_equal(BACKEND.predict_margin(short, X)[:, place], expected)
        staged = BACKEND.stage(trained, X, 0, 3) + BACKEND.stage(trained, X, 3, 8)
        np.testing.assert_allclose(staged, BACKEND.predict_margin(trained, X), atol=1e-12)


def test_a_matched_pair_can_be_trained_without_any_extra():
    pair = MatchedPair(OneVsRest("hist", parameters=SMALL)).fit(X, Y)
    panels = pair.panels(X, Y)
    assert (panels.weighted.scores[:, 2] > panels.unweighted.scores[:, 2]).mean() > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameters": {"max_iter": 0}}, "scikit-learn refuses this: .*max_iter"),
        ({"parameters": {"num_leaves": 4}}, "of hist must be among max_iter, .* got 'num_leaves'"),
        ({"max_delta_step": 1.0}, "max_delta_step must be 0 for learner='hist', which has no cap"),
    ],
)
def test_unsupported_options_are_rejected(options, message):
    with pytest.raises(InvalidInput, match=message):
        OneVsRest("hist", **options).fit(X, Y)


def arrays_of(model):
    with np.load(io.BytesIO(BACKEND.dump(model))) as arrays:
        return dict(arrays)


TRAINED = OneVsRest("hist", parameters=SMALL, threads=1).fit(X, Y)._models[0]


def told(name, at, value):
    def change(arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][at] = value

    return change


def drop(name):
    return lambda arrays: arrays.pop(name)


def retype(name, dtype):
    return lambda arrays: arrays.update({name: arrays[name].astype(dtype)})


CRAFTED = {
    "a child that is its parent": told("left", 0, 0),
    "a child beyond its tree": told("right", 0, 10_000),
    "a leaf beyond its tree": told("right", 0, -500),
    "a feature beyond": told("feature", 0, 5),
    "a feature below": told("feature", 0, -1),
    "a threshold that is none": told("threshold", 0, np.nan),
    "a value that is not finite": told("value", 0, np.inf),
    "a start that is not finite": told("starts", 0, np.nan),
    "a strange side": told("missing_left", 0, 7),
    "no leaves": told("n_leaves", 0, 0),
    "leaves beyond": told("n_leaves", 0, 2**40),
    "trees beyond": told("n_trees", 0, 9),
    "trees below": told("n_trees", 0, -1),
    "other features": told("n_features", 0, 4),
    "an array less": drop("value"),
    "another array": lambda arrays: arrays.update(more=np.zeros(1)),
    "another type": retype("left", np.int32),
    "numbers as text": retype("starts", str),
    "fewer nodes": lambda arrays: arrays.update(feature=arrays["feature"][1:]),
    "fewer leaves": lambda arrays: arrays.update(value=arrays["value"][1:]),
    "fewer labels": lambda arrays: arrays.update(starts=arrays["starts"][:0]),
    "two dimensions": lambda arrays: arrays.update(starts=arrays["starts"][None]),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_group_is_refused_in_one_line(name):
    arrays = arrays_of(TRAINED)
    CRAFTED[name](arrays)
    file = io.BytesIO()
    np.savez(file, **arrays)
    with pytest.raises(UnreadableFile, match="a group of labels is damaged: "):
        BACKEND.load(file.getvalue(), n_labels=TRAINED.starts.size, n_features=5)


def test_a_group_as_it_was_dumped_is_let_through_and_other_bytes_are_not():
    loaded = BACKEND.load(BACKEND.dump(TRAINED), n_labels=TRAINED.starts.size, n_features=5)
    np.testing.assert_array_equal(
        BACKEND.predict_margin(loaded, X), BACKEND.predict_margin(TRAINED, X)
    )
    with pytest.raises(UnreadableFile, match=r"must be an \.npz"):
        BACKEND.load(b"trees")
