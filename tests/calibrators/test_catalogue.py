"""The catalogue: one list of calibrators for Python, the command line, the ladder and the rules."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

import oddslip
from oddslip import calibrators
from oddslip.calibrators import build_calibrator
from oddslip.calibrators.base import Calibrator
from oddslip.calibrators.catalogue import CANDIDATES, CATALOGUE, NAMES, OPTIONS
from oddslip.cli.app import app, main
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.errors import InvalidInput
from oddslip.selection.candidates import read_candidate

PAIR = synthetic_pair(400, 6, prevalence=(0.05, 0.4), noise=0.3, seed=5)
EVERYTHING = {
    "kind": "probability",
    "weights": PAIR.weights,
    "prior": PAIR.prior,
    "dead": "prior",
    "tau": 1,
    "interpolation": "linear",
}


def option_help(name):
    command = typer.main.get_command(app).commands["fit"]
    return next(each.help for each in command.params if each.name == name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", PAIR.weighted)
    np.save("y.npy", PAIR.labels)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_every_name_builds_a_calibrator_that_fits_and_ranks(name):
    fitted = build_calibrator(name, **EVERYTHING).fit(PAIR.weighted, PAIR.labels)
    assert fitted.rank(PAIR.weighted, k=2).shape == (400, 2)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_says_what_its_class_takes(name):
    entry = CATALOGUE[name]
    parameters = set(build_calibrator(name, **EVERYTHING).get_params())
    # Temperature goes by two names, which settle what it shares.
    assert parameters - {"shared"} == set(entry.takes)
    assert set(entry.needs) <= set(entry.takes) <= set(OPTIONS)
    assert set(entry.settles) <= parameters


@pytest.mark.parametrize("name", NAMES)
def test_options_reach_the_calibrator(name):
    options = EVERYTHING | {"kind": "margin", "tau": 3, "dead": "exclude", "interpolation": "step"}
    built = build_calibrator(name, **options).get_params()
    assert all(built[option] is options[option] for option in CATALOGUE[name].takes)


@pytest.mark.parametrize("name", sorted(set(CANDIDATES) - {"row_aware"}))  # taken if it gains
def test_every_candidate_can_be_fitted_by_a_rule(name):
    repair = oddslip.Repair(k=2, rule=name, weights="balanced").fit(PAIR.weighted, PAIR.labels)
    assert repair.chosen_.split("-")[0] == name


@pytest.mark.parametrize("name", sorted(set(CANDIDATES) & set(NAMES) - {"raw"}))
def test_a_rule_and_a_name_fit_the_same(name):
    options = {"prior": PAIR.prior, "weights": PAIR.weights}
    by_rule = oddslip.Repair(k=2, rule=name, **options).fit(PAIR.weighted, PAIR.labels)
    by_name = build_calibrator(name, **options).fit(PAIR.weighted, PAIR.labels)
    for array in ("code", "a", "b", "c"):
        np.testing.assert_allclose(
            getattr(by_rule.fitted_.maps, array), getattr(by_name.fitted_.maps, array), atol=1e-9
        )
    ranked = by_rule.rank(PAIR.weighted), by_name.rank(PAIR.weighted, k=2)
    np.testing.assert_array_equal(*ranked)


def test_candidates_differ_in_flexibility_and_raw_is_the_simplest():
    places = [CATALOGUE[name].flexibility for name in CANDIDATES]
    assert len(set(places)) == len(places)
    assert " ".join(CANDIDATES) == (
        "raw inversion label_free pooled temperature offset halfway hierarchical platt beta shrunk "
        "hierarchical_isotonic isotonic row_aware"
    )


def test_every_rung_of_the_catalogue_is_on_the_ladder():
    diagnosis = diagnose(
        PAIR.weighted, PAIR.labels, k=2, weights=PAIR.weights, prior=PAIR.prior, n_replicates=0
    ).to_dict()
    what = {rung["rung"]: rung["what"] for rung in diagnosis["ladder"]["rungs"]}
    expected = {name: entry.what for name, entry in CATALOGUE.items() if entry.rung}
    assert expected.items() <= what.items()
    assert list(expected) == [name for name in what if name in expected]


def test_every_class_but_the_ceiling_has_a_name():
    public = {name: getattr(calibrators, name) for name in calibrators.__all__}
    classes = {
        name
        for name, each in public.items()
        if isinstance(each, type) and issubclass(each, Calibrator)
    }
    assert classes == {entry.maker for entry in CATALOGUE.values() if entry.maker} | {"Ceiling"}


def test_every_name_is_in_the_docs():
    page = (Path(__file__).parents[2] / "docs/repair.md").read_text()
    assert all(f"| `{name}` |" in page for name in NAMES)


def test_the_help_lists_the_catalogue():
    assert option_help("calibrator") == f"Do not choose, take one of {', '.join(NAMES)}."
    assert option_help("rule") == f"How to choose: auto, paper, or one of {', '.join(CANDIDATES)}."


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("magic", ""),
        ("Isotonic", ""),
        ("shrunk", ' A rule alone fits it: Repair(k=7, rule="shrunk"), or --rule shrunk.'),
    ],
)
def test_an_unknown_calibrator_is_the_same_sentence_in_a_shell_but_for_the_option(
    folder, capsys, name, hint
):
    with pytest.raises(InvalidInput) as error:
        build_calibrator(name)
    line = f"calibrator must be one of {', '.join(NAMES)}, got {name!r}.{hint}"
    assert str(error.value) == line
    assert main(["fit", "s.npy", "y.npy", "--calibrator", name, "-o", "r"]) == 2
    assert capsys.readouterr().err == f"oddslip: --{line}\n"


def test_a_name_that_no_rule_takes_is_sent_to_where_it_is_taken(folder, capsys):
    with pytest.raises(InvalidInput, match="No rule takes it: build_calibrator") as error:
        read_candidate("popularity")
    assert main(["fit", "s.npy", "y.npy", "-k", "2", "--rule", "popularity", "-o", "r"]) == 2
    assert capsys.readouterr().err == f"oddslip: --{error.value}\n"


def test_what_a_calibrator_needs_is_asked_for_in_python_and_in_a_shell(folder, capsys):
    with pytest.raises(InvalidInput, match="inversion needs the weights") as error:
        build_calibrator("inversion", prior=PAIR.prior)
    assert main(["fit", "s.npy", "y.npy", "--calibrator", "inversion", "-o", "r"]) == 2
    assert capsys.readouterr().err == f"oddslip: {error.value}\n"


def test_an_option_of_no_calibrator_is_refused():
    with pytest.raises(InvalidInput, match=r"options must be among .*, got 'priors'"):
        build_calibrator("isotonic", priors=PAIR.prior)


def test_the_room_says_what_it_does_not_have():
    assert not hasattr(calibrators, "Magic")
    assert set(calibrators.__all__) <= set(dir(calibrators))


def test_the_catalogue_is_read_without_numpy_or_kernels():
    code = "import oddslip.calibrators.catalogue, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "oddslip.calibrators.catalogue" in loaded
    assert not loaded & {"numpy", "sklearn", "scipy", "oddslip.kernels", "oddslip.sources"}
