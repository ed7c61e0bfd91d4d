"""Standard streams that are closed, full, or have lost their reader."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Any, TypeGuard

_FAILURES = (errno.EBADF, errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def open_closed() -> None:
    """Put something in place of standard streams that were closed.

    Else the first file that is opened would take their number, and what a library prints would
    go into it. What is printed to a stream that was closed is an error, as on a full disk.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, and so this one. Nothing can be written to it.
            os.open(os.devnull, os.O_RDONLY)
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def is_of_stdout(error: BaseException) -> TypeGuard[OSError]:
    """Whether an error is that what was printed can not be written: errors of files name them."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _FAILURES


def settle(stream: Any) -> None:
    """Let go of what a stream can not write: Python would try again at its end, and complain."""
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        silence(stream)


def silence(stream: Any) -> None:
    """Let a stream write to nowhere from now on."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(line: str) -> None:
    """One line on stderr, if somebody can read it: the exit code says the same."""
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        silence(sys.stderr)
