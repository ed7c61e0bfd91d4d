"""A progress bar for anything over two seconds; silent where nobody watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_S = 2.0


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that adds to the progress. The bar appears after two seconds."""
    started = time.monotonic()
    bar: Progress | None = None
    completed = 0

    def advance(more: int) -> None:
        nonlocal bar, completed
        completed += more
        if bar is None and time.monotonic() - started > PATIENCE_S:
            bar = _start(what, total)
        if bar is not None:
            bar.update(bar.task_ids[0], completed=completed)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _start(what: str, total: int) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not (console.is_terminal or console.is_jupyter),
    )
    bar.add_task(what, total=total)
    bar.start()
    return bar
