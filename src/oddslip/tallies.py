"""Tallies: everything that is computed over rows.

A tally takes panels one by one (`add`), joins with another (`merge`) and says what it found
(`result`). The outcome depends neither on how rows were cut into blocks nor on their order, so
the same code serves one array, a file larger than memory, and many threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Protocol, Self, TypeVar

from oddslip.errors import InvalidInput
from oddslip.panels import Panel
from oddslip.progress import progress_bar


class Tally(Protocol):
    """What is computed over rows."""

    def fresh(self) -> Self:
        """An empty tally of the same kind, for another thread or machine."""
        ...

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        ...

    def merge(self, other: Self) -> None:
        """Take over what another tally of the same kind has seen. Call it on disjoint rows."""
        ...

    def result(self) -> Any:
        """What was found."""
        ...


T = TypeVar("T", bound=Tally)


def available_threads(threads: int | None = None) -> int:
    """Threads to use: as told, else the cores this process may run on."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (
            os.cpu_count() or 1
        )
    if threads < 1:
        raise InvalidInput(f"threads must be at least 1, got threads={threads}.")
    return threads


def run_tally(
    blocks: Iterable[Panel], tally: T, *, n_rows: int, threads: int | None = None, what: str = "rows"
) -> T:
    """Feed every block to the tally, on threads, and return it. Kernels release the GIL.

    The error of the earliest bad block is the one that is raised, whichever thread met one first.
    """
    threads = available_threads(threads)
    parts = [tally, *(tally.fresh() for _ in range(threads - 1))]
    idle: SimpleQueue[T] = SimpleQueue()
    for part in parts:
        idle.put(part)

    def work(panel: Panel) -> int:
        part = idle.get()
        try:
            part.add(panel)
        finally:
            idle.put(part)
        return panel.n_rows

    with ThreadPoolExecutor(threads) as pool, progress_bar(what, n_rows) as advance:
        pending: deque[Future[int]] = deque()
        try:
            for panel in blocks:
                pending.append(pool.submit(work, panel))
                if len(pending) > 2 * threads:
                    advance(pending.popleft().result())
            while pending:
                advance(pending.popleft().result())
        except BaseException:
            for future in pending:
                future.cancel()
            raise
    for part in parts[1:]:
        tally.merge(part)
    return tally
