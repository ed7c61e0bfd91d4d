"""Atomic file writes, locks between writers, SHA-256 digests, and messages of I/O errors."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any

from oddslip.errors import InvalidInput, OddslipError, UnreadableFile, first_line
from oddslip.io.paths import check_path

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
    or a pipe, a read-only file, an address, a name that is too long or no text.

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
        if target.exists() and not _is_writable(target):
            raise InvalidInput(
                f"{path} must be a file that may be replaced, got a read-only one. "
                "Make it writable, or pass another path."
            )
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


def _is_writable(path: Path) -> bool:
    """Whether its mode lets somebody write a file, and the system lets us: root may do anything."""
    return bool(path.stat().st_mode & 0o222) and os.access(path, os.W_OK)


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
_BESIDE: dict[Path, None] = {}  # locks, and files beside outputs in writing, in the order they came
_TAKEN = "{path} is being written by another {writer}. Wait for it or pass another path."
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


@contextmanager
def locked(path: str | os.PathLike[str], *, wait: bool = False) -> Iterator[None]:
    """Be the only one who writes a path; another who does is named, and we are refused, or wait.

    The lock is a file in a folder that belongs to this user alone, held by the system: it falls
    with the process, and one left behind by a killed process is taken over. Whoever holds it may
    take it again. It holds between the processes of one user on one machine. Other users, other
    machines, and systems without such locks never mix their files, since each writes one of its
    own and puts it in place at once: the last one stays.

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
        raise InvalidInput(_TAKEN.format(path=path, writer="thread of this process"))
    try:
        with _process_lock(path, key, wait=wait):
            yield
    finally:
        del _HELD[key]


@contextmanager
def _process_lock(path: Path, key: str, *, wait: bool) -> Iterator[None]:
    folder = _lock_folder()
    if fcntl is None or folder is None:
        yield
        return
    lock = folder / f"{hash_bytes(os.fsencode(key))[:32]}.lock"
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
        except OSError:  # a full disk, or no file of ours: the output is whole all the same
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "not known"
            os.close(descriptor)
            raise InvalidInput(_TAKEN.format(path=path, writer=f"process (pid {pid})")) from None
        except OSError:  # a disk without locks
            break
        if _is_same(descriptor, lock):
            break
        os.close(descriptor)  # its holder removed it between our opening and locking it
    _BESIDE[lock] = None
    try:
        with suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)
        del _BESIDE[lock]


def hold_file(file: IO[Any], path: Path) -> None:
    """Lock an open file that other users and machines may share, until it is closed.

    For what is written in place: a log, or the unfinished scores of ``path``. One that another
    holds is refused; on a disk without locks nothing is locked.
    """
    if fcntl is None:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InvalidInput(_TAKEN.format(path=path, writer="process")) from None
    except OSError:  # a disk without locks
        pass


def _lock_folder() -> Path | None:
    """A folder for locks that nobody else can write to; None where there can be none."""
    if fcntl is None:
        return None
    folder = Path(tempfile.gettempdir()) / f"oddslip-{os.geteuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        private = status.st_uid == os.geteuid() and not status.st_mode & 0o077
        if stat.S_ISDIR(status.st_mode) and private:
            return folder
    return None


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], *, check: Callable[[Path], object] | None = None
) -> Iterator[Path]:
    """A temporary path beside the wanted one, which takes its place once all went well.

    On an exception or Ctrl-C the temporary file is removed and the old file, if any, stays. Of two
    who write the same path the second is refused; what a killed one left behind is removed. The
    mode of the old file is kept.

    Parameters
    ----------
    path : path
        Where the file goes; through a link, to the file that it points to.
    check : callable, optional
        Is given the finished temporary file, to read it back; if it raises, the old file stays.

    Examples
    --------
    >>> with atomic_write("report.txt") as unfinished:  # doctest: +SKIP
    ...     unfinished.write_text("done")
    """
    path = output_path(path)
    with locked(path):
        _remove_leftovers(path)
        unfinished, descriptor = _claim_file(path)
        try:
            with disk_full_message(path):
                yield unfinished
                flush(unfinished)
            if check is not None:
                _read_back(unfinished, path, check)
            os.replace(unfinished, path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        finally:
            _BESIDE.pop(unfinished, None)
            if descriptor is not None:
                os.close(descriptor)


def _claim_file(path: Path) -> tuple[Path, int | None]:
    """A new file beside an output, with its mode, and the lock on it: it falls with the process."""
    while True:
        # The ending stays, since some writers add their own to a name without it.
        unfinished = path.with_name(f".{path.stem}.{secrets.token_hex(6)}{path.suffix}")
        _BESIDE[unfinished] = None
        try:
            descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o666)
            keep_mode(unfinished, path)
        except OSError as error:
            _BESIDE.pop(unfinished)
            raise UnreadableFile(f"{path} can not be written ({error.strerror}).") from error
        if fcntl is None:  # Windows replaces no file that is open
            os.close(descriptor)
            return unfinished, None
        with suppress(OSError):  # a disk without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same(descriptor, unfinished):
            return unfinished, descriptor
        os.close(descriptor)  # taken for a dead one's before we had the lock
        _BESIDE.pop(unfinished)


