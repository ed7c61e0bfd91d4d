"""Ctrl-C and a polite kill: a command unwinds, and what does not unwind in time is ended.

A signal raises KeyboardInterrupt in the main thread, but only between two steps of Python, and one
step may be long: trees of a whole group, a sort, threads that are waited for. So a second thread
hears of the signal at once and ends the process if it is still there after its patience. Nothing
is lost by that: finished groups, cells and blocks of rows are on disk, an output gets its name
last, and what lies unfinished beside it is removed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from oddslip.cli import streams

PATIENCE_S = 0.7
# What is said, and the exit code, for each signal.
_ENDINGS = {
    signal.SIGINT: ("oddslip: interrupted\n", 130),
    signal.SIGTERM: ("oddslip: terminated\n", 143),
}
_heard: list[int] = []
_said = threading.Lock()  # never given back: a line is said once, by whoever comes first


def run(command: Callable[[], int]) -> NoReturn:
    """Run a command to its exit code, and end the process with it.

    A signal stops it: politely at first, within seconds in any case.
    """
    streams.open_closed()
    _listen()
    try:
        code = command()
    except BaseException:
        if not _heard:
            raise
        code = say()
    if _heard:
        _end(code)
    for number in _ENDINGS:  # the work is done and said: nothing is left to stop
        signal.signal(number, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        streams.settle(stream)
    sys.exit(code)


def is_stopping() -> bool:
    """Whether a signal came: whatever goes wrong after it is no error of its own."""
    return bool(_heard)


def say() -> int:
    """Say once, in one line, that a signal ended the command; its exit code."""
    line, code = _ENDINGS[signal.Signals(_heard[0] if _heard else signal.SIGINT)]
    if _said.acquire(blocking=False):
        streams.say(line)
        if not _heard:  # a KeyboardInterrupt without a signal, as tests raise it
            _said.release()
    return code


def _listen() -> None:
    if hasattr(os, "set_blocking"):  # not on Windows before Python 3.12
        with suppress(OSError, ValueError):
            ear, mouth = os.pipe()
            os.set_blocking(mouth, False)
            signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
            threading.Thread(target=_watch, args=(ear,), name="stopping", daemon=True).start()
    for number in _ENDINGS:
        signal.signal(number, _unwind)


def _unwind(number: int, _: Any) -> None:
    if _heard:  # the first one is obeyed; a second must not disturb the unwinding
        return
    _heard.append(number)
    # What unwinding breaks in threads and destructors is nobody's concern.
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
    raise KeyboardInterrupt


def _watch(ear: int) -> None:
    while (number := os.read(ear, 1)[0]) not in _ENDINGS:
        pass  # a signal that a library listens to
    time.sleep(PATIENCE_S)
    line, code = _ENDINGS[signal.Signals(number)]
    files = sys.modules.get("oddslip.io.files")
    with suppress(Exception):  # half imported, or a disk that fails
        if files is not None:
            files.abandon()
    with suppress(Exception):
        if _said.acquire(blocking=False):
            _write(line)
    _end(code)


def _write(line: str) -> None:
    """Past Python's buffers, whose locks the main thread may hold; not to a pipe nobody reads."""
    import select

    out = sys.stderr.fileno()
    if sys.stderr.isatty():
        line = f"\x1b[?25h\n{line}"  # a progress bar hides the cursor
    if select.select([], [out], [], 0)[1]:
        os.write(out, line.encode())


def _end(code: int) -> NoReturn:
    # Not sys.exit: it waits for threads, and flushes to readers who may be gone.
    os._exit(code)
