"""print() of a result is what the command line shows; its repr is one line."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import oddslip
from oddslip.cli.app import main
from oddslip.core.formatting import interval, signed_interval
from oddslip.datasets import synthetic_pair
from oddslip.reports.numbers import main_rungs
from oddslip.reports.text import finding_lines, show_diagnosis

PAIR = synthetic_pair(300, 12, seed=1)
DIAGNOSIS = oddslip.diagnose(
    PAIR.weighted,
    PAIR.labels,
    k=3,
    weights=PAIR.weights,
    unweighted=PAIR.unweighted,
    n_replicates=50,
)
EVALUATION = oddslip.evaluate(PAIR.weighted, PAIR.labels, k=3, n_replicates=50)
REPAIR = oddslip.Repair(k=3, rule="paper").fit(PAIR.weighted, PAIR.labels)
RESULTS = {
    "diagnosis": DIAGNOSIS,
    "ladder": DIAGNOSIS.ladder,
    "evaluation": EVALUATION,
    "repair": REPAIR.fitted_,
    "selection": REPAIR.table_,
    "plan": oddslip.plan(PAIR.labels, rounds=60, learning_rate=0.1),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("scores.npy", PAIR.weighted)
    np.save("twin.npy", PAIR.unweighted)
    np.save("labels.npy", PAIR.labels)
    np.save("weights.npy", PAIR.weights)
    return tmp_path


def typed(capsys, *words):
    assert main(list(words)) == 0
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_an_evaluation_prints_what_evaluate_prints(folder, capsys):
    shown = typed(capsys, "evaluate", "scores.npy", "labels.npy", "-k", "3", "--bootstrap", "50")
    assert str(EVALUATION).splitlines() == shown


def test_a_diagnosis_prints_what_diagnose_prints(folder, capsys):
    inputs = ["--weights", "weights.npy", "--unweighted", "twin.npy", "--bootstrap", "50"]
    command = typed(capsys, "diagnose", "scores.npy", "labels.npy", "-k", "3", *inputs)
    python = str(DIAGNOSIS).splitlines()
    differ = [(one, other) for one, other in zip(command, python, strict=True) if one != other]
    assert len(differ) == 2  # what to run next, and where the rest is
    assert differ[0][0].startswith("  oddslip ")
    assert "oddslip." in differ[0][1]


def test_the_first_screen_is_short():
    lines = str(DIAGNOSIS).splitlines()
    rungs = [line for line in lines if line.split(":")[0].split("  ")[0] in {*DIAGNOSIS.ladder}]
    assert 3 <= len(rungs) <= 7
    assert sum(line.startswith("OS") for line in lines) <= 3
    assert len(lines) <= 40


def test_verbose_has_every_rung_and_every_finding():
    text = at_width(100, show_diagnosis(DIAGNOSIS, verbose=True))
    assert all(interval(DIAGNOSIS.ladder.estimate(name)) in text for name in DIAGNOSIS.ladder)
    assert all(finding.code in text for finding in DIAGNOSIS.findings)


@pytest.mark.parametrize("width", [80, 120])
def test_the_label_table_is_not_cut(width):
    names = [f"a label with a rather long name, number {j}" for j in range(12)]
    diagnosis = replace(DIAGNOSIS, label_names=tuple(names))
    text = at_width(width, show_diagnosis(diagnosis, verbose=True))
    assert "…" not in text
    lines = [line.rstrip() for line in text.splitlines()]
    # A command to paste is never broken.
    assert max(len(line) for line in lines if not line.startswith("  oddslip ")) <= width
    for heading in ("true (cal)", "ln w", "realized", "at 1.0", "slots if dead"):
        assert heading in text
    for count in DIAGNOSIS.saturation.n_saturated:
        assert str(count) in text


def test_a_very_long_name_of_a_label_takes_three_lines_of_the_table():
    names = ("x" * 10_000, *map(str, range(11)))
    text = at_width(80, show_diagnosis(replace(DIAGNOSIS, label_names=names), verbose=True))
    blocks = 1 + text.split("true (cal)", 1)[1].count("\nlabel ")
    assert text.count("x" * 20) == 3 * blocks


def test_a_plan_prints_what_plan_prints(folder, capsys):
    shown = typed(capsys, "plan", "labels.npy", "--rounds", "60", "--learning-rate", "0.1")
    assert str(RESULTS["plan"]).splitlines() == shown


def test_a_repair_and_its_choice_print_what_fit_prints(folder, capsys):
    shown = typed(
        capsys, "fit", "scores.npy", "labels.npy", "-k", "3", "--rule", "paper", "-o", "r"
    )
    together = [*str(REPAIR.table_).splitlines(), "", *str(REPAIR.fitted_).splitlines()]
    assert shown[: len(together)] == together


@pytest.mark.parametrize("name", RESULTS)
def test_the_text_is_short_and_the_repr_one_line(name):
    text, line = str(RESULTS[name]), repr(RESULTS[name])
    assert 100 < len(text) < 6000
    assert len(line) < (100 if name == "diagnosis" else 900)
    assert "\n" not in line
    assert type(RESULTS[name]).__name__ in line
    assert all(len(each) <= 100 for each in text.splitlines())


def test_a_comparison_prints_a_table():
    text = str(
        EVALUATION.compare(oddslip.evaluate(PAIR.unweighted, PAIR.labels, k=3, n_replicates=50))
    )
    assert text.splitlines()[0].split() == ["metric", "difference", "interval"]
    assert "MAP@3" in text


def test_hostile_names_do_not_reach_the_terminal():
    names = ["\x1b[31mred", *(f"label {j}" for j in range(11))]
    diagnosis = oddslip.diagnose(PAIR.weighted, PAIR.labels, k=3, label_names=names, n_replicates=0)
    assert "\x1b" not in str(diagnosis)


@pytest.mark.parametrize("metric", ["map", "precision", "hit_rate"])
def test_eighty_columns_cut_no_number_of_the_ladder(metric):
    pair = synthetic_pair(600, 20, seed=1, noise=0.3, realized=0.6)
    diagnosis = oddslip.diagnose(
        pair.weighted, pair.labels, k=10, metric=metric, weights=pair.weights, n_replicates=50
    )
    widest = diagnosis.chosen._replace(name="hierarchical")
    shown = at_width(80, show_diagnosis(replace(diagnosis, chosen=widest)))
    assert "…" not in shown
    # A command to paste is one line, however long: the terminal wraps it.
    lines = [line for line in shown.splitlines() if not line.startswith("  oddslip ")]
    assert max(map(len, lines)) <= 80
    for name in main_rungs(diagnosis):
        assert name == "raw" or signed_interval(diagnosis.ladder.gain(name)) in shown
        assert interval(diagnosis.ladder.estimate(name)) in shown


def test_advice_keeps_its_indent_where_it_wraps():
    advice = "word " * 40
    _, *others = at_width(
        80, finding_lines(replace(DIAGNOSIS.findings[0], sentence="", advice=advice))
    ).splitlines()
    assert len(others) > 2
    assert all(line.startswith("  ") for line in others)


def at_width(width, pieces):
    output = io.StringIO()
    console = Console(file=output, width=width, highlight=False, markup=False, color_system=None)
    for piece in pieces:
        console.print(piece, crop=False)
    return output.getvalue()
