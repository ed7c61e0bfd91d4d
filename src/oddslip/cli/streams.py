"""Standard streams that are closed, full, or have lost their reader."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import TextIO, TypeGuard

_FAILURES = (errno.EBADF, errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def open_closed() -> None:
    """Replace closed standard streams.

    Otherwise the first opened file would get their number, and output of a library would go into
    it. Printing to a closed stream is an error, as on a full disk.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # Takes the lowest free number, which is this one. It cannot be written to.
            os.open(os.devnull, os.O_RDONLY)
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def is_of_stdout(error: BaseException) -> TypeGuard[OSError]:
    """Whether an error came from writing to stdout; errors of files have a file name."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _FAILURES


def flush_or_silence(stream: TextIO) -> None:
    """Flush a stream, or silence it, so that Python does not fail on it at exit."""
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        silence(stream)


def silence(stream: TextIO) -> None:
    """Redirect a stream to the null device."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_error(line: str) -> None:
    """Write one line to stderr, if possible."""
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        silence(sys.stderr)
