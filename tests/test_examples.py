"""Every example runs by itself, in a folder of its own, and what it claims holds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oddslip

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_its_claim_holds(example, tmp_path):
    ours = str(Path(oddslip.__file__).parents[1])
    path = os.pathsep.join([ours, *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, example],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    last = ran.stdout.strip().splitlines()[-1]
    assert last.startswith("Claim holds: ")
    assert re.search(r"\d", ran.stdout)
    assert list(tmp_path.iterdir()) == []  # it leaves nothing behind


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_checks_its_claim_and_draws(example):
    text = example.read_text()
    assert re.search(r"^assert ", text, re.MULTILINE)
    assert ".plot(" in text or "Figure(" in text
    assert len(text.splitlines()) <= 65
