"""`diagnose` and `plan` on a terminal: one screen for people, all of it for machines."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
import typer
from typer.testing import CliRunner

from oddslip import evaluate
from oddslip.cli.diagnose import diagnose as diagnose_command
from oddslip.cli.diagnose import plan as plan_command
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose, plan
from oddslip.errors import InvalidInput
from oddslip.reports.text import show_diagnosis

PAIR = synthetic_pair(900, 20, saturate=0.2, noise=0.5, n_dead=2, seed=2)
app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
app.command()(diagnose_command)
app.command()(plan_command)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    np.save("w.npy", PAIR.weighted)
    np.save("u.npy", PAIR.unweighted)
    np.savetxt("weights.txt", PAIR.weights)
    sp.save_npz("y.npz", sp.csr_array(PAIR.labels.astype(np.int8)))
    return tmp_path


def run(*arguments):
    told = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert told.exit_code == 0, told.output
    return told.stdout


BOTH = ("--weights", "weights.txt", "--unweighted", "u.npy", "--bootstrap", 30)


def test_the_verdict_comes_first_then_the_ladder_then_three_findings(folder):
    told = run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH)
    assert told.startswith("Hurt by the weights")
    assert told.index("MAP@7") < told.index("isotonic") < told.index("\nOS")
    assert told.count("\n  -> ") == 3
    assert "more findings: --verbose" in told
    assert len(told.splitlines()) <= 45


def test_another_metric_is_the_one_that_is_shown(folder):
    told = run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH, "--metric", "recall")
    assert "recall@7" in told
    assert "MAP" not in told
    found = json.loads(
        run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH, "--metric", "psp", "--propensities",
            "weights", "--json")
    )  # fmt: skip
    raw = next(rung for rung in found["ladder"]["rungs"] if rung["rung"] == "raw")
    wanted = evaluate(
        PAIR.weighted, PAIR.labels, k=7, weights=np.loadtxt("weights.txt"), n_replicates=0
    )
    assert found["metric"] == found["decomposition"]["metric"] == "psp"
    assert raw["metrics"]["psp"]["value"] == wanted["psp"].value


def test_verbose_shows_every_finding_and_what_is_missing(folder):
    told = run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH, "--verbose")
    found = diagnose(
        PAIR.weighted, PAIR.labels, k=7, weights=np.loadtxt("weights.txt"), n_replicates=30,
        unweighted=PAIR.unweighted,
    )  # fmt: skip
    assert all(finding.code in told for finding in found.findings)
    assert all(f"Needs: {missing.needs}" in told.replace("\n", " ") for missing in found.missing)


def test_json_is_what_the_verb_returns(folder):
    told = json.loads(run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH, "--json"))
    wanted = diagnose(
        PAIR.weighted, PAIR.labels, k=7, weights=np.loadtxt("weights.txt"), n_replicates=30,
        unweighted=PAIR.unweighted,
    )  # fmt: skip
    assert told == wanted.to_dict()


def test_a_calibration_panel_is_passed_on(folder):
    told = json.loads(
        run(
            "diagnose",
            "w.npy",
            "y.npz",
            "--calibration",
            "w.npy",
            "--calibration-labels",
            "y.npz",
            "--bootstrap",
            0,
            "--rounds",
            60,
            "--learning-rate",
            0.05,
            "--max-delta-step",
            0.5,
            "--json",
        )
    )
    assert told["protocol"]["name"] == "deployment"
    assert told["shifts"]["budget"] == pytest.approx(1.5)
    assert "OS405" in {finding["code"] for finding in told["findings"]}
    with pytest.raises(InvalidInput, match="needs --calibration"):
        run("diagnose", "w.npy", "y.npz", "--calibration-labels", "y.npz")


def test_a_plan_begins_with_its_recommendation(folder):
    told = run("plan", "y.npz", "--rounds", 60, "--learning-rate", 0.05, "--unweighted", "u.npy")
    assert told.startswith("Train without label-specific weights")
    assert "what-if loss in MAP@7" in told
    assert "step budget" in told


@pytest.mark.parametrize("weights", ["balanced", "sqrt", "none", "3.5", "weights.txt"])
def test_the_json_of_a_plan_is_what_the_verb_returns(folder, weights):
    told = run(
        "plan", "y.npz", "--rounds", 60, "--learning-rate", 0.05, "--weights", weights, "--json"
    )
    given = {"3.5": 3.5, "weights.txt": np.loadtxt("weights.txt")}.get(weights, weights)
    wanted = plan(PAIR.labels, rounds=60, learning_rate=0.05, weights=given)
    assert json.loads(told) == wanted.to_dict()


def test_a_verbose_plan_lists_labels(folder):
    (folder / "names.txt").write_text("\n".join(PAIR.label_names))
    told = run(
        "plan", "y.npz", "--rounds", 60, "--learning-rate", 0.05, "--verbose", "--label-names",
        "names.txt",
    )  # fmt: skip
    assert "item-000" in told


def test_label_names_are_hostile_text():
    names = [f"\x1b[31m<img src=x onerror=alert({j})>" for j in range(20)]
    found = diagnose(PAIR.weighted, PAIR.labels, k=7, n_replicates=0, label_names=names)
    pieces = [piece for piece in show_diagnosis(found, verbose=True) if isinstance(piece, str)]
    assert not any("\x1b" in piece for piece in pieces)


def test_every_command_has_help_with_examples():
    for name in ("diagnose", "plan"):
        assert f"oddslip {name}" in run(name, "--help")
