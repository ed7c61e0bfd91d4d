"""Progress bars for work that takes more than two seconds; silent where nobody watches.

Bars that follow each other without a pause are one piece of work: a verb that reads its rows ten
times shows its bars from the third second on, however short each pass is. Bars inside a bar share
its display, one line each.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 2.0
PAUSE_S = 1.0  # a longer pause restarts PATIENCE_S


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of further steps that are complete.

    Parameters
    ----------
    what : str
        What is going on, such as "fitting maps".
    total : int
        Number of steps.

    Examples
    --------
    >>> with progress_bar("reading files", 2) as advance:
    ...     advance(1)
    ...     advance(1)
    """
    if not _is_watched():
        yield lambda more: None
        return
    task = _Task(what, total)
    _DISPLAY.open(task)
    try:
        yield lambda more: _DISPLAY.advance(task, more)
    finally:
        _DISPLAY.close(task)


def _is_watched() -> bool:
    """Whether standard error is a terminal or a notebook."""
    if "ipykernel" in sys.modules:
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # none, or closed
        return False


class _Task:
    """One bar: a line of the display, once that is visible."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.n_complete = what, total, 0
        self.line: TaskID | None = None


class _Display:
    """All bars of the process. A timer shows them, so that a single long step has its bar too."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._tasks: list[_Task] = []
        self._start = self._end = float("-inf")  # of the piece of work
        self._timer: threading.Timer | None = None
        self._progress: Progress | None = None

    def open(self, task: _Task) -> None:
        """Begin a bar."""
        with self._lock:
            now = time.monotonic()
            if not self._tasks and now - self._end > PAUSE_S:
                self._start = now
            self._tasks.append(task)
            if self._progress is not None:
                self._add_line(task)
            elif self._timer is None:
                wait_s = max(0.0, self._start + PATIENCE_S - now)
                self._timer = threading.Timer(wait_s, self._show)
                self._timer.daemon = True
                self._timer.start()

    def advance(self, task: _Task, more: int) -> None:
        """Move a bar."""
        with self._lock:
            task.n_complete += more
            if self._progress is not None and task.line is not None:
                self._progress.update(task.line, completed=task.n_complete)

    def close(self, task: _Task) -> None:
        """End a bar; the display disappears with the last one."""
        with self._lock:
            self._tasks.remove(task)
            if self._progress is not None and task.line is not None:
                self._progress.remove_task(task.line)
            if self._tasks:
                return
            self._end = time.monotonic()
            if self._timer is not None:
                self._timer.cancel()
            if self._progress is not None:
                self._progress.stop()
            self._timer = self._progress = None

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        with self._lock, suppress(OSError, ValueError):  # the terminal may be gone
            if not self._tasks or self._progress is not None:
                return
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            for task in self._tasks:
                self._add_line(task)
            self._progress.start()

    def _add_line(self, task: _Task) -> None:
        assert self._progress is not None
        task.line = self._progress.add_task(task.what, total=task.total, completed=task.n_complete)


_DISPLAY = _Display()
