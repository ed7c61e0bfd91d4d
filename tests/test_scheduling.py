"""Tests that start Spark run in one process of several, with whatever pytest and xdist there are."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
TEST = """
import os
import pytest
@pytest.mark.parametrize("number", range(8))
def test_a(number):
    with open(os.environ["RAN"], "a") as ran:
        ran.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_all_tests_of_engines_run_in_one_of_two_processes(tmp_path):
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    for name in ("one", "two"):
        path = tmp_path / "spark" / f"test_{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(TEST)
    told = ["-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", str(tmp_path)]
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *told], cwd=tmp_path, capture_output=True, text=True,
        env=surroundings | {"RAN": str(tmp_path / "ran")}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    workers = (tmp_path / "ran").read_text().split()
    assert len(workers) == 16
    assert len(set(workers)) == 1
