"""Tallies: everything that is computed over rows.

A tally takes panels one by one (`add`), merges with another (`merge`) and gives its `result`. The
result depends neither on how rows were cut into blocks nor on their order, so the same code serves
an array, a file larger than memory, many threads and many machines.

To travel, a tally names the arguments of an empty one (`spec`) and its state (`state`): plain
arrays, each with the way it merges. States can be merged or sharded without knowing the tally class
(`merge_states`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from inspect import signature
from typing import Any, ClassVar, Literal, Protocol, Self, cast

import numpy as np

from oddslip.core.panel import Panel
from oddslip.core.types import Array

How = Literal["add", "min", "max", "append"]
# Arrays by name, each with how it merges with the array of that name of another tally.
State = dict[str, tuple[Array, How]]


class Tally(Protocol):
    """What is computed over rows.

    A tally of counts may take its blocks in any order. One that adds up floats has an attribute
    ``blocks_apart``: that many blocks are summed separately, and these sums are merged in row
    order, because rounding depends on the order. So the number of threads never changes a bit.

    A large tally may have an attribute ``threads_served``: that many threads may call its `add` at
    the same time and share it.
    """

    def empty_like(self) -> Self:
        """An empty tally of the same kind, for another thread or machine."""
        ...

    def add(self, panel: Panel) -> None:
        """Take one block of rows."""
        ...

    def merge(self, other: Self) -> None:
        """Add the rows of another tally of the same kind. Both must have seen different rows."""
        ...

    def result(self) -> Any:
        """The outcome."""
        ...

    def spec(self) -> dict[str, Any]:
        """Arguments of an empty one, to be made elsewhere: numbers, text, arrays, our classes."""
        ...

    def state(self) -> State:
        """The rows added so far, as plain arrays. They may be shared: discard the tally."""
        ...

    def restore(self, state: State) -> None:
        """Replace the state. The arrays may be kept."""
        ...


class MergeableTally:
    """A tally whose state is attributes: ``JOINED`` says how each merges with another's.

    Arrays and numbers are added, or the smaller or larger is taken; lists of arrays are appended.
    Each parameter of a subclass must be an attribute of the same name.
    """

    JOINED: ClassVar[Mapping[str, How]] = {}

    def spec(self) -> dict[str, Any]:
        """The arguments of an empty one."""
        return {name: getattr(self, name) for name in _parameters(cast(Any, type(self)))}

    def empty_like(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def settle(self) -> None:
        """Complete the state, before it is merged or read. By default it always is complete."""

    def merge(self, other: Self) -> None:
        """Add the rows of another tally."""
        self.settle()
        other.settle()
        for name, how in self.JOINED.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, np.ndarray):
                _UFUNC[how](mine, theirs, out=mine)
            else:
                setattr(self, name, mine + theirs)

    def state(self) -> State:
        """The attributes, as arrays."""
        self.settle()
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
        """Replace the attributes."""
        for name, how in self.JOINED.items():
            if how == "append":
                setattr(self, name, [state[name][0]] if name in state else [])
                continue
            array = owned(state[name][0])
            setattr(self, name, array if array.ndim else array.item())


@cache
def _parameters(tally: Any) -> tuple[str, ...]:
    """Names of the parameters of a tally class."""
    return tuple(signature(tally).parameters)


def owned(array: Array) -> Array:
    """A writable array: itself, or a copy where it came over a wire."""
    return np.require(array, requirements="W")


_UFUNC: dict[How, Any] = {"add": np.add, "min": np.minimum, "max": np.maximum}


def merge_states(states: Iterable[State]) -> State:
    """One state of several tallies of a kind, or of the same piece of each.

    Examples
    --------
    >>> merge_states([{"n": (np.array([1, 2]), "add")}, {"n": (np.array([3, 4]), "add")}])
    {'n': (array([4, 6]), 'add')}
    """
    parts: dict[str, list[Array]] = {}
    joins: dict[str, How] = {}
    for state in states:
        for name, (array, how) in state.items():
            arrays = parts.setdefault(name, [])
            if how == "append" or not arrays:
                arrays.append(array)
            else:  # one at a time: two states are in memory, never all of them
                arrays[0] = np.asarray(_UFUNC[how](arrays[0], array))
            joins[name] = how
    return {
        name: (arrays[0] if len(arrays) == 1 else np.concatenate(arrays), joins[name])
        for name, arrays in parts.items()
    }


def nest_states(states: Iterable[State]) -> State:
    """The states of several tallies as one, with numbered names; undone by `unnest_states`."""
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
        """Merge each with its counterpart."""
        for mine, theirs in zip(self.tallies, other.tallies, strict=True):
            mine.merge(theirs)

    def result(self) -> tuple[Any, ...]:
        """The outcome of each."""
        return tuple(each.result() for each in self.tallies)

    def spec(self) -> dict[str, Any]:
        """The tallies, from which empty ones are made."""
        return {"tallies": self.tallies}

    def state(self) -> State:
        """The states of all."""
        return nest_states(each.state() for each in self.tallies)

    def restore(self, state: State) -> None:
        """Replace the state of each."""
        parts = unnest_states(state, len(self.tallies))
        for each, part in zip(self.tallies, parts, strict=True):
            each.restore(part)
