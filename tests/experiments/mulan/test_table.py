"""The study and `diagnose` tell the same ladder, and committed points are those of the cells."""

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import oddslip
from experiments.datasets.mulan.reader import read_mulan
from experiments.mulan.arms import arm_configuration, train_arm
from experiments.mulan.cells import measure_cell
from experiments.mulan.page import (
    MIN_LABELS,
    SMALLEST_LOSS,
    format_regimes,
    regime_points,
    write_regimes,
)
from experiments.store import CellStore
from oddslip.reports.numbers import RegimePoint

ROOT = Path(__file__).parents[3]
KEPT = ROOT / ".work/mulan/paper"  # scores of a run of the study, where one was made
CELLS = CellStore(ROOT / "experiments/results", "mulan-paper")
RUNGS = {
    "raw",
    "inversion",
    "what-if",
    "offset",
    "isotonic",
    "isotonic, identity",
    "isotonic, exclude",
    "pooled",
    "platt",
    "beta",
    "label_free",
    "ceiling",
}


def agree(name, learner, folder, mulan):
    """Assert that diagnose and the study agree on a pair; gives the cell of the study."""
    data = read_mulan(name, data=mulan)
    arm, twin = (train_arm(data, learner, weight, folder) for weight in ("r", "1"))
    cell = measure_cell(data, arm, twin, weighted=True)
    diagnosis = oddslip.diagnose(
        arm.test,
        data.Y_test,
        k=data.k,
        weights=arm.weights,
        unweighted=twin.test,
        calibration=(arm.calibration, data.Y_train[data.calibration]),
        prior=data.prevalence,
        n_replicates=0,
    )
    assert cell["map"].keys() == RUNGS
    values = {rung: diagnosis.ladder.value(rung) for rung in RUNGS}
    assert values == pytest.approx(cell["map"], rel=0, abs=1e-12)
    plain = measure_cell(data, twin, twin, weighted=False)["map"]["raw"]
    assert diagnosis.ladder.value("unweighted") == pytest.approx(plain, rel=0, abs=1e-12)
    assert diagnosis.saturation.share == pytest.approx(cell["stored_share"], rel=0, abs=1e-12)
    return cell


@pytest.mark.parametrize("name", ["flags", "genbase"])
def test_diagnose_and_the_study_agree_on_every_rung(name, tmp_path, genuine):
    agree(name, "lightgbm", tmp_path, genuine("mulan"))


def is_kept(name, learner):
    """Whether scores of both arms are there, of whatever configuration."""
    return all(any(KEPT.glob(f"{name}-{learner}-{weight}-*.npz")) for weight in ("1", "r"))


@pytest.mark.parametrize("name", ["corel5k", "delicious"])
def test_diagnose_and_the_study_agree_on_kept_scores_of_many_labels(name, monkeypatch, genuine):
    if not is_kept(name, "lightgbm"):
        pytest.skip("needs the kept scores of a run of the study")
    monkeypatch.setattr(
        "experiments.mulan.arms.OneVsRest",
        lambda *_, **__: pytest.skip("needs kept scores of this configuration"),
    )
    cell = agree(name, "lightgbm", KEPT, genuine("mulan"))
    assert cell["map"]["raw"] < 0.01  # the collapse, so that agreement is no matter of course


def test_the_committed_cell_is_the_one_that_is_measured(tmp_path, genuine):
    data = read_mulan("flags", data=genuine("mulan"))
    arm, twin = (train_arm(data, "lightgbm", weight, tmp_path) for weight in ("r", "1"))
    cell = CELLS.cells()["flags-lightgbm-r"]
    configuration = arm_configuration(data, "lightgbm", "r")
    assert cell["configuration"] == configuration | {"measures": cell["configuration"]["measures"]}
    actual = measure_cell(data, arm, twin, weighted=True)["map"]
    assert actual == pytest.approx(cell["values"]["map"], rel=0, abs=1e-9)


def test_the_committed_regimes_are_those_of_the_committed_cells():
    committed = resources.files("oddslip.reports").joinpath("regimes.json").read_text("utf-8")
    assert json.loads(committed) == format_regimes(CELLS.values())


def pair(unweighted, weighted, inversion, **options):
    scores = {"stored_share": 0.0, "n_identified": 5, "median_realized": 0.5} | options
    return {
        "yeast-mlp-1": {"map": {"raw": unweighted}},
        "yeast-mlp-r": {"map": {"raw": weighted, "inversion": inversion}} | scores,
    }


def test_a_regime_point_is_the_share_of_the_loss_that_the_inversion_returns():
    points = regime_points(pair(0.6, 0.2, 0.5, stored_share=0.25))
    assert points == [RegimePoint("yeast, mlp", "mlp", 0.5, 0.75, 0.25)]


@pytest.mark.parametrize(
    "cells",
    [
        pair(0.6, 0.6 - SMALLEST_LOSS + 1e-9, 0.6),
        pair(0.6, 0.7, 0.6),
        pair(0.6, 0.2, 0.5, n_identified=MIN_LABELS - 1),
        pair(0.6, 0.2, 0.5, n_identified=0, median_realized=None),
        {"yeast-mlp-r": pair(0.6, 0.2, 0.5)["yeast-mlp-r"]},
    ],
    ids=["small loss", "gain", "few labels", "no shift", "no twin"],
)
def test_a_pair_without_a_clear_loss_or_a_known_shift_is_no_regime_point(cells):
    assert regime_points(cells) == []


def test_written_regimes_read_back_as_points(tmp_path):
    cells = pair(0.6, 0.2, np.nextafter(0.5, 1))
    write_regimes(cells, tmp_path / "regimes.json")
    regimes = json.loads((tmp_path / "regimes.json").read_text())
    assert [RegimePoint(**point) for point in regimes["points"]] == regime_points(cells)
    assert "protocol `paper`" in regimes["source"]
