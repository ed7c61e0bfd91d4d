"""The paper's three learners of section 4 are what their libraries give, left to themselves."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from oddslip.errors import InvalidInput
from oddslip.learners import OneVsRest

torch = pytest.importorskip("torch")
xgb = pytest.importorskip("xgboost")

WEIGHTS = np.array([1.0, 7.25, 19.0, 3.0])


@pytest.fixture(scope="module")
def rows():
    """Two features of two values, one that is constant but for a rounding; a label never true."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 6))
    X[:, 4:] = rng.random((300, 2)) < 0.1
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[:, 3] = -0.0556
    Y = X[:, :4] + rng.normal(size=(300, 4)) > [0.5, 1.5, 2.0, 9.0]
    assert (Y.sum(axis=0) > 0).tolist() == [True, True, True, False]
    return X[:200], Y[:200], X[200:]


def trained(learner, rows, **options):
    X, Y, _ = rows
    model = OneVsRest(learner, preset=f"paper-{learner}", weights=WEIGHTS, threads=2, **options)
    return model.fit(X, Y)


def test_xgboost_is_its_classifier_to_the_bit(rows):
    X, Y, test = rows
    scores = trained("xgboost", rows).predict_stored(test)
    for label in range(3):
        alone = xgb.XGBClassifier(
            n_estimators=200,
            learning_rate=0.05,
            max_depth=5,
            min_child_weight=1,
            tree_method="hist",
            n_jobs=4,
            random_state=42,
            scale_pos_weight=WEIGHTS[label],
        )
        alone.fit(X, Y[:, label].astype(int))
        np.testing.assert_array_equal(scores[:, label], alone.predict_proba(test)[:, 1])


def test_logistic_regression_is_scikit_learns_on_rows_standardised_again(rows):
    X, Y, test = rows
    scaler = StandardScaler().fit(X)
    scores = trained("logistic", rows).predict_stored(test)
    for label in range(3):
        alone = LogisticRegression(C=1.0, max_iter=2000)
        shares = np.where(Y[:, label], WEIGHTS[label], 1.0)
        alone.fit(scaler.transform(X), Y[:, label], sample_weight=shares)
        expected = alone.predict_proba(scaler.transform(test))[:, 1]
        np.testing.assert_allclose(scores[:, label], expected, rtol=0, atol=1e-9)


def test_the_mlp_is_a_plain_loop_of_torch_to_the_bit(rows):
    X, Y, test = rows
    scaler = StandardScaler().fit(X)
    features, cells = (
        torch.tensor(scaler.transform(each), dtype=torch.float32) for each in (X, test)
    )
    truth = torch.tensor(Y, dtype=torch.float32)
    with torch.random.fork_rng():
        torch.manual_seed(42)
        layers = torch.nn.Linear(6, 64), torch.nn.Linear(64, 64), torch.nn.Linear(64, 4)
        relu = torch.nn.ReLU()
        network = torch.nn.Sequential(layers[0], relu, layers[1], relu, layers[2])
        optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-4)
        weights = torch.tensor(WEIGHTS, dtype=torch.float32)
        measure = torch.nn.BCEWithLogitsLoss(pos_weight=weights)
        for _ in range(200):
            order = torch.randperm(200)
            for start in range(0, 200, 256):
                batch = order[start : start + 256]
                optimiser.zero_grad()
                measure(network(features[batch]), truth[batch]).backward()
                optimiser.step()
        with torch.no_grad():
            expected = torch.sigmoid(network(cells)).numpy()
    scores = trained("mlp", rows).predict_stored(test)
    # The network has an output for the label that is never true; its mean is what is used.
    np.testing.assert_array_equal(scores[:, :3], expected[:, :3])
    np.testing.assert_array_equal(scores[:, 3], 0.0)


@pytest.mark.parametrize("learner", ["xgboost", "logistic", "mlp"])
def test_a_preset_saves_loads_and_scores_the_same(learner, rows, tmp_path):
    few = {"xgboost": {"n_estimators": 5}, "logistic": {}, "mlp": {"epochs": 2}}[learner]
    model = trained(learner, rows, parameters=few)
    model.save(tmp_path / "model.oddmodel")
    again = OneVsRest.load(tmp_path / "model.oddmodel")
    for predict in ("predict_margin", "predict_proba", "predict_stored"):
        np.testing.assert_array_equal(
            getattr(again, predict)(rows[2]), getattr(model, predict)(rows[2])
        )


@pytest.mark.parametrize("learner", ["xgboost", "mlp"])
def test_stored_scores_are_the_probabilities_rounded_to_float32(learner, rows):
    few = {"xgboost": {"n_estimators": 20}, "mlp": {"epochs": 5}}[learner]
    model = trained(learner, rows, parameters=few)
    stored = model.predict_stored(rows[2])
    np.testing.assert_array_equal(stored, stored.astype(np.float32))
    np.testing.assert_allclose(stored, model.predict_proba(rows[2]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("learner", "parameters", "line"),
    [
        ("xgboost", {"start": "own"}, "start must be one of mean, weighted, got start='own'"),
        ("logistic", {"solver": "saga"}, "solver must be one of newton, lbfgs, got 'saga'"),
        ("mlp", {"weight_decay": -1}, "weight_decay must be at least 0, got weight_decay=-1"),
        ("mlp", {"constants": "all"}, "constants must be a bool, got 'all'"),
    ],
)
def test_invalid_parameters_of_presets_are_rejected(learner, parameters, line, rows):
    with pytest.raises(InvalidInput, match=line):
        trained(learner, rows, parameters=parameters)
