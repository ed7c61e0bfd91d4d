"""Commands disturbed at work: what they may leave behind, and what their rerun must leave."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from attacks.child import scratch
from attacks.children import Child, Ended, Nursery, nursery
from attacks.commands import Command, Size, commands, contents, make_inputs

OLD = b"what was here before"
Contents = dict[str, object]


@dataclass(frozen=True)
class Trial:
    """A command to disturb, and what a run that nothing disturbed leaves."""

    number: int
    dice: random.Random
    opened: Nursery
    command: Command
    base: Path
    wanted: Contents
    seconds: float
    largest: int  # bytes of a file

    def make_folder(self, *, old: bool = False, place: Path | None = None) -> Path:
        """A new folder for the command to run in, with old files where it will write, if wanted."""
        return _make_folder(place or self.base, self.command.overwrites if old else ())

    def start(self, folder: Path) -> Child:
        """Begin the command."""
        return self.opened.start(self.command.arguments, folder)

    def run(self, folder: Path, *, most_bytes: int | None = None) -> Ended:
        """Run the command to its end."""
        return self.opened.run(self.command.arguments, folder, most_bytes=most_bytes)

    def check_whole(self, folder: Path) -> None:
        """Whatever bears a final name is the old file or the whole new one."""
        check_whole(contents(folder), self.wanted)

    def check_same(self, folder: Path) -> None:
        """The files are those of a run that nothing disturbed."""
        check_same(contents(folder), self.wanted)

    def check_rerun(self, folder: Path) -> None:
        """The command started again ends well, with the files of a run that nothing disturbed."""
        again = self.run(folder)
        assert again.code == 0, f"the rerun ended with {again.code}: {again.told[:300]!r}"
        self.check_same(folder)


def run_trials(
    count: int,
    seed: int,
    size: Size,
    attempt: Callable[[Trial], None],
    *,
    more: Callable[[Path], Sequence[Command]] = lambda _: (),
    shares: int = 3,
) -> tuple[str, ...]:
    """Disturb ``count`` commands, one after another. Returns what went wrong.

    Every command gets its share of the tries; slow ones a third of it, unless ``shares`` is 1.
    ``more`` commands than those that write may be disturbed; they get the folder of the inputs.
    """
    dice, failures = random.Random(seed), []
    with scratch() as made, nursery() as opened:
        base = Path(made)
        inputs = make_inputs(base / "inputs", size)
        table = [*commands(inputs, size), *more(inputs)]
        order = [each for each in table for _ in range(1 if each.slow else shares)]
        dice.shuffle(order)
        whole: dict[str, tuple[Contents, float, int]] = {}
        for number in range(count):
            command = order[number % len(order)]
            try:
                if command.name not in whole:
                    whole[command.name] = _run_undisturbed(opened, command, base)
                attempt(Trial(number, dice, opened, command, base, *whole[command.name]))
            except AssertionError as error:
                failures.append(f"try {number}, {command.name}: {error}")
    return tuple(failures)


def _run_undisturbed(opened: Nursery, command: Command, base: Path) -> tuple[Contents, float, int]:
    """What a command leaves, how long it takes, and the size of its largest file."""
    folder = _make_folder(base)
    ended = opened.run(command.arguments, folder)
    assert ended.code == 0, f"undisturbed it ends with {ended.code}: {ended.told[:300]}"
    sizes = (path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return contents(folder), ended.seconds, max(sizes, default=0)


def _make_folder(place: Path, old: Sequence[str] = ()) -> Path:
    folder = place / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in old:
        (folder / name).write_bytes(OLD)
    return folder


def check_whole(found: Contents, wanted: Contents) -> None:
    """Whatever bears a final name is the old file or the whole new one."""
    for name in found.keys() & wanted.keys():
        assert found[name] in (OLD, wanted[name]), f"{name} is neither the old file nor the new"


def check_same(found: Contents, wanted: Contents) -> None:
    """The files of a run that nothing disturbed, no more and no fewer."""
    missing, left = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    assert not missing, f"after the rerun {missing} are missing"
    assert not left, f"after the rerun {left} are left over"
    other = [name for name in wanted if found[name] != wanted[name]]
    assert not other, f"after the rerun {other} have other bytes"
