"""Outputs: one writer at a time, files only, whole or not at all, and nothing left behind."""

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from experiments.store import CellStore
from oddslip.cli.app import main
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.files import atomic_write, hold_file, lock
from oddslip.learners import OneVsRest, score_to_file

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
from oddslip.io.files import lock
held = lock(sys.argv[1])
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


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch):
    """A place for temporary files, and so for locks, of this test alone."""
    place = tmp_path_factory.mktemp("scratch")
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def locks(scratch):
    return sorted(path.name for path in scratch.glob("oddslip-*/*"))


def test_the_second_writer_of_a_path_is_refused_and_told_who_writes_it(tmp_path, holding):
    first = holding(tmp_path / "a.npy")
    line = f"is being written by another process .pid {first.pid}.. Wait for it or pass another"
    with pytest.raises(InvalidInput, match=line), atomic_write(tmp_path / "a.npy"):
        pass
    with atomic_write(tmp_path / "b.npy") as unfinished:
        unfinished.write_text("another path")


def test_a_lock_left_by_a_killed_process_is_taken_over_and_removed(tmp_path, holding, scratch):
    first = holding(tmp_path / "a.npy")
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert len(locks(scratch)) == 1
    with atomic_write(tmp_path / "a.npy") as unfinished:
        unfinished.write_text("done")
    assert names(tmp_path) == ["a.npy"]
    assert locks(scratch) == []


def test_a_link_or_a_file_that_is_named_like_a_lock_is_left_alone(tmp_path):
    (tmp_path / "p.txt").write_text("dear")
    (tmp_path / ".b.npy.lock").write_text("dear")
    os.symlink("p.txt", tmp_path / ".a.npy.lock")
    for name in ("a.npy", "b.npy"):
        with atomic_write(tmp_path / name) as unfinished:
            unfinished.write_text("done")
    assert (tmp_path / "p.txt").read_text() == (tmp_path / ".b.npy.lock").read_text() == "dear"
    assert names(tmp_path) == [".a.npy.lock", ".b.npy.lock", "a.npy", "b.npy", "p.txt"]


def test_locks_lie_in_a_folder_that_nobody_else_can_write_to(tmp_path, scratch):
    with lock(tmp_path / "a.npy"):
        (folder,) = scratch.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert len(locks(scratch)) == 1
        assert names(tmp_path) == []


@pytest.mark.parametrize("planted", ["link", "open folder", "file"])
def test_a_place_for_locks_that_is_not_ours_alone_is_not_used(tmp_path, scratch, planted):
    place, target = scratch / f"oddslip-{os.geteuid()}", tmp_path / "target"
    target.mkdir(mode=0o700)
    if planted == "link":
        place.symlink_to(target)
    elif planted == "file":
        place.write_text("dear")
    else:
        place.mkdir()
        place.chmod(0o777)
    with atomic_write(tmp_path / "a.npy") as unfinished:
        unfinished.write_text("done")
        assert locks(scratch) == names(target) == []
    assert (tmp_path / "a.npy").read_text() == "done"


def test_a_link_in_place_of_a_lock_is_not_followed(tmp_path, scratch):
    (tmp_path / "p.txt").write_text("dear")
    with lock(tmp_path / "a.npy"):
        (lock_file,) = scratch.glob("oddslip-*/*")
    lock_file.symlink_to(tmp_path / "p.txt")
    with atomic_write(tmp_path / "a.npy") as unfinished:
        unfinished.write_text("done")
    assert (tmp_path / "p.txt").read_text() == "dear"
    assert (tmp_path / "a.npy").read_text() == "done"


def test_the_unfinished_file_of_a_living_writer_elsewhere_is_not_removed(tmp_path, monkeypatch):
    script = """
    from oddslip.io.files import atomic_write
    held = atomic_write(sys.argv[1])
    held.__enter__().write_text("theirs")
    """
    other = start(script, tmp_path / "a.npy")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # as on another machine: other locks
    (begun,) = tmp_path.glob(".a.*.npy")
    with atomic_write(tmp_path / "a.npy") as unfinished:
        unfinished.write_text("ours")
    assert begun.read_text() == "theirs"
    assert (tmp_path / "a.npy").read_text() == "ours"
    other.kill()
    other.communicate()


def test_a_scoring_that_another_machine_is_at_is_refused_and_left_alone(tmp_path, monkeypatch):
    model = OneVsRest(**QUICK).fit(X, Y)
    script = """
    import fcntl
    held = open(sys.argv[1], "r+b")
    fcntl.flock(held, fcntl.LOCK_EX)
    """
    begun = tmp_path / ".s.npy.unfinished"
    begun.write_text("theirs")
    other = start(script, begun)
    with pytest.raises(InvalidInput, match="is being written by another process"):
        score_to_file(model, X, tmp_path / "s.npy")
    assert begun.read_text() == "theirs"
    other.kill()
    other.communicate()
    score_to_file(model, X, tmp_path / "s.npy")
    assert names(tmp_path) == ["s.npy"]


