"""Two processes that write one output, one checkpoint or one study at the same time.

One wins whole; the other ends with one line and exit code 2, or finds its turn after the first and
wins as well. What stays is what one of them alone would have written. A lock of a dead process is
taken over.
"""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from attacks.children import Ended, Nursery, nursery
from attacks.commands import SMALL, Command, Size, commands, contents, make_inputs
from attacks.kills import check_same, check_whole, fresh, scratch, undisturbed
from attacks.outcome import Outcome

TITLE = "two processes writing one output, checkpoint or study"
SLICE = 3
FULL = 40
REFUSAL = "is being written by another process"


def attack(count: int, seed: int, size: Size = SMALL) -> Outcome:
    """Start ``count`` pairs of the same command, the second a moment after the first."""
    dice = random.Random(seed)
    failures: list[str] = []
    refused = 0
    with scratch() as made, nursery() as opened:
        base = Path(made)
        table = commands(make_inputs(base / "inputs", size), size)
        order = [each for each in table for _ in range(1 if each.slow else 3)]
        dice.shuffle(order)
        whole: dict[str, tuple[dict[str, object], float]] = {}
        for number in range(count):
            command = order[number % len(order)]
            kind = _take_over if number % 4 == 3 else _race
            try:
                if command.name not in whole:
                    whole[command.name] = undisturbed(opened, command, base)
                refused += kind(opened, command, base, dice, *whole[command.name])
            except AssertionError as error:
                failures.append(f"try {number}, {command.name}: {error}")
    return Outcome(count, tuple(failures), f"{refused} refused in one line, the others took turns")


def _race(
    opened: Nursery,
    command: Command,
    base: Path,
    dice: random.Random,
    wanted: dict[str, object],
    seconds: float,
) -> int:
    """Both at once: how many were refused."""
    folder = fresh(base, command)
    first = opened.start(command.arguments, folder)
    time.sleep(dice.uniform(0, 0.3 * seconds) if dice.random() < 0.7 else 0)
    second = opened.start(command.arguments, folder)
    ends = [first.end(), second.end()]
    assert any(each.code == 0 for each in ends), f"neither ended well: {[e.told for e in ends]}"
    refused = [each for each in ends if each.code != 0]
    for each in refused:
        _check_refusal(each)
    if refused and len(wanted) > 1:  # the refused one may have been ahead with some of the files
        check_whole(contents(folder), wanted)
        again = opened.run(command.arguments, folder)
        assert again.code == 0, f"the rerun ended with {again.code}: {again.told[:300]}"
    check_same(contents(folder), wanted)
    return len(refused)


def _check_refusal(ended: Ended) -> None:
    assert ended.code == 2, f"ended with {ended.code}: {ended.told[-300:]!r}"
    assert ended.is_one_line, f"told {ended.told[:300]!r}"
    assert REFUSAL in ended.told, f"told {ended.told!r}"


def _take_over(
    opened: Nursery,
    command: Command,
    base: Path,
    dice: random.Random,
    wanted: dict[str, object],
    seconds: float,
) -> int:
    """The first is killed at its work; the second finds its lock and goes on."""
    folder = fresh(base, command)
    first = opened.start(command.arguments, folder)
    time.sleep(dice.uniform(0.2, 1) * seconds)
    first.send(signal.SIGKILL)
    first.end()
    second = opened.run(command.arguments, folder)
    assert second.code == 0, f"after a dead one it ended with {second.code}: {second.told[:300]}"
    check_same(contents(folder), wanted)
    return 0
