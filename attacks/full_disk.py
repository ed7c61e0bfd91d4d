"""A disk that is full, or a file that may not grow, at some point of every command that writes.

The command ends with one line and exit code 2, old files are as they were, and once there is room
the rerun ends as if nothing had happened. As root the disk is a small one in memory, and fills up
for good (ENOSPC); without root files may not grow (EFBIG).
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from attacks.children import Nursery, nursery
from attacks.commands import SMALL, Command, Size, commands, contents, make_inputs
from attacks.kills import OLD, check_same, check_whole, scratch, undisturbed
from attacks.outcome import Outcome

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
    dice = random.Random(seed)
    failures: list[str] = []
    refused = {"ENOSPC": 0, "EFBIG": 0}
    with scratch() as made, nursery() as opened, small_disk(Path(made) / "disk") as disk:
        base = Path(made)
        table = commands(make_inputs(base / "inputs", size), size)
        order = [each for each in table for _ in range(1 if each.slow else 3)]
        dice.shuffle(order)
        whole: dict[str, tuple[dict[str, object], int]] = {}
        for number in range(count):
            command = order[number % len(order)]
            how = "ENOSPC" if disk is not None and number % 2 == 0 else "EFBIG"
            try:
                if command.name not in whole:
                    wanted, _ = undisturbed(opened, command, base)
                    whole[command.name] = wanted, _largest(base / "work")
                place = disk if how == "ENOSPC" and disk is not None else base
                refused[how] += _starve(opened, command, place, dice, how, *whole[command.name])
            except AssertionError as error:
                failures.append(f"try {number}, {how} in {command.name}: {error}")
    told = ", ".join(f"{n} refused for {how}" for how, n in refused.items() if n)
    return Outcome(count, tuple(failures), told)


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


def _largest(folder: Path) -> int:
    return max(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _starve(
    opened: Nursery,
    command: Command,
    place: Path,
    dice: random.Random,
    how: str,
    wanted: dict[str, object],
    largest: int,
) -> bool:
    """Whether the command was refused: a try may leave it room enough."""
    folder = place / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    old = dice.random() < 0.5
    for name in command.overwrites if old else ():
        (folder / name).write_bytes(OLD)
    room = int(largest * dice.uniform(0, 1.2))
    ballast = place / "ballast"
    if how == "ENOSPC":
        _fill(ballast, room)
        ended = opened.run(command.arguments, folder)
        ballast.unlink()
    else:
        # What is told goes to a file as well, which must hold its line.
        ended = opened.run(command.arguments, folder, most_bytes=max(room, LINE_BYTES))
    if ended.code != 0:
        assert ended.code == 2, f"ended with {ended.code}: {ended.told[-400:]!r}"
        assert ended.is_one_line, f"told {ended.told[:400]!r}"
        check_whole(contents(folder), wanted)
    again = opened.run(command.arguments, folder)
    assert again.code == 0, f"the rerun ended with {again.code}: {again.told[:300]!r}"
    check_same(contents(folder), wanted)
    return ended.code != 0


def _fill(ballast: Path, room: int) -> None:
    """Take all of the disk but ``room`` bytes."""
    state = os.statvfs(ballast.parent)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, state.f_bavail * state.f_frsize - room))
