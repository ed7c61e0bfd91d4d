"""Files written whole or not at all, by one at a time, what their bytes hash to, and why not."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from oddslip.arguments import check_path
from oddslip.errors import InvalidInput, OddslipError, UnreadableFile, first_line

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CHUNK_BYTES = 1 << 22
NAME_BYTES = 220  # of 255; the rest is for the hidden files beside an output
_PAUSE_S = 0.02  # between looks at a lock that is waited for
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def output_path(path: str | os.PathLike[str]) -> Path:
    """Where an output goes: the file a link points to, or else the path as it is.

    Refuses what is no file that can be written here, before any work is done: a folder, a device
    or a pipe, an address, a name that is too long or no text.

    Examples
    --------
    >>> output_path("report.txt").name
    'report.txt'
    """
    path = check_path("an output", path)
    _check_name(path)
    try:
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        if target.is_symlink():
            raise InvalidInput(f"{path} must be a file to write, got a link to itself.")
        if target.exists() and not target.is_file():
            what = "a folder" if target.is_dir() else "a device or a pipe"
            raise InvalidInput(f"{path} must be a file in an existing folder, got {what}.")
        known = target.absolute().parent.is_dir()
    except OSError as error:
        raise UnreadableFile(f"{path} can not be written ({error.strerror}).") from error
    if not known and _is_address(path):
        raise InvalidInput(
            f"{path} must be a path on this machine, got an address. "
            "Write a file here and copy it there."
        )
    if not known:
        raise InvalidInput(
            f"{path} must be a file in an existing folder. Make {target.parent} first."
        )
    return target


def output_folder(path: str | os.PathLike[str]) -> Path:
    """A folder that outputs go to, which may still have to be made; refuses what can not be one.

    Examples
    --------
    >>> output_folder("results").name
    'results'
    """
    path = check_path("a folder of outputs", path)
    _check_name(path)
    try:
        nearest = next(each for each in (path, *path.absolute().parents) if each.exists())
    except OSError as error:
        raise UnreadableFile(f"{path} can not be written ({error.strerror}).") from error
    if _is_address(path) and not path.exists():
        raise InvalidInput(f"{path} must be a folder on this machine, got an address.")
    if not nearest.is_dir():
        raise InvalidInput(f"{path} must be a folder, but {nearest} is a file.")
    return path


def _check_name(path: Path) -> None:
    try:
        text = str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"{path} must have a name that is text in UTF-8.") from None
    if b"\0" in text:
        raise InvalidInput(f"{path} must have a name without a zero byte.")
    length = len(path.name.encode("utf-8"))
    if length > NAME_BYTES:
        raise InvalidInput(
            f"the name of an output must be at most {NAME_BYTES} bytes long, got {length}: "
            f"{path.name[:40]}..."
        )


def _is_address(path: Path) -> bool:
    """Whether this looks like s3://bucket/file rather than a path."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:[/\\]", str(path)) is not None


_HELD: dict[str, int] = {}  # paths this process writes, and the thread that does
_HOLDING = Lock()
_BESIDE: dict[Path, None] = {}  # hidden files beside outputs in writing, in the order they came
_TAKEN = "{path} is being written by another process (pid {pid}). Wait for it or pass another path."


@contextmanager
def locked(path: str | os.PathLike[str], *, wait: bool = False) -> Iterator[None]:
    """Be the only one who writes a path; another who does is named, and we are refused, or wait.

    The lock is a hidden file beside the path, held by the system: it falls with the process, and
    one left behind by a killed process is taken over. Whoever holds it may take it again. Where
    the system has no such locks, as on Windows and on some network disks, nothing is locked.

    Examples
    --------
    >>> with locked("scores.npy"):  # doctest: +SKIP
    ...     write("scores.npy")
    """
    path = Path(path)
    key, me = os.path.realpath(path), threading.get_ident()
    while True:
        with _HOLDING:
            holder = _HELD.get(key)
            if holder is None:
                _HELD[key] = me
        if holder in (None, me) or not wait:
            break
        time.sleep(_PAUSE_S)
    if holder == me:
        yield
        return
    if holder is not None:
        raise InvalidInput(_TAKEN.format(path=path, pid=os.getpid()))
    try:
        with _file_lock(path, wait=wait):
            yield
    finally:
        del _HELD[key]


