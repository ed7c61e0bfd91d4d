"""`oddslip train` and `oddslip score` do what `OneVsRest` does."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import oddslip
from oddslip.cli.app import main

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
Y = X @ RNG.normal(size=(5, 4)) + RNG.logistic(size=(300, 4)) > 1.5
TOLD = {"num_iterations": 8, "num_leaves": 7}
PARAMETERS = ["-p", "num_iterations=8", "-p", "num_leaves=7"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    sp.save_npz("X.npz", sp.csr_array(X))
    np.save("Y.npy", Y)
    np.save("w.npy", np.array([1.0, 2.0, 3.0, 4.0]))
    (tmp_path / "names.txt").write_text("a\nb\nc\nd")
    return tmp_path


@pytest.mark.parametrize("features", ["X.npy", "X.npz"])
@pytest.mark.parametrize("weights", ["none", "balanced", "10x", "w.npy"])
def test_train_then_score_equals_the_estimator(folder, capsys, features, weights):
    told = [features, "Y.npy", "-o", "model.oddslip", "--weights", weights, *PARAMETERS]
    assert main(["train", *told, "--label-names", "names.txt"]) == 0
    assert "4 labels trained on 300 rows" in capsys.readouterr().out
    given = np.load("w.npy") if weights.endswith(".npy") else weights
    rows = X if features == "X.npy" else sp.csr_array(X)
    model = oddslip.OneVsRest(weights=given, parameters=TOLD).fit(rows, Y)
    assert main(["score", "model.oddslip", features, "-o", "s.npy", "--kind", "margin"]) == 0
    np.testing.assert_array_equal(np.load("s.npy"), model.predict_margin(rows))
    assert main(["score", "model.oddslip", features, "-o", "p.npy"]) == 0
    wanted = model.predict_proba(rows).astype(np.float32)
    np.testing.assert_array_equal(np.load("p.npy"), wanted)


def test_scores_in_parquet_keep_the_label_names(folder, capsys):
    told = ["X.npy", "Y.npy", "-o", "model.oddslip", *PARAMETERS]
    assert main(["train", *told, "--label-names", "names.txt"]) == 0
    assert main(["score", "model.oddslip", "X.npy", "-o", "s.parquet"]) == 0
    source = oddslip.open_source("s.parquet")
    assert source.label_names == ("a", "b", "c", "d")
    assert oddslip.evaluate("s.parquet", "Y.npy", k=2, n_replicates=0)["map"].value > 0.5


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["train", "none.npy", "Y.npy", "-o", "m"], "none.npy"),
        (["train", "X.npy", "none.npy", "-o", "m"], "none.npy"),
        (["train", "X.npy", "Y.npy", "-o", "no/folder/m"], "existing folder"),
        (["train", "X.npy", "Y.npy", "-o", "m", "--learner", "forest"], "forest"),
        (["train", "X.npy", "Y.npy", "-o", "m", "--weights", "heavy"], "heavy"),
        (["train", "X.npy", "Y.npy", "-o", "m", "--preset", "mine"], "preset must be one of"),
        (["train", "X.npy", "Y.npy", "-o", "m", "--mode", "quick"], "quick"),
        (["train", "X.npy", "Y.npy", "-o", "m", "-p", "num_leaves"], "num_leaves"),
        (["train", "X.npy", "Y.npy", "-o", "m", "-p", "scale_pos_weight=3"], "OneVsRest sets it"),
        (["train", "X.npy", "w.npy", "-o", "m"], "shape"),
        (["score", "none.oddslip", "X.npy", "-o", "s.npy"], "none.oddslip"),
        (["score", "X.npy", "X.npy", "-o", "s.npy"], "X.npy"),
    ],
)
def test_bad_trainings_are_one_line(folder, capsys, arguments, line):
    before = sorted(path.name for path in folder.iterdir())
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert line in told
    assert told.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_training_stops_by_other_rows_and_says_so(folder, capsys):
    for name, rows in {"train": slice(0, 200), "held": slice(200, 300)}.items():
        np.save(f"{name}.npy", X[rows])
        np.save(f"{name}-labels.npy", Y[rows])
    told = ["--learner", "hist", "-p", "max_iter=6", "-k", "2", "--early-stopping", "2"]
    told += ["--validation", "held.npy", "held-labels.npy"]
    assert main(["train", "train.npy", "train-labels.npy", "-o", "m.oddslip", *told]) == 0
    said = " ".join(capsys.readouterr().out.split())
    kept = int(re.search(r"Kept (\d+) rounds: MAP@2 0\.\d{4} on other rows", said)[1])
    assert oddslip.OneVsRest.load("m.oddslip")._models[0].n_trees[0] == kept
