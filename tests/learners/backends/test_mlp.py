"""The shared-trunk MLP: two arms differ in pos_weight alone, and a seed settles the rest."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from oddslip.errors import InvalidInput  # noqa: E402
from oddslip.learners.backends import mlp as mlps  # noqa: E402
from oddslip.learners.backends.base import preset_parameters  # noqa: E402
from oddslip.learners.backends.mlp import BACKEND  # noqa: E402

N_ROWS, N_FEATURES, N_LABELS = 150, 6, 3


@pytest.fixture(autouse=True)
def _one_thread():
    """Networks this small only wait for a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.6)
    X = X * np.geomspace(0.01, 100, N_FEATURES)
    Y = (rng.logistic(size=(N_ROWS, N_LABELS)) + np.sign(X[:, :3]) > 1.5).astype(np.uint8)
    return X, Y


def parameters(**changed):
    return {**BACKEND.defaults(), "hidden": [16, 8], "epochs": 3, "batch_rows": 32, **changed}


def train(X, Y, weights, seed=0, **changed):
    options = parameters(**changed)
    return BACKEND.train(BACKEND.prepare(X, options), Y, np.asarray(weights, float), options, seed)


def margins(X, Y, weights, seed=0, **changed):
    return BACKEND.predict_margin(train(X, Y, weights, seed, **changed), X)


def balanced(Y):
    return (1 - Y.mean(axis=0)) / Y.mean(axis=0)


def record_batches(monkeypatch, X, Y, weights):
    """Every batch's truth and pos_weight, as the loss sees them."""
    batches = []

    def loss(logits, truth, *, pos_weight):
        batches.append((truth.numpy().copy(), pos_weight.numpy().copy()))
        return torch.nn.functional.binary_cross_entropy_with_logits(
            logits, truth, pos_weight=pos_weight
        )

    with monkeypatch.context() as patched:
        patched.setattr(mlps, "binary_cross_entropy_with_logits", loss)
        train(X, Y, weights)
    return batches


def test_the_arms_differ_in_pos_weight_alone(monkeypatch):
    X, Y = make_rows()
    weights = balanced(Y)
    plain, weighted = (
        record_batches(monkeypatch, X, Y, arm_weights)
        for arm_weights in (np.ones(N_LABELS), weights)
    )
    assert len(plain) == len(weighted) == 3 * 5
    for (truth, ones), (same, arm_weights) in zip(plain, weighted, strict=True):
        np.testing.assert_array_equal(truth, same)
        np.testing.assert_array_equal(ones, 1)
        np.testing.assert_array_equal(arm_weights, weights.astype(np.float32))
    before = [margins(X, Y, arm_weights, epochs=0) for arm_weights in (np.ones(N_LABELS), weights)]
    np.testing.assert_array_equal(*before)
    assert np.abs(margins(X, Y, weights) - margins(X, Y, np.ones(N_LABELS))).max() > 1e-3


def test_every_epoch_sees_every_row_once_in_an_order_of_its_own(monkeypatch):
    X, _ = make_rows()
    bits = ((np.arange(N_ROWS)[:, None] >> np.arange(8)) & 1).astype(np.uint8)
    truths = [truth for truth, _ in record_batches(monkeypatch, X, bits, np.ones(8))]
    rows = np.concatenate(truths) @ (1 << np.arange(8))
    epochs = rows.reshape(3, N_ROWS).astype(int)
    assert all(sorted(epoch) == list(range(N_ROWS)) for epoch in epochs.tolist())
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 3


def test_the_same_seed_gives_the_same_network_and_another_seed_another():
    X, Y = make_rows()
    weights = balanced(Y)
    once, again, other = (BACKEND.dump(train(X, Y, weights, seed)) for seed in (7, 7, 8))
    assert once == again
    assert once != other


def test_torch_is_left_as_it_was():
    X, Y = make_rows()

    def state():
        return (
            torch.get_rng_state().tolist(),
            torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(),
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
        )

    before = state()
    margins(X, Y, balanced(Y))
    assert state() == before


def test_what_the_user_told_torch_does_not_matter():
    X, Y = make_rows()
    weights = balanced(Y)
    plain = margins(X, Y, weights)
    try:
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(99)
        with torch.no_grad():
            np.testing.assert_array_equal(margins(X, Y, weights), plain)
    finally:
        torch.set_default_dtype(torch.float32)


def test_training_is_adam_on_weighted_cross_entropy():
    """An ordinary torch module, started from our first layers, on whole batches."""
    X, Y = make_rows()
    weights = balanced(Y)
    start = train(X, Y, weights, epochs=0)
    sizes = [N_FEATURES, 16, 8, N_LABELS]
    linears = [torch.nn.Linear(a, b) for a, b in pairwise(sizes)]
    with torch.no_grad():
        for layer, slope, bias in zip(linears, start.slopes, start.biases, strict=True):
            layer.weight.copy_(torch.from_numpy(slope.T.copy()))
            layer.bias.copy_(torch.from_numpy(bias))
    net = torch.nn.Sequential(linears[0], torch.nn.ReLU(), linears[1], torch.nn.ReLU(), linears[2])
    batch = torch.from_numpy(((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32))
    loss = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weights, dtype=torch.float32))
    adam = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(10):
        adam.zero_grad()
        loss(net(batch), torch.from_numpy(Y.astype(np.float32))).backward()
        adam.step()
    ours = margins(X, Y, weights, epochs=10, batch_rows=N_ROWS, learning_rate=1e-2)
    np.testing.assert_allclose(ours, net(batch).detach().numpy(), atol=1e-4)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array])
