"""Outputs: one writer at a time, files only, whole or not at all, and nothing left behind."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from oddslip.cli.app import _run
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.files import locked, whole_file
from oddslip.learners import OneVsRest, score_to_file
from oddslip.studies.store import CellStore

X = np.random.default_rng(0).random((60, 4))
Y = (X[:, :3] > 0.6).astype(np.int8)
QUICK = {"parameters": {"num_iterations": 2}}


def start(script, *arguments):
    """A process that says when it is ready, and then waits."""
    text = textwrap.dedent(script) + "\nprint('ready', flush=True)\nsys.stdin.read()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys\n" + text, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


HOLD = """
from oddslip.files import locked
held = locked(sys.argv[1])
held.__enter__()
"""


@pytest.fixture
def holding():
    """Start a process that holds the lock of a path."""
    processes = []

    def hold(path):
        processes.append(start(HOLD, path))
        return processes[-1]

    yield hold
    for process in processes:
        process.kill()
        process.communicate()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_second_writer_of_a_path_is_refused_and_told_who_writes_it(tmp_path, holding):
    first = holding(tmp_path / "a.npy")
    line = f"is being written by another process .pid {first.pid}.. Wait for it or pass another"
    with pytest.raises(InvalidInput, match=line), whole_file(tmp_path / "a.npy"):
        pass
    with whole_file(tmp_path / "b.npy") as unfinished:
        unfinished.write_text("another path")


def test_a_lock_left_by_a_killed_process_is_taken_over_and_removed(tmp_path, holding):
    first = holding(tmp_path / "a.npy")
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert names(tmp_path) == [".a.npy.lock"]
    with whole_file(tmp_path / "a.npy") as unfinished:
        unfinished.write_text("done")
    assert names(tmp_path) == ["a.npy"]


def test_who_waits_for_a_lock_has_it_once_its_holder_is_gone(tmp_path, holding):
    first = holding(tmp_path / "a")
    order, killed = [], threading.Event()

    def wait(name):
        with locked(tmp_path / "a", wait=True):
            order.append((name, killed.is_set()))

    waiting = [threading.Thread(target=wait, args=(name,)) for name in "bc"]
    for each in waiting:
        each.start()
    killed.set()
    first.send_signal(signal.SIGKILL)
    first.wait()
    for each in waiting:
        each.join()
    assert sorted(order) == [("b", True), ("c", True)]
    assert names(tmp_path) == []


def test_whoever_holds_a_lock_may_take_it_again_but_no_other_thread(tmp_path):
    refused = []

    def intrude():
        try:
            with locked(tmp_path / "a"):
                pass
        except InvalidInput as error:
            refused.append(error)

    with locked(tmp_path / "a"), locked(tmp_path / "a"):
        other = threading.Thread(target=intrude)
        other.start()
        other.join()
    assert len(refused) == 1
    assert names(tmp_path) == []


def test_of_many_writers_at_once_each_is_refused_or_writes_the_whole(tmp_path):
    script = """
    import time
    from oddslip.errors import InvalidInput
    from oddslip.files import whole_file
    written = 0
    while written < 30:
        try:
            with whole_file(sys.argv[1]) as unfinished:
                unfinished.write_text(sys.argv[2] * 1000)
            written += 1
        except InvalidInput:
            time.sleep(0.001)
    """
    running = [start(script, tmp_path / "a.txt", letter) for letter in "xyz"]
    for process in running:
        process.communicate()
        assert process.returncode == 0
    assert (tmp_path / "a.txt").read_text() in {letter * 1000 for letter in "xyz"}
    assert names(tmp_path) == ["a.txt"]


def test_scoring_training_and_studies_refuse_a_place_that_another_writes(tmp_path, holding):
    model = OneVsRest(**QUICK).fit(X, Y)
    holding(tmp_path / "s.npy")
    with pytest.raises(InvalidInput, match="is being written by another process"):
        score_to_file(model, X, tmp_path / "s.npy")
    (tmp_path / "kept").mkdir()
    holding(tmp_path / "kept" / "training.json")
    with pytest.raises(InvalidInput, match="is being written by another process"):
        OneVsRest(**QUICK, checkpoint=tmp_path / "kept").fit(X, Y)
    holding(tmp_path / "cell.json")
    with pytest.raises(InvalidInput, match="is being written by another process"):
        CellStore(tmp_path, "study").find("cell", {}, lambda: {"map": 0.5}, command="")


def test_no_lock_stays_behind(tmp_path):
    model = OneVsRest(**QUICK, checkpoint=tmp_path / "kept").fit(X, Y)
    score_to_file(model, X, tmp_path / "s.npy", kind="both")
    score_to_file(model, X, tmp_path / "s.parquet")
    CellStore(tmp_path, "study").find("cell", {}, lambda: {"map": 0.5}, command="")
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("9 requested and 0 written"), "No space left on device"),  # NumPy
        (OSError("File too large (os error 27)"), "File too large"),  # polars
        (RuntimeError("IO error: gone (os error 28)"), "No space left on device"),  # polars too
    ],
)
def test_a_full_disk_is_told_in_one_line_whoever_met_it(tmp_path, error, why):
    line = rf"a.csv can not be written .{why}.. Make room, or pass another path"
    with pytest.raises(UnreadableFile, match=line), whole_file(tmp_path / "a.csv"):
        raise error
    assert names(tmp_path) == []


# ------------------------------------------------------------------------------- what is a file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", X)
    np.save("y.npy", Y)
    os.mkfifo("pipe.npy")
    (tmp_path / "folder.npy").mkdir()
    os.symlink("loop.npy", "loop.npy")
    return tmp_path


# No input exists: an output is refused before anything is read.
COMMANDS = {
    "rank": ["rank", "none.npy", "-k", "2", "-o"],
    "fit": ["fit", "none.npy", "none.npy", "-k", "2", "-o"],
    "apply": ["apply", "none.oddslip", "none.npy", "-o"],
    "train": ["train", "none.npy", "none.npy", "-o"],
    "score": ["score", "none.oddslip", "none.npy", "-o"],
    "diagnose --html": ["diagnose", "none.npy", "none.npy", "--html"],
    "diagnose --figure": ["diagnose", "none.npy", "none.npy", "--figure"],
    "diagnose --json-file": ["diagnose", "none.npy", "none.npy", "--json-file"],
    "plan --json-file": [
        *["plan", "none.npy", "--rounds", "3", "--learning-rate", "1", "--json-file"]
    ],
    "reproduce --page": ["reproduce", "tafeng", "--data", "none", "--page"],
    "reproduce mulan --page": ["reproduce", "mulan", "--data", "none", "--page"],
    "reproduce mulan --regimes": ["reproduce", "mulan", "--data", "none", "--regimes"],
}
PLACES = {
    "/dev/full": "got a device or a pipe",
    "pipe.npy": "got a device or a pipe",
    "folder.npy": "got a folder",
    "loop.npy": "got a link to itself",
    "s3://bucket/s.npy": "must be a path on this machine, got an address",
    "n" * 250 + ".npy": "must be at most 220 bytes long, got 254",
    "n" * 5000: "must be at most 220 bytes long, got 5000",
    "bad\udcff.npy": "must have a name that is text in UTF-8",
}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ascii(place)[:20])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_no_file_here_is_refused_before_the_work(folder, capsys, command, place):
    before = names(folder)
    assert _run([*COMMANDS[command], place]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert PLACES[place] in told
    assert names(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "baskets", "--size", "5", "-o"],
        ["reproduce", "tafeng", "--data", "none", "--tables"],
        ["reproduce", "tafeng", "--data", "none", "--figures"],
        ["train", "none.npy", "none.npy", "-o", "m.oddslip", "--checkpoint"],
    ],
)
@pytest.mark.parametrize("place", ["s.npy", "s.npy/below", "s3://bucket/x", "n" * 250])
def test_a_folder_of_outputs_that_can_not_be_one_is_refused_before_the_work(
    folder, capsys, arguments, place
):
    before = names(folder)
    assert _run([*arguments, place]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert names(folder) == before


def test_a_link_stays_and_its_target_is_written(folder, capsys):
    (folder / "real.npy").write_text("old")
    os.symlink("real.npy", "link.npy")
    assert _run(["rank", "s.npy", "-k", "2", "-o", "link.npy"]) == 0
    assert (folder / "link.npy").is_symlink()
    assert np.load("real.npy").shape == (60, 2)
    model = OneVsRest(**QUICK).fit(X, Y)
    assert score_to_file(model, X, "link.npy")[0].name == "link.npy"
    assert (folder / "link.npy").is_symlink()
    assert np.load("real.npy").shape == (60, 3)


# ---------------------------------------------------------------------------------- a full disk

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from oddslip.cli.app import _run
sys.exit(_run(sys.argv[1:]))
"""


