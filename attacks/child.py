"""Numbered tries, run one after another in a child process that may die or hang of any of them.

A campaign's module has ``prepare(seed, folder)``, which returns a function of a try's number. That
function returns one word for what happened ("refused", "valid", ...) and raises if something broke:
any exception is a finding. The child notes the number of each try in shared memory before it
begins; if it dies or stands still, that number is a finding, and a new child goes on after it.

``python -m attacks.child attacks.repairs 0 1234`` repeats one try, number 1234 of seed 0, with its
traceback.
"""

from __future__ import annotations

import collections
import json
import mmap
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from attacks.outcome import Outcome

Attempt = Callable[[int], str]
ROOT = Path(__file__).parents[1]
ENOUGH = 20  # findings, or deaths, after which going on tells nothing new
MEMORY_BYTES = (
    12 << 30
)  # of addresses; a file that claims more is a MemoryError, not a dead machine
_NUMBER = struct.Struct("<q")


def try_in_child(module: str, count: int, seed: int, *, seconds: float = 20.0) -> Outcome:
    """What became of the first ``count`` tries of a campaign; ``seconds`` of one try are a hang."""
    words: collections.Counter[str] = collections.Counter()
    failures: list[str] = []
    peak, cpu, following = 0, 0.0, 0
    with scratch() as folder:
        while following < count and len(failures) < ENOUGH:
            report = _run_child(module, seed, following, count, Path(folder), seconds)
            words.update(report.words)
            failures += report.failures
            peak, cpu = max(peak, report.peak), cpu + report.cpu
            following = report.following
    told = [f"{n:,} {word}" for word, n in sorted(words.items())]
    if peak:
        told.append(f"{cpu:.0f} s of CPU, peak {peak / 2**20:.0f} MB")
    return Outcome(following, tuple(failures), ", ".join(told))


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for files that live shortly, in memory where the system has such a place."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="oddslip-attack-", dir=place)


class _Report:
    """What one child told before it ended."""

    def __init__(self, following: int) -> None:
        self.words: dict[str, int] = {}
        self.failures: list[str] = []
        self.following, self.peak, self.cpu = following, 0, 0.0


def _run_child(
    module: str, seed: int, first: int, count: int, folder: Path, seconds: float
) -> _Report:
    report, progress = _Report(first), folder / "progress"
    progress.write_bytes(_NUMBER.pack(-1))
    command = [sys.executable, "-m", "attacks.child", module, str(seed), str(first), str(count)]
    with (folder / "stderr").open("wb") as said:
        child = subprocess.Popen(
            [*command, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment(),
        )
    assert child.stdout is not None
    try:
        ended = _listen(child, progress, report, seconds)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    if ended is None:
        report.following = count
        return report
    number = _NUMBER.unpack(progress.read_bytes())[0]
    if number < 0:
        last = (folder / "stderr").read_text(errors="replace").strip().splitlines()[-1:]
        report.failures += [f"{module} cannot be prepared: {ended} {''.join(last)}"] * ENOUGH
        return report
    report.failures.append(f"{module} seed {seed} try {number}: {ended}")
    report.following = number + 1
    return report


def _listen(child: Any, progress: Path, report: _Report, seconds: float) -> str | None:
    """Take what a child tells until it ends; None if it went through, else what befell it."""
    at, since, pieces = b"", time.monotonic(), b""
    patience = max(seconds, 120.0)  # until the first try: imports, and what is attacked is made
    while True:
        ready, _, _ = select.select([child.stdout], [], [], 0.5)
        if ready:
            piece = os.read(child.stdout.fileno(), 1 << 16)
            if not piece:
                code = child.wait()
                return f"signal {-code}" if code < 0 else f"exit code {code}"
            *lines, pieces = (pieces + piece).split(b"\n")
            for line in lines:
                told = json.loads(line)
                if "words" in told:
                    report.words = told["words"]
                    report.peak, report.cpu = told["peak"], told["cpu"]
                    return None
                report.failures.append(told["failure"])
        now = progress.read_bytes()
        if now != at:
            at, since = now, time.monotonic()
            patience = patience if now == _NUMBER.pack(-1) else seconds
        elif time.monotonic() - since > patience:
            return f"hung for {patience:.0f} s"


def environment() -> dict[str, str]:
    """Of a child: this checkout and its sources can be imported, and one thread is enough."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",
    }


# --- In the child ---------------------------------------------------------------------------------


def _serve(module: str, seed: int, first: int, count: int, folder: Path) -> None:
    # Libraries write where they like; findings go through a copy of the true output.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _bound_memory()
    attempt: Attempt = import_module(module).prepare(seed, folder)
    words: collections.Counter[str] = collections.Counter()
    found = 0
    with (folder / "progress").open("r+b") as file, mmap.mmap(file.fileno(), 8) as progress:
        for number in range(first, count):
            _NUMBER.pack_into(progress, 0, number)
            try:
                words[attempt(number)] += 1
            except Exception as error:
                words["broken"] += 1
                found += 1
                said = f"{type(error).__name__}: {str(error)[:300]!r}"
                failure = f"{module} seed {seed} try {number}: {said}"
                answers.write(json.dumps({"failure": failure}) + "\n")
            if found >= ENOUGH:
                break
    ended = {"words": words, "peak": _peak_memory(), "cpu": time.process_time()}
    answers.write(json.dumps(ended) + "\n")


def _bound_memory() -> None:
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        return  # the sanitizer takes 20 TB of addresses for its own
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _peak_memory() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def refused(call: Callable[[], Any]) -> bool:
    """Whether a call is refused on purpose, in one line; every other exception goes through."""
    from oddslip.errors import OddslipError

    try:
        call()
    except OddslipError as error:
        if "\n" in str(error) or not str(error):
            raise AssertionError(f"a refusal must be one line, got {str(error)!r}") from error
        return True
    return False


if __name__ == "__main__":
    name, seed_text, number_text, *rest = sys.argv[1:]
    if rest:
        _serve(name, int(seed_text), int(number_text), int(rest[0]), Path(rest[1]))
    else:
        with scratch() as made:
            print(import_module(name).prepare(int(seed_text), Path(made))(int(number_text)))
