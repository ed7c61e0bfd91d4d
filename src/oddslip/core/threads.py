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
    """Feed every block to the tally, on threads, and return it.

    Tallies of counts take blocks in any order, and every thread has its own. Sums of floats are
    taken of groups of blocks and merged in row order: the same additions on any number of threads.
    The sums of the given tally must be empty and stay so; the returned tally holds them.
    """
    threads = available_threads(threads)
    leaves = _leaves(tally)
    sums, counts = (
        TallyGroup([leaf for leaf in leaves if hasattr(leaf, "blocks_apart") == are_sums])
        for are_sums in (True, False)
    )
    blocks = iter(blocks)
    groups = iter(lambda: list(islice(blocks, getattr(sums, "blocks_apart", 1))), [])
    parts = tallies_of_threads(counts, threads)
    idle: SimpleQueue[TallyGroup] = SimpleQueue()
    for part in parts:
        idle.put(part)

    def add(group: list[Panel]) -> tuple[TallyGroup, int]:
        group_sums, part = sums.empty_like(), idle.get()
        n_added = 0
        group.reverse()
        try:
            while group:
                panel = group.pop()  # frees its scores afterwards
                group_sums.add(panel)
                part.add(panel)
                n_added += panel.n_rows
        finally:
            idle.put(part)
        return group_sums, n_added

    total: TallyGroup | None = None  # the first sums themselves, so that they are not there twice
    n_read, ahead = 0, 1 if sums.tallies else 2
    with progress_bar(what, n_rows) as advance:
        for group_sums, n_added in map_threads(groups, add, threads=threads, ahead=ahead):
            if total is None:
                total = group_sums
            else:
                total.merge(group_sums)
            advance(n_added)
            n_read += n_added
            del group_sums
    check_all_rows(n_read, n_rows)
    join_threads(parts)
    summed, counted = iter((total or sums).tallies), iter(counts.tallies)
    return _with_leaves(
        tally,
        (next(summed if hasattr(leaf, "blocks_apart") else counted) for leaf in leaves),
    )


def tallies_of_threads(group: TallyGroup, threads: int) -> list[TallyGroup]:
    """The tallies of each thread: the given ones first, then empty or shared ones."""
    members = []
    for tally in group.tallies:
        parts = [tally]
        for at in range(1, threads):
            is_shared = at % getattr(tally, "threads_served", 1) > 0
            parts.append(parts[-1] if is_shared else tally.empty_like())
        members.append(parts)
    return [TallyGroup([parts[at] for parts in members]) for at in range(threads)]


def join_threads(groups: Sequence[TallyGroup]) -> None:
    """Merge the tallies of all threads into those of the first; shared ones once."""
    for first, *others in zip(*(group.tallies for group in groups), strict=True):
        for other in {id(each): each for each in others}.values():
            if other is not first:
                first.merge(other)


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
