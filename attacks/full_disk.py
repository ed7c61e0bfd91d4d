"""A disk that is full, or a file that may not grow, at some point of every command that writes.

The command ends with one line and exit code 2, old files are as they were, and once there is room
the rerun ends as if nothing had happened. As root the disk is a small one in memory, and fills up
for good (ENOSPC); without root files may not grow (EFBIG).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from attacks.child import scratch
from attacks.commands import SMALL, Size
from attacks.outcome import Outcome
from attacks.trials import Trial, run_trials

LINE_BYTES = 1024
TITLE = "full disk (ENOSPC) and files that may not grow (EFBIG) in writing commands"
SLICE = 4
FULL = 54
ROOM = 256 << 20  # of the small disk, most of which is taken by a file of ours
_KEEP = """
mount -t tmpfs -o size="$1" oddslip "$0" || exit
echo mounted
read -r _
umount --lazy "$0"
"""


def attack(count: int, seed: int, size: Size = SMALL) -> Outcome:
    """Run ``count`` commands with too little room."""
    refused = {"ENOSPC": 0, "EFBIG": 0}
    with scratch() as made, small_disk(Path(made) / "disk") as disk:

        def starve(trial: Trial) -> None:
            small = disk if trial.number % 2 == 0 else None
            refused["EFBIG" if small is None else "ENOSPC"] += _starve(trial, small)

        failures = run_trials(count, seed, size, starve)
    told = ", ".join(f"{n} refused for {how}" for how, n in refused.items() if n)
    return Outcome(count, failures, told)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A file system of its own, which can be filled; None where it cannot be mounted."""
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        yield None
        return
    # Mounted and unmounted by a process that sees us end, however we end: its input is closed.
    keeper = subprocess.Popen(
        ["sh", "-c", _KEEP, str(folder), str(ROOM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert keeper.stdout is not None
    try:
        yield folder if keeper.stdout.readline() == "mounted\n" else None
    finally:
        keeper.communicate()


def _starve(trial: Trial, disk: Path | None) -> bool:
    """Whether the command was refused: a try may leave it room enough."""
    folder = trial.make_folder(old=trial.dice.random() < 0.5, place=disk)
    room = int(trial.largest * trial.dice.uniform(0, 1.2))
    if disk is not None:
        ballast = disk / "ballast"
        _fill(ballast, room)
        ended = trial.run(folder)
        ballast.unlink()
    else:
        # What is told goes to a file as well, which must hold its line.
        ended = trial.run(folder, most_bytes=max(room, LINE_BYTES))
    if ended.code != 0:
        assert ended.code == 2, f"ended with {ended.code}: {ended.told[-400:]!r}"
        assert ended.is_one_line, f"told {ended.told[:400]!r}"
        trial.check_whole(folder)
    trial.check_rerun(folder)
    return ended.code != 0


def _fill(ballast: Path, room: int) -> None:
    """Take all of the disk but ``room`` bytes."""
    state = os.statvfs(ballast.parent)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, state.f_bavail * state.f_frsize - room))
