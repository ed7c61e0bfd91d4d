"""Handling of SIGINT and SIGTERM: a command unwinds, or is ended if that takes too long.

A signal raises KeyboardInterrupt in the main thread, but only between two Python instructions, and
one may take long: training a group of trees, a sort, waiting for threads. So a second thread gets
the signal at once and ends the process if it is still running after `PATIENCE_S`. Nothing is lost:
finished groups, cells and blocks of rows are on disk, outputs are renamed last, and unfinished
files are removed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from oddslip.cli import streams

PATIENCE_S = 0.7
# Message and exit code of each signal.
_ENDINGS = {
    signal.SIGINT: ("oddslip: interrupted\n", 130),
    signal.SIGTERM: ("oddslip: terminated\n", 143),
}
_signals: list[int] = []
_message_lock = threading.Lock()  # never released, so that the message is printed once


def run(command: Callable[[], int]) -> NoReturn:
    """Run a command and exit with its code. A signal stops it within a second or so."""
    streams.open_closed()
    _listen()
    try:
        code = command()
    except BaseException:
        if not _signals:
            raise
        code = print_signal()
    if _signals:
        _end(code)
    for number in _ENDINGS:  # the work is done: nothing to stop
        signal.signal(number, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        streams.flush_or_silence(stream)
    sys.exit(code)


def is_stopping() -> bool:
    """Whether a signal arrived; later errors are its consequences."""
    return bool(_signals)


def print_signal() -> int:
    """Print once, in one line, that a signal ended the command; return its exit code."""
    line, code = _ENDINGS[signal.Signals(_signals[0] if _signals else signal.SIGINT)]
    if _message_lock.acquire(blocking=False):
        streams.print_error(line)
        if not _signals:  # a KeyboardInterrupt without a signal, as in tests
            _message_lock.release()
    return code


def _listen() -> None:
    if hasattr(os, "set_blocking"):  # not on Windows before Python 3.12
        with suppress(OSError, ValueError):
            read_end, write_end = os.pipe()
            os.set_blocking(write_end, False)
            signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
            threading.Thread(target=_watch, args=(read_end,), name="stopping", daemon=True).start()
    for number in _ENDINGS:
        signal.signal(number, _unwind)


def _unwind(number: int, _: object) -> None:
    if _signals:  # only the first counts; a second must not disturb the unwinding
        return
    _signals.append(number)
    # Errors in threads and destructors during the unwinding are not reported.
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
    raise KeyboardInterrupt


def _watch(read_end: int) -> None:
    while (number := os.read(read_end, 1)[0]) not in _ENDINGS:
        pass  # a signal of some library
    time.sleep(PATIENCE_S)
    line, code = _ENDINGS[signal.Signals(number)]
    files = sys.modules.get("oddslip.io.files")
    with suppress(Exception):  # partly imported, or a disk error
        if files is not None:
            files.abandon()
    with suppress(Exception):
        if _message_lock.acquire(blocking=False):
            _write(line)
    _end(code)


def _write(line: str) -> None:
    """Write without Python's buffers, whose locks the main thread may hold, if it cannot block."""
    import select

    out = sys.stderr.fileno()
    if sys.stderr.isatty():
        line = f"\x1b[?25h\n{line}"  # a progress bar hides the cursor
    if select.select([], [out], [], 0)[1]:
        os.write(out, line.encode())


def _end(code: int) -> NoReturn:
    # Not sys.exit: it waits for threads, and flushes to readers that may be gone.
    os._exit(code)
