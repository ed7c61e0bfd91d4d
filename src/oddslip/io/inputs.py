"""Read files safely: regular files only, within memory, and unchanged while they are read.

If a file is truncated while it is memory-mapped, the system ends the process; if it is overwritten,
the map mixes the cells of two files. So arrays are read by position, and the size and modification
time of a file are compared after every read.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oddslip.errors import OddslipError, UnreadableFile
from oddslip.io.files import unreadable
from oddslip.io.paths import check_path

SEPARATORS = {  # of cells, and what to do with a file of another one
    ";": "Write it with commas, and numbers with a decimal point.",
    "\t": "Write it with commas, or as scores or labels in a .tsv file.",
    ",": "Write it with tabs, or name it .csv.",
}
MAX_HEADER_BYTES = 64 * 1024 * 1024
MAX_READ_BYTES = 1 << 30  # the system reads no more than 2 GB at once


def input_path(path: str | os.PathLike[str]) -> Path:
    """Validate the path of a regular file.

    A device such as /dev/zero never ends, and a pipe without a writer blocks.

    Parameters
    ----------
    path : path

    Returns
    -------
    Path

    Examples
    --------
    >>> input_path(__file__).suffix
    '.py'
    """
    path = check_path("a file to read", path)
    mode = _status(path).st_mode
    if stat.S_ISDIR(mode):
        raise UnreadableFile(f"{path} is a folder, not a file.")
    if not stat.S_ISREG(mode):
        raise UnreadableFile(
            f"{path} must be a file, got a device, a pipe or a socket. Save it to a file first."
        )
    return path


def check_separator(path: Path, separator: str) -> None:
    """Raise for text whose first two lines have cells separated by something else.

    One label may have a name such as "salt; sweet", so the header alone does not tell.
    """
    with input_path(path).open("rb") as file:
        lines = [re.sub(rb'"[^"]*"', b"", file.readline(MAX_HEADER_BYTES)) for _ in range(2)]
    if all(separator.encode() in line for line in lines):
        return
    for other, advice in SEPARATORS.items():
        if other != separator and all(other.encode() in line for line in lines):
            raise UnreadableFile(
                f"{path} must have cells separated by {separator!r}, got {other!r}. {advice}"
            )


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except ValueError as error:  # a zero byte, or half of a surrogate pair
        raise UnreadableFile(f"{path} must have a name that the system can hold.") from error
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise unreadable(path, error, "") from error
        raise UnreadableFile(f"{path} cannot be read ({error.strerror}).") from error


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file, if it fits into memory."""
    path = input_path(path)
    check_memory(path, _status(path).st_size)
    try:
        return path.read_bytes()
    except (OSError, MemoryError) as error:
        raise unreadable(path, error, "not to be read") from error


def check_memory(path: Path, n_bytes: int) -> None:
    """Raise if so many bytes do not fit into memory, before they are allocated."""
    free = free_memory()
    if free is not None and n_bytes > free:
        raise UnreadableFile(
            f"{path} must fit into memory, got {n_bytes:,} bytes where {free:,} are free."
        )


def free_memory() -> int | None:
    """Bytes of available memory and swap; None if the system does not report them."""
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


class FileState(NamedTuple):
    """Identifies one version of a file."""

    device: int
    inode: int
    n_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, file: int | Path) -> FileState:
        """The state of an open file, or of the file at a path."""
        status = os.stat(file)
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def check(self, path: Path, file: int | Path | None = None) -> None:
        """Raise if the file changed."""
        try:
            same = FileState.of(path if file is None else file) == self
        except OSError:
            same = False
        if not same:
            raise change_error(path)


def change_error(path: Path) -> UnreadableFile:
    """The error to raise if a file changed while it was read."""
    return UnreadableFile(
        f"{path} changed while it was read. Run again once it is written, or read a copy."
    )


@contextmanager
def unchanged(path: Path, state: FileState | None) -> Iterator[None]:
    """Raise if the file changed meanwhile, which also explains any other error."""
    try:
        yield
    except OddslipError:
        if state is not None:
            state.check(path)
        raise
    if state is not None:
        state.check(path)


class FileArray:
    """An array in a file, read by position when it is indexed, and never cached.

    ``array[start:stop]`` and ``array[rows]`` are arrays of these rows in native byte order, and
    ``numpy.asarray`` reads all of it. A change of the file raises.

    Parameters
    ----------
    path : Path
    shape : tuple of int
    dtype : dtype
        Type in the file.
    start : int
        Offset of the first cell in bytes.
    by_rows : bool
        Whether the order is C (rows are contiguous) and not Fortran.
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: DTypeLike, start: int, by_rows: bool = True
    ) -> None:
        self.path, self.shape, self.start = path, shape, start
        self.by_rows = by_rows or len(shape) < 2
        self.stored = np.dtype(dtype)
        self.dtype = self.stored.newbyteorder("=")
        self.ndim, self.size = len(shape), int(np.prod(shape, dtype=object))
        self.nbytes = self.size * self.dtype.itemsize
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)
        self._seek_lock = threading.Lock()  # for systems that cannot read by position
        self.state = FileState.of(self._file)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"{self.path} is read where it is used; it cannot be had uncopied.")
        check_memory(self.path, self.nbytes)
        cells = self[:] if self.ndim else self._read(np.empty((), self.stored), 0)
        return cells if dtype is None else cells.astype(dtype, copy=False)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> np.ndarray:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.shape[0])
            if step != 1:
                raise IndexError("rows of a file are read one after another, or by their numbers")
            runs = [(start, max(start, stop))]
        else:
            rows = np.asarray(rows, np.int64)
            ends = np.flatnonzero(np.diff(rows) != 1) + 1
            runs = [(int(run[0]), int(run[-1]) + 1) for run in np.split(rows, ends) if run.size]
        cells = np.empty((sum(stop - start for start, stop in runs), *self.shape[1:]), self.stored)
        at = 0
        for start, stop in runs:
            self._read(cells[at : at + stop - start], start)
            at += stop - start
        self.state.check(self.path, self._file)
        return cells.astype(self.dtype, copy=False)

    def _read(self, cells: np.ndarray, first: int) -> np.ndarray:
        """Fill an array with the rows from ``first`` on."""
        itemsize = self.stored.itemsize
        if self.by_rows:
            width = itemsize * int(np.prod(self.shape[1:]))
            self._read_bytes(cells, self.start + first * width)
            return cells
        column = np.empty(len(cells), self.stored)
        for at, place in enumerate(np.ndindex(self.shape[:0:-1])):
            self._read_bytes(column, self.start + (at * self.shape[0] + first) * itemsize)
            cells[(slice(None), *place[::-1])] = column
        return cells

    def _read_bytes(self, cells: np.ndarray, offset: int) -> None:
        rest = memoryview(cells.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        try:
            while rest.nbytes:
                n_bytes = self._read_at(rest[:MAX_READ_BYTES], offset)
                if not n_bytes:
                    raise change_error(self.path)
                rest, offset = rest[n_bytes:], offset + n_bytes
        except OSError as error:
            if isinstance(error, UnreadableFile):
                raise
            raise UnreadableFile(f"{self.path} cannot be read ({error.strerror}).") from error

    def _read_at(self, buffer: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file, [buffer], offset)
        with self._seek_lock:
            os.lseek(self._file, offset, os.SEEK_SET)
            raw = os.read(self._file, len(buffer))
        buffer[: len(raw)] = raw
        return len(raw)
