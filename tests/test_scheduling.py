"""Tests that share what is costly run in one process of several; slow ones are spread."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import find_group

TESTS = Path(__file__).parent
TEST = """
import os
import pytest
@pytest.mark.parametrize("number", range(8))
def test_a(number):
    with open(os.environ["RAN"], "a") as ran:
        ran.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_all_tests_of_spark_run_in_one_of_two_processes(tmp_path):
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib\nmarkers = slow\n"
    )
    for name in ("one", "two"):
        path = tmp_path / "spark" / f"test_{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(TEST)
    options = ["-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment | {"RAN": str(tmp_path / "ran")},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    workers = (tmp_path / "ran").read_text().split()
    assert len(workers) == 16
    assert len(set(workers)) == 1


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/spark/test_tables.py::test_a[local]", "spark/"),
        ("tests/browser/test_pages.py::test_a", "browser/"),
        ("tests/experiments/mulan/test_page.py::test_a", "experiments/mulan/test_page.py"),
        ("tests/diagnosis/test_verdict.py::test_a", "diagnosis/"),
        ("tests/core/test_tally.py::test_a", "core/test_tally.py"),
        ("tests/attacks/test_campaigns.py::test_a", "tests/attacks/test_campaigns.py::test_a"),
        (
            "tests/diagnosis/test_memory.py::test_a",
            "tests/diagnosis/test_memory.py::test_a",
        ),
    ],
)
def test_a_test_runs_with_those_that_share_its_fixtures_or_alone(test, group):
    assert find_group(test) == group
