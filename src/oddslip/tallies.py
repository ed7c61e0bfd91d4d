"""Tallies: everything that is computed over rows.

A tally takes panels one by one (`add`), joins with another (`merge`) and says what it found
(`result`). The outcome depends neither on how rows were cut into blocks nor on their order, so
the same code serves one array, a file larger than memory, and many threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
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
R = TypeVar("R")


def available_threads(threads: int | None = None) -> int:
    """Threads to use: as told, else the cores this process may run on."""
    if threads is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else (os.cpu_count() or 1)
        )
    if threads < 1:
        raise InvalidInput(f"threads must be at least 1, got threads={threads}.")
    return threads


def map_blocks(
    blocks: Iterable[Panel],
    function: Callable[[Panel], R],
    *,
    n_rows: int,
    threads: int | None = None,
    what: str = "rows",
) -> Iterator[tuple[int, R]]:
    """Yield (first row, ``function(block)``) in block order, computed on threads.

    Kernels release the GIL. The error of the earliest bad block is the one that is raised,
    whichever thread met one first.
    """
    threads = available_threads(threads)
    blocks = iter(blocks)
    start = list(islice(blocks, 2))
    if len(start) == 1:  # starting threads would cost more than one block does
        yield start[0].first_row, function(start[0])
        return
    with ThreadPoolExecutor(threads) as pool, progress_bar(what, n_rows) as advance:
        pending: deque[tuple[Panel, Future[R]]] = deque()

        def finish() -> tuple[int, R]:
            panel, future = pending.popleft()
            done = panel.first_row, future.result()
            advance(panel.n_rows)
            return done

        try:
            for panel in chain(start, blocks):
                pending.append((panel, pool.submit(function, panel)))
                if len(pending) > 2 * threads:
                    yield finish()
            while pending:
                yield finish()
        finally:
            for _, future in pending:
                future.cancel()


def run_tally(
    blocks: Iterable[Panel],
    tally: T,
    *,
    n_rows: int,
    threads: int | None = None,
    what: str = "rows",
) -> T:
    """Feed every block to the tally, on threads, and return it."""
    threads = available_threads(threads)
    parts = [tally, *(tally.fresh() for _ in range(threads - 1))]
    idle: SimpleQueue[T] = SimpleQueue()
    for part in parts:
        idle.put(part)

    def add(panel: Panel) -> None:
        part = idle.get()
        try:
            part.add(panel)
        finally:
            idle.put(part)

    for _ in map_blocks(blocks, add, n_rows=n_rows, threads=threads, what=what):
        pass
    for part in parts[1:]:
        tally.merge(part)
    return tally
