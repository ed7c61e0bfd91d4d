"""The study: what it measures of scores, and that labels are trained once."""

import numpy as np
import pytest

from experiments.wgboost import study
from experiments.wgboost.learner import Settings
from experiments.wgboost.page import CLAIMS, write_page
from experiments.wgboost.panels import Panel


@pytest.fixture
def panel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = rng.random((300, 4)) < 0.3 / (1 + np.exp(-3 * X[:, [0, 1, 2, 0]]))
    Y[:, 3] = False
    parts = [(X[rows], Y[rows]) for rows in (slice(0, 100), slice(100, 200), slice(200, 300))]
    train = (parts[0][0], parts[0][1].astype(float))
    return Panel(train, parts[1], parts[2], k=2, about={"protocol": "made up"})


def test_a_finished_label_is_not_trained_again(panel, tmp_path, monkeypatch):
    settings = Settings(n_rounds=2, n_start_steps=5)
    first = study.train_labels(panel, tmp_path, settings)
    (tmp_path / "1.npz").unlink()
    trained = []

    def train_again(*arguments):
        trained.append(1)
        return score_label(*arguments)

    score_label = study.score_label
    monkeypatch.setattr(study, "score_label", train_again)
    second = study.train_labels(panel, tmp_path, settings)
    assert len(trained) == 1
    for left, right in zip(first, second, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_dead_label_with_a_floor_takes_over_only_under_identity(panel):
    rng = np.random.default_rng(1)
    scores = [rng.uniform(0.1, 0.2, panel.test[1].shape) for _ in range(2)]
    for table in scores:
        table[:, 3] = 0.9
    cell = study.measure_scores(panel, *scores)
    assert cell["dead"]["n"] == 1
    assert cell["dead"]["rows_share"] == 1.0
    assert cell["dead"]["mean_raw"] == pytest.approx(0.9)
    assert cell["rungs"]["isotonic, identity"]["value"] < cell["rungs"]["isotonic"]["value"]
    assert study.find_dead(scores[0], np.ones((100, 4), bool), scores[1], np.ones(4), 2) is None


def test_finished_cells_need_no_data(panel, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "read_panel", lambda *_: panel)
    monkeypatch.setattr(study, "Settings", lambda: Settings(n_rounds=2, n_start_steps=5))
    options = {"datasets": ["birds"], "results": tmp_path, "work": tmp_path / "work"}
    first = study.reproduce_wgboost(**options)
    monkeypatch.setattr(study, "read_panel", lambda *_: pytest.fail("was read"))
    again = study.reproduce_wgboost(**options, finished=True)
    assert again == first
    page = write_page(again)
    assert all(claim in page for claim in CLAIMS)
