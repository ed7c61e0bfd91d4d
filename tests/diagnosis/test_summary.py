"""Three sentences open every diagnosis; their numbers are right and their code runs."""

import ast
import re
import shlex

import pytest
import typer

import oddslip
from experiments.verdict_simulation import SCENES
from oddslip.cli.app import app
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.diagnosis.summary import CommandFiles, summarize

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
    assert variables["repair"].rank(arguments["scores"]).shape == (len(arguments["scores"]), 7)


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
