"""Logistic regression of all labels at once against scikit-learn, label by label."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from oddslip.errors import InvalidInput
from oddslip.learners.backends.base import preset_parameters
from oddslip.learners.backends.logistic import BACKEND


def make_rows(seed=0, n_rows=300, n_features=15, n_labels=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.5)
    slopes = rng.normal(size=(n_features, n_labels))
    noise = rng.logistic(size=(n_rows, n_labels))
    Y = (X @ slopes + noise > np.linspace(1, 4, n_labels)).astype(np.uint8)
    Y[0], Y[1] = 1, 0
    return X, Y


def balanced(Y):
    return (1 - Y.mean(axis=0)) / Y.mean(axis=0)


def train(X, Y, weights, **changed):
    parameters = {**BACKEND.defaults(), **changed}
    return BACKEND.train(
        BACKEND.prepare(X, parameters), Y, np.asarray(weights, float), parameters, 0
    )


def margins(X, Y, weights, **changed):
    return BACKEND.predict_margin(train(X, Y, weights, **changed), X)


def loop(X, Y, weights, C=1.0):
    """scikit-learn's exact solver: its lbfgs stops too early to be compared at 1e-6."""
    columns = []
    for label in range(Y.shape[1]):
        shares = np.where(Y[:, label] == 1, weights[label], 1.0)
        model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-11)
        columns.append(model.fit(X, Y[:, label], sample_weight=shares).decision_function(X))
    return np.stack(columns, axis=1)


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 1000),
    exponent=st.floats(-2, 9),
    C=st.sampled_from([0.01, 1.0, 30.0]),
    form=st.sampled_from([np.asarray, sp.csr_matrix, sp.csc_array]),
)
def test_margins_are_those_of_scikit_learn(seed, exponent, C, form):
    X, Y = make_rows(seed)
    weights = np.exp(exponent * np.linspace(0.2, 1, Y.shape[1]))
    np.testing.assert_allclose(
        margins(form(X), Y, weights, C=C), loop(X, Y, weights, C), atol=1e-6, rtol=1e-7
    )


def test_lbfgs_of_scikit_learn_comes_to_the_same_margins_when_it_is_made_to_go_on():
    X, Y = make_rows()
    weights = balanced(Y)
    ours = margins(X, Y, weights)
    for label in range(Y.shape[1]):
        shares = np.where(Y[:, label] == 1, weights[label], 1.0)
        model = LogisticRegression(tol=1e-10, max_iter=10_000)
        theirs = model.fit(X, Y[:, label], sample_weight=shares).decision_function(X)
        np.testing.assert_allclose(ours[:, label], theirs, atol=1e-4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_standardising_inside_is_standardising_before(form):
    X, Y = make_rows()
    X = X * np.geomspace(1e-3, 1e3, X.shape[1]) + np.linspace(0, 50, X.shape[1])
    X[:, 3] = 0.1
    scaled = StandardScaler().fit_transform(X)
    ours = margins(form(X), Y, balanced(Y), standardise=True)
    np.testing.assert_allclose(ours, loop(scaled, Y, balanced(Y)), atol=1e-6)


@pytest.mark.parametrize("heavy", [1.0, 5.0])
def test_lbfgs_takes_the_steps_of_scikit_learn_where_a_sparse_x_is_standardised(heavy):
    X, Y = make_rows()
    X = (X > 1) * np.linspace(0.5, 3, X.shape[1])
    scaled = StandardScaler().fit_transform(X)
    weights = np.full(Y.shape[1], heavy)
    parameters = {"standardise": True, "solver": "lbfgs", "tol": 1e-4, "max_iter": 2000}
    ours = margins(sp.csr_matrix(X), Y, weights, **parameters)
    for label in range(Y.shape[1]):
        shares = np.where(Y[:, label] == 1, heavy, 1.0)
        model = LogisticRegression(tol=1e-4, max_iter=2000)
        theirs = model.fit(scaled, Y[:, label], sample_weight=shares).decision_function(scaled)
        np.testing.assert_allclose(ours[:, label], theirs, atol=1e-6)


def test_a_weight_counts_a_positive_that_many_times():
    X, Y = make_rows()
    Y = Y[:, [3]]
    often = np.where(Y[:, 0] == 1, 3, 1)
    many = margins(np.repeat(X, often, axis=0), np.repeat(Y, often, axis=0), [1.0])
    once = np.repeat(margins(X, Y, [3.0]), often, axis=0)
    np.testing.assert_allclose(once, many, atol=1e-8)


def test_a_label_does_not_depend_on_the_labels_of_its_group():
    X, Y = make_rows()
    weights = balanced(Y)
    alone = [margins(X, Y[:, [j]], weights[[j]]) for j in range(Y.shape[1])]
    np.testing.assert_allclose(margins(X, Y, weights), np.hstack(alone), atol=1e-9)


def test_features_of_any_scale_are_solved():
    X, Y = make_rows()
    X = X * np.geomspace(1e-4, 1e4, X.shape[1])
    np.testing.assert_allclose(margins(X, Y, balanced(Y)), loop(X, Y, balanced(Y)), atol=1e-5)


def test_separable_labels_are_solved():
    X, Y = make_rows()
    Y = (X[:, :2] > 1).astype(np.uint8)
    weights = 1000 * balanced(Y)
    np.testing.assert_allclose(margins(X, Y, weights), loop(X, Y, weights), atol=1e-6)


def test_rare_labels_with_huge_weights_are_solved_in_a_few_steps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 120))
    Y = np.zeros((1500, 12), np.uint8)
    Y[np.arange(12), np.arange(12)] = 1  # one positive each
    # A warning, which is an error here, would say that labels were not solved.
    train(X, Y, 10 * balanced(Y), max_iter=40)