def test_sparse_rows_train_and_score_like_dense_ones(form):
    X, Y = make_rows()
    weights = balanced(Y)
    np.testing.assert_allclose(margins(form(X), Y, weights), margins(X, Y, weights), atol=1e-5)
    model = train(X, Y, weights)
    np.testing.assert_allclose(
        BACKEND.predict_margin(model, form(X)), BACKEND.predict_margin(model, X), atol=1e-12
    )


def test_features_are_standardised_with_the_training_rows():
    X, Y = make_rows()
    X[:, 4] = 3.3
    moved = X * np.geomspace(1, 1000, N_FEATURES) + np.arange(N_FEATURES)
    weights = balanced(Y)
    np.testing.assert_allclose(margins(moved, Y, weights), margins(X, Y, weights), atol=1e-4)
    model = train(X, Y, weights)
    alone = BACKEND.predict_margin(model, X[:1])
    np.testing.assert_allclose(alone, BACKEND.predict_margin(model, X)[:1], atol=1e-12)


def test_rows_score_alike_however_they_are_cut(monkeypatch):
    X, Y = make_rows()
    model = train(X, Y, balanced(Y))
    whole = BACKEND.predict_margin(model, X)
    monkeypatch.setattr(mlps, "_PREDICT_BYTES", 8 * 16 * 7)
    np.testing.assert_allclose(BACKEND.predict_margin(model, X), whole, atol=1e-12)


def test_a_dumped_network_comes_back_whole():
    X, Y = make_rows()
    model = train(X, Y, balanced(Y))
    data = BACKEND.dump(model)
    back = BACKEND.load(data)
    np.testing.assert_array_equal(BACKEND.predict_margin(back, X), BACKEND.predict_margin(model, X))
    assert BACKEND.dump(back) == data


def test_it_learns():
    X, Y = make_rows()
    Y = (X[:, :N_LABELS] > 0).astype(np.uint8)
    scores = margins(X, Y, np.ones(N_LABELS), epochs=60, learning_rate=1e-2)
    assert ((scores > 0) == Y).mean() > 0.98


def test_cells_that_are_not_finite_are_refused():
    X, Y = make_rows()
    X[2, 3] = np.nan
    with pytest.raises(InvalidInput, match="finite"):
        train(X, Y, balanced(Y))


def test_all_labels_share_one_trunk():
    assert BACKEND.group_size(4000, 10**6, 100, 1) == 4000
    assert BACKEND.defaults()["hidden"] == [256, 256]
    assert set(preset_parameters("paper-mlp")) <= set(BACKEND.defaults())


def test_one_vs_rest_trains_saves_and_loads_it(tmp_path):
    from oddslip.learners import OneVsRest

    X, Y = make_rows()
    options = {"hidden": [8], "epochs": 2}
    model = OneVsRest("mlp", weights="balanced", seed=3, threads=2, parameters=options).fit(X, Y)
    np.testing.assert_allclose(
        model.predict_margin(X),
        margins(X, Y, balanced(Y), seed=3, **{**BACKEND.defaults(), **options}),
        atol=1e-10,
    )
    model.save(tmp_path / "model.oddmodel")
    back = OneVsRest.load(tmp_path / "model.oddmodel")
    np.testing.assert_array_equal(back.predict_margin(X), model.predict_margin(X))


def test_truth_by_rows_trains_the_very_same_network():
    X, Y = make_rows()
    by_cells = margins(X, Y, balanced(Y))
    np.testing.assert_array_equal(margins(X, sp.csr_matrix(Y), balanced(Y)), by_cells)


def test_one_vs_rest_hands_the_truth_over_by_rows(monkeypatch):
    from oddslip.learners import OneVsRest

    X, Y = make_rows()
    handed = []
    trained = type(BACKEND).train

    def watch_train(self, prepared, truth, *rest):
        handed.append(truth)
        return trained(self, prepared, truth, *rest)

    monkeypatch.setattr(type(BACKEND), "train", watch_train)
    OneVsRest("mlp", parameters=parameters(epochs=1)).fit(X, Y)
    assert sp.issparse(handed[0])
    np.testing.assert_array_equal(handed[0].toarray(), Y)


def test_without_centring_features_are_divided_by_their_deviations_alone():
    rng = np.random.default_rng(0)
    X = sp.random(40, 5, 0.4, format="csr", random_state=rng, dtype=np.float64)
    backend = BACKEND
    prepared = backend.prepare(X, backend.defaults() | {"centre": False})
    dense = X.toarray()
    np.testing.assert_allclose(prepared.take(np.arange(40)), dense / dense.std(axis=0))
    with pytest.raises(InvalidInput, match="centre must be a bool"):
        backend.prepare(X, backend.defaults() | {"centre": 1})


def test_the_network_of_section_3_is_that_of_the_supplement():
    assert preset_parameters("paper-mlp-pairs") == {
        "hidden": [256, 256],
        "epochs": 20,
        "learning_rate": 1e-3,
        "batch_rows": 512,
        "weight_decay": 1e-4,
        "constants": True,
        "centre": False,
    }
