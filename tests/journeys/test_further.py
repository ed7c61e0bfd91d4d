"""More journeys: CatBoost, networks, candidates, scikit-learn's tools, serving, verdicts."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import oddslip
from experiments.verdict_simulation import SCENES
from oddslip.cli.app import main
from oddslip.datasets import synthetic_pair, synthetic_rows

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


def repair_of(models):
    calibration = oddslip.panel_from(models, X[CALIBRATE], Y[CALIBRATE])
    return oddslip.Repair(k=K, kind=calibration.kind, rule="hierarchical").fit(calibration)


# ---------------------------------------------------------------------------------------- CatBoost


class StandIn:
    """What we ask of a CatBoostClassifier, where CatBoost is not installed: it is 280 MB."""

    feature_names_ = tuple("01234")

    def __init__(self, scale_pos_weight=1.0, **ignored):
        self.weight = scale_pos_weight

    def fit(self, rows, truth):
        self.inner = LogisticRegression(class_weight={0: 1.0, 1: self.weight}).fit(rows, truth)
        self.classes_ = self.inner.classes_
        return self

    def is_fitted(self):
        return True

    def get_all_params(self):
        return {"loss_function": "Logloss"}

    def predict(self, rows, prediction_type):
        assert prediction_type == "RawFormulaVal"
        return self.inner.decision_function(rows)


StandIn.__module__, StandIn.__name__ = "catboost.core", "CatBoostClassifier"


def test_a_catboost_model_for_each_product_is_repaired():
    try:
        from catboost import CatBoostClassifier
    except ImportError:
        CatBoostClassifier = StandIn
    told = {"iterations": 40, "verbose": False, "thread_count": 1, "allow_writing_files": False}
    models = [
        CatBoostClassifier(scale_pos_weight=float(w), **told).fit(X[TRAIN], y)
        for w, y in zip(WEIGHTS, Y[TRAIN].T, strict=True)
    ]
    raw = oddslip.panel_from(models, X[LATER])
    assert raw.kind == "margin"
    repaired = oddslip.Repaired(models, repair_of(models))
    assert map_of(repaired.predict_proba(X[LATER])) > map_of(raw.scores, "margin") + 0.02


# ---------------------------------------------------------------------------------------- networks


class PredictionOutput(NamedTuple):
    """As a trainer of Hugging Face returns it."""

    predictions: object
    label_ids: object
    metrics: object = None


@pytest.mark.filterwarnings("ignore:labels of .* are matched by position:UserWarning")
def test_a_network_trained_with_pos_weight_and_a_trainer_s_output_arrive_alike():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = torch.nn.Linear(5, 8)
    loss = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(WEIGHTS, dtype=torch.float32))
    rows, truth = (torch.tensor(part[TRAIN], dtype=torch.float32) for part in (X, Y))
    steps = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(80):
        steps.zero_grad()
        loss(net(rows), truth).backward()
        steps.step()
    held, later = (
        oddslip.panel_from(net, X[part].astype(np.float32), Y[part], kind="margin")
        for part in (CALIBRATE, LATER)
    )
    trainer = PredictionOutput(held.scores, Y[CALIBRATE])
    named = dict(enumerate(NAMES))
    repair = oddslip.Repair(k=K, kind="margin", weights=WEIGHTS)
    shown = [
        repair.fit(panel).rank(later.scores)
        for panel in (held, oddslip.panel_from(trainer, label_names=named))
    ]
    assert np.array_equal(*shown)
    assert map_of(repair.transform(later.scores)) > map_of(later.scores, "margin") + 0.02


# -------------------------------------------------------------------------------------- candidates


def test_candidates_of_a_retrieval_step_are_repaired_ranked_and_watched():
    pair = synthetic_pair(3000, 40, seed=5)
    rng = np.random.default_rng(0)
    picked = rng.random(pair.weighted.shape) < 0.3
    cells = sparse.csr_array((pair.weighted[picked], np.nonzero(picked)), shape=pair.weighted.shape)
    bought = sparse.csr_array(pair.labels.astype(int))
    first, then = slice(0, 1500), slice(1500, 3000)
    repair = oddslip.Repair(k=5, weights=pair.weights).fit(cells[first], bought[first])
    has = [rng.choice(40, 3, replace=False) for _ in range(1500)]
    shown = repair.rank(cells[then], exclude=has)
    barred = [set(row) & set(own) for row, own in zip(shown, has, strict=True)]
    assert not any(barred)
    there = [
        picked[1500 + at, label] for at, row in enumerate(shown) for label in row if label >= 0
    ]
    assert all(there)
    found = [
        oddslip.evaluate(scores, bought[then], k=5, nan="absent", n_replicates=0)["map"].value
        for scores in (cells[then], repair.transform(cells[then]))
    ]
    assert found[1] > found[0] + 0.05
    assert oddslip.check(repair, cells[then], bought[then], n_replicates=100).passed


# --------------------------------------------------------------------------- tools of scikit-learn


# Seen once on a busy machine, on the same finite rows that pass otherwise; the cause was not found.
@pytest.mark.filterwarnings(
    "ignore:invalid value encountered in matmul:RuntimeWarning:sklearn.linear_model.*"
)
def test_a_repaired_model_lives_in_a_pipeline_a_search_and_a_cross_validation():
    inner = OneVsRestClassifier(LogisticRegression(class_weight="balanced"))
    model = make_pipeline(StandardScaler(), oddslip.RepairedClassifier(inner, k=K, cv=3))
    scorer = oddslip.map_at_k_scorer(k=K)
    search = GridSearchCV(
        model, {"repairedclassifier__rule": ["raw", "hierarchical"]}, scoring=scorer, cv=3
    ).fit(X[TRAIN], Y[TRAIN])
    assert search.best_params_ == {"repairedclassifier__rule": "hierarchical"}
    plain = make_pipeline(StandardScaler(), inner)
    both = [
        cross_val_score(each, X[TRAIN], Y[TRAIN], scoring=scorer, cv=3).mean()
        for each in (plain, search.best_estimator_)
    ]
    assert both[1] > both[0] + 0.02


# ----------------------------------------------------------------------------------------- serving


def test_what_is_served_is_watched_day_by_day_until_it_moves(tmp_path):
    models = OneVsRestClassifier(LogisticRegression(class_weight="balanced"))
    models.fit(X[TRAIN], Y[TRAIN])
    repair, log = tmp_path / "repair.oddslip", tmp_path / "log.jsonl"
    repair_of(models).fitted_.save(repair)
    scores = oddslip.panel_from(models, X[LATER]).scores
    for day, (name, moved, wanted) in enumerate((("quiet", 0.0, 0), ("moved", 1.5, 3)), start=1):
        np.save(tmp_path / f"{name}.npy", scores + moved)
        told = [str(repair), str(tmp_path / f"{name}.npy"), "--log", str(log)]
        assert main(["check", *told, "--when", f"2026-05-0{day}"]) == wanted
    page = tmp_path / "trend.html"
    assert main(["trend", str(log), "-o", str(page)]) == 0
    assert "OS501" in page.read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("name", ["realized", "capped", "saturated"])
def test_who_follows_the_verdict_gains_on_rows_that_come_later(name):
    told = SCENES[name].draw(3)
    rows = ("scores", "labels", "unweighted")
    half = len(told["scores"]) // 2
    found = oddslip.diagnose(**told | {part: told[part][:half] for part in rows}, n_replicates=200)
    assert found.verdict.code.startswith(("repairable", "keep_margins"))
    rule = "inversion" if found.verdict.code == "repairable_by_inversion" else "auto"
    repair = oddslip.Repair(k=7, rule=rule, prior=told["prior"], weights=told["weights"])
    repair.fit(*told["calibration"])
    before, after = (
        oddslip.evaluate(scores, told["labels"][half:], k=7, n_replicates=0)["map"].value
        for scores in (told["scores"][half:], repair.transform(told["scores"][half:]))
    )
    assert after > before + 0.02
