"""CPU seconds and peaks of memory of this process and all below it: the JVM, executors, workers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.timing import Times

TICKS = os.sysconf("SC_CLK_TCK")
# What a process is by what its command line holds; the first that fits.
ROLES = {
    "CoarseGrainedExecutorBackend": "executor",
    "org.apache.spark.deploy.master": "master",
    "org.apache.spark.deploy.worker": "master",
    "SparkSubmit": "driver's JVM",
    "pyspark.daemon": "Python worker",
    "pyspark/daemon": "Python worker",
}


class Cost(NamedTuple):
    """What a call took, the seconds by role, and the largest process of each role."""

    times: Times
    seconds: dict[str, float]
    peak_bytes: dict[str, int]


class Tree:
    """Looks at all processes twice a second, for some end without notice."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[int, str], float] = {}
        self.peak_bytes: dict[str, int] = {}
        self._roles: dict[tuple[int, str], str] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Tree:
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watching.join()

    def measure(self, call: Callable[[], Any]) -> tuple[Any, Cost]:
        """What a call gives and what it cost, everywhere below this process."""
        before, wall = self._by_role(), time.perf_counter()
        self.peak_bytes.clear()
        outcome = call()
        wall = time.perf_counter() - wall
        after = self._by_role()
        spent = {role: after[role] - before.get(role, 0.0) for role in after}
        # The kernel counts in hundredths of a second.
        return outcome, Cost(
            Times(max(sum(spent.values()), 0.01), wall), spent, dict(self.peak_bytes)
        )

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            self._look()

    def _by_role(self) -> dict[str, float]:
        self._look()
        found: dict[str, float] = {}
        with self._lock:
            for process, seconds in self.seconds.items():
                role = self._roles[process]
                found[role] = found.get(role, 0.0) + seconds
        return found

    def _look(self) -> None:
        children: dict[int, list[int]] = {}
        fields: dict[int, list[str]] = {}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            fields[pid] = stat
            children.setdefault(int(stat[1]), []).append(pid)
        todo = [os.getpid()]
        with self._lock:
            while todo:
                pid = todo.pop()
                todo += children.get(pid, [])
                if pid not in fields:
                    continue
                process = pid, fields[pid][19]  # when it started, since numbers are used again
                role = self._role(process)
                self.seconds[process] = sum(map(int, fields[pid][11:13])) / TICKS
                held = int(fields[pid][21]) * os.sysconf("SC_PAGE_SIZE")
                self.peak_bytes[role] = max(self.peak_bytes.get(role, 0), held)

    def _role(self, process: tuple[int, str]) -> str:
        if process not in self._roles or self._roles[process] == "other":
            try:
                command = Path(f"/proc/{process[0]}/cmdline").read_text()
            except OSError:
                command = ""
            here = process[0] == os.getpid()
            fits = (role for part, role in ROLES.items() if part in command)
            self._roles[process] = "driver" if here else next(fits, "other")
        return self._roles[process]
