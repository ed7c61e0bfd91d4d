"""Every benchmark runs at toy size, and its record holds what it printed."""

import json
import math
import os
import re
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import record, timing

ROOT = Path(__file__).parent.parent
SHARED = {"peers", "record", "timing"}
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


def read_tables(text):
    """Rows of each printed table by its title: times of ours, and of peers with two ratios more."""
    _, *parts = HEAD.split(text)
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        rows = [match.groups() for line in body.split("\n") if (match := LINE.match(line))]
        yield title, [[float(number) for number in row if number is not None] for row in rows]


def read_recorded_tables(tables):
    """The same from a record."""
    numbers = ("cpu", "wall", "cpu_ratio", "wall_ratio")
    for table in tables:
        yield table["title"], [[line[n] for n in numbers if n in line] for line in table["lines"]]


@pytest.mark.parametrize("name", FILES)
def test_a_toy_run_sets_ours_beside_a_peer_that_agrees_and_leaves_no_file(name, tmp_path):
    done = run_command("--toy", name, "--results", "results", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    tables = dict(read_tables(done.stdout))
    assert tables
    for title, rows in tables.items():
        assert {len(row) for row in rows} == {2, 4}, title
        assert all(0 < number < math.inf for row in rows for number in row), title
    assert done.stdout.count(": the peer's, largest difference") >= len(tables)
    assert list(tmp_path.rglob("*.*")) == [tmp_path / "results" / f"{name}.json"]

    recorded = json.loads((tmp_path / "results" / f"{name}.json").read_text())
    assert dict(read_recorded_tables(recorded["tables"])) == {
        title: [pytest.approx(row, rel=0.01) for row in rows] for title, rows in tables.items()
    }
    assert recorded["command"] == f"python -m benchmarks --toy {name} --results results"
    assert recorded["machine"]["cores"] == os.cpu_count()
    assert recorded["versions"]["python"]
    for row in record.ROWS:
        if row.benchmark == name:
            assert re.search(r"\| [\d.]+x[^|]* \|$", record.format_row(row, tmp_path / "results"))


@pytest.mark.parametrize(("arguments", "folder"), [([], record.RESULTS), (["--toy"], None)])
def test_only_a_run_at_the_real_size_is_recorded_by_default(arguments, folder, monkeypatch):
    calls = []
    monkeypatch.setattr(command, "run", lambda names, **options: calls.append(options))
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    command.main()
    assert calls == [{"toy": folder is None, "folder": folder}]


def test_the_table_shows_the_range_of_all_lines_that_fit(tmp_path):
    tables = [
        {"title": f"fits, {n} x 9", "lines": [{"name": "peer, 3 labels", "cpu_ratio": ratio}]}
        for n, ratio in ((10, 38.4), (20, 2.51))
    ]
    record.write_record(tmp_path, {"benchmark": "fits", "tables": tables})
    row = record.Row("fit {0}", "a peer", "fits", (record.Ratio(r"fits, (\d+ x 9)", "peer"),))
    assert record.format_row(row, tmp_path) == "| fit 10 x 9 | a peer | 2.5x to 38x |"


def test_a_table_without_its_record_says_what_to_run(tmp_path):
    with pytest.raises(SystemExit, match="Run: python -m benchmarks ranking"):
        record.make_table(tmp_path)


def test_all_toy_sizes_differ_from_the_real_ones():
    for name in FILES:
        benchmark = import_module(f"benchmarks.{name}")
        assert benchmark.TOY != benchmark.REAL, name


def test_all_files_are_listed_as_benchmarks(tmp_path):
    assert run_command("--toy", "--list", folder=tmp_path).stdout.split() == FILES


def test_a_name_that_is_no_benchmark_is_refused(tmp_path):
    done = run_command("--toy", "rankings", folder=tmp_path)
    assert done.returncode == 2
    assert "got rankings." in done.stderr


@pytest.mark.parametrize("theirs", [1.1, math.nan])
def test_a_peer_with_another_answer_is_refused(theirs):
    with pytest.raises(AssertionError, match=r"MAP must be the peer's to within 0\.01"):
        timing.agree("MAP", [0.5, 1.0], [0.5, theirs], 0.01)


def test_threads_may_end_while_children_are_listed():
    ended = threading.Event()

    def start_threads():
        while not ended.is_set():
            thread = threading.Thread(target=lambda: None)
            thread.start()
            thread.join()

    starter = threading.Thread(target=start_threads)
    starter.start()
    try:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            assert all(str(child.pid) in timing.list_children() for _ in range(300))
        finally:
            child.communicate(b"\n")
    finally:
        ended.set()
        starter.join()
    assert str(child.pid) not in timing.list_children()


@pytest.mark.parametrize("error", [FileNotFoundError, ProcessLookupError])
def test_a_thread_or_child_that_has_ended_counts_for_nothing(error, monkeypatch):
    read = Path.read_text

    def read_unless_process(path, *arguments, **options):
        if path.parts[:2] == ("/", "proc"):
            raise error(2, "gone", str(path))
        return read(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read_unless_process)
    assert timing.list_children() == []
    assert timing._child_seconds("1") == 0
    assert timing.cpu_seconds() > 0