@pytest.mark.parametrize("ending", ["npy", "parquet"])
@pytest.mark.parametrize("command", ["rank", "apply", "score"])
def test_a_file_that_may_not_grow_is_one_line_and_the_old_one_stays(
    tmp_path, monkeypatch, command, ending
):
    monkeypatch.chdir(tmp_path)
    wide = np.random.default_rng(1).random((4000, 4))
    np.save("s.npy", wide)
    np.save("y.npy", (wide > 0.6).astype(np.int8))
    model = OneVsRest(**QUICK).fit(wide, wide > 0.6)
    model.save("m.oddslip")
    assert _run(["fit", "s.npy", "y.npy", "--calibrator", "platt", "-o", "r.oddslip"]) == 0
    output = tmp_path / f"out.{ending}"
    output.write_text("old")
    before = names(tmp_path)
    inputs = {"rank": "s.npy -k 3", "apply": "r.oddslip s.npy", "score": "m.oddslip s.npy"}
    told = subprocess.run(
        [sys.executable, "-c", LIMITED, command, *inputs[command].split(), "-o", output.name],
        capture_output=True,
        text=True,
    )
    assert told.returncode == 2, told.stderr
    assert told.stderr.startswith(f"oddslip: {output.name} can not be written (")
    assert told.stderr.count("\n") == 1
    assert output.read_text() == "old"
    assert names(tmp_path) == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT])
def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path, code):
    (tmp_path / "a.txt").write_text("old")
    refused = pytest.raises(UnreadableFile, match=r"a\.txt can not be written")
    with refused, whole_file(tmp_path / "a.txt"):
        raise OSError(code, os.strerror(code))
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_what_a_killed_run_left_behind_is_removed_by_the_next_and_nothing_else(tmp_path):
    script = """
    from oddslip.files import whole_file
    held = whole_file(sys.argv[1])
    held.__enter__().write_text("half")
    """
    process = start(script, tmp_path / "a.npy")
    process.kill()
    process.communicate()
    assert len(names(tmp_path)) == 2
    others = [".a.npy", ".a.0123456789ab.txt", ".b.0123456789ab.npy", ".a.backup.npy"]
    for name in others:
        (tmp_path / name).touch()
    with whole_file(tmp_path / "a.npy") as unfinished:
        unfinished.write_text("whole")
    assert names(tmp_path) == sorted([*others, "a.npy"])
