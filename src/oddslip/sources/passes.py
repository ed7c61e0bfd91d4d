"""Several computations over one source, which read it together.

Each is a function of a source and runs on a thread of its own. What asks for a pass waits until all
others ask for one too, or are done; then one pass serves them all. So computations that know
nothing of one another take as many passes as the longest of them, not as all of them.
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
    threads: int | None = None,
    what: str = "rows",
) -> list[Any]:
    """What every function returns, given a source that it shares with the others.

    The first error, in the order of the functions, is raised; the others are let go of.

    Parameters
    ----------
    source : Source
    functions : sequence of callables
        Each takes a source. `Source.run` and `Source.map` are shared; blocks that a function
        iterates over itself are a pass of its own.
    threads : int, optional
        Of the passes; all cores available unless told. With 1 nothing is shared.
    what : str
        What a progress bar calls a pass.

    Examples
    --------
    >>> from oddslip.sources import open_source
    >>> count = lambda rows: sum(n for _, n in rows.map(lambda panel: panel.n_rows))
    >>> read_together(open_source([[0.1, 0.2], [0.3, 0.4]]), [count, count])
    [2, 2]
    """
    if len(functions) < 2 or threads == 1:  # one thread is the caller's own: one after another
        return [function(source) for function in functions]
    meeting = _Meeting(len(functions))
    outcomes: list[Any] = [None] * len(functions)
    errors: list[BaseException | None] = [None] * len(functions)

    def work(at: int) -> None:
        try:
            outcomes[at] = functions[at](SharedSource(source, meeting))
        except BaseException as error:  # raised where the others are waited for
            errors[at] = error
        finally:
            meeting.leave()

    workers = [threading.Thread(target=work, args=(at,)) for at in range(len(functions))]
    for worker in workers:
        worker.start()
    try:
        while waiting := meeting.wait():
            _serve(source, waiting, threads, what)
            release_memory()
            meeting.resume()
    except BaseException as error:
        meeting.give_up(error)
        raise
    finally:
        for worker in workers:
            worker.join()
    for failed in errors:
        if failed is not None:
            raise failed
    return outcomes


class _Asked:
    """A pass that was asked for, and what came of it."""

    def __init__(self, tally: Any) -> None:
        self.tally = tally
        self.error: BaseException | None = None
        self.done = False


class _Meeting:
    """Where computations wait for one another."""

    def __init__(self, n_members: int) -> None:
        self._changed = threading.Condition()
        self._n_members = n_members
        self._waiting: list[_Asked] = []
        self._over: BaseException | None = None

    @property
    def ended(self) -> bool:
        """Whether nobody is left."""
        return self._n_members == 0

    def ask(self, tally: Any) -> Any:
        """A pass for this tally; returns once it was made."""
        asked = _Asked(tally)
        with self._changed:
            if self._over is not None:
                raise self._over
            self._waiting.append(asked)
            self._changed.notify_all()
            self._changed.wait_for(lambda: asked.done or self._over is not None)
        if asked.error is not None:
            raise asked.error
        if not asked.done and self._over is not None:
            raise self._over
        return asked.tally

    def leave(self) -> None:
        """One member less."""
        with self._changed:
            self._n_members -= 1
            self._changed.notify_all()

    def wait(self) -> list[_Asked]:
        """What all who are left ask for; nothing once all have left."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) == self._n_members)
            return list(self._waiting)

    def resume(self) -> None:
        """Send everybody on."""
        with self._changed:
            for asked in self._waiting:
                asked.done = True
            self._waiting.clear()
            self._changed.notify_all()

    def give_up(self, error: BaseException) -> None:
        """No more passes: whoever waits for one, or asks for one, hears why."""
        with self._changed:
            self._over = error
            self._changed.notify_all()


def _serve(source: Source, waiting: list[_Asked], threads: int | None, what: str) -> None:
    """One pass for all that was asked."""
    together = TallyGroup([asked.tally for asked in waiting])
    try:
        made = source.run(together, threads=threads, what=what).tallies
    except Exception as error:  # theirs to handle
        for asked in waiting:
            asked.error = error
        return
    for asked, tally in zip(waiting, made, strict=True):
        asked.tally = tally


class SharedSource(View):
    """A source as one of several computations sees it, whose passes others share."""

    def __init__(self, whole: Source, meeting: _Meeting) -> None:
        super().__init__(whole)
        self._meeting = meeting

    def run(self, tally: T, *, threads: int | None = None, what: str = "rows") -> T:
        """Feed all rows to the tally, in a pass with the others as long as there are any."""
        if self._meeting.ended:
            return self.whole.run(tally, threads=threads, what=what)
        made: T = self._meeting.ask(tally)
        return made

    def map(
        self, function: Callable[[Panel], R], *, threads: int | None = None, what: str = "rows"
    ) -> Iterator[tuple[int, R]]:
        """Yield (first row, ``function(block)``) in row order, all from one pass with others."""
        if self._meeting.ended:
            return self.whole.map(function, threads=threads, what=what)
        outcomes: list[tuple[int, R]] = self._meeting.ask(CollectTally(function)).result()
        return iter(outcomes)
