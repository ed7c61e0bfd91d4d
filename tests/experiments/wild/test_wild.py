"""Models that we did not make: what is measured, by group and by row."""

import numpy as np
import pytest

from experiments.wild import measures
from experiments.wild.models import Rows, find_model


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random((400, 8)) < 0.3
    scores = (0.3 + 0.3 * truth + 0.3 * rng.random(truth.shape)).clip(0, 1)
    return Rows(scores, truth, np.arange(400) // 4)


def test_a_standard_error_of_single_rows_is_the_usual_one():
    values = np.random.default_rng(0).normal(size=50)
    found = measures.compare_groups(values, np.arange(50))
    assert found["standard_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(50))


def test_no_group_is_fitted_on_and_measured():
    rows, sides = make_rows(), []

    def spy(rows, fitting, measured):
        sides.append((set(rows.groups[fitting]), set(rows.groups[measured])))
        return rows.scores[measured], "raw"

    for protocol in ("half", "folds"):
        cell = measures.measure_repeat(rows, {"spy": spy}, protocol, 1, {})
        assert cell["values"]["spy"]["gains"]["map_7"]["difference"] == 0
    assert len(sides) == 6
    assert all(not fitting & measured for fitting, measured in sides)


def test_raw_scores_of_jamendo_have_the_published_pr_auc(genuine):
    folder = genuine("published")
    lines = (folder / "jamendo/baseline_vggish_results.tsv").read_text().splitlines()
    published = float(dict(line.split("\t") for line in lines)["PR-AUC-micro"])
    rows = find_model("jamendo", folder.parent, folder).load()
    assert measures.measure_table(rows.scores, rows.truth)["pr_auc"] == pytest.approx(
        published, abs=1e-6
    )
