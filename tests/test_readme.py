"""Every block of the README runs when it is pasted into a fresh process."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import oddslip
from oddslip.datasets import synthetic_pair

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = re.findall(r"^ {4}(oddslip .*)$", README, re.MULTILINE)
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(oddslip.__file__).parents[1])}


def run(words, folder):
    process = subprocess.run(
        [sys.executable, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_the_block_of_python_runs_as_it_is_and_prints_what_the_readme_shows(tmp_path):
    (block,), (excerpt,) = PYTHON, re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    output = run(["-c", block], tmp_path)
    before, after = re.findall(r"MAP@7 (0\.\d+) -> (0\.\d+)", output)[-1]
    assert float(after) > float(before)
    start = output[: len(excerpt)]
    assert re.sub(r"[\d.]+", "", start) == re.sub(r"[\d.]+", "", excerpt)
    numbers = [[float(n) for n in re.findall(r"\d+(?:\.\d+)?", text)] for text in (start, excerpt)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.05)


def test_the_commands_run_one_after_the_other(tmp_path):
    pair = synthetic_pair(800, 12, noise=0.3, realized=0.6, seed=1)
    arrays = {
        "scores": pair.weighted,
        "scores0": pair.unweighted,
        "calibration-scores": pair.weighted,
        "served-scores": pair.weighted,
        "w": pair.weights,
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    for name in ("labels", "calibration-labels", "training-labels"):
        sp.save_npz(tmp_path / f"{name}.npz", sp.csr_array(pair.labels.astype(np.int8)))
    assert len(COMMANDS) == 5
    for command in COMMANDS:
        assert run(["-m", *shlex.split(command)], tmp_path)
    assert {"report.html", "repair.oddslip", "ranked.parquet"} <= set(os.listdir(tmp_path))


def test_the_make_targets_of_the_first_screen_exist():
    targets = re.findall(r"^ {4}make (\w+)", README, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets[:2] == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 130
    assert len(README.split()) <= 850
