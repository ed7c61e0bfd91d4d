"""Hostile and stale locks, leftovers of dead writers, and threads that write one path."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from attacks.child import Attempt, try_in_child
from attacks.mutation import draw
from attacks.outcome import Outcome

TITLE = "Links and files planted in place of locks, stale locks, threads on one path"
SLICE = 200
FULL = 10_000


def attack(count: int, seed: int) -> Outcome:
    """Write among what was planted; it stays as it is, and the output is whole."""
    return try_in_child("attacks.locks", count, seed)


def prepare(seed: int, folder: Path) -> Attempt:
    """Each try has a place for outputs and one for temporary files."""
    from oddslip.io.files import atomic_write, lock

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        place, scratch = folder / "outputs", folder / "scratch"
        for each in (place, scratch):
            shutil.rmtree(each, ignore_errors=True)
            each.mkdir()
        tempfile.tempdir = str(scratch)
        (place / "victim").write_text("dear")
        output = place / dice.choice(("out.npy", "a.b.parquet", "no-ending", "ünï.csv"))
        with lock(output):
            lock_file = next(scratch.glob("oddslip-*/*"))
        _plant_lock(dice, place, lock_file)
        planted = [_plant_beside(dice, place, output) for _ in range(dice.randrange(3))]
        if dice.random() < 0.4:
            _race(dice, output, atomic_write)
            word = "threads"
        else:
            with atomic_write(output) as unfinished:
                unfinished.write_text("whole")
            word = "one writer"
        assert output.read_text() in ("whole", *(str(at) * 5000 for at in range(4)))
        assert (place / "victim").read_text() == "dear", "a planted link was followed"
        left = {path.name for path in place.iterdir()} - {output.name, "victim", *planted}
        assert not left, f"left behind: {sorted(left)}"
        return word

    return attempt


def _plant_lock(dice: random.Random, place: Path, lock: Path) -> None:
    """Put something in place of the lock, or of the folder that it lies in."""
    what = dice.randrange(5)
    if what == 0:
        lock.symlink_to(place / "victim")
    elif what == 1:  # of a dead process
        lock.write_bytes(dice.randbytes(40))
    elif what == 2:
        lock.parent.rmdir()
        lock.parent.symlink_to(place)
    elif what == 3:
        lock.parent.chmod(0o777)


def _plant_beside(dice: random.Random, place: Path, output: Path) -> str:
    """Put something beside the output; the name of what must stay."""
    unfinished = place / f".{output.stem}.{dice.getrandbits(48):012x}{output.suffix}"
    what = dice.randrange(3)
    if what == 0:  # as version 0.2 named its locks
        old = place / f".{output.name}.lock"
        old.unlink(missing_ok=True)
        old.symlink_to(place / "victim")
        return old.name
    if what == 1:  # of a dead writer: it is removed
        unfinished.write_text("half")
        return output.name
    unfinished.symlink_to(place / "victim")
    return unfinished.name


def _race(dice: random.Random, output: Path, atomic_write: Callable[..., object]) -> None:
    """Threads at one path: each is refused as a thread of this process, or writes the whole."""
    from oddslip.errors import InvalidInput

    wrong: list[str] = []
    written: list[int] = []
    start = threading.Barrier(4)

    def write(at: int) -> None:
        start.wait()
        try:
            with atomic_write(output) as unfinished:  # type: ignore[attr-defined]
                for _ in range(5):
                    with unfinished.open("a") as file:
                        file.write(str(at) * 1000)
                    os.sched_yield()
            written.append(at)
        except InvalidInput as error:
            if "another thread of this process" not in str(error):
                wrong.append(str(error))
        except Exception as error:  # whatever else came is a finding
            wrong.append(repr(error))

    threads = [threading.Thread(target=write, args=(at,)) for at in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong, wrong
    assert written, "nobody wrote"
