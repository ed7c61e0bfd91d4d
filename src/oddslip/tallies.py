"""Tallies: everything that is computed over rows.

A tally takes panels one by one (`add`), joins with another (`merge`) and says what it found
(`result`). The outcome depends neither on how rows were cut into blocks nor on their order, so
the same code serves one array, a file larger than memory, and many threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from queue import SimpleQueue
from typing import Any, Protocol, Self, TypeVar

from oddslip.arguments import check_whole
from oddslip.errors import InvalidInput
from oddslip.panels import Panel
from oddslip.progress import progress_bar

MOST_THREADS = 4096


class Tally(Protocol):
    """What is computed over rows.

    A tally of counts may take its blocks in any order. One that adds up floats has an attribute
    ``blocks_apart``: so many blocks are summed apart, and these sums are joined in row order,
    since rounding depends on the order. So threads never change a bit.
    """

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


Item = TypeVar("Item")
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
    return check_whole("threads", threads, 1, MOST_THREADS)


def map_threads(
    items: Iterable[Item], function: Callable[[Item], R], *, threads: int | None = None
) -> Iterator[R]:
    """Yield ``function(item)`` in the order of the items, computed on threads.

    One thread is the caller's own, and so it is for a single item: starting threads would cost
    more. The error of the earliest bad item is the one that is raised, whichever thread met one
    first.
    """
    threads = available_threads(threads)
    items = iter(items)
    start = list(islice(items, 2))
    if threads == 1 or len(start) < 2:
        yield from map(function, chain(start, items))
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[R]] = deque()
        try:
            for item in chain(start, items):
                pending.append(pool.submit(function, item))
                if len(pending) > 2 * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def check_all_rows(seen: int, n_rows: int) -> None:
    """Refuse rows that were promised and did not come, or came and were not promised."""
    if seen != n_rows:
        raise InvalidInput(
            f"a source must give the {n_rows} rows it promised, got {seen}. "
            "Was its file changed meanwhile?"
        )


def map_blocks(
    blocks: Iterable[Panel],
    function: Callable[[Panel], R],
    *,
    n_rows: int,
    threads: int | None = None,
    what: str = "rows",
) -> Iterator[tuple[int, R]]:
    """Yield (first row, ``function(block)``) in block order, computed on threads.

    Kernels release the GIL. See `map_threads`. Blocks must be ``n_rows`` rows without a gap:
    whoever gathers them relies on it, and would show memory that nobody wrote.
    """

    def done(panel: Panel) -> tuple[int, int, R]:
        return panel.first_row, panel.n_rows, function(panel)

    with progress_bar(what, n_rows) as advance:
        start, seen = 0, 0
        for first_row, n_done, outcome in map_threads(blocks, done, threads=threads):
            start = start if seen else first_row
            if first_row != start + seen:
                raise InvalidInput(f"row {start + seen} must come next, got row {first_row}.")
            advance(n_done)
            seen += n_done
            yield first_row, outcome
        check_all_rows(seen, n_rows)


class Together:
    """Several tallies of one pass: each takes every block, and keeps what it found to itself.

    Parameters
    ----------
    parts : sequence of Tally

    Examples
    --------
    >>> Together([]).result()
    []
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = tuple(parts)

    def fresh(self) -> Self:
        """Empty tallies of the same kinds."""
        return type(self)([part.fresh() for part in self.parts])

    def add(self, panel: Panel) -> None:
        """Give one block of rows to each."""
        for part in self.parts:
            part.add(panel)

    def merge(self, other: Self) -> None:
        """Take over what the other's tallies have seen, each from its like."""
        for part, another in zip(self.parts, other.parts, strict=True):
            part.merge(another)

    def result(self) -> list[Any]:
        """What each found."""
        return [part.result() for part in self.parts]


class Gather:
    """What a function makes of every block, in row order."""

    def __init__(self, function: Callable[[Panel], Any]) -> None:
        self.function = function
        self._outcomes: list[tuple[int, Any]] = []

    def fresh(self) -> Self:
        """Nothing gathered, by the same function."""
        return type(self)(self.function)

    def add(self, panel: Panel) -> None:
        """Apply the function to one block."""
        self._outcomes.append((panel.first_row, self.function(panel)))

    def merge(self, other: Self) -> None:
        """Take over what another gathered."""
        self._outcomes += other._outcomes

    def result(self) -> list[tuple[int, Any]]:
        """(first row, outcome) of every block."""
        return sorted(self._outcomes, key=lambda outcome: outcome[0])


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
    if hasattr(tally, "blocks_apart"):
        loose = Together([])
        return _run_in_order(blocks, tally, loose, n_rows=n_rows, threads=threads, what=what)
    if isinstance(tally, Together) and any(hasattr(each, "blocks_apart") for each in tally.parts):
        return _run_mixed(blocks, tally, n_rows=n_rows, threads=threads, what=what)
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


def _run_mixed(blocks: Iterable[Panel], tally: T, **options: Any) -> T:
    """Tallies of counts take blocks as they come; those whose sums round are joined in order."""
    assert isinstance(tally, Together)
    ordered = Together([each for each in tally.parts if hasattr(each, "blocks_apart")])
    # One grouping of the blocks serves them all.
    ordered.blocks_apart = max(each.blocks_apart for each in ordered.parts)  # type: ignore[attr-defined]
    loose = Together([each for each in tally.parts if not hasattr(each, "blocks_apart")])
    done = iter(_run_in_order(blocks, ordered, loose, **options).parts)
    parts = [next(done) if hasattr(each, "blocks_apart") else each for each in tally.parts]
    return type(tally)(parts)


def _run_in_order(
    blocks: Iterable[Panel], tally: T, loose: Together, *, n_rows: int, threads: int, what: str
) -> T:
    """Feed every block to a tally whose sums round: the same additions on any number of threads.

    The tally that is given is empty, and stays so; the one returned holds the sums. ``loose`` are
    tallies that take any block at any time, and hold what they found themselves.
    """
    blocks = iter(blocks)
    groups = iter(lambda: list(islice(blocks, tally.blocks_apart)), [])  # type: ignore[attr-defined]
    others = [loose, *(loose.fresh() for _ in range(threads - 1))]
    idle: SimpleQueue[Together] = SimpleQueue()
    for other in others:
        idle.put(other)

    def add(group: list[Panel]) -> tuple[T, int]:
        part, other = tally.fresh(), idle.get()
        try:
            for panel in group:
                part.add(panel)
                other.add(panel)
        finally:
            idle.put(other)
        return part, sum(panel.n_rows for panel in group)

    total: T | None = None  # the first part as it is: it need not lie in memory twice
    seen = 0
    with progress_bar(what, n_rows) as advance:
        for part, n_done in map_threads(groups, add, threads=threads):
            if total is None:
                total = part
            else:
                total.merge(part)
            advance(n_done)
            seen += n_done
            del part
    check_all_rows(seen, n_rows)
    for other in others[1:]:
        loose.merge(other)
    return tally if total is None else total
