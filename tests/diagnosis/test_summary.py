"""Three sentences open every diagnosis; their numbers are right and their code runs."""

import ast
import re
import shlex

import numpy as np
import pandas as pd
import pytest
import typer

import oddslip
from experiments.verdict_simulation import SCENES
from oddslip.cli.app import app
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.diagnosis.comparison import popular_list
from oddslip.diagnosis.summary import CommandFiles, summarize
from oddslip.sources.open import open_source

COMMANDS = typer.main.get_command(app).commands


def draw(name, **changes):
    return diagnose(**SCENES[name].draw(7) | {"n_replicates": 100} | changes)


def draw_undecided():
    arguments = SCENES["capped"].draw(1)
    few = {name: arguments[name][:200] for name in ("scores", "labels")}
    return diagnose(**arguments | few | {"unweighted": None, "n_replicates": 300})


def draw_below_popularity():
    """A trace of signal under a full shift, and a prior of another period."""
    pair = synthetic_pair(4000, 40, signal=0.1, seed=10)
    prior = pair.prior[::-1].copy()
    return diagnose(
        pair.weighted, pair.labels, weights=pair.weights, k=7, prior=prior, n_replicates=200
    )


VERDICTS = {
    "healthy": lambda: draw("no weights"),
    "common_weight": lambda: draw("common weight"),
    "repairable_by_inversion": lambda: draw("realized"),
    "repairable_by_calibration": lambda: draw("capped"),
    "dead_labels": lambda: draw("dead labels"),
    "keep_margins": lambda: draw("saturated"),
    "keep_raw": lambda: draw("scarce"),
    "drift": lambda: draw("drift"),
    "no_signal": lambda: draw("random"),
    "undecided": draw_undecided,
    "below_popularity": draw_below_popularity,
}


@pytest.fixture(scope="module", params=VERDICTS)
def diagnosis(request):
    diagnosis = VERDICTS[request.param]()
    assert diagnosis.verdict.code == request.param
    return diagnosis


def parse(command):
    program, verb, *words = shlex.split(command)
    assert program == "oddslip"
    return verb, COMMANDS[verb].make_context("oddslip", words).params


def test_there_are_three_sentences_without_line_breaks(diagnosis):
    summary = summarize(diagnosis)
    sentences = summary.sentences(summary.command)
    assert len(sentences) == 3
    for sentence in sentences[:2]:
        assert sentence.endswith(".")
        assert not re.search(r"[.!?] ", sentence), "more than one sentence"
        assert len(sentence.split()) <= 40
    assert sentences[2].endswith(summary.command)
    assert "\n" not in "".join(sentences)


def test_the_command_and_the_line_of_python_parse(diagnosis):
    summary = summarize(diagnosis)
    parse(summary.command)
    ast.parse(summary.python)
    (name,) = re.findall(r"(oddslip(?:\.\w+)+)\(", summary.python)[:1]
    public = oddslip
    for part in name.split(".")[1:]:
        public = getattr(public, part)
    assert callable(public)


def test_the_numbers_are_those_of_the_ladder(diagnosis):
    summary, ladder = summarize(diagnosis), diagnosis.ladder
    values = {f"{ladder.value(name):.4f}" for name in ladder}
    signal = diagnosis.signal.mean
    values |= {f"{value:.4f}" for value in (signal.value, signal.low, signal.high)}
    assert set(re.findall(r"\d\.\d{4}", summary.harm + summary.repair)) <= values


def test_the_share_is_what_the_repair_returns_of_the_loss(diagnosis):
    summary, repair, parts = summarize(diagnosis), diagnosis.verdict.repair, diagnosis.decomposition
    if repair is None or parts is None:
        assert "of the loss" not in summary.repair
    else:
        assert f"returns {parts.returned[repair]:.0%} of the loss" in summary.repair
        raw, twin = (diagnosis.ladder.value(name) for name in ("raw", "unweighted"))
        assert f"{1 - raw / twin:.0%} of MAP@7" in summary.harm


