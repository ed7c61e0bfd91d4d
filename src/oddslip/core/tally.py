"""Tallies: everything that is computed over rows.

A tally takes panels one by one (`add`), joins with another (`merge`) and says what it found
(`result`). The outcome depends neither on how rows were cut into blocks nor on their order, so
the same code serves one array, a file larger than memory, many threads, and many machines.

To travel, a tally says what a fresh one is made of (`spec`) and what it has seen (`state`): plain
arrays, each with how it joins another of its name. So states are merged, and cut into pieces that
are merged apart, by who knows nothing of the tally they belong to (`merge_states`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import chain, islice
from queue import SimpleQueue
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from oddslip.core.arguments import check_whole
from oddslip.core.panel import Panel
from oddslip.errors import InvalidInput
from oddslip.io.progress import progress_bar

MAX_THREADS = 4096

How = Literal["add", "min", "max", "append"]
# What a tally has seen: arrays by name, each with how it joins another tally's of that name.
State = dict[str, tuple[NDArray[Any], How]]


class Tally(Protocol):
    """What is computed over rows.

    A tally of counts may take its blocks in any order. One that adds up floats has an attribute
    ``blocks_apart``: so many blocks are summed apart, and these sums are joined in row order,
    since rounding depends on the order. So threads never change a bit.

    A tally that is large may have an attribute ``threads_served``: so many threads may call its
    `add` at a time, and share it.
    """

    def empty_like(self) -> Self:
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

    def spec(self) -> dict[str, Any]:
        """The arguments that make a fresh one elsewhere: numbers, text, arrays, our classes."""
        ...

    def state(self) -> State:
        """What was seen, as plain arrays. They may be the tally's own: use it no more."""
        ...

    def restore(self, state: State) -> None:
        """Take over a state, in place of what was seen. The arrays may be kept."""
        ...


class MergeableTally:
    """A tally whose state is attributes: ``JOINED`` says how each joins another's.

    Arrays and numbers are added, or the lesser or larger kept; a list of arrays is appended to.
    """

    JOINED: ClassVar[Mapping[str, How]] = {}

    def merge(self, other: Self) -> None:
        """Take over what another tally has seen."""
        for name, how in self.JOINED.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, np.ndarray):
                _UFUNC[how](mine, theirs, out=mine)
            else:
                setattr(self, name, mine + theirs)

    def state(self) -> State:
        """The attributes, as arrays."""
        state: State = {}
        for name, how in self.JOINED.items():
            value = getattr(self, name)
            if how == "append":
                if value:
                    state[name] = np.concatenate(value), how
            else:
                state[name] = np.asarray(value), how
        return state

    def restore(self, state: State) -> None:
        """Take over the attributes."""
        for name, how in self.JOINED.items():
            if how == "append":
                setattr(self, name, [state[name][0]] if name in state else [])
                continue
            array = owned(state[name][0])
            setattr(self, name, array if array.ndim else array.item())


def owned(array: NDArray[Any]) -> NDArray[Any]:
    """An array that may be written to: itself, or a copy of one that came over a wire."""
    return np.require(array, requirements="W")


_UFUNC: dict[How, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum}


def merge_states(states: Iterable[State]) -> State:
    """One state of several tallies of a kind, or of the same piece of each.

    Examples
    --------
    >>> merge_states([{"n": (np.array([1, 2]), "add")}, {"n": (np.array([3, 4]), "add")}])
    {'n': (array([4, 6]), 'add')}
    """
    gathered: dict[str, list[NDArray[Any]]] = {}
    joins: dict[str, How] = {}
    for state in states:
        for name, (array, how) in state.items():
            held = gathered.setdefault(name, [])
            if how == "append" or not held:
                held.append(array)
            else:  # one at a time: two states lie in memory, never all of them
                held[0] = np.asarray(_UFUNC[how](held[0], array))
            joins[name] = how
    return {
        name: (held[0] if len(held) == 1 else np.concatenate(held), joins[name])
        for name, held in gathered.items()
    }


def nest_states(states: Iterable[State]) -> State:
    """The states of several tallies as one, numbered; `unnest_states` is the way back."""
    return {
        f"{at}.{name}": piece for at, state in enumerate(states) for name, piece in state.items()
    }


def unnest_states(state: State, count: int) -> list[State]:
    """The states that were nested."""
    states: list[State] = [{} for _ in range(count)]
    for name, piece in state.items():
        at, _, rest = name.partition(".")
        states[int(at)][rest] = piece
    return states


class TallyGroup:
    """Several tallies in one pass.

    Parameters
    ----------
    tallies : sequence of Tally

    Examples
    --------
    >>> TallyGroup([]).result()
    ()
    """

    def __init__(self, tallies: Sequence[Any]) -> None:
        self.tallies = tuple(tallies)
        apart = [each.blocks_apart for each in self.tallies if hasattr(each, "blocks_apart")]
        if apart:  # sums of floats: see `Tally`
            self.blocks_apart = max(apart)

    def empty_like(self) -> Self:
        """Empty tallies of the same kinds."""
        return type(self)([each.empty_like() for each in self.tallies])

    def add(self, panel: Panel) -> None:
        """Give one block to each."""
        for each in self.tallies:
            each.add(panel)

    def merge(self, other: Self) -> None:
        """Join each with its like."""
        for mine, theirs in zip(self.tallies, other.tallies, strict=True):
            mine.merge(theirs)

    def result(self) -> tuple[Any, ...]:
        """What each found."""
        return tuple(each.result() for each in self.tallies)

    def spec(self) -> dict[str, Any]:
        """The tallies; fresh ones are made of each."""
        return {"tallies": self.tallies}

    def state(self) -> State:
        """The states of all."""
        return nest_states(each.state() for each in self.tallies)

    def restore(self, state: State) -> None:
        """Give each its own."""
        parts = unnest_states(state, len(self.tallies))
        for each, part in zip(self.tallies, parts, strict=True):
            each.restore(part)


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
    return check_whole("threads", threads, 1, MAX_THREADS)


