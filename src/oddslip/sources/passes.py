"""Shared passes: several computations over one source read it together.

Each computation is a function of a source and runs on its own thread. One that requests a pass
waits until all others request one too, or have ended; then one pass serves them all. So independent
computations take as many passes as the longest of them, not as all together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from oddslip.core.panel import Panel
from oddslip.core.tally import CollectTally, Tally, TallyGroup
from oddslip.core.threads import release_memory
from oddslip.sources.base import Source
from oddslip.sources.views import View

T = TypeVar("T", bound=Tally)
R = TypeVar("R")


def read_together(
    source: Source,
    functions: Sequence[Callable[[Source], Any]],
    *,
    what: str = "rows",
) -> list[Any]:
    """Run functions of one source together, and return their results.

    The first error, in the order of the functions, is raised; other errors are dropped.

    Parameters
    ----------
    source : Source
    functions : sequence of callables
        Each takes a source. `Source.run` and `Source.map` are shared; iterating over blocks is a
        separate pass.
    what : str
        Name of a pass in the progress bar.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> count = lambda rows: sum(n for _, n in rows.map(lambda panel: panel.n_rows))
    >>> read_together(open_source([[0.1, 0.2], [0.3, 0.4]]), [count, count])
    [2, 2]
    """
    if len(functions) < 2 or source.threads == 1:  # one thread: one function after another
        return [function(source) for function in functions]
    rendezvous = _Rendezvous(len(functions))
    outcomes: list[Any] = [None] * len(functions)
    errors: list[BaseException | None] = [None] * len(functions)

    def work(at: int) -> None:
        try:
            outcomes[at] = functions[at](SharedSource(source, rendezvous))
        except BaseException as error:  # raised after all threads have ended
            errors[at] = error
        finally:
            rendezvous.leave()

    workers = [threading.Thread(target=work, args=(at,)) for at in range(len(functions))]
    for worker in workers:
        worker.start()
    try:
        while waiting := rendezvous.wait():
            _serve(source, waiting, what)
            release_memory()
            rendezvous.resume()
    except BaseException as error:
        rendezvous.give_up(error)
        raise
    finally:
        for worker in workers:
            worker.join()
    for failed in errors:
        if failed is not None:
            raise failed
    return outcomes


class _PassRequest:
    """A requested pass and its outcome."""

    def __init__(self, tally: Any) -> None:
        self.tally = tally
        self.error: BaseException | None = None
        self.is_complete = False


class _Rendezvous:
    """Synchronises the computations."""

    def __init__(self, n_members: int) -> None:
        self._changed = threading.Condition()
        self._n_members = n_members
        self._waiting: list[_PassRequest] = []
        self._error: BaseException | None = None

    @property
    def ended(self) -> bool:
        """Whether all computations have ended."""
        return self._n_members == 0

    def request(self, tally: Any) -> Any:
        """Request a pass for this tally; return the filled tally."""
        request = _PassRequest(tally)
        with self._changed:
            if self._error is not None:
                raise self._error
            self._waiting.append(request)
            self._changed.notify_all()
            self._changed.wait_for(lambda: request.is_complete or self._error is not None)
        if request.error is not None:
            raise request.error
        if not request.is_complete and self._error is not None:
            raise self._error
        return request.tally

    def leave(self) -> None:
        """End one computation."""
        with self._changed:
            self._n_members -= 1
            self._changed.notify_all()

    def wait(self) -> list[_PassRequest]:
        """The requests of all running computations; empty once all have ended."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) == self._n_members)
            return list(self._waiting)

    def resume(self) -> None:
        """Let all computations continue."""
        with self._changed:
            for request in self._waiting:
                request.is_complete = True
            self._waiting.clear()
            self._changed.notify_all()

    def give_up(self, error: BaseException) -> None:
        """Stop passes: waiting and later requests raise this error."""
        with self._changed:
            self._error = error
            self._changed.notify_all()


def _serve(source: Source, waiting: list[_PassRequest], what: str) -> None:
    """One pass for all requests."""
    together = TallyGroup([request.tally for request in waiting])
    try:
        tallies = source.run(together, what=what).tallies
    except Exception as error:  # raised in the computations
        for request in waiting:
            request.error = error
        return
    for request, tally in zip(waiting, tallies, strict=True):
        request.tally = tally


class SharedSource(View):
    """A source whose passes several computations share."""

    def __init__(self, whole: Source, rendezvous: _Rendezvous) -> None:
        super().__init__(whole)
        self._rendezvous = rendezvous

    def run(self, tally: T, *, what: str = "rows") -> T:
        """Feed all rows to the tally, in a pass shared with the others."""
        if self._rendezvous.ended:
            return self.whole.run(tally, what=what)
        fed: T = self._rendezvous.request(tally)
        return fed

    def map(self, function: Callable[[Panel], R], *, what: str = "rows") -> Iterator[tuple[int, R]]:
        """Yield (first row, ``function(block)``) in row order, from a shared pass."""
        if self._rendezvous.ended:
            return self.whole.map(function, what=what)
        outcomes: list[tuple[int, R]] = self._rendezvous.request(CollectTally(function)).result()
        return iter(outcomes)