def test_a_scoring_holds_its_files_until_it_is_done_begun_or_continued(tmp_path, monkeypatch):
    from oddslip.learners import scoring

    model = OneVsRest(**QUICK).fit(X, Y)
    attempts = []

    def intrude(self, start, cells):
        with self.parts[0].open("r+b") as file, pytest.raises(InvalidInput) as refusal:
            hold_file(file, tmp_path / "s.npy")
        attempts.append(refusal)
        raise KeyboardInterrupt

    monkeypatch.setattr(scoring.ResumableScores, "_write", intrude)
    for _ in range(2):  # the second one continues what the first has begun
        with pytest.raises(KeyboardInterrupt):
            score_to_file(model, X, tmp_path / "s.npy")
    assert len(attempts) == 2


@pytest.mark.parametrize("name", [".s.npy.journal", ".s.npy.unfinished"])
def test_a_link_in_place_of_the_journal_of_a_scoring_is_not_followed(tmp_path, name):
    (tmp_path / "p.txt").write_text("dear")
    os.symlink("p.txt", tmp_path / name)
    score_to_file(OneVsRest(**QUICK).fit(X, Y), X, tmp_path / "s.npy")
    assert (tmp_path / "p.txt").read_text() == "dear"
    assert names(tmp_path) == ["p.txt", "s.npy"]


def test_who_waits_for_a_lock_has_it_once_its_holder_is_gone(tmp_path, holding):
    first = holding(tmp_path / "a")
    order, killed = [], threading.Event()

    def wait(name):
        with lock(tmp_path / "a", wait=True):
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
            with lock(tmp_path / "a"):
                pass
        except InvalidInput as error:
            refused.append(error)

    with lock(tmp_path / "a"), lock(tmp_path / "a"):
        other = threading.Thread(target=intrude)
        other.start()
        other.join()
    (error,) = refused
    assert "is being written by another thread of this process" in str(error)
    assert names(tmp_path) == []