def test_the_command_deploys_what_the_verdict_recommends(diagnosis):
    verb, options = parse(summarize(diagnosis).command)
    repair = diagnosis.verdict.repair
    if repair == "inversion":
        assert (verb, options["calibrator"]) == ("fit", "inversion")
        assert options["weights"]
    elif repair is not None:
        assert (verb, options["calibrator"], options["k"]) == ("fit", None, diagnosis.k)
    else:
        expected = {"no_signal": "evaluate", "undecided": "diagnose", "below_popularity": "fit"}
        assert verb == expected.get(diagnosis.verdict.code, "rank")


def test_a_summary_is_part_of_the_json(diagnosis):
    assert diagnosis.to_dict()["summary"] == summarize(diagnosis)._asdict()


def test_the_repr_is_one_short_line(diagnosis):
    assert diagnosis.verdict.code in repr(diagnosis)
    assert len(repr(diagnosis)) < 100
    assert "\n" not in repr(diagnosis)


def test_the_line_of_python_runs():
    arguments = SCENES["capped"].draw(7)
    summary = summarize(diagnose(**arguments, n_replicates=100))
    scores, labels = arguments["calibration"]
    variables = arguments | {"calibration_scores": scores, "calibration_labels": labels}
    variables["oddslip"] = oddslip
    exec(summary.python, variables)
    frame = pd.DataFrame(arguments["scores"], columns=arguments["label_names"])
    assert variables["repair"].rank(frame).shape == (len(frame), 7)


def absent_and_excluded(n_rows, n_labels):
    """Cells without a score, and labels that may not be shown."""
    rng = np.random.default_rng(3)
    return (rng.random((2, n_rows, n_labels)) < 0.05).astype(bool)


def run_python(line, variables):
    """The value of a line of Python, with nothing but these variables."""
    variables = variables | {"oddslip": oddslip}
    target, _, call = line.rpartition(" = ") if line.startswith("repair = ") else ("", "", line)
    assert target in ("", "repair")
    return eval(call, variables)


def cut(arguments, held_out):
    """The arguments with a share of the rows as calibration rows, with their own exclusions."""
    by_row = ("scores", "labels", "exclude", "unweighted")
    rows = {name: arguments[name][~held_out] for name in by_row if name in arguments}
    calibration = tuple(arguments[name][held_out] for name in by_row[:3])
    return arguments | rows | {"calibration": calibration}


def name_variables(arguments):
    """Variables of a user who calls `diagnose` with these arguments."""
    names = ("calibration_scores", "calibration_labels", "calibration_exclude")
    rows = dict(zip(names, arguments.get("calibration", ()), strict=False))
    return {name: value for name, value in (arguments | rows).items() if name != "calibration"}


def draw_absent(scene, n_rows=None, **changes):
    """Arguments of a scene with missing scores, exclusions and a prior."""
    arguments = SCENES[scene].draw(1)
    arguments.pop("calibration", None)
    arguments.pop("label_names", None)
    arguments["prior"] = np.asarray(arguments["labels"]).mean(axis=0) * 0.8 + 0.01
    for name in ("scores", "labels", "unweighted"):
        if arguments.get(name) is not None:
            arguments[name] = np.array(arguments[name][:n_rows])
    absent, excluded = absent_and_excluded(*arguments["scores"].shape)
    arguments["scores"][absent] = np.nan
    arguments |= {"exclude": excluded, "nan": "absent", "n_replicates": 200}
    arguments |= {"metric": "psp", "propensities": np.linspace(0.5, 1, len(arguments["prior"]))}
    return arguments | changes


