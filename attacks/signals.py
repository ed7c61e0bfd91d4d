"""SIGINT and SIGTERM at random points of every command, under the load that there is.

A command must end within two seconds, with one line and its exit code; files under their final
names are whole, nothing lies beside them but what a rerun takes up, finished work is not done
again, and the rerun ends as if nothing had happened. Two seconds are those of a machine with time:
after each signal the campaign measures how much longer a little work takes here, and allows for it.
"""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

from attacks.children import Nursery, nursery
from attacks.commands import LARGE, SMALL, Command, Size, commands, contents, make_inputs
from attacks.kills import check_same, check_whole, fresh, scratch, undisturbed
from attacks.outcome import Outcome

TITLE = "SIGINT and SIGTERM at random points of every command"
SLICE = 3
FULL = 54
LIMIT_S = 2.0
LISTENING_S = 0.1
WORK_S = 0.1  # of the processor, which a command needs to end
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
LINES = {signal.SIGINT: "oddslip: interrupted\n", signal.SIGTERM: "oddslip: terminated\n"}


def attack(count: int, seed: int, size: Size | None = None) -> Outcome:
    """Interrupt ``count`` commands. Inputs are large where there is time: steps take longer."""
    size = size or (LARGE if count >= FULL else SMALL)
    dice = random.Random(seed)
    failures: list[str] = []
    longest, stopped = 0.0, 0
    with scratch() as made, nursery() as opened:
        base = Path(made)
        inputs = make_inputs(base / "inputs", size)
        table = commands(inputs, size) + reading_commands(inputs)
        dice.shuffle(table)
        whole: dict[str, tuple[dict[str, object], float]] = {}
        for number in range(count):
            command = table[number % len(table)]
            sent = dice.choice(list(CODES))
            try:
                if command.name not in whole:
                    whole[command.name] = undisturbed(opened, command, base)
                waited = _interrupt(opened, command, base, dice, sent, *whole[command.name])
            except AssertionError as error:
                failures.append(f"try {number}, {sent.name} to {command.name}: {error}")
                continue
            stopped += waited is not None
            longest = max(longest, waited or 0.0)
    notes = f"{stopped} stopped before their end, the slowest after {longest:.1f} s"
    return Outcome(count, tuple(failures), notes)


def reading_commands(inputs: Path) -> list[Command]:
    """Commands that only print."""
    scores, labels = str(inputs / "scores.npy"), str(inputs / "labels.npz")
    return [
        Command("evaluate", ("evaluate", scores, labels, "-k", "5", "--auc")),
        Command("evaluate, ties", ("evaluate", scores, labels, "-k", "5", "--ties", "expected")),
        Command("rank to the screen", ("rank", scores, "-k", "5", "--json")),
    ]


def _interrupt(
    opened: Nursery,
    command: Command,
    base: Path,
    dice: random.Random,
    sent: signal.Signals,
    wanted: dict[str, object],
    seconds: float,
) -> float | None:
    """Seconds from the signal to the end, less what load took; None if the command was done."""
    folder = fresh(base, command, old=dice.random() < 0.5)
    child = opened.start(command.arguments, folder)
    # Not before the command listens: until then a signal ends the interpreter in its own way.
    time.sleep(LISTENING_S + dice.uniform(0, seconds))
    began = time.monotonic()
    child.send(sent)
    ended = child.end()
    waited = time.monotonic() - began
    if ended.code != 0:
        assert ended.code == CODES[sent], f"ended with {ended.code}: {ended.told[-300:]}"
        assert ended.told == LINES[sent], f"told {ended.told[:300]!r}"
    waited -= _lateness()
    assert waited <= LIMIT_S, f"took {waited:.1f} s to stop"
    left, finished = contents(folder), _finished_work(folder)
    hidden = [name for name in left if _is_unfinished(name)]
    assert not hidden, f"left {hidden} behind"
    check_whole(left, wanted)
    again = opened.run(command.arguments, folder)
    assert again.code == 0, f"the rerun ended with {again.code}: {again.told[:300]}"
    check_same(contents(folder), wanted)
    redone = sorted(finished.items() - _finished_work(folder).items())
    assert not redone, f"the rerun did {[path.name for path, _ in redone]} again"
    return None if ended.code == 0 else waited


def _finished_work(folder: Path) -> dict[Path, int]:
    """Trained groups and measured cells, and when each was written."""
    written = {path: path.stat().st_mtime_ns for path in folder.glob("kept/group-*")}
    for path in folder.glob("cells/*.jsonl"):
        for line in path.read_bytes().splitlines():
            written[Path(json.loads(line)["key"])] = hash(line)
    return written


def _is_unfinished(name: str) -> bool:
    """Locks and temporary files; the blocks of a scoring and their journal are work done."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and not last.endswith((".unfinished", ".journal"))


def _lateness() -> float:
    """How much longer than on a machine of its own a tenth of a second of work takes here."""
    began, worked = time.monotonic(), time.thread_time()
    while time.thread_time() - worked < WORK_S:
        pass
    return time.monotonic() - began - WORK_S
