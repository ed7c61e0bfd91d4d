"""SIGINT and SIGTERM at random points of every command, under the load that there is.

A command must end within two seconds, with one line and its exit code; files under their final
names are whole, nothing lies beside them but what a rerun takes up, finished work is not done
again, and the rerun ends as if nothing had happened. Two seconds are those of a machine with time:
after each signal the campaign measures how much longer a little work takes here, and allows for it.
"""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

from attacks.commands import LARGE, SMALL, Command, Size, contents
from attacks.outcome import Outcome
from attacks.trials import Trial, run_trials

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
    waits: list[float] = []

    def interrupt(trial: Trial) -> None:
        waits.extend(_interrupt(trial))

    failures = run_trials(count, seed, size, interrupt, more=reading_commands, shares=1)
    slowest = max(waits, default=0.0)
    notes = f"{len(waits)} stopped before their end, the slowest after {slowest:.1f} s"
    return Outcome(count, failures, notes)


def reading_commands(inputs: Path) -> list[Command]:
    """Commands that only print."""
    scores, labels = str(inputs / "scores.npy"), str(inputs / "labels.npz")
    return [
        Command("evaluate", ("evaluate", scores, labels, "-k", "5", "--auc")),
        Command("evaluate, ties", ("evaluate", scores, labels, "-k", "5", "--ties", "expected")),
        Command("rank to the screen", ("rank", scores, "-k", "5", "--json")),
    ]


def _interrupt(trial: Trial) -> list[float]:
    """Seconds from the signal to the end, less what load took; none if the command was done."""
    sent = trial.dice.choice(list(CODES))
    folder = trial.make_folder(old=trial.dice.random() < 0.5)
    child = trial.start(folder)
    # Not before the command listens: until then a signal ends the interpreter in its own way.
    time.sleep(LISTENING_S + trial.dice.uniform(0, trial.seconds))
    began = time.monotonic()
    child.send(sent)
    ended = child.end()
    waited = time.monotonic() - began
    if ended.code != 0:
        assert ended.code == CODES[sent], f"{sent.name}: ended {ended.code}: {ended.told[-300:]}"
        assert ended.told == LINES[sent], f"{sent.name}: told {ended.told[:300]!r}"
    waited -= _lateness()
    assert waited <= LIMIT_S, f"{sent.name}: took {waited:.1f} s to stop"
    finished = _finished_work(folder)
    hidden = [name for name in contents(folder) if _is_unfinished(name)]
    assert not hidden, f"{sent.name}: left {hidden} behind"
    trial.check_whole(folder)
    trial.check_rerun(folder)
    redone = sorted(finished.items() - _finished_work(folder).items())
    assert not redone, f"the rerun did {[path.name for path, _ in redone]} again"
    return [] if ended.code == 0 else [waited]


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
