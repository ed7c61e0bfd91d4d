"""Files written whole or not at all, what their bytes hash to, and why one can not be read."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oddslip.errors import InvalidInput, UnreadableFile

CHUNK_BYTES = 1 << 22


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside the wanted one, which takes its place once all went well.

    On an exception or Ctrl-C the temporary file is removed and the old file, if any, stays.

    Examples
    --------
    >>> with whole_file("report.txt") as unfinished:  # doctest: +SKIP
    ...     unfinished.write_text("done")
    """
    path = Path(path)
    check_place(path)
    # The ending stays, since some writers add their own to a name without it.
    unfinished = path.with_name(f".{path.stem}.{secrets.token_hex(6)}{path.suffix}")
    try:
        try:
            unfinished.touch(exist_ok=False)
        except OSError as error:
            raise UnreadableFile(f"{path} can not be written ({error.strerror}).") from error
        yield unfinished
        flush(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def check_place(path: Path) -> None:
    """Refuse a place where no file can be written: a folder, or within none."""
    if path.is_dir():
        raise InvalidInput(f"{path} must be a file to write, got a folder.")
    if not path.parent.is_dir():
        raise InvalidInput(f"{path} must lie in an existing folder. Make {path.parent} first.")


def flush(path: Path) -> None:
    """Have the bytes on disk before the name says so."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def hash_bytes(raw: bytes) -> str:
    """SHA-256 of some bytes."""
    return hash_pieces([raw])


def hash_pieces(pieces: Iterable[Any]) -> str:
    """SHA-256 of bytes, or of arrays that lie in one piece, one after another.

    Examples
    --------
    >>> hash_pieces([b"ab", b"c"]) == hash_bytes(b"abc")
    True
    """
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def hash_file(path: Path, advance: Callable[[int], object] = lambda _: None) -> str:
    """SHA-256 of a file, read in small pieces; ``advance`` is told the size of each."""
    digest = hashlib.sha256()
    try:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(CHUNK_BYTES):
                digest.update(piece)
                advance(len(piece))
    except OSError as error:
        raise UnreadableFile(f"{path} can not be read ({error.strerror}).") from error
    return digest.hexdigest()


def unreadable(path: Path, error: Exception, otherwise: str) -> UnreadableFile:
    """The one line to raise when a file can not be read: why, or else that it is ``otherwise``."""
    if isinstance(error, FileNotFoundError):
        return UnreadableFile(f"{path} does not exist.")
    if isinstance(error, IsADirectoryError):
        return UnreadableFile(f"{path} is a folder, not a file.")
    if isinstance(error, PermissionError):
        return UnreadableFile(f"{path} may not be read. Check its permissions.")
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return UnreadableFile(f"{path} is {otherwise} ({line}).")
