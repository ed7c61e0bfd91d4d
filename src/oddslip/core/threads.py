"""Tallies and functions over blocks of rows, on threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import chain, islice
from queue import SimpleQueue
from typing import Any, TypeVar

from oddslip.core.arguments import check_whole
from oddslip.core.panel import Panel
from oddslip.core.tally import Tally, TallyGroup
from oddslip.errors import InvalidInput
from oddslip.io.progress import progress_bar

MAX_THREADS = 4096

Item = TypeVar("Item")
T = TypeVar("T", bound=Tally)
R = TypeVar("R")


def available_threads(threads: int | None = None) -> int:
    """Threads to use: as given, or the cores this process may run on."""
    if threads is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else (os.cpu_count() or 1)
        )
    return check_whole("threads", threads, 1, MAX_THREADS)


def map_threads(
    items: Iterable[Item],
    function: Callable[[Item], R],
    *,
    threads: int | None = None,
    ahead: int = 2,
) -> Iterator[R]:
    """Yield ``function(item)`` in the order of the items, computed on threads.

    At most ``ahead`` outcomes per thread wait to be taken. With one thread or one item nothing is
    started: the caller's thread does the work. The error of the earliest bad item is raised,
    whichever thread failed first.
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
                if len(pending) > ahead * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def release_memory() -> None:
    """Return free memory to the system, where the C library can.

    It keeps what threads have freed: after a pass over many labels as much as is in use.
    """
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Any:
    """`malloc_trim` of glibc. Other C libraries have none and return memory by themselves."""
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


def check_all_rows(n_read: int, n_rows: int) -> None:
    """Reject a source that gave another number of rows than it has."""
    if n_read != n_rows:
        raise InvalidInput(
            f"a source must give the {n_rows} rows it promised, got {n_read}. "
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

    Kernels release the GIL. See `map_threads`. Blocks must hold ``n_rows`` rows without a gap:
    callers fill uninitialized arrays with them.
    """

    def apply(panel: Panel) -> tuple[int, int, R]:
        return panel.first_row, panel.n_rows, function(panel)

    with progress_bar(what, n_rows) as advance:
        start, n_read = 0, 0
        for first_row, n_block, outcome in map_threads(blocks, apply, threads=threads):
            start = start if n_read else first_row
            if first_row != start + n_read:
                raise InvalidInput(f"row {start + n_read} must come next, got row {first_row}.")
            advance(n_block)
            n_read += n_block
            yield first_row, outcome
        check_all_rows(n_read, n_rows)


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
        if isinstance(tally, TallyGroup):
            return _run_mixed(blocks, tally, n_rows=n_rows, threads=threads, what=what)
        counts = TallyGroup([])
        return _run_in_order(blocks, tally, counts, n_rows=n_rows, threads=threads, what=what)
    parts = tallies_of_threads(tally, threads)
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
    join_threads(parts)
    return tally


def tallies_of_threads(tally: T, threads: int) -> list[T]:
    """The tally of each thread: the given one first, then empty or shared ones."""
    if isinstance(tally, TallyGroup):
        members = [tallies_of_threads(member, threads) for member in tally.tallies]
        return [tally, *(type(tally)([parts[at] for parts in members]) for at in range(1, threads))]
    parts = [tally]
    for at in range(1, threads):
        is_shared = at % getattr(tally, "threads_served", 1) > 0
        parts.append(parts[-1] if is_shared else tally.empty_like())
    return parts


def join_threads(parts: Sequence[Any]) -> None:
    """Merge the tallies of all threads into the first; shared ones once."""
    if isinstance(parts[0], TallyGroup):
        for members in zip(*(part.tallies for part in parts), strict=True):
            join_threads(members)
        return
    for other in {id(part): part for part in parts[1:]}.values():
        if other is not parts[0]:
            parts[0].merge(other)


def _run_mixed(blocks: Iterable[Panel], tally: T, **options: Any) -> T:
    """Tallies of counts take blocks in any order; sums of floats are merged in row order."""
    leaves = _leaves(tally)
    are_sums = [hasattr(each, "blocks_apart") for each in leaves]
    sums, counts = (
        TallyGroup([each for each, is_sum in zip(leaves, are_sums, strict=True) if is_sum == kind])
        for kind in (True, False)
    )
    sum_leaves = iter(_run_in_order(blocks, sums, counts, **options).tallies)
    count_leaves = iter(counts.tallies)
    return _with_leaves(
        tally, (next(sum_leaves if is_sum else count_leaves) for is_sum in are_sums)
    )


def _leaves(tally: Any) -> list[Any]:
    """The tallies of a group and of all groups in it."""
    if not isinstance(tally, TallyGroup):
        return [tally]
    return [leaf for each in tally.tallies for leaf in _leaves(each)]


def _with_leaves(tally: T, leaves: Iterator[Any]) -> T:
    """A group of the same structure, with other leaves."""
    if not isinstance(tally, TallyGroup):
        leaf: T = next(leaves)
        return leaf
    return type(tally)([_with_leaves(each, leaves) for each in tally.tallies])


def _run_in_order(
    blocks: Iterable[Panel], tally: T, counts: TallyGroup, *, n_rows: int, threads: int, what: str
) -> T:
    """Feed every block to a tally of float sums: the same additions on any number of threads.

    The given tally must be empty and stays so; the returned one holds the sums. The tallies of
    ``counts`` take blocks in any order and keep their own state.
    """
    blocks = iter(blocks)
    groups = iter(lambda: list(islice(blocks, tally.blocks_apart)), [])  # type: ignore[attr-defined]
    others = tallies_of_threads(counts, threads)
    idle: SimpleQueue[TallyGroup] = SimpleQueue()
    for other in others:
        idle.put(other)

    def add(group: list[Panel]) -> tuple[T, int]:
        part, other = tally.empty_like(), idle.get()
        n_added = 0
        group.reverse()
        try:
            while group:
                panel = group.pop()  # frees its scores afterwards
                part.add(panel)
                other.add(panel)
                n_added += panel.n_rows
        finally:
            idle.put(other)
        return part, n_added

    total: T | None = None  # the first part itself, so that it is not in memory twice
    n_read = 0
    with progress_bar(what, n_rows) as advance:
        for part, n_added in map_threads(groups, add, threads=threads, ahead=1):
            if total is None:
                total = part
            else:
                total.merge(part)
            advance(n_added)
            n_read += n_added
            del part
    check_all_rows(n_read, n_rows)
    join_threads(others)
    return tally if total is None else total