@pytest.mark.parametrize("calibrated", [False, True])
def test_the_line_of_python_fits_on_the_cells_that_were_diagnosed(calibrated):
    arguments = draw_absent("capped", seed=5)
    if calibrated:
        arguments = cut(arguments, np.arange(len(arguments["scores"])) % 3 == 0)
    diagnosis = diagnose(**arguments)
    line = summarize(diagnosis).python
    assert line.startswith("repair = oddslip.Repair(")
    variables = name_variables(arguments)
    repair = run_python(line, variables)
    rows = arguments.get("calibration") or [
        arguments[name] for name in ("scores", "labels", "exclude")
    ]
    settings = {name: arguments.get(name) for name in ("metric", "propensities", "prior")}
    expected = oddslip.Repair(k=diagnosis.k, **settings, weights=arguments["weights"], seed=5).fit(
        *rows[:2], exclude=rows[2], nan="absent"
    )
    assert repair.fitted_.calibrator == expected.fitted_.calibrator
    ours, theirs = (each.rank(rows[0], k=5, nan="absent") for each in (repair, expected))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("calibrated", [False, True])
def test_the_line_that_asks_for_a_twin_repeats_all_other_arguments(calibrated):
    arguments = draw_absent("capped", 400, unweighted=None, rounds=60, learning_rate=0.05)
    if calibrated:
        arguments.pop("unweighted")
        arguments = cut(arguments, np.arange(400) % 3 == 0)
    diagnosis = diagnose(**arguments)
    assert diagnosis.verdict.code == "undecided"
    line = summarize(diagnosis).python
    variables = name_variables(arguments) | {"unweighted": arguments["scores"] / 2}
    again = run_python(line, variables).to_dict()
    expected = diagnose(**arguments | {"unweighted": arguments["scores"] / 2}).to_dict()
    assert again["ladder"] == expected["ladder"]
    assert again["shifts"] == expected["shifts"]


def test_the_line_that_ranks_repeats_exclusions():
    rows = SCENES["no weights"].draw(7)
    absent, excluded = absent_and_excluded(*rows["scores"].shape)
    rows["scores"] = np.where(absent, np.nan, rows["scores"])
    arguments = rows | {"exclude": excluded, "nan": "absent", "n_replicates": 100}
    arguments.pop("calibration", None)
    arguments.pop("unweighted", None)
    arguments.pop("label_names", None)
    line = summarize(diagnose(**arguments)).python
    assert line == 'oddslip.rank(scores, k=7, exclude=exclude, nan="absent")'


def test_the_line_of_python_holds_nothing_that_was_not_passed():
    rows = synthetic_pair(400, 10, seed=1)
    panel = open_source(rows.weighted, rows.labels)
    line = summarize(diagnose(panel, k=5, n_replicates=50)).python
    assert re.search(r"\(scores(, k=5)?\)$", line), line
    assert "labels" not in line


def test_the_popular_list_is_suggested_with_the_prior_only_if_that_list_is_meant():
    diagnosis = draw_below_popularity()
    summary = summarize(diagnosis)
    by_prior = popular_list(diagnosis) == "popularity"
    assert ("prior=prior" in summary.python) == by_prior
    assert ("--prior" in summary.command) == by_prior


def test_files_with_spaces_and_options_are_repeated_in_the_command():
    diagnosis = draw("capped", metric="ndcg")
    files = CommandFiles(
        scores="my scores.npy",
        labels="y;rm.npz",
        weights="w.npy",
        options={"--metric": "ndcg", "--prior": "p.npy", "--kind": "margin"},
    )
    verb, options = parse(summarize(diagnosis, files).command)
    assert verb == "fit"
    assert str(options["scores"]) == "my scores.npy"
    assert str(options["labels"]) == "y;rm.npz"
    assert (options["metric"], options["kind"], str(options["prior"])) == (
        "ndcg",
        "margin",
        "p.npy",
    )


def test_scores_that_hold_the_labels_are_not_called_undamaged():
    labels = synthetic_pair(400, 10, seed=1).labels
    diagnosis = diagnose(labels.astype(float), labels, k=5, n_replicates=0)
    summary = summarize(diagnosis)
    assert diagnosis.finding("OS210") is not None
    assert "hold the labels" in summary.harm
    assert "Nothing needs repair" not in summary.repair
    assert parse(summary.command)[0] == "evaluate"


def test_without_intervals_the_sentences_stand_all_the_same():
    summary = summarize(draw("capped", n_replicates=0))
    assert "nan" not in summary.harm + summary.repair
