"""A small product data set, and a matched-pair study of it that is run once."""

import numpy as np
import pytest
from scipy import sparse

from experiments.datasets.recommendation import Period, Recommendation

PARTS = ("ladder", "caps", "splits", "choices", "doses", "draws", "again", "all-products")


def make_products(n_labels=9, seed=0, n_rows=(400, 250, 350), n_features=6):
    """Rows of three periods; later labels are rarer, the last has no validation positive."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=(n_features, n_labels))
    starts = np.linspace(-1.0, -4.5, n_labels)

    def period(n, name):
        X = rng.normal(size=(n, n_features)).astype(np.float32)
        Y = rng.random((n, n_labels)) < 1 / (1 + np.exp(-(X @ slopes + starts)))
        if name == "validation":
            Y[:, -1] = False
        return Period(sparse.csr_matrix(X), sparse.csr_matrix(Y.astype(np.uint8)), np.arange(n))

    periods = [
        period(n, name) for n, name in zip(n_rows, ("train", "validation", "test"), strict=True)
    ]
    names = tuple(f"product {j}" for j in range(n_labels))
    features = tuple(f"feature {j}" for j in range(n_features))
    return Recommendation(
        "products", *periods, names, features, {"n_labels": n_labels}, {"rows": f"{seed:064x}"}
    )


@pytest.fixture(scope="session")
def products():
    return make_products


@pytest.fixture
def few_replicates(monkeypatch):
    """Bootstrap draws enough to see that they are there."""
    monkeypatch.setattr("experiments.pairs.cells.N_REPLICATES", 40)
    monkeypatch.setattr("experiments.pairs.protocols.N_REPLICATES", 40)


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory):
    """Folder, and cells by key, of a study of all parts with some caps and draws."""
    from experiments.pairs.study import reproduce_pairs

    folder = tmp_path_factory.mktemp("pairs")
    with pytest.MonkeyPatch.context() as patch:
        for module in ("cells", "protocols"):
            patch.setattr(f"experiments.pairs.{module}.N_REPLICATES", 40)
        options = {"n_labels": 9, "results": folder / "results", "work": folder / "work"}
        cells = reproduce_pairs(
            "products",
            lambda n: make_products(n or 14),
            parts=PARTS,
            caps=[None, 0.3, 5],
            draws=[0, 1, 2],
            **options,
        )
        cells |= reproduce_pairs("products", make_products, parts=["earlier"], **options)
    return folder, cells


@pytest.fixture
def cells(finished_study):
    """A copy that a test may change."""
    import json

    return json.loads(json.dumps(finished_study[1]))


def make_mulan(n_fitted=220, n_calibration=90, n_test=80, n_labels=5, seed=0):
    """A MULAN data set in memory: linear truth, later labels rarer."""
    from experiments.datasets.mulan.reader import MulanData

    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=(4, n_labels))

    def draw(n):
        X = rng.normal(size=(n, 4))
        chance = 1 / (1 + np.exp(-(X @ slopes - np.linspace(0.3, 2.5, n_labels))))
        Y = rng.random(chance.shape) < chance
        Y[0] = True
        return X, Y

    X, Y = draw(n_fitted + n_calibration)
    X_test, Y_test = draw(n_test)
    rows = rng.permutation(len(Y))
    return MulanData(
        "small",
        "paper",
        X,
        Y,
        X_test,
        Y_test,
        tuple("abcd"),
        tuple(f"label {j}" for j in range(n_labels)),
        rows[n_calibration:],
        rows[:n_calibration],
        (),
        {"small.xml": "0" * 64},
        False,
    )


@pytest.fixture(scope="session")
def mulan_in_memory():
    return make_mulan
