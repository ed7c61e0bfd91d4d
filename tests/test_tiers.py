"""Every test is in a tier: `make test` runs the fast ones, `make test-all` those and the slow ones."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import SLOW

TESTS = Path(__file__).parent
ROOT = TESTS.parent
ONLY_IN_FULL = {  # by `make test-spark`: marked with `full`
    "tests/spark/test_tables.py::test_a_diagnosis_outlives_an_executor_in_each_of_its_passes",
    "tests/spark/test_tables.py::test_a_full_disk_of_the_workers_is_one_line",
}


def read_commands(target):
    """The calls of pytest that a target of the Makefile makes."""
    printed = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [line for line in printed.splitlines() if " pytest" in line]


def collect(folder, *arguments):
    """Ids of the tests that pytest would run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "ODDSLIP_"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_make_test_leaves_out_slow_tests_alone_and_test_all_nothing():
    both = read_commands("test-all")
    assert both == read_commands("test") + read_commands("test-slow")
    for command, tier in zip(both, ("not slow", "slow"), strict=True):
        pattern = rf'\S+/python -m pytest -n 2 --dist loadgroup -m "{tier}"'
        assert re.fullmatch(pattern, command)
    assert read_commands("test-spark")[0].startswith("ODDSLIP_SPARK=full ")


@pytest.mark.parametrize("pattern", SLOW)
def test_every_entry_of_the_table_matches_tests_that_exist(pattern):
    path, _, name = pattern.partition("::")
    files = [file for file in TESTS.glob(path) if file.name.startswith("test_") or file.is_dir()]
    assert files
    words = [word for word in name.split("*") if word]
    assert all(word in file.read_text() for file in files for word in words)


def test_a_slow_test_is_left_out_by_its_marker_and_runs_if_it_is_named(tmp_path):
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib -q\nmarkers = slow\n"
    )
    for name in ("spark", "core"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text("def test_a(): pass\n")
    fast, slow = "core/test_core.py::test_a", "spark/test_spark.py::test_a"
    assert collect(tmp_path) == [fast, slow]
    assert collect(tmp_path, "-m", "not slow") == [fast]
    assert collect(tmp_path, "-m", "slow") == [slow]
    assert collect(tmp_path, "spark") == [slow]


def test_every_test_that_is_written_is_collected_by_test_all():
    collected = {re.sub(r"\[.*", "", line) for line in collect(ROOT)}
    written = {
        f"{path.relative_to(ROOT).as_posix()}::{node.name}"
        for path in TESTS.rglob("*.py")
        if "node_modules" not in path.parts
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    assert len(written) > 1000
    assert written - collected == ONLY_IN_FULL
