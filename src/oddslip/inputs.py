"""Files that are read: what may be opened at all, and whether what they claim fits into memory."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from oddslip.arguments import check_path
from oddslip.errors import UnreadableFile
from oddslip.files import unreadable


def input_path(given: Any) -> Path:
    """A file that can be opened and has an end: no folder, device or pipe.

    A device such as /dev/zero never ends, and a pipe that nobody writes never begins.

    Examples
    --------
    >>> input_path(__file__).suffix
    '.py'
    """
    path = check_path("a file to read", given)
    mode = _status(path).st_mode
    if stat.S_ISDIR(mode):
        raise UnreadableFile(f"{path} is a folder, not a file.")
    if not stat.S_ISREG(mode):
        raise UnreadableFile(
            f"{path} must be a file, got a device, a pipe or a socket. Save it to a file first."
        )
    return path


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except ValueError as error:  # a zero byte, or half of a surrogate pair
        raise UnreadableFile(f"{path} must have a name that the system can hold.") from error
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise unreadable(path, error, "") from error
        raise UnreadableFile(f"{path} can not be read ({error.strerror}).") from error


def read_bytes(given: Any) -> bytes:
    """A whole file, if memory can hold it."""
    path = input_path(given)
    check_memory(path, _status(path).st_size)
    try:
        return path.read_bytes()
    except (OSError, MemoryError) as error:
        raise unreadable(path, error, "not to be read") from error


def check_memory(path: Path, n_bytes: int) -> None:
    """Refuse what memory can not hold, before any of it is taken."""
    free = free_memory()
    if free is not None and n_bytes > free:
        raise UnreadableFile(
            f"{path} must fit into memory, got {n_bytes:,} bytes where {free:,} are free."
        )


def free_memory() -> int | None:
    """Bytes that can still be had, swap included; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        table = dict(line.split(":", 1) for line in lines)
        return sum(1024 * int(table[name].split()[0]) for name in ("MemAvailable", "SwapFree"))
    except (OSError, ValueError, KeyError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