@contextmanager
def _file_lock(path: Path, *, wait: bool) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    beside = path.with_name(f".{path.name}.lock")
    while True:
        try:
            held = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UnreadableFile(f"{path} can not be written ({error.strerror}).") from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(held, 20, 0).decode("ascii", "replace").strip() or "not known"
            os.close(held)
            raise InvalidInput(_TAKEN.format(path=path, pid=pid)) from None
        except OSError:  # a disk without locks
            break
        if _is_same(held, beside):
            break
        os.close(held)  # its holder removed it between our opening and locking it
    _BESIDE[beside] = None
    try:
        with suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(held, 0)
            os.pwrite(held, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        beside.unlink(missing_ok=True)
        os.close(held)
        del _BESIDE[beside]


def _is_same(held: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(held), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside the wanted one, which takes its place once all went well.

    On an exception or Ctrl-C the temporary file is removed and the old file, if any, stays. Of two
    who write the same path the second is refused; what a killed one left behind is removed.

    Examples
    --------
    >>> with whole_file("report.txt") as unfinished:  # doctest: +SKIP
    ...     unfinished.write_text("done")
    """
    path = output_path(path)
    with locked(path):
        _remove_leftovers(path)
        # The ending stays, since some writers add their own to a name without it.
        unfinished = path.with_name(f".{path.stem}.{secrets.token_hex(6)}{path.suffix}")
        try:
            _BESIDE[unfinished] = None
            try:
                unfinished.touch(exist_ok=False)
            except OSError as error:
                raise UnreadableFile(f"{path} can not be written ({error.strerror}).") from error
            with no_room(path):
                yield unfinished
                flush(unfinished)
            os.replace(unfinished, path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        finally:
            _BESIDE.pop(unfinished, None)


@contextmanager
def hidden_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside the wanted one, removed at the end unless it got another name.

    Several processes may have one each for the same path; those that killed ones left are removed.
    """
    _remove_dead_folders(path)
    unfinished, held = _claim_folder(path)
    _BESIDE[unfinished] = None
    try:
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        os.close(held)
        del _BESIDE[unfinished]


def _claim_folder(path: Path) -> tuple[Path, int]:
    """A new folder, and the lock on it that falls with the process."""
    while True:
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        unfinished.mkdir(parents=True)
        if fcntl is None:
            return unfinished, os.open(os.devnull, os.O_RDONLY)
        held = os.open(unfinished, os.O_RDONLY | os.O_CLOEXEC)
        with suppress(OSError):  # a disk without locks
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same(held, unfinished):
            return unfinished, held
        os.close(held)  # taken for a dead one's before we had the lock


def _remove_dead_folders(path: Path) -> None:
    if fcntl is None or not path.parent.is_dir():
        return
    ours = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{12}")
    for name in os.listdir(path.parent):
        if not ours.fullmatch(name):
            continue
        with suppress(OSError):
            held = os.open(path.with_name(name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where its maker lives
                shutil.rmtree(path.with_name(name), ignore_errors=True)
            finally:
                os.close(held)


def abandon() -> None:
    """Remove what lies unfinished beside outputs: for a process that ends here and now."""
    for path in reversed(list(_BESIDE)):  # a lock goes after what it guards
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Temporary files of a killed run; the lock says that no living one writes this path."""
    if fcntl is None:
        return
    ours = re.compile(re.escape(f".{path.stem}.") + "[0-9a-f]{12}" + re.escape(path.suffix))
    for name in os.listdir(path.absolute().parent):
        if ours.fullmatch(name):
            path.with_name(name).unlink(missing_ok=True)


@contextmanager
def no_room(path: Path, advice: str = "Make room, or pass another path.") -> Iterator[None]:
    """Say it in one line where the disk is full or the file may not grow."""
    try:
        yield
    except Exception as error:
        # NumPy says how much it wrote, and not why it stopped; polars says why in words alone.
        number = getattr(error, "errno", None)
        short = isinstance(error, OSError) and number is None and " requested and " in str(error)
        told = re.search(r"\(os error (\d+)\)", str(error))
        number = int(told[1]) if told else number
        if isinstance(error, OddslipError) or not (short or number in _NO_ROOM):
            raise
        why = os.strerror(errno.ENOSPC if number is None else number)
        raise UnreadableFile(f"{path} can not be written ({why}). {advice}") from error


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


def unreadable(path: Any, error: Exception, otherwise: str) -> UnreadableFile:
    """The one line to raise when a file can not be read: why, or else that it is ``otherwise``."""
    if isinstance(error, FileNotFoundError):
        return UnreadableFile(f"{path} does not exist.")
    if isinstance(error, IsADirectoryError):
        return UnreadableFile(f"{path} is a folder, not a file.")
    if isinstance(error, PermissionError):
        return UnreadableFile(f"{path} may not be read. Check its permissions.")
    return UnreadableFile(f"{path} is {otherwise} ({first_line(error)}).")
