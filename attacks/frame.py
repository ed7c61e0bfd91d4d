"""Campaigns side by side: each in a process of its own, two at a time, within a bound."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module

from attacks import module_of
from attacks.child import ROOT, environment
from attacks.outcome import Outcome

WORKERS = 2


@dataclass(frozen=True)
class Run:
    """A campaign that is to be run."""

    name: str
    title: str
    count: int
    seed: int


@dataclass(frozen=True)
class Result:
    """A campaign that was run, and the seconds it took by the clock."""

    run: Run
    outcome: Outcome
    seconds: float


RUNNING: list[subprocess.Popen[bytes]] = []


def end_all() -> None:
    """End every campaign that was begun here, with its children."""
    for process in RUNNING:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def run_campaigns(runs: list[Run], *, minutes: float, workers: int = WORKERS) -> list[Result]:
    """Results in the order of the runs. What is not done in time is ended, and a failure."""
    deadline = time.monotonic() + 60 * minutes
    with ThreadPoolExecutor(workers) as pool:
        # The largest first, so that none begins when the others are done.
        order = sorted(runs, key=lambda run: -run.count)
        started = {run.name: pool.submit(_run_one, run, deadline) for run in order}
        return [started[run.name].result() for run in runs]


def _run_one(run: Run, deadline: float) -> Result:
    begun = time.monotonic()
    if begun >= deadline:
        return Result(run, Outcome(0, ("not begun within the bound",)), 0.0)
    command = [sys.executable, "-m", "attacks.frame", run.name, str(run.count), str(run.seed)]
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=told, start_new_session=True
        )
        RUNNING.append(process)
        try:
            code = process.wait(timeout=deadline - begun)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            outcome = Outcome(0, ("not done within the bound",))
        else:
            told.seek(0)
            outcome = _read(told.read(), code)
    result = Result(run, outcome, time.monotonic() - begun)
    print(
        f"{run.name}: {outcome.tried:,} tried, {len(outcome.failures)} failures, "
        f"{result.seconds:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    for failure in outcome.failures:
        print(f"  {failure}", file=sys.stderr, flush=True)
    return result


def _read(text: str, code: int) -> Outcome:
    """What a campaign's process wrote last."""
    lines = text.strip().splitlines()
    if code or not lines:
        return Outcome(0, (f"the campaign itself ended with code {code}",))
    fields = json.loads(lines[-1])
    return Outcome(fields["tried"], tuple(fields["failures"]), fields["notes"])


if __name__ == "__main__":
    outcome = import_module(module_of(sys.argv[1])).attack(int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps(asdict(outcome)))
