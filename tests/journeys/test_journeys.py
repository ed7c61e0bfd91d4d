"""Journeys of people with what they have, each from end to end.

Long tables, candidates, DuckDB, CSV and large files have theirs in test_forms.py; mistakes in
attacks/refusals; verdict scenes in tests/experiments/test_verdict_simulation.py; serving in tests/serving.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import oddslip
from attacks.inputs import read_calls
from oddslip.datasets import synthetic_pair, synthetic_rows
from oddslip.serving import load_runtime

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")

K = 3
DRAWN = synthetic_rows(1500, 8, n_features=5, prevalence=(0.02, 0.4), seed=2)
TRAIN, CALIBRATE, LATER = slice(0, 600), slice(600, 1100), slice(1100, 1500)
X, Y, NAMES = DRAWN.X, DRAWN.labels.astype(int), [f"product {j}" for j in range(8)]
WEIGHTS = (600 - Y[TRAIN].sum(axis=0)) / Y[TRAIN].sum(axis=0)


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


def map_of(scores, kind="probability"):
    return oddslip.evaluate(scores, Y[LATER], k=K, kind=kind, n_replicates=0)["map"].value


def travel(model, rows=X):
    """From a fitted model to a repaired ranking of later rows; MAP before and after."""
    calibration = oddslip.panel_from(model, rows[CALIBRATE], Y[CALIBRATE])
    repair = oddslip.Repair(k=K, kind=calibration.kind, rule="hierarchical").fit(calibration)
    served = oddslip.Repaired(model, repair)
    raw = oddslip.panel_from(model, rows[LATER])
    return map_of(raw.scores, raw.kind), map_of(served.predict_proba(rows[LATER])), served


def test_a_lightgbm_loop_is_repaired_here_and_served_by_another_process(tmp_path):
    models = [
        lgb.LGBMClassifier(
            n_estimators=60, num_leaves=6, scale_pos_weight=w, n_jobs=1, verbose=-1
        ).fit(X[TRAIN], y)
        for w, y in zip(WEIGHTS, Y[TRAIN].T, strict=True)
    ]
    before, after, served = travel(models)
    assert after > before + 0.02
    served.repair.save(tmp_path / "repair.oddslip")
    np.save(tmp_path / "scores.npy", oddslip.panel_from(models, X[LATER]).scores)
    code = (
        "import numpy as np, oddslip\n"
        "repair = oddslip.load_repair('repair.oddslip')\n"
        "np.save('shown.npy', repair.rank('scores.npy', k=3))"
    )
    ours = str(Path(oddslip.__file__).parents[1])
    env = os.environ | {"PYTHONPATH": ours}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True)
    np.testing.assert_array_equal(
        np.load(tmp_path / "shown.npy"), served.predict_topk(X[LATER], k=K)
    )


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_both_strategies_of_xgboost_arrive(strategy):
    model = xgb.XGBClassifier(n_estimators=8, multi_strategy=strategy, n_jobs=1)
    before, after, _ = travel(model.fit(X[TRAIN], Y[TRAIN]))
    assert after > before - 0.05


ZOO = {
    "one-vs-rest": OneVsRestClassifier(LogisticRegression(class_weight="balanced")),
    "multi-output": MultiOutputClassifier(GaussianNB()),
    "chain": ClassifierChain(LogisticRegression(class_weight="balanced")),
    "network": MLPClassifier((8,), max_iter=30, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "neighbours": KNeighborsClassifier(15),
    "pipeline": make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
}


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_zoo_of_scikit_learn_arrives(name):
    before, after, served = travel(ZOO[name].fit(X[TRAIN], Y[TRAIN]))
    assert after > before - 0.05
    assert served.predict_topk(X[LATER], k=K).shape == (400, K)


def test_frames_keep_their_names_from_training_to_the_list_that_is_shown():
    rows, truth = pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(Y, columns=NAMES)
    model = OneVsRestClassifier(LogisticRegression()).fit(rows[TRAIN], truth[TRAIN])
    calibration = oddslip.panel_from(model, rows[CALIBRATE], truth[CALIBRATE])
    repair = oddslip.Repair(k=K, kind="margin", rule="hierarchical").fit(calibration)
    served = oddslip.Repaired(model, repair, label_names=NAMES)
    shown = served.predict_topk(rows[LATER], k=K, names=True)
    assert set(shown.to_numpy().ravel()) <= set(NAMES)
    assert shown.index.equals(rows[LATER].index)


def test_the_command_line_speaks_json_to_jq(tmp_path):
    np.save(tmp_path / "scores.npy", np.array([[0.9, 0.2, 0.6], [0.1, 0.7, 0.3]]))
    np.save(tmp_path / "labels.npy", np.array([[1, 0, 0], [0, 0, 1]]))
    tool = [sys.executable, "-m", "oddslip"]
    env = os.environ | {"PYTHONPATH": str(Path(oddslip.__file__).parents[1])}

    def typed(*words):
        ran = subprocess.run(
            [*tool, *words], cwd=tmp_path, env=env, capture_output=True, check=True
        )
        return ran.stdout

    seen = typed("evaluate", "scores.npy", "labels.npy", "-k", "2", "--bootstrap", "0", "--json")
    assert json.loads(seen)["metrics"]["map"]["value"] == 0.75
    lines = typed("rank", "scores.npy", "-k", "2", "--json").splitlines()
    assert [json.loads(line)["labels"] for line in lines] == [[0, 2], [1, 2]]
    if shutil.which("jq"):
        told = subprocess.run(
            ["jq", ".metrics.map.value"], input=seen, capture_output=True, check=True
        )
        assert float(told.stdout) == 0.75


def test_the_notebook_runs_and_every_result_shows_itself():
    notebook = json.loads((Path(__file__).parent / "repair.ipynb").read_text(encoding="utf-8"))
    names, shown = {}, []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        *lines, last = "".join(cell["source"]).rstrip().split("\n")
        exec("\n".join(lines), names)
        value = eval(last, names)
        shown.append(value._repr_html_())
    assert len(shown) >= 3
    assert all(html.startswith("<") for html in shown)


def test_every_label_of_a_long_catalogue_is_ranked_alike_here_and_in_production(tmp_path):
    pair = synthetic_pair(300, 700, seed=3)
    scores = np.round(pair.weighted, 2)  # many ties
    repair = oddslip.Repair(k=7, rule="isotonic-5").fit(scores, pair.labels)
    repair.save(tmp_path / "repair.oddslip")
    runtime = load_runtime(tmp_path / "repair.oddslip")
    listed = sparse.csr_array(np.ones(scores.shape, scores.dtype))
    listed.data[:] = scores.ravel()  # every cell is stored, so every cell is a candidate
    for k in (7, 100, 101, 350, 700):
        raw = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(oddslip.rank(scores, k=k), raw)
        np.testing.assert_array_equal(oddslip.rank(listed, k=k), oddslip.rank(scores, k=k))
        shown = repair.rank(scores, k=k)
        np.testing.assert_array_equal(runtime.rank(scores, k=k), shown)
        np.testing.assert_array_equal(repair.rank(listed, k=k), shown)


def test_far_more_than_ninety_mistakes_have_their_line():
    calls = read_calls()
    assert len({call.typed for call in calls}) > 900
    assert all(call.line and not call.line.startswith("no error") for call in calls)