def keep_mode(unfinished: Path, path: Path) -> None:
    """Give a file the mode of the one it is to replace, and its owner where we may."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(unfinished, status.st_uid, status.st_gid)
    unfinished.chmod(stat.S_IMODE(status.st_mode))


def _read_back(unfinished: Path, path: Path, check: Callable[[Path], object]) -> None:
    """Let nothing take its place that can not be read again."""
    try:
        check(unfinished)
    except OddslipError as error:
        reason = str(error).replace(str(unfinished), "it")
        raise UnreadableFile(
            f"{path} was not written, since what was read back is wrong: {reason}"
        ) from error


def check_bytes(raw: bytes) -> Callable[[Path], None]:
    """A check for `atomic_write`: the file holds these bytes and no others."""

    def check(path: Path) -> None:
        if path.stat().st_size != len(raw) or hash_file(path) != hash_bytes(raw):
            raise UnreadableFile(f"{path} does not hold what was written to it.")

    return check


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside the wanted one, removed at the end unless it got another name.

    Several processes may have one each for the same path; those that killed ones left are removed.
    """
    _remove_dead_folders(path)
    unfinished, descriptor = _claim_folder(path)
    _BESIDE[unfinished] = None
    try:
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        os.close(descriptor)
        del _BESIDE[unfinished]


def _claim_folder(path: Path) -> tuple[Path, int]:
    """A new folder, and the lock on it that falls with the process."""
    while True:
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        unfinished.mkdir(parents=True)
        if fcntl is None:
            return unfinished, os.open(os.devnull, os.O_RDONLY)
        descriptor = os.open(unfinished, os.O_RDONLY)
        with suppress(OSError):  # a disk without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same(descriptor, unfinished):
            return unfinished, descriptor
        os.close(descriptor)  # taken for a dead one's before we had the lock


def _remove_dead_folders(path: Path) -> None:
    if fcntl is None or not path.parent.is_dir():
        return
    ours = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{12}")
    for name in os.listdir(path.parent):
        if not ours.fullmatch(name):
            continue
        with suppress(OSError):
            descriptor = os.open(path.with_name(name), os.O_RDONLY | _NO_LINK)
            try:
                fcntl.flock(
                    descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB
                )  # fails where its maker lives
                shutil.rmtree(path.with_name(name), ignore_errors=True)
            finally:
                os.close(descriptor)


def abandon() -> None:
    """Remove what lies unfinished beside outputs: for a process that ends here and now."""
    for path in reversed(list(_BESIDE)):  # a lock goes after what it guards
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of killed runs: those that no living process has locked."""
    if fcntl is None:
        return
    ours = re.compile(re.escape(f".{path.stem}.") + "[0-9a-f]{12}" + re.escape(path.suffix))
    for name in os.listdir(path.absolute().parent):
        if not ours.fullmatch(name):
            continue
        with suppress(OSError):  # another user's, a link, or on a disk without locks
            descriptor = os.open(path.with_name(name), os.O_RDWR | _NO_LINK)
            try:
                fcntl.flock(
                    descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB
                )  # fails where its maker lives
                path.with_name(name).unlink()
            finally:
                os.close(descriptor)


@contextmanager
def disk_full_message(
    path: Path, advice: str = "Make room, or pass another path."
) -> Iterator[None]:
    """Say it in one line where the disk is full or the file may not grow."""
    try:
        yield
    except Exception as error:
        # NumPy says how much it wrote, and not why it stopped; polars says why in words alone.
        number = getattr(error, "errno", None)
        short = isinstance(error, OSError) and number is None and " requested and " in str(error)
        match = re.search(r"\(os error (\d+)\)", str(error))
        number = int(match[1]) if match else number
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
