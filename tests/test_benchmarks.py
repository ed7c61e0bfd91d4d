"""Every benchmark runs: all of them at toy size, as `python -m benchmarks` runs them."""

import math
import os
import re
import subprocess
import sys
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


def read_tables(printed):
    """Lines of each table by its title: times of ours, and of peers with two ratios more."""
    _, *parts = HEAD.split(printed)
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        found = [match.groups() for line in body.split("\n") if (match := LINE.match(line))]
        yield title, [[float(number) for number in row if number is not None] for row in found]


@pytest.mark.parametrize("name", FILES)
def test_a_toy_run_sets_ours_beside_a_peer_that_agrees_and_leaves_no_file(name, tmp_path):
    done = run_command("--toy", name, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    tables = dict(read_tables(done.stdout))
    assert tables
    for title, rows in tables.items():
        assert {len(row) for row in rows} == {2, 4}, title
        assert all(0 < number < math.inf for row in rows for number in row), title
    assert done.stdout.count(": the peer's, largest difference") >= len(tables)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FILES)
def test_the_toy_size_is_not_the_real_one(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    benchmark = import_module(f"benchmarks.{name}")
    assert benchmark.TOY != benchmark.REAL


def test_all_files_are_listed_as_benchmarks(tmp_path):
    assert run_command("--toy", "--list", folder=tmp_path).stdout.split() == FILES


def test_a_name_that_is_no_benchmark_is_refused(tmp_path):
    done = run_command("--toy", "rankings", folder=tmp_path)
    assert done.returncode == 2
    assert "got rankings." in done.stderr


@pytest.mark.parametrize("theirs", [1.1, math.nan])
def test_a_peer_with_another_answer_is_refused(theirs, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    agree = import_module("benchmarks.timing").agree
    with pytest.raises(AssertionError, match=r"MAP must be the peer's to within 0\.01"):
        agree("MAP", [0.5, 1.0], [0.5, theirs], 0.01)


@pytest.mark.parametrize("error", [FileNotFoundError, ProcessLookupError])
def test_threads_and_children_that_end_while_they_are_listed_count_for_nothing(error, monkeypatch):
    from pathlib import Path

    from benchmarks import timing

    read = Path.read_text

    def gone(path, *arguments, **options):
        if path.parts[:2] == ("/", "proc"):
            raise error(2, "gone", str(path))
        return read(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", gone)
    assert timing.list_children() == []
    assert timing._child_seconds("1") == 0
    assert timing.cpu_seconds() > 0
