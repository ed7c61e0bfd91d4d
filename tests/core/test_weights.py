"""Weights: every name means one thing, whoever asks."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oddslip
from oddslip.calibrators import Inversion
from oddslip.cli.app import main
from oddslip.cli.options import WEIGHTS
from oddslip.core.weights import (
    NAMES,
    balance_ratios,
    is_weight_name,
    read_numbers,
    resolve_weights,
)
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.errors import InvalidInput
from oddslip.learners import OneVsRest
from oddslip.planning import plan
from oddslip.shifts import balanced_weights

PAIR = synthetic_pair(400, 6, prevalence=(0.02, 0.4), weights="none", seed=4)
COUNTS = PAIR.labels.sum(axis=0)
EVERY_NAME = (*NAMES, "10x", "0.5x")
POSITIVES = st.lists(st.integers(0, 50), min_size=1, max_size=12)


@given(POSITIVES)
@settings(max_examples=50, deadline=None)
def test_balanced_is_negatives_over_positives_and_one_where_either_is_missing(positives):
    expected = [(50 - p) / p if 0 < p < 50 else 1.0 for p in positives]
    assert resolve_weights("balanced", positives, 50).tolist() == expected


@given(POSITIVES, st.sampled_from(["0.5x", "1x", "2x", "10x", "2.25x"]))
@settings(max_examples=50, deadline=None)
def test_a_multiple_is_that_many_times_balanced(positives, name):
    ratios = balance_ratios(positives, 50)
    assert np.array_equal(resolve_weights(name, positives, 50), ratios * float(name[:-1]))


def test_sqrt_is_the_root_of_balanced():
    assert resolve_weights("sqrt", [10, 2], 50).tolist() == [2.0, np.sqrt(24.0)]


def test_none_is_one_for_every_label():
    assert resolve_weights("none", [3, 0], 9).tolist() == [1.0, 1.0]


def test_common_is_one_weight_the_ratio_of_all_cells():
    assert resolve_weights("common", [10, 0, 20], 50).tolist() == [4.0] * 3


def test_numbers_pass_as_they_are():
    given_weights = np.array([0.5, 7.0])
    told = resolve_weights(given_weights, [1, 1], 9)
    assert told.tolist() == [0.5, 7.0]
    assert told is not given_weights


@pytest.mark.parametrize(
    ("weights", "what"),
    [
        ("heavy", "got 'heavy'"),
        ("x", "got 'x'"),
        ("0x", "got '0x'"),
        ([1.0], "one number per label"),
        ([1.0, 0.0], "got 0 at label '1'"),
        ([np.nan, 1.0], "got nan at label '0'"),
        (-2.0, "got -2 at label '0'"),
        (["a", "b"], "weights must be"),
    ],
)
def test_other_weights_are_refused_with_the_reason(weights, what):
    with pytest.raises(InvalidInput, match=what):
        resolve_weights(weights, [1, 1], 9)


def test_the_public_name_of_the_ratios_gives_the_same():
    assert np.array_equal(balanced_weights([10, 0, 50], 50), balance_ratios([10, 0, 50], 50))


def test_prevalences_of_one_row_give_the_ratios_of_the_counts():
    for name in EVERY_NAME:
        from_counts = resolve_weights(name, COUNTS, 400)
        np.testing.assert_allclose(resolve_weights(name, COUNTS / 400, 1), from_counts, rtol=1e-12)


def train(weights):
    X = np.random.default_rng(0).random((400, 2))
    return OneVsRest("logistic", weights=weights).fit(X, PAIR.labels).weights_


def draw(weights):
    """Synthetic pairs count a draw of their own: hold theirs to it, then answer for these."""
    drawn = synthetic_pair(400, 6, prevalence=(0.02, 0.4), weights=weights, seed=4)
    assert np.array_equal(drawn.weights, resolve_weights(weights, drawn.prior * 400, 400))
    return resolve_weights(weights, COUNTS, 400)


WHO_ASKS = {
    "plan": lambda weights: plan(PAIR.labels, rounds=9, learning_rate=0.1, weights=weights).weights,
    "diagnose": lambda weights: (
        diagnose(PAIR.weighted, PAIR.labels, k=2, weights=weights, n_replicates=0).weights
    ),
    "train": train,
    "draw": draw,
    "invert": lambda weights: np.exp(
        -Inversion(weights).fit(PAIR.weighted, PAIR.labels).fitted_.maps.b
    ),
}


@pytest.mark.parametrize("asked", WHO_ASKS)
@pytest.mark.parametrize("name", EVERY_NAME)
def test_a_name_means_the_same_to_all_who_take_weights(asked, name):
    wanted = resolve_weights(name, COUNTS, 400)
    np.testing.assert_allclose(WHO_ASKS[asked](name), wanted, rtol=1e-12)


@pytest.mark.parametrize("asked", WHO_ASKS)
def test_a_number_is_the_weight_of_every_label_to_all_who_take_weights(asked):
    np.testing.assert_allclose(WHO_ASKS[asked](2.5), np.full(6, 2.5), rtol=1e-12)


@pytest.mark.parametrize("asked", WHO_ASKS)
def test_an_unknown_name_is_the_same_sentence_to_all_who_take_weights(asked):
    with pytest.raises(InvalidInput) as refused:
        WHO_ASKS[asked]("heavy")
    assert str(refused.value) == (
        'weights must be "none", "balanced", "sqrt", "common", a multiple of balanced such as '
        "\"10x\", a number, or one number per label, as they are or in a file, got 'heavy', and "
        "there is no such file."
    )


def test_names_are_resolved_on_the_training_prevalence_where_it_is_given():
    prior = np.linspace(0.01, 0.5, 6)
    wanted = (1 - prior) / prior
    told = {"k": 2, "weights": "balanced", "prior": prior, "n_replicates": 0}
    np.testing.assert_allclose(
        diagnose(PAIR.weighted, PAIR.labels, **told).weights, wanted, rtol=1e-12
    )
    inverted = Inversion("balanced", prior=prior).fit(PAIR.weighted, PAIR.labels)
    np.testing.assert_allclose(inverted.fitted_.maps.b, -np.log(wanted), rtol=1e-12)


def test_an_inversion_does_not_guess_its_weights():
    with pytest.raises(InvalidInput, match="weights must be those"):
        Inversion(None).fit(PAIR.weighted, PAIR.labels)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", PAIR.weighted)
    np.save("y.npy", PAIR.labels)
    np.save("X.npy", np.random.default_rng(0).random((400, 2)))
    weights = np.arange(1.0, 7.0)
    np.savetxt("w.txt", weights)
    np.save("w.npy", weights)
    np.savez("w.npz", weights)
    np.savetxt("few.txt", weights[:2])
    (tmp_path / "words.txt").write_text("heavy\n")
    return tmp_path


COMMANDS = {
    "plan": ["plan", "y.npy", "--rounds", "9", "--learning-rate", "0.1", "--json-file", "o.json"],
    "diagnose": [
        "diagnose",
        "s.npy",
        "y.npy",
        "-k",
        "2",
        "--bootstrap",
        "0",
        "--json-file",
        "o.json",
    ],
    "fit": ["fit", "s.npy", "y.npy", "--calibrator", "inversion", "-o", "r.oddslip"],
    "train": ["train", "X.npy", "y.npy", "--learner", "logistic", "-o", "m.oddslip"],
}


def weights_seen_by(command):
    """The weights a command worked with, read from what it wrote."""
    if command == "train":
        return OneVsRest.load("m.oddslip").weights_
    if command == "fit":
        return np.exp(-oddslip.load_repair("r.oddslip").maps.b)
    labels = json.loads(Path("o.json").read_text())["labels"]
    return np.array(labels["weight"])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("text", [*EVERY_NAME, "3.5", "w.txt", "w.npy", "w.npz"])
def test_every_command_reads_weights_alike(folder, command, text, capsys):
    assert main([*COMMANDS[command], "--weights", text]) == 0, capsys.readouterr().err
    given = {"3.5": 3.5}.get(text, np.arange(1.0, 7.0) if text.startswith("w.") else text)
    wanted = resolve_weights(given, COUNTS, 400)
    np.testing.assert_allclose(weights_seen_by(command), wanted, rtol=1e-12)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("heavy", f"--weights must be {WEIGHTS}, got 'heavy', and there is no such file."),
        ("few.txt", "--weights must hold one number per label, n_labels=6, got shape (2,)."),
        ("words.txt", "words.txt cannot be read as one number per label"),
        ("-1", "--weights must be positive and finite, got -1 at label '0'."),
    ],
)
def test_every_command_refuses_weights_alike(folder, command, text, line, capsys):
    assert main([*COMMANDS[command], "--weights", text]) == 2
    assert f"oddslip: {line}" in capsys.readouterr().err


def test_numbers_by_name_with_semicolons_are_refused_with_the_separator(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("label;weight\na;2,5\nb;3\n")
    with pytest.raises(oddslip.OddslipError, match="separated by ',', got ';'"):
        read_numbers(path)


def test_a_pipe_named_csv_is_refused_and_not_read(tmp_path):
    os.mkfifo(tmp_path / "w.csv")
    with pytest.raises(oddslip.OddslipError, match="must be a file, got a device, a pipe"):
        read_numbers(tmp_path / "w.csv")


def test_the_help_of_weights_names_every_name():
    assert all(f"{name}, " in WEIGHTS for name in NAMES)
    assert is_weight_name("10x")
    assert "10x, " in WEIGHTS


def test_a_report_of_named_weights_hashes_no_file_of_that_name(folder, capsys):
    told = [*COMMANDS["diagnose"], "--html", "page.html"]
    assert main([*told, "--weights", "balanced"]) == 0, capsys.readouterr().err
    assert main([*told, "--weights", "w.txt"]) == 0
    assert "w.txt" in Path("page.html").read_text()
