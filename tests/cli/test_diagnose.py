"""`diagnose` and `plan` on a terminal: one screen for people, all of it for machines."""

import json
import shlex

import numpy as np
import pytest
import scipy.sparse as sp
import typer
from typer.testing import CliRunner

from oddslip import evaluate
from oddslip.cli.diagnose import diagnose as diagnose_command
from oddslip.cli.diagnose import plan as plan_command
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.errors import InvalidInput
from oddslip.planning import plan
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
    output = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert output.exit_code == 0, output.output
    return output.stdout


BOTH = ("--weights", "weights.txt", "--unweighted", "u.npy", "--bootstrap", 30)


def test_three_sentences_come_first_then_the_ladder_then_three_findings(folder):
    output = run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH)
    assert output.index("MAP@7") < output.index("\nisotonic") < output.index("\nOS")
    assert output.count("\n  -> ") == 3
    assert "more findings" in output
    assert len(output.splitlines()) <= 40


def test_the_command_of_the_first_screen_runs(folder):
    from oddslip.cli.app import main

    output = run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH)
    (command,) = [line for line in output.splitlines() if line.startswith("  oddslip ")]
    assert main(shlex.split(command)[1:]) == 0
    assert (folder / "repair.oddslip").exists()


def test_the_next_command_repeats_the_options_of_this_one(folder):
    extra = ("--metric", "ndcg", "--kind", "probability", "--calibration", "w.npy")
    output = run("diagnose", "w.npy", "y.npz", *extra, "--calibration-labels", "y.npz", *BOTH)
    (command,) = [line for line in output.splitlines() if line.startswith("  oddslip fit")]
    assert "--metric ndcg" in command
    assert "--kind probability" in command
    assert "--weights weights.txt" in command


@pytest.mark.parametrize(
    ("scores", "verb", "excluded"),
    [("w.npy", "fit", "held-out.npz"), ("u.npy", "rank", "evaluated.npz")],
)
def test_the_next_command_excludes_the_cells_of_the_rows_it_reads(folder, scores, verb, excluded):
    from oddslip.cli.app import main

    for name, n_rows in (("evaluated.npz", 900), ("held-out.npz", 500)):
        sp.save_npz(name, sp.random_array((n_rows, 20), density=0.05, rng=0, format="csr") > 0)
    np.save("cal.npy", np.load(scores)[:500])
    sp.save_npz("cal-y.npz", sp.csr_array(PAIR.labels[:500].astype(np.int8)))
    calibration = ("--calibration", "cal.npy", "--calibration-labels", "cal-y.npz")
    exclude = ("--exclude", "evaluated.npz", "--calibration-exclude", "held-out.npz")
    output = run("diagnose", scores, "y.npz", *calibration, *exclude, "--bootstrap", 30)
    (command,) = [line for line in output.splitlines() if line.startswith(f"  oddslip {verb} ")]
    assert f"--exclude {excluded}" in command
    assert main(shlex.split(command)[1:]) == 0


def test_another_metric_is_the_one_that_is_shown(folder):
    output = run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH, "--metric", "recall")
    assert "recall@7" in output
    assert "MAP" not in output
    found = json.loads(
        run(
            "diagnose",
            "w.npy",
            "y.npz",
            "-k",
            7,
            *BOTH,
            "--metric",
            "psp",
            "--propensities",
            "weights",
            "--json",
        )
    )
    raw = next(rung for rung in found["ladder"]["rungs"] if rung["rung"] == "raw")
    wanted = evaluate(
        PAIR.weighted, PAIR.labels, k=7, weights=np.loadtxt("weights.txt"), n_replicates=0
    )
    assert found["metric"] == found["decomposition"]["metric"] == "psp"
    assert raw["metrics"]["psp"]["value"] == wanted["psp"].value


def test_verbose_shows_every_finding_and_what_is_missing(folder):
    output = run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH, "--verbose")
    found = diagnose(
        PAIR.weighted,
        PAIR.labels,
        k=7,
        weights=np.loadtxt("weights.txt"),
        n_replicates=30,
        unweighted=PAIR.unweighted,
    )
    assert all(finding.code in output for finding in found.findings)
    assert all(f"Needs: {missing.needs}" in output.replace("\n", " ") for missing in found.missing)


def test_json_is_what_the_verb_returns(folder):
    output = json.loads(run("diagnose", "w.npy", "y.npz", "-k", 7, *BOTH, "--json"))
    wanted = diagnose(
        PAIR.weighted,
        PAIR.labels,
        k=7,
        weights=np.loadtxt("weights.txt"),
        n_replicates=30,
        unweighted=PAIR.unweighted,
    )
    assert output == wanted.to_dict()


def test_a_calibration_panel_is_passed_on(folder):
    output = json.loads(
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
    assert output["protocol"]["name"] == "deployment"
    assert output["shifts"]["budget"] == pytest.approx(1.5)
    assert "OS405" in {finding["code"] for finding in output["findings"]}
    with pytest.raises(InvalidInput, match="needs --calibration"):
        run("diagnose", "w.npy", "y.npz", "--calibration-labels", "y.npz")


def test_a_plan_begins_with_its_recommendation(folder):
    output = run("plan", "y.npz", "--rounds", 60, "--learning-rate", 0.05, "--unweighted", "u.npy")
    assert output.startswith("Train without label-specific weights")
    assert "what-if loss in MAP@7" in output
    assert "step budget" in output


@pytest.mark.parametrize("weights", ["balanced", "sqrt", "none", "3.5", "weights.txt"])
def test_the_json_of_a_plan_is_what_the_verb_returns(folder, weights):
    output = run(
        "plan", "y.npz", "--rounds", 60, "--learning-rate", 0.05, "--weights", weights, "--json"
    )
    value = {"3.5": 3.5, "weights.txt": np.loadtxt("weights.txt")}.get(weights, weights)
    wanted = plan(PAIR.labels, rounds=60, learning_rate=0.05, weights=value)
    assert json.loads(output) == wanted.to_dict()


def test_a_verbose_plan_lists_labels(folder):
    (folder / "names.txt").write_text("\n".join(PAIR.label_names))
    output = run(
        "plan",
        "y.npz",
        "--rounds",
        60,
        "--learning-rate",
        0.05,
        "--verbose",
        "--label-names",
        "names.txt",
    )
    assert "item-000" in output


def test_label_names_are_hostile_text():
    names = [f"\x1b[31m<img src=x onerror=alert({j})>" for j in range(20)]
    found = diagnose(PAIR.weighted, PAIR.labels, k=7, n_replicates=0, label_names=names)
    pieces = [piece for piece in show_diagnosis(found, verbose=True) if isinstance(piece, str)]
    assert not any("\x1b" in piece for piece in pieces)


def test_every_command_has_help_with_examples():
    for name in ("diagnose", "plan"):
        assert f"oddslip {name}" in run(name, "--help")