def test_no_features_worth_a_coefficient_give_the_weighted_mean():
    _, Y = make_rows()
    X = np.zeros((len(Y), 2))
    scores = margins(X, Y, balanced(Y))
    np.testing.assert_allclose(scores, 0, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_dumped_group_comes_back_whole(form):
    X, Y = make_rows()
    model = train(form(X), Y, balanced(Y), standardise=True)
    data = BACKEND.dump(model)
    back = BACKEND.load(data)
    np.testing.assert_array_equal(BACKEND.predict_margin(back, X), BACKEND.predict_margin(model, X))
    assert BACKEND.dump(back) == data


def test_stopping_early_is_said():
    X, Y = make_rows()
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        train(X, Y, balanced(Y), max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(X, Y, balanced(Y))


@pytest.mark.parametrize("cell", [np.nan, np.inf])
def test_cells_that_are_not_finite_are_refused(cell):
    X, Y = make_rows()
    X[3, 2] = cell
    for form in (np.asarray, sp.csr_matrix):
        with pytest.raises(InvalidInput, match="finite"):
            train(form(X), Y, balanced(Y))


@pytest.mark.parametrize("C", [0, -1.0, float("nan")])
def test_a_penalty_that_is_not_positive_is_refused(C):
    X, Y = make_rows()
    with pytest.raises(InvalidInput, match="C must be above 0"):
        train(X, Y, balanced(Y), C=C)


def test_training_changes_nothing_it_was_given():
    X, Y = make_rows()
    weights = balanced(Y)
    for array in (X, Y, weights):
        array.setflags(write=False)
    before = X.copy(), Y.copy()
    train(X, Y, weights, standardise=True)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


def test_a_group_stays_in_its_memory():
    assert BACKEND.group_size(1000, 10_000, 0, 96 * 10_000 * 7) == 7
    assert BACKEND.group_size(1000, 10_000, 50, 1) == 1
    assert BACKEND.group_size(10, 10_000, 50, 10**12) == 10


def test_the_paper_preset_names_only_known_parameters():
    assert set(preset_parameters("paper-logistic")) <= set(BACKEND.defaults())


def test_one_vs_rest_trains_saves_and_loads_it(tmp_path):
    from oddslip.learners import OneVsRest

    X, Y = make_rows()
    model = OneVsRest("logistic", weights="balanced", threads=2).fit(X, Y)
    np.testing.assert_allclose(model.predict_margin(X), margins(X, Y, balanced(Y)), atol=1e-10)
    model.save(tmp_path / "model.oddmodel")
    back = OneVsRest.load(tmp_path / "model.oddmodel")
    np.testing.assert_array_equal(back.predict_margin(X), model.predict_margin(X))
