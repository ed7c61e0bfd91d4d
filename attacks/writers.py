"""Two processes that write one output, one checkpoint or one study at the same time.

One wins whole; the other ends with one line and exit code 2, or finds its turn after the first and
wins as well. What stays is what one of them alone would have written. A lock of a dead process is
taken over.
"""

from __future__ import annotations

import signal
import time

from attacks.children import Ended
from attacks.commands import SMALL, Size
from attacks.outcome import Outcome
from attacks.trials import Trial, run_trials

TITLE = "two processes writing one output, checkpoint or study"
SLICE = 3
FULL = 40
REFUSAL = "is being written by another process"


def attack(count: int, seed: int, size: Size = SMALL) -> Outcome:
    """Start ``count`` pairs of the same command, the second a moment after the first."""
    refused = 0

    def start_two(trial: Trial) -> None:
        nonlocal refused
        if trial.number % 4 == 3:
            _take_over(trial)
        else:
            refused += _race(trial)

    failures = run_trials(count, seed, size, start_two)
    return Outcome(count, failures, f"{refused} refused in one line, the others took turns")


def _race(trial: Trial) -> int:
    """Both at once: how many were refused."""
    folder, dice = trial.make_folder(), trial.dice
    first = trial.start(folder)
    time.sleep(dice.uniform(0, 0.3 * trial.seconds) if dice.random() < 0.7 else 0)
    second = trial.start(folder)
    ends = [first.end(), second.end()]
    assert any(each.code == 0 for each in ends), f"neither ended well: {[e.told for e in ends]}"
    refused = [each for each in ends if each.code != 0]
    for each in refused:
        _check_refusal(each)
    if refused and len(trial.wanted) > 1:  # the refused one may have been ahead with some files
        trial.check_whole(folder)
        trial.check_rerun(folder)
    trial.check_same(folder)
    return len(refused)


def _check_refusal(ended: Ended) -> None:
    assert ended.code == 2, f"ended with {ended.code}: {ended.told[-300:]!r}"
    assert ended.is_one_line, f"told {ended.told[:300]!r}"
    assert REFUSAL in ended.told, f"told {ended.told!r}"


def _take_over(trial: Trial) -> None:
    """The first is killed at its work; the second finds its lock and goes on."""
    folder = trial.make_folder()
    first = trial.start(folder)
    time.sleep(trial.dice.uniform(0.2, 1) * trial.seconds)
    first.send(signal.SIGKILL)
    first.end()
    trial.check_rerun(folder)
