"""The demo trains, plans, diagnoses, repairs and reports, and what it says is what it found."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import oddslip
from oddslip.cli import demo as demos
from oddslip.cli.app import main
from oddslip.diagnosis.summary import summarize
from oddslip.reports.figures.waterfall import describe_waterfall
from oddslip.reports.numbers import waterfall_of

LEVEL = re.compile(r"\d\.\d{3}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "demo-report"


@pytest.fixture(scope="module")
def demo_run(folder):
    return demos._run(folder, ["demo"])


@pytest.fixture(scope="module")
def screen(demo_run, folder):
    import io

    from rich.console import Console

    output = io.StringIO()
    out = Console(file=output, highlight=False, markup=False, width=100)
    for piece in demos._show(demo_run, folder):
        out.print(piece)
    return output.getvalue()


def test_the_weighted_ranking_collapses_while_its_labels_stay_in_order(demo_run):
    weighted, twin = demo_run.fresh["weighted"], demo_run.fresh["unweighted"]
    assert weighted["map"].value < 0.6 * twin["map"].value
    assert weighted.mean_auc > twin.mean_auc - 0.05
    assert twin.mean_auc > 0.75


def test_the_repair_returns_most_of_the_loss_on_fresh_rows(demo_run):
    raw, twin = (demo_run.fresh[arm]["map"].value for arm in ("weighted", "unweighted"))
    repaired = demo_run.fresh["weighted, repaired"]["map"].value
    assert repaired - raw > 0.9 * (twin - raw)
    assert demo_run.repair.chosen_ != "raw"


def test_the_diagnosis_follows_the_deployment_protocol(demo_run):
    assert demo_run.diagnosis.protocol == "deployment"
    assert demo_run.diagnosis.verdict.code == "repairable_by_calibration"
    assert demo_run.diagnosis.finding("OS201") is not None


def test_the_screen_begins_with_the_verdict_and_fits_one_screen(demo_run, screen):
    flat = " ".join(screen.split())
    assert flat.startswith(" ".join(summarize(demo_run.diagnosis)[:2]))
    assert len(screen.splitlines()) <= 30
    assert max(map(len, screen.splitlines())) <= 100


def test_every_number_of_the_screen_is_one_that_was_found(demo_run, screen):
    flat = " ".join(screen.split())
    for evaluation in demo_run.fresh.values():
        assert f"{evaluation['map'].value:.4f}" in flat
        assert f"{evaluation.mean_auc:.3f}" in flat
    raw, twin = (demo_run.fresh[arm]["map"].value for arm in ("weighted", "unweighted"))
    returned = (demo_run.fresh["weighted, repaired"]["map"].value - raw) / (twin - raw)
    assert f"The weights cost {(twin - raw) / twin:.0%} of MAP@7" in flat
    assert f"the repair returns {returned:.0%} of the loss" in flat
    assert demo_run.plan.recommendation in flat
    assert demo_run.repair.chosen_ in flat


def test_the_front_picture_of_the_docs_is_that_of_the_demo(demo_run):
    from PIL import Image

    docs = Path(__file__).parents[2] / "docs"
    (name,) = re.findall(r"\]\((.*\.png)\)", (docs / "index.md").read_text())
    with Image.open(docs / name) as picture:
        drawn = picture.info.get("Description", "")
    own = describe_waterfall(waterfall_of(demo_run.diagnosis))
    drawn, own = ([float(level) for level in LEVEL.findall(text)] for text in (drawn, own))
    assert own == pytest.approx(drawn, abs=0.01)  # as in the readme below


def test_the_numbers_of_the_readme_are_those_of_the_demo(demo_run):
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    table = re.findall(
        r"^\| ((?:un)?weighted.*?) \| (0\.\d{4}) \| (0\.\d{3}) \|$", readme, re.MULTILINE
    )
    assert [name for name, _, _ in table] == list(demo_run.fresh)
    for name, map_at_k, auc in table:  # other versions of LightGBM may grow other trees
        assert demo_run.fresh[name]["map"].value == pytest.approx(float(map_at_k), abs=0.01)
        assert demo_run.fresh[name].mean_auc == pytest.approx(float(auc), abs=0.01)


def test_the_files_it_leaves_give_the_same_diagnosis_by_hand(demo_run, folder, capsys):
    words = [
        "diagnose",
        str(folder / "evaluated-weighted.npy"),
        str(folder / "evaluated-labels.npz"),
        "-k",
        "7",
        "--weights",
        str(folder / "weights.npy"),
        "--prior",
        str(folder / "prior.npy"),
        "--unweighted",
        str(folder / "evaluated-unweighted.npy"),
        "--calibration",
        str(folder / "calibration-weighted.npy"),
        "--calibration-labels",
        str(folder / "calibration-labels.npz"),
        "--label-names",
        str(folder / "names.txt"),
        "--rounds",
        "60",
        "--learning-rate",
        "0.1",
        "--max-delta-step",
        "0",
        "--json",
    ]
    assert main(words) == 0
    import json

    assert json.loads(capsys.readouterr().out) == demo_run.diagnosis.to_dict()


def test_the_saved_repair_ranks_as_the_fitted_one(demo_run, folder):
    scores = oddslip.Panel(
        np.load(folder / "evaluated-weighted.npy"), label_names=demo_run.repair.fitted_.label_names
    )
    again = oddslip.load_repair(folder / "repair.oddslip").rank(scores, k=7)
    np.testing.assert_array_equal(again, demo_run.repair.rank(scores))


def test_the_report_names_its_command_and_the_hashes_of_its_inputs(demo_run, folder):
    import hashlib

    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "oddslip demo" in page
    for name in demos.FILES.values():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() in page


def test_nothing_but_the_files_it_names_is_left(demo_run, folder):
    wanted = {*demos.FILES.values(), "report.html", "repair.oddslip"}
    assert {path.name for path in folder.iterdir()} == wanted


def test_without_lightgbm_it_says_which_extra_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.delitem(sys.modules, "oddslip.learners.backends.lightgbm", raising=False)
    # An earlier import also left the module as an attribute of its package.
    monkeypatch.delattr("oddslip.learners.backends.lightgbm", raising=False)
    assert main(["demo"]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(r"oddslip: .*oddslip\[lightgbm\].*\n", error)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", ["taken", "no/folder"])
def test_a_place_where_it_can_not_write_is_refused_before_training(
    tmp_path, monkeypatch, capsys, output
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    monkeypatch.setattr(demos, "_run", None)
    assert main(["demo", "-o", output]) == 2
    assert "folder" in capsys.readouterr().err
