"""Kill -9 at random points of every command that writes.

Afterwards every file under its final name is the old one or the whole new one, and the same command
started again ends with the files of a run that nothing disturbed: no more, no fewer, byte by byte.
"""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
import time
from pathlib import Path

from attacks.children import Nursery, nursery
from attacks.commands import SMALL, Command, Size, commands, contents, make_inputs
from attacks.outcome import Outcome

TITLE = "kill -9 at random points of writing commands, and the rerun"
SLICE = 4
FULL = 100
OLD = b"what was here before"


def attack(count: int, seed: int, size: Size = SMALL) -> Outcome:
    """Kill ``count`` commands, one after another."""
    dice = random.Random(seed)
    failures: list[str] = []
    struck = 0
    with scratch() as made, nursery() as opened:
        base = Path(made)
        table = commands(make_inputs(base / "inputs", size), size)
        # Every command gets its share; slow ones a third of it.
        order = [each for each in table for _ in range(1 if each.slow else 3)]
        dice.shuffle(order)
        whole: dict[str, tuple[dict[str, object], float]] = {}
        for number in range(count):
            command = order[number % len(order)]
            try:
                if command.name not in whole:
                    whole[command.name] = undisturbed(opened, command, base)
                struck += _kill(opened, command, base, dice, *whole[command.name])
            except AssertionError as error:
                failures.append(f"try {number}, {command.name}: {error}")
    names = f"{len(whole)} commands"
    return Outcome(count, tuple(failures), f"{names}, {struck} killed before their end")


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder in memory where there is one: a killed process must not depend on the disk."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    return tempfile.TemporaryDirectory(prefix="oddslip-attack-", dir=place)


def undisturbed(opened: Nursery, command: Command, base: Path) -> tuple[dict[str, object], float]:
    """What a command leaves, and how long it takes."""
    folder = fresh(base, command)
    ended = opened.run(command.arguments, folder)
    assert ended.code == 0, f"undisturbed it ends with {ended.code}: {ended.told[:300]}"
    return contents(folder), ended.seconds


def fresh(base: Path, command: Command, *, old: bool = False) -> Path:
    """A new folder for a command to run in, with old files where it will write, if wanted."""
    folder = base / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in command.overwrites if old else ():
        (folder / name).write_bytes(OLD)
    return folder


def _kill(
    opened: Nursery,
    command: Command,
    base: Path,
    dice: random.Random,
    wanted: dict[str, object],
    seconds: float,
) -> bool:
    folder = fresh(base, command, old=dice.random() < 0.5)
    child = opened.start(command.arguments, folder)
    time.sleep(dice.uniform(0, seconds))
    child.send(signal.SIGKILL)
    killed = child.end()
    assert killed.code in (-signal.SIGKILL, 0), f"ended with {killed.code}: {killed.told[:300]}"
    check_whole(contents(folder), wanted)
    again = opened.run(command.arguments, folder)
    assert again.code == 0, f"the rerun ended with {again.code}: {again.told[:300]}"
    check_same(contents(folder), wanted)
    return killed.code != 0


def check_whole(found: dict[str, object], wanted: dict[str, object]) -> None:
    """Whatever bears a final name is the old file or the whole new one."""
    for name in found.keys() & wanted.keys():
        assert found[name] in (OLD, wanted[name]), f"{name} is neither the old file nor the new"


def check_same(found: dict[str, object], wanted: dict[str, object]) -> None:
    """The files of a run that nothing disturbed, no more and no fewer."""
    missing, left = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    assert not missing, f"after the rerun {missing} are missing"
    assert not left, f"after the rerun {left} are left over"
    other = [name for name in wanted if found[name] != wanted[name]]
    assert not other, f"after the rerun {other} have other bytes"
