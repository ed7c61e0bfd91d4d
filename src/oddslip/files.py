"""Files written whole or not at all, and what their bytes hash to."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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
    if path.is_dir():
        raise InvalidInput(f"{path} must be a file to write, got a folder.")
    if not path.parent.is_dir():
        raise InvalidInput(f"{path} must lie in an existing folder. Make {path.parent} first.")
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


def flush(path: Path) -> None:
    """Have the bytes on disk before the name says so."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def hash_bytes(raw: bytes) -> str:
    """SHA-256 of some bytes."""
    return hashlib.sha256(raw).hexdigest()


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
