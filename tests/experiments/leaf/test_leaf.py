"""Leaf counts say what weighted trees score; cells are kept; the page is theirs."""

from pathlib import Path

import numpy as np
import pytest

from experiments.leaf import study
from experiments.leaf.page import write_page
from oddslip.errors import InvalidInput

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("weight", [1.0, 37.0, 3700.0])
def test_scores_of_a_weighted_tree_are_rho_of_its_leaf_counts(weight):
    rng = np.random.default_rng(int(weight))
    X, X_test = rng.normal(size=(600, 5)), rng.normal(size=(300, 5))
    truth = rng.random(600) < 1 / (1 + np.exp(3 - 2 * X[:, 0]))
    predicted, measured = study.grow_tree(X, truth, X_test, weight)
    assert np.unique(measured).size > 3
    np.testing.assert_allclose(predicted, measured, rtol=0, atol=1e-12)


def test_the_committed_trees_agree_with_their_leaf_counts(monkeypatch):
    monkeypatch.chdir(ROOT)
    cells = study.reproduce_leaf(finished=True)
    trees = [cell for cell in cells.values() if "predicted_share" in cell]
    assert trees
    for cell in trees:
        assert cell["largest_difference"] <= 1e-12
        assert cell["predicted_share"] == cell["saturated_share"]


@pytest.fixture
def small(monkeypatch, mulan_in_memory):
    data = mulan_in_memory()
    monkeypatch.setattr(study, "read_mulan", lambda *_, **__: data)
    return data


def run(folder, **options):
    return study.reproduce_leaf(
        datasets=["small"], weights=["1", "100r"], rows_in_leaf=[50], results=folder, **options
    )


def test_a_larger_weight_saturates_more_cells_and_ties_them(small, tmp_path):
    cells = run(tmp_path)
    light, heavy = cells["small-tree-1"], cells["small-tree-100r"]
    assert light["saturated_share"] < heavy["saturated_share"]
    assert heavy["ceiling"] >= heavy["raw"]


def test_finished_cells_are_not_grown_again_and_need_no_data(small, tmp_path, monkeypatch):
    first = run(tmp_path)
    for name in ("measure_trees", "measure_booster"):
        monkeypatch.setattr(study, name, lambda *_, **__: pytest.fail("was computed again"))
    assert run(tmp_path) == first
    monkeypatch.setattr(study, "read_mulan", lambda *_, **__: pytest.fail("was read"))
    assert run(tmp_path, finished=True) == first


def test_a_label_of_one_class_scores_its_prevalence(mulan_in_memory):
    data = mulan_in_memory()
    data.Y_train[:, 2] = False
    assert study.measure_trees(data, "r")["largest_difference"] <= 1e-12


def test_an_unknown_weight_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="weights must be among 1, r, 10r, 100r"):
        study.reproduce_leaf(weights=["7r"], results=tmp_path)


def test_the_page_shows_the_numbers_it_is_given():
    cell = {
        "predicted_share": 0.25,
        "saturated_share": 0.125,
        "largest_difference": 3e-16,
        "raw": 0.5,
        "ceiling": 0.75,
        "distinct": 9.5,
    }
    page = write_page({"scene-tree-r": cell})
    assert "| scene | r | 25.00% | 12.50% | 0.500 | 0.750 | 9.5 |" in page
    assert "is 3.0e-16" in page.replace("\n", " ")
