"""Rankers that see the row: what they see, what they learn, and that test labels are not seen."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

from experiments.mulan.arms import Arm
from experiments.row_rankers import study
from experiments.row_rankers.page import would_serve
from experiments.row_rankers.ranker import (
    N_COMPONENTS,
    NAMES,
    RANKERS,
    describe_cells,
    find_space,
)
from oddslip.metrics import average_precision_at_k

ROOT = Path(__file__).parents[3]


def test_components_have_mean_0_and_deviation_1_and_centres_are_means_of_positives():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 7)) * np.arange(1, 8)
    Y = rng.random((300, 3)) < 0.3
    Y[:, 2] = False
    space = find_space(X, Y)
    places = space.place(X)
    np.testing.assert_allclose(places.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(places.std(axis=0), 1)
    np.testing.assert_allclose(space.centres[1], places[Y[:, 1]].mean(axis=0))
    assert not space.centres[2].any()


def test_fewer_features_than_components_leave_the_rest_empty():
    rng = np.random.default_rng(0)
    space = find_space(rng.normal(size=(50, 2)), rng.random((50, 3)) < 0.5)
    assert space.place(rng.normal(size=(4, 2))).shape == (4, N_COMPONENTS)


def test_cells_are_described_row_after_row():
    rng = np.random.default_rng(1)
    X, repaired = rng.normal(size=(4, 6)), rng.uniform(0.1, 0.9, (4, 3))
    space = find_space(rng.normal(size=(60, 6)), rng.random((60, 3)) < 0.4)
    margin, prior = logit(repaired) + 1, np.array([0.1, 0.2, 0.3])
    cells = describe_cells(repaired, margin, prior, np.array([3.0, 0, 9]), X, space)
    line = dict(zip(NAMES, cells[2 * 3 + 1], strict=True))  # row 2, label 1
    odds = logit(repaired[2])
    assert line["repaired"] == pytest.approx(odds[1])
    assert line["margin"] == pytest.approx(odds[1] + 1)
    assert line["prior"] == pytest.approx(logit(0.2))
    assert line["positives"] == 0
    assert line["rank"] == (odds > odds[1]).sum()
    assert line["row_max"] == pytest.approx(odds.max())
    assert line["affinity"] == pytest.approx(space.place(X[2:3])[0] @ space.centres[1])


@pytest.mark.parametrize("name", RANKERS)
def test_a_ranker_learns_what_no_map_of_a_label_can_say(name):
    """Scores are noise; the truth lies in the row's affinity to the label."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 6))
    slopes = rng.normal(size=(6, 4))
    truth = rng.random((500, 4)) < expit(2 * X @ slopes - 1)
    space = find_space(X[:200], truth[:200])
    noise = rng.uniform(0.1, 0.9, truth.shape)
    cells = describe_cells(noise, logit(noise), truth.mean(axis=0), truth.sum(axis=0), X, space)
    by_row = cells.reshape(500, 4, -1)
    score = RANKERS[name](by_row[200:400].reshape(-1, len(NAMES)), truth[200:400], 2)
    predicted = score(by_row[400:].reshape(-1, len(NAMES))).reshape(-1, 4)
    raw, ranked = (
        average_precision_at_k(s, truth[400:], k=2) for s in (noise[400:], expit(predicted))
    )
    assert ranked > raw + 0.1


def make_arm(data, seed=0):
    rng = np.random.default_rng(seed)
    margins = [
        2.0 * Y + rng.normal(0, 1.5, Y.shape) for Y in (data.Y_train[data.calibration], data.Y_test)
    ]
    calibration, test = (expit(margin) for margin in margins)
    return Arm(np.ones(data.n_labels), calibration, test, *margins, np.zeros(2))


def test_rankers_never_see_the_test_labels(mulan_in_memory):
    data = mulan_in_memory()
    arm = make_arm(data)
    cell = study.measure_rankers(data, arm)
    other = study.measure_rankers(replace(data, Y_test=data.Y_test[::-1].copy()), arm)
    for name in RANKERS:
        assert cell["rankers"][name]["out_of_fold"] == other["rankers"][name]["out_of_fold"]
        assert cell["rankers"][name]["map"] != other["rankers"][name]["map"]
    assert cell["chosen"] == other["chosen"]
    assert cell["ceiling"] >= cell["raw"]


def test_gains_are_differences_of_the_maps_that_are_told(mulan_in_memory):
    data = mulan_in_memory(seed=3)
    cell = study.measure_rankers(data, make_arm(data))
    for ranker in cell["rankers"].values():
        gain = ranker["gain"]
        assert gain["value"] == pytest.approx(ranker["map"] - cell["repaired"])
        assert gain["low"] <= gain["value"] <= gain["high"]


def test_finished_cells_need_no_data(mulan_in_memory, tmp_path, monkeypatch):
    data = mulan_in_memory()
    monkeypatch.setattr(study, "read_mulan", lambda *_, **__: data)
    monkeypatch.setattr(study, "train_arm", lambda *_: make_arm(data))
    options = {"datasets": ["small"], "weights": ["r"], "results": tmp_path}
    first = study.reproduce_row_rankers(**options)
    monkeypatch.setattr(study, "read_mulan", lambda *_, **__: pytest.fail("was read"))
    assert study.reproduce_row_rankers(**options, finished=True) == first


def test_a_ranker_is_served_only_where_it_is_best_out_of_fold():
    cell = {
        "repaired": 0.5,
        "repaired_out_of_fold": 0.6,
        "rankers": {
            "logistic": {"out_of_fold": 0.55, "map": 0.7},
            "lambdarank": {"out_of_fold": 0.58, "map": 0.8},
        },
    }
    assert would_serve(cell) == 0.5
    cell["repaired_out_of_fold"] = 0.57
    assert would_serve(cell) == 0.8
