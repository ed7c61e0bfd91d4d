"""Kill -9 at random points of every command that writes.

Afterwards every file under its final name is the old one or the whole new one, and the same command
started again ends with the files of a run that nothing disturbed: no more, no fewer, byte by byte.
"""

from __future__ import annotations

import signal
import time

from attacks.commands import SMALL, Size
from attacks.outcome import Outcome
from attacks.trials import Trial, run_trials

TITLE = "kill -9 at random points of writing commands, and the rerun"
SLICE = 4
FULL = 100


def attack(count: int, seed: int, size: Size = SMALL) -> Outcome:
    """Kill ``count`` commands, one after another."""
    names, struck = set(), 0

    def kill(trial: Trial) -> None:
        nonlocal struck
        names.add(trial.command.name)
        struck += _kill(trial)

    failures = run_trials(count, seed, size, kill)
    return Outcome(count, failures, f"{len(names)} commands, {struck} killed before their end")


def _kill(trial: Trial) -> bool:
    folder = trial.make_folder(old=trial.dice.random() < 0.5)
    child = trial.start(folder)
    time.sleep(trial.dice.uniform(0, trial.seconds))
    child.send(signal.SIGKILL)
    killed = child.end()
    assert killed.code in (-signal.SIGKILL, 0), f"ended with {killed.code}: {killed.told[:300]}"
    trial.check_whole(folder)
    trial.check_rerun(folder)
    return killed.code != 0
