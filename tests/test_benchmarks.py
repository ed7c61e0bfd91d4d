"""Every benchmark runs: all of them at toy size, as `python -m benchmarks` runs them."""

import math
import os
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = {"peers", "timing"}
FILES = sorted(
    path.stem
    for path in (ROOT / "benchmarks").glob("*.py")
    if not path.stem.startswith("_") and path.stem not in SHARED
)
HEAD = re.compile(r"\n(.+)\n {50,}CPU s +wall s +CPU ratio +wall ratio +peak MB\n")
NUMBER = r"(-?\d[\d.e+-]*|-?inf|nan)"
LINE = re.compile(rf"  .{{50,}}? +{NUMBER} +{NUMBER}(?: +{NUMBER}x +{NUMBER}x)?(?: .*)?$")


def run_command(*arguments, folder):
    paths = [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def run_toy(name, folder):
    """What a benchmark prints that runs in a folder of its own, once for all tests."""
    folder.mkdir(exist_ok=True)
    done = run_command("--toy", name, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("benchmarks")


def read_tables(printed):
    """Lines of each table by its title: times of ours, and of peers with two ratios more."""
    _, *parts = HEAD.split(printed)
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        found = [match.groups() for line in body.split("\n") if (match := LINE.match(line))]
        yield title, [[float(number) for number in row if number is not None] for row in found]


@pytest.mark.parametrize("name", FILES)
def test_a_toy_run_sets_ours_beside_a_peer_in_every_table(name, folder):
    tables = dict(read_tables(run_toy(name, folder / name)))
    assert tables
    for title, rows in tables.items():
        assert {len(row) for row in rows} == {2, 4}, title
        assert all(0 < number < math.inf for row in rows for number in row), title


@pytest.mark.parametrize("name", FILES)
def test_a_toy_run_says_that_a_peer_gave_the_same_answer(name, folder):
    assert run_toy(name, folder / name).count(": the peer's, largest difference") >= 1


@pytest.mark.parametrize("name", FILES)
def test_a_toy_run_leaves_no_file_behind(name, folder):
    run_toy(name, folder / name)
    assert list((folder / name).iterdir()) == []


@pytest.mark.parametrize("name", FILES)
def test_the_toy_size_is_not_the_real_one(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    benchmark = import_module(f"benchmarks.{name}")
    assert benchmark.TOY != benchmark.REAL


def test_all_files_are_listed_as_benchmarks(folder):
    assert run_command("--toy", "--list", folder=folder).stdout.split() == FILES


def test_a_name_that_is_no_benchmark_is_refused(folder):
    done = run_command("--toy", "rankings", folder=folder)
    assert done.returncode == 2
    assert "got rankings." in done.stderr


@pytest.mark.parametrize("theirs", [1.1, math.nan])
def test_a_peer_with_another_answer_is_refused(theirs, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    agree = import_module("benchmarks.timing").agree
    with pytest.raises(AssertionError, match=r"MAP must be the peer's to within 0\.01"):
        agree("MAP", [0.5, 1.0], [0.5, theirs], 0.01)
