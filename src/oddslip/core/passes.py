"""Computations that need passes over rows, as generators.

A computation yields an empty tally, receives it filled with all rows, and returns its answer. It
does not read rows itself, so computations over the same rows can share passes: together they take
as many as the longest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from oddslip.core.tally import Tally, TallyGroup
from oddslip.core.threads import release_memory

T = TypeVar("T")
Passes = Generator[Tally, Any, T]  # receives what it yields


MANY_CELLS = 2**24  # of a pass that leaves much memory to release; releasing takes a millisecond


class Rows(Protocol):
    """Anything that feeds its rows to a tally."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        ...

    def run(self, tally: Any, *, what: str = "rows") -> Any:
        """Feed all rows to the tally and return it."""
        ...


def run(rows: Rows, computation: Passes[T], *, what: str = "rows") -> T:
    """Run a computation over rows and return its answer.

    Parameters
    ----------
    rows : Rows
        Usually a source.
    computation : Passes
    what : str
        Name of a pass in the progress bar.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> from oddslip.tallies.cell_counts import count_cells
    >>> source = open_source([[0.2], [0.3], [0.7]], [[0], [1], [0]])
    >>> run(source, count_cells(source)).auc()
    array([0.5])
    """
    try:
        tally = next(computation)
        while True:
            try:
                tally = rows.run(tally, what=what)
            except Exception as error:
                tally = computation.throw(error)
            else:
                tally = computation.send(tally)
            if rows.n_rows * rows.n_labels >= MANY_CELLS:
                release_memory()
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def collect(tally: T) -> Passes[T]:
    """The computation that takes one pass and answers with the filled tally."""
    filled: T = yield tally  # type: ignore[misc]
    return filled


def without_passes(computation: Passes[T]) -> T:
    """The answer of a computation that has all it needs, and yields nothing."""
    try:
        tally = next(computation)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    raise RuntimeError(f"rows are needed for {type(tally).__name__}, and there are none.")


def run_passes(rows: Rows, computations: Sequence[Passes[Any]], *, what: str = "rows") -> list[Any]:
    """Run computations over the same rows in shared passes, and return their answers."""
    return run(rows, share_passes(computations), what=what)


def share_passes(computations: Sequence[Passes[Any]]) -> Passes[list[Any]]:
    """Several computations as one, which answers with the answers of all.

    The error of a pass is raised in every computation that waits for it. The first error, in the
    order of the computations, is raised once all have ended.
    """
    answers: list[Any] = [None] * len(computations)
    errors: dict[int, Exception] = {}
    waiting: dict[int, Tally] = {}

    def advance(at: int, step: Callable[[], Tally]) -> None:
        try:
            waiting[at] = step()
        except StopIteration as stop:
            answers[at] = stop.value
        except Exception as error:
            errors[at] = error

    for at, computation in enumerate(computations):
        advance(at, partial(next, computation))
    while waiting:
        members, group = list(waiting), TallyGroup(list(waiting.values()))
        waiting.clear()
        try:
            filled: list[Any] = list((yield group).tallies)
        except Exception as error:
            for at in members:
                advance(at, partial(computations[at].throw, error))
        else:
            del group
            for at in members:
                advance(at, partial(computations[at].send, filled.pop(0)))
    if errors:
        raise errors[min(errors)]
    return answers