def test_of_many_writers_at_once_each_is_refused_or_writes_the_whole(tmp_path):
    script = """
    import time
    from oddslip.errors import InvalidInput
    from oddslip.io.files import atomic_write
    written = 0
    while written < 30:
        try:
            with atomic_write(sys.argv[1]) as unfinished:
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
    holding(tmp_path / "study.jsonl, cell")
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
    line = rf"a.csv cannot be written .{why}.. Free disk space, or pass another path"
    with pytest.raises(UnreadableFile, match=line), atomic_write(tmp_path / "a.csv"):
        raise error
    assert names(tmp_path) == []


# ------------------------------------------------------------------------------- what is a file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", X)
    np.save("y.npy", Y)
    np.save("t.npy", X[:, :3])
    os.mkfifo("pipe.npy")
    (tmp_path / "folder.npy").mkdir()
    os.symlink("loop.npy", "loop.npy")
    (tmp_path / "read-only.npy").touch()
    (tmp_path / "read-only.npy").chmod(0o444)
    os.symlink("read-only.npy", "link-to-it.npy")
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
}
PLACES = {
    "/dev/full": "got a device or a pipe",
    "pipe.npy": "got a device or a pipe",
    "folder.npy": "got a folder",
    "loop.npy": "got a link to itself",
    "read-only.npy": "must be a file that may be replaced, got a read-only one",
    "link-to-it.npy": "must be a file that may be replaced, got a read-only one",
    "s3://bucket/s.npy": "must be a path on this machine, got an address",
    "n" * 250 + ".npy": "must be at most 220 bytes long, got 254",
    "n" * 5000: "must be at most 220 bytes long, got 5000",
    "bad\udcff.npy": "must have a name that is text in UTF-8",
}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ascii(place)[:20])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_no_file_here_is_refused_before_the_work(folder, capsys, command, place):
    before = names(folder)
    assert main([*COMMANDS[command], place]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert PLACES[place] in told
    assert names(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "none.npy", "none.npy", "-o", "m.oddslip", "--checkpoint"],
    ],
)
@pytest.mark.parametrize("place", ["s.npy", "s.npy/below", "s3://bucket/x", "n" * 250])
def test_a_folder_of_outputs_that_can_not_be_one_is_refused_before_the_work(
    folder, capsys, arguments, place
):
    before = names(folder)
    assert main([*arguments, place]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert names(folder) == before


def test_a_link_stays_and_its_target_is_written(folder, capsys):
    (folder / "real.npy").write_text("old")
    os.symlink("real.npy", "link.npy")
    assert main(["rank", "s.npy", "-k", "2", "-o", "link.npy"]) == 0
    assert (folder / "link.npy").is_symlink()
    assert np.load("real.npy").shape == (60, 2)
    model = OneVsRest(**QUICK).fit(X, Y)
    assert score_to_file(model, X, "link.npy")[0].name == "link.npy"
    assert (folder / "link.npy").is_symlink()
    assert np.load("real.npy").shape == (60, 3)


def test_a_link_to_nothing_yet_is_written_through(folder):
    os.symlink("later.npy", "link.npy")
    assert main(["rank", "s.npy", "-k", "2", "-o", "link.npy"]) == 0
    assert (folder / "link.npy").is_symlink()
    assert np.load("later.npy").shape == (60, 2)


def mode_of(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


WRITERS = {
    "npy": ["rank", "s.npy", "-k", "2", "-o"],
    "csv": ["rank", "s.npy", "-k", "2", "-o"],
    "parquet": ["rank", "s.npy", "-k", "2", "-o"],
    "oddslip": ["fit", "t.npy", "y.npy", "--calibrator", "platt", "-o"],
    "png": ["plan", "y.npy", "--rounds", "3", "--learning-rate", "1", "--figure"],
    "json": ["plan", "y.npy", "--rounds", "3", "--learning-rate", "1", "--json-file"],
}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
@pytest.mark.parametrize("ending", WRITERS)
def test_a_file_that_is_replaced_keeps_its_mode(folder, ending, mode):
    output = folder / f"out.{ending}"
    output.touch()
    output.chmod(mode)
    assert main([*WRITERS[ending], output.name]) == 0
    assert output.stat().st_size > 0
    assert mode_of(output) == mode


def test_scores_that_are_replaced_keep_their_mode(folder):
    model = OneVsRest(**QUICK).fit(X, Y)
    for name in ("t.npy", "t.margin.npy", "t.parquet"):
        (folder / name).touch()
        (folder / name).chmod(0o600)
    score_to_file(model, X, "t.npy", kind="both")
    score_to_file(model, X, "t.parquet")
    assert {mode_of(name) for name in ("t.npy", "t.margin.npy", "t.parquet")} == {0o600}


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_follows_the_umask(folder, mask, mode):
    before = os.umask(mask)
    try:
        assert main(["rank", "s.npy", "-k", "2", "-o", "new.npy"]) == 0
    finally:
        os.umask(before)
    assert mode_of("new.npy") == mode


def test_what_replaces_a_private_file_is_private_while_it_is_written(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "a").chmod(0o600)
    with atomic_write(tmp_path / "a") as unfinished:
        assert mode_of(unfinished) == 0o600


def test_what_can_not_be_read_back_does_not_take_its_place(tmp_path):
    (tmp_path / "a").write_text("old")

    def check(path):
        raise UnreadableFile(f"{path} is none.")

    line = "a was not written, since what was read back is wrong: it is none."
    with (
        pytest.raises(UnreadableFile, match=line),
        atomic_write(tmp_path / "a", check=check) as new,
    ):
        new.write_text("new")
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


# ---------------------------------------------------------------------------------- a full disk

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from oddslip.cli.app import main
sys.exit(main(sys.argv[1:]))
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
    model.save("m.oddmodel")
    assert main(["fit", "s.npy", "y.npy", "--calibrator", "platt", "-o", "r.oddslip"]) == 0
    output = tmp_path / f"out.{ending}"
    output.write_text("old")
    before = names(tmp_path)
    inputs = {"rank": "s.npy -k 3", "apply": "r.oddslip s.npy", "score": "m.oddmodel s.npy"}
    told = subprocess.run(
        [sys.executable, "-c", LIMITED, command, *inputs[command].split(), "-o", output.name],
        capture_output=True,
        text=True,
    )
    assert told.returncode == 2, told.stderr
    assert told.stderr.startswith(f"oddslip: {output.name} cannot be written (")
    assert told.stderr.count("\n") == 1
    assert output.read_text() == "old"
    assert names(tmp_path) == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT])
def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path, code):
    (tmp_path / "a.txt").write_text("old")
    refused = pytest.raises(UnreadableFile, match=r"a\.txt cannot be written")
    with refused, atomic_write(tmp_path / "a.txt"):
        raise OSError(code, os.strerror(code))
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_what_a_killed_run_left_behind_is_removed_by_the_next_and_nothing_else(tmp_path):
    script = """
    from oddslip.io.files import atomic_write
    held = atomic_write(sys.argv[1])
    held.__enter__().write_text("half")
    """
    process = start(script, tmp_path / "a.npy")
    process.kill()
    process.communicate()
    assert len(names(tmp_path)) == 1
    others = [".a.npy", ".a.0123456789ab.txt", ".b.0123456789ab.npy", ".a.backup.npy"]
    for name in others:
        (tmp_path / name).touch()
    with atomic_write(tmp_path / "a.npy") as unfinished:
        unfinished.write_text("whole")
    assert names(tmp_path) == sorted([*others, "a.npy"])
