"""The commands do what the verbs do, and say it to people and to machines."""

import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import oddslip
from oddslip.calibrators import Isotonic
from oddslip.calibrators.catalogue import NAMES
from oddslip.cli.app import app, main
from oddslip.datasets import synthetic_pair

PAIR = synthetic_pair(1500, 30, saturate=0.05, n_dead=2, seed=2)
COMMANDS = [each.callback.__name__ for each in app.registered_commands if not each.hidden]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    np.save("weighted.npy", PAIR.weighted)
    np.save("unweighted.npy", PAIR.unweighted)
    sp.save_npz("labels.npz", sp.csr_array(PAIR.labels.astype(np.int8)))
    np.save("prior.npy", PAIR.prior)
    np.savetxt("weights.txt", PAIR.weights)
    (tmp_path / "names.txt").write_text("\n".join(PAIR.label_names))
    return tmp_path


def run(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_evaluate_prints_the_json_of_the_verb(folder, capsys):
    result = run(capsys, "evaluate", "weighted.npy", "labels.npz", "-k", 7, "--json", "--auc")
    expected = oddslip.evaluate(PAIR.weighted, PAIR.labels, k=7, auc=True).to_dict()
    assert json.loads(result) == expected


def test_evaluate_against_prints_paired_differences(folder, capsys):
    arguments = ("evaluate", "weighted.npy", "labels.npz", "-k", 7, "--against", "unweighted.npy")
    result = json.loads(run(capsys, *arguments, "--json"))
    first = oddslip.evaluate(PAIR.weighted, PAIR.labels, k=7)
    second = oddslip.evaluate(PAIR.unweighted, PAIR.labels, k=7)
    assert result["difference"] == first.compare(second).to_dict()
    table = run(capsys, *arguments)
    assert "MAP@7" in table
    assert "difference" in table
    assert "Ties decide the top 7 of weighted.npy" in table


@pytest.mark.parametrize("against", [(), ("--against", "unweighted.npy")], ids=["alone", "paired"])
def test_evaluate_shows_one_metric_where_one_is_asked_for(folder, capsys, against):
    arguments = ("evaluate", "weighted.npy", "labels.npz", "-k", 7, *against)
    whole = json.loads(run(capsys, *arguments, "--json"))
    result = json.loads(run(capsys, *arguments, "--metric", "ndcg", "--json"))
    assert result["metrics"] == {"ndcg": whole["metrics"]["ndcg"]}
    if against:
        assert result["difference"] == {"ndcg": whole["difference"]["ndcg"]}
    table = run(capsys, *arguments, "--metric", "ndcg")
    assert "nDCG@7" in table
    assert "recall@7" not in table


def test_evaluate_refuses_a_metric_that_there_is_not(folder, capsys):
    assert main(["evaluate", "weighted.npy", "labels.npz", "-k", "7", "--metric", "f1"]) == 2
    assert "metric must be one of" in capsys.readouterr().err


def test_evaluate_passes_its_options_on(folder, capsys):
    result = run(
        capsys,
        "evaluate",
        "weighted.npy",
        "labels.npz",
        "-k",
        3,
        "--ties",
        "expected",
        "--denominator",
        "relevant",
        "--rows",
        "all",
        "--bootstrap",
        50,
        "--level",
        0.9,
        "--seed",
        5,
        "--threads",
        1,
        "--json",
    )
    expected = oddslip.evaluate(
        PAIR.weighted,
        PAIR.labels,
        k=3,
        ties="expected",
        denominator="relevant",
        rows="all",
        n_replicates=50,
        level=0.9,
        seed=5,
    )
    assert json.loads(result) == expected.to_dict()


def test_evaluate_without_a_bootstrap_shows_no_interval(folder, capsys):
    table = run(capsys, "evaluate", "weighted.npy", "labels.npz", "-k", 7, "--bootstrap", 0)
    assert "nan" not in table


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_rank_writes_what_the_verb_returns(folder, capsys, ending):
    run(capsys, "rank", "weighted.npy", "-k", 5, "-o", f"top.{ending}")
    expected = oddslip.rank(PAIR.weighted, k=5)
    if ending == "npy":
        np.testing.assert_array_equal(np.load("top.npy"), expected)
    else:
        assert pq.read_table("top.parquet")["labels"].to_pylist() == expected.tolist()


def test_rank_prints_names_to_people_and_lines_to_machines(folder, capsys):
    options = ("rank", "weighted.npy", "-k", 2, "--label-names", "names.txt")
    assert "item-0" in run(capsys, *options)
    lines = run(capsys, *options, "--json").splitlines()
    assert len(lines) == PAIR.n_rows
    best = oddslip.rank(PAIR.weighted, k=2)[0]
    assert json.loads(lines[0])["labels"] == [PAIR.label_names[j] for j in best]


def test_fit_then_apply_is_the_calibrator(folder, capsys):
    table = run(
        capsys,
        "fit",
        "weighted.npy",
        "labels.npz",
        "--calibrator",
        "isotonic",
        "--tau",
        3,
        "--prior",
        "prior.npy",
        "-o",
        "repair.oddslip",
    )
    assert "dead: prior" in table
    expected = Isotonic(tau=3, prior=PAIR.prior).fit(PAIR.weighted, PAIR.labels)
    run(capsys, "apply", "repair.oddslip", "weighted.npy", "-o", "repaired.npy")
    np.testing.assert_array_equal(np.load("repaired.npy"), expected.transform(PAIR.weighted))
    run(capsys, "apply", "repair.oddslip", "weighted.npy", "--top-k", 7, "-o", "top.npy")
    np.testing.assert_array_equal(np.load("top.npy"), expected.rank(PAIR.weighted, k=7))
    run(capsys, "apply", "repair.oddslip", "weighted.npy", "-o", "repaired.parquet")
    again = oddslip.rank("repaired.parquet", k=7)
    np.testing.assert_array_equal(again, oddslip.rank("repaired.npy", k=7))


def test_fit_with_k_chooses_and_says_why(folder, capsys):
    arguments = ("fit", "weighted.npy", "labels.npz", "-k", 7, "--rule", "paper", "-o", "r.oddslip")
    result = run(capsys, *arguments)
    expected = oddslip.Repair(k=7, rule="paper").fit(PAIR.weighted, PAIR.labels)
    assert f"{expected.chosen_} <- chosen" in result
    assert json.loads(run(capsys, *arguments, "--json"))["selection"] == expected.table_.to_dict()
    again = oddslip.load_repair("r.oddslip").rank(PAIR.weighted, k=7)
    np.testing.assert_array_equal(again, expected.rank(PAIR.weighted))


@pytest.mark.parametrize("calibrator", NAMES)
def test_every_calibrator_can_be_fitted_and_applied(folder, capsys, calibrator):
    result = json.loads(
        run(
            capsys,
            "fit",
            "weighted.npy",
            "labels.npz",
            "--calibrator",
            calibrator,
            "--weights",
            "weights.txt",
            "--label-names",
            "names.txt",
            "-o",
            "repair.oddslip",
            "--json",
        )
    )
    assert result["labels"]["label"] == list(PAIR.label_names)
    run(
        capsys,
        "apply",
        "repair.oddslip",
        "unweighted.npy",
        "-k",
        7,
        "-o",
        "top.npy",
        "--label-names",
        "names.txt",
    )
    assert np.load("top.npy").shape == (PAIR.n_rows, 7)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["fit", "weighted.npy", "labels.npz", "--calibrator", "magic", "-o", "r"],
            "calibrator must be one of",
        ),
        (
            ["fit", "weighted.npy", "labels.npz", "--calibrator", "inversion", "-o", "r"],
            "needs the weights",
        ),
        (
            ["fit", "weighted.npy", "labels.npz", "-k", "7", "--dead", "zero", "-o", "r"],
            "dead must be one of",
        ),
        (["fit", "weighted.npy", "labels.npz", "-o", "r"], "Pass -k, or take a calibrator"),
        (["fit", "weighted.npy", "labels.npz", "-k", "70", "-o", "r"], "k must be between 1"),
        (["fit", "weighted.npy", "labels.npz", "-k", "7", "--rule", "luck", "-o", "r"], "luck"),
        (
            [
                "fit",
                "weighted.npy",
                "labels.npz",
                "--calibrator",
                "isotonic",
                "--tau",
                "-1",
                "-o",
                "r",
            ],
            "tau must be",
        ),
        (
            ["fit", "weighted.npy", "labels.npz", "-k", "7", "--prior", "none.npy", "-o", "r"],
            "none.npy does not exist",
        ),
        (
            ["fit", "weighted.npy", "labels.npz", "-k", "7", "--prior", "names.txt", "-o", "r"],
            "names.txt cannot be read",
        ),
        (["fit", "weighted.npy", "-k", "7", "-o", "r"], "labels are needed to fit"),
        (["fit", "weighted.npy", "labels.npz"], "-o"),
        (["apply", "none.oddslip", "weighted.npy", "-o", "x.npy"], "none.oddslip"),
        (["apply", "weighted.npy", "weighted.npy", "-o", "x.npy"], "not a saved repair"),
    ],
)
def test_bad_fits_and_applications_are_one_line(folder, capsys, arguments, line):
    assert main(arguments) == 2
    output = capsys.readouterr().err
    assert line in output
    assert output.count("\n") == 1
    assert not (folder / "r").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    output = run(capsys, command, "--help")
    assert f"oddslip {command}" in output.split("Options")[0]


def test_completion_can_be_shown(monkeypatch):
    process = subprocess.run(
        [sys.executable, "-m", "oddslip", "--show-completion", "bash"],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert process.returncode == 0
    assert "complete" in process.stdout


def test_a_reader_that_goes_away_is_no_error(folder):
    process = subprocess.run(
        f"{sys.executable} -m oddslip rank weighted.npy -k 3 --json | head -1",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert process.stdout.count("\n") == 1
    assert process.stderr == ""


@pytest.mark.parametrize("command", ["reproduce mulan --finished", "generate baskets --size 3"])
def test_a_command_that_moved_says_where_it_is(command, capsys):
    assert main(command.split()) == 2
    assert "has moved. Run `python -m experiments`" in capsys.readouterr().err
