"""The public face: its names, and what importing it costs."""

import importlib
import inspect
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import oddslip

REFERENCE = Path(__file__).parents[1] / "docs" / "reference.md"

HEAVY = {
    "numba",
    "lightgbm",
    "xgboost",
    "torch",
    "pyspark",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "sklearn",
    "scipy",
    "rich",
    "typer",
    "jinja2",
    "onnx",
    "mlflow",
}


def loaded_by(code):
    script = f"import sys\n{code}\nprint(*{{m.split('.')[0] for m in sys.modules}})"
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(told.stdout.split())


def test_the_public_names_are_these():
    assert sorted(oddslip.__all__) == oddslip.__all__
    assert oddslip.__all__ == [
        "CheckResult",
        "Comparison",
        "Decision",
        "Diagnosis",
        "Estimate",
        "Evaluation",
        "FittedDecision",
        "FittedRepair",
        "InvalidInput",
        "MatchedPair",
        "MissingDependency",
        "OddslipError",
        "OneVsRest",
        "Panel",
        "Plan",
        "Repair",
        "Repaired",
        "RepairedClassifier",
        "Rounds",
        "RoundsRecorder",
        "UnreadableFile",
        "by_rounds",
        "check",
        "diagnose",
        "evaluate",
        "fold",
        "load_decision",
        "load_repair",
        "map_at_k_scorer",
        "open_source",
        "panel_from",
        "plan",
        "rank",
    ]


def test_each_public_name_can_be_had_and_is_listed():
    for name in oddslip.__all__:
        assert getattr(oddslip, name).__name__ == name
        assert name in dir(oddslip)


@pytest.mark.parametrize(
    "package",
    ["calibrators", "datasets", "learners", "metrics", "mlflow", "selection", "serving", "shifts"],
)
def test_a_package_is_there_after_importing_oddslip_and_loaded_when_asked_for(package):
    code = (
        "import sys, oddslip\n"
        f"assert 'oddslip.{package}' not in sys.modules and '{package}' in dir(oddslip)\n"
        f"assert oddslip.{package} is sys.modules['oddslip.{package}']"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(oddslip, "no_such_name")


def test_importing_oddslip_loads_no_heavy_module():
    assert not loaded_by("import oddslip") & HEAVY


def test_help_loads_neither_numpy_nor_kernels():
    code = (
        "from oddslip.cli.app import main\n"
        "import io, contextlib\n"
        "with contextlib.redirect_stdout(io.StringIO()): main(['--help'])"
    )
    assert not loaded_by(code) & (HEAVY - {"typer", "rich"} | {"numpy"})


@pytest.mark.parametrize("command", ["evaluate {0} {1} -k 2", "rank {0} -k 2"])
def test_ranking_and_evaluating_load_neither_scikit_learn_nor_calibrators(command, tmp_path):
    np.save(tmp_path / "scores.npy", np.array([[0.9, 0.2, 0.6], [0.1, 0.7, 0.3]]))
    np.save(tmp_path / "labels.npy", np.array([[1, 0, 0], [0, 0, 1]]))
    typed = command.format(tmp_path / "scores.npy", tmp_path / "labels.npy").split()
    code = (
        "from oddslip.cli.app import main\n"
        "import io, contextlib\n"
        f"with contextlib.redirect_stdout(io.StringIO()): assert main({typed!r}) == 0"
    )
    unused = {"sklearn", "scipy", "pyarrow", "jinja2", "matplotlib", "pandas", "lightgbm"}
    assert not loaded_by(code) & unused


PACKAGES = (
    "oddslip",
    *(
        f"oddslip.{package}"
        for package in (
            "calibrators",
            "datasets",
            "metrics",
            "mlflow",
            "selection",
            "serving",
            "shifts",
        )
    ),
)
PUBLIC = [
    (package, name) for package in PACKAGES for name in importlib.import_module(package).__all__
]


def public(package, name):
    return getattr(importlib.import_module(package), name)


def sections_of(thing):
    """Titles of the numpydoc sections of a docstring."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    return {title for title, rule in pairwise(lines) if title and rule == "-" * len(title)}


def reference_entries():
    """The (package, name) of every entry of docs/reference.md."""
    package, entries = None, []
    for line in REFERENCE.read_text().splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            package = found[1]
        elif found := re.match(r"   (\w+)$|\.\. autodata:: (\w+)$", line):
            entries.append((package, found[1] or found[2]))
    return entries


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_a_public_name_is_explained(package, name):
    thing = public(package, name)
    if isinstance(thing, float):  # a constant has no docstring of its own
        return
    assert inspect.getdoc(thing), f"{package}.{name} has no docstring"
    if isinstance(thing, type) and issubclass(thing, Exception):
        return
    wanted = {"Attributes", "Parameters", "Examples"}
    if not isinstance(thing, type):
        # What a function takes, or a call that shows it.
        wanted = {"Parameters", "Examples"}
    assert sections_of(thing) & wanted, (
        f"{package}.{name} needs one of the sections {sorted(wanted)}"
    )


def test_every_public_name_stands_in_the_reference_once():
    entries = reference_entries()
    assert len(entries) == len(set(entries))
    told = [public(package, name) for package, name in entries]
    for package, name in PUBLIC:
        thing = public(package, name)
        assert sum(entry is thing for entry in told) == 1, f"{package}.{name}"


def test_the_reference_names_nothing_that_is_not_public():
    assert set(reference_entries()) <= set(PUBLIC)


def test_a_name_that_two_rooms_share_means_one_thing():
    meanings = {}
    for package, name in PUBLIC:
        assert meanings.setdefault(name, public(package, name)) is public(package, name), name


# Name in 0.2 -> name now.
MOVED = {
    "oddslip.diagnosis.plan": "oddslip.planning.plan",
    "oddslip.diagnosis.Plan": "oddslip.planning.Plan",
    "oddslip.diagnosis.WhatIfLoss": "oddslip.planning.WhatIfLoss",
    "oddslip.learners.adapters.panel_from": "oddslip.adapters.panel_from",
    "oddslip.learners.adapters.ModelReader": "oddslip.adapters.ModelReader",
}


def look_up(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("old", MOVED)
def test_a_moved_name_still_works_and_names_its_new_place(old):
    with pytest.warns(FutureWarning, match=re.escape(f"{old} has moved to {MOVED[old]}.")):
        assert look_up(old) is look_up(MOVED[old])


@pytest.mark.parametrize("package", ["oddslip.diagnosis", "oddslip.learners.adapters"])
def test_a_package_with_moved_names_has_no_others(package):
    assert not hasattr(importlib.import_module(package), "no_such_name")