def map_threads(
    items: Iterable[Item],
    function: Callable[[Item], R],
    *,
    threads: int | None = None,
    ahead: int = 2,
) -> Iterator[R]:
    """Yield ``function(item)`` in the order of the items, computed on threads.

    No more than ``ahead`` outcomes for each thread wait to be taken.

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
                if len(pending) > ahead * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def release_memory() -> None:
    """Give memory that is free back to the system, where the C library can.

    It keeps what threads have freed, and what lies between pieces that are in use: after a pass
    over many labels as much again as is in use.
    """
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Any:
    """glibc's `malloc_trim`; other C libraries have none, and give back by themselves."""
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


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


class CollectTally:
    """What a function makes of every block, in row order."""

    def __init__(self, function: Callable[[Panel], Any]) -> None:
        self.function = function
        self._outcomes: list[tuple[int, Any]] = []

    def empty_like(self) -> Self:
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
        if isinstance(tally, TallyGroup):
            return _run_mixed(blocks, tally, n_rows=n_rows, threads=threads, what=what)
        loose = TallyGroup([])
        return _run_in_order(blocks, tally, loose, n_rows=n_rows, threads=threads, what=what)
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
    """The tally that each thread adds to, the first being the one given: fresh ones, or shared."""
    if isinstance(tally, TallyGroup):
        each = [tallies_of_threads(own, threads) for own in tally.tallies]
        return [tally, *(type(tally)([own[at] for own in each]) for at in range(1, threads))]
    parts = [tally]
    for at in range(1, threads):
        is_shared = at % getattr(tally, "threads_served", 1) > 0
        parts.append(parts[-1] if is_shared else tally.empty_like())
    return parts


def join_threads(parts: Sequence[Any]) -> None:
    """Merge into the first what all threads have seen; what they shared, once."""
    if isinstance(parts[0], TallyGroup):
        for own in zip(*(part.tallies for part in parts), strict=True):
            join_threads(own)
        return
    for other in {id(part): part for part in parts[1:]}.values():
        if other is not parts[0]:
            parts[0].merge(other)


def _run_mixed(blocks: Iterable[Panel], tally: T, **options: Any) -> T:
    """Tallies of counts take blocks as they come; those whose sums round are joined in order."""
    leaves = _leaves(tally)
    rounds = [hasattr(each, "blocks_apart") for each in leaves]
    ordered, loose = (
        TallyGroup([each for each, is_so in zip(leaves, rounds, strict=True) if is_so == how])
        for how in (True, False)
    )
    summed = iter(_run_in_order(blocks, ordered, loose, **options).tallies)
    counted = iter(loose.tallies)
    return _grown(tally, (next(summed if is_so else counted) for is_so in rounds))


def _leaves(tally: Any) -> list[Any]:
    """The tallies that several are made of, however they were put together."""
    if not isinstance(tally, TallyGroup):
        return [tally]
    return [leaf for each in tally.tallies for leaf in _leaves(each)]


def _grown(tally: T, leaves: Iterator[Any]) -> T:
    """Tallies put together as these are, of other leaves."""
    if not isinstance(tally, TallyGroup):
        leaf: T = next(leaves)
        return leaf
    return type(tally)([_grown(each, leaves) for each in tally.tallies])


def _run_in_order(
    blocks: Iterable[Panel], tally: T, loose: TallyGroup, *, n_rows: int, threads: int, what: str
) -> T:
    """Feed every block to a tally whose sums round: the same additions on any number of threads.

    The tally that is given is empty, and stays so; the one returned holds the sums. ``loose`` are
    tallies that take any block at any time, and hold what they found themselves.
    """
    blocks = iter(blocks)
    groups = iter(lambda: list(islice(blocks, tally.blocks_apart)), [])  # type: ignore[attr-defined]
    others = tallies_of_threads(loose, threads)
    idle: SimpleQueue[TallyGroup] = SimpleQueue()
    for other in others:
        idle.put(other)

    def add(group: list[Panel]) -> tuple[T, int]:
        part, other = tally.empty_like(), idle.get()
        n_done = 0
        group.reverse()
        try:
            while group:
                panel = group.pop()  # what it has read goes with it
                part.add(panel)
                other.add(panel)
                n_done += panel.n_rows
        finally:
            idle.put(other)
        return part, n_done

    total: T | None = None  # the first part as it is: it need not lie in memory twice
    seen = 0
    with progress_bar(what, n_rows) as advance:
        for part, n_done in map_threads(groups, add, threads=threads, ahead=1):
            if total is None:
                total = part
            else:
                total.merge(part)
            advance(n_done)
            seen += n_done
            del part
    check_all_rows(seen, n_rows)
    join_threads(others)
    return tally if total is None else total
