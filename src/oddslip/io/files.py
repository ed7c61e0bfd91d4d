"""Atomic file writes, locks between writers, SHA-256 digests, and I/O error messages."""

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
from typing import IO, TYPE_CHECKING

from oddslip.errors import InvalidInput, OddslipError, UnreadableFile, first_line
from oddslip.io.paths import as_address, check_path

if TYPE_CHECKING:
    from typing_extensions import Buffer

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CHUNK_BYTES = 1 << 22
MAX_NAME_BYTES = 220  # of 255; the rest is for temporary files beside an output
_POLL_S = 0.02  # between two attempts to get a lock of another thread
_DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def output_path(path: str | os.PathLike[str]) -> Path:
    """Validate the path of an output, before any work is done, and follow a link.

    Parameters
    ----------
    path : path

    Returns
    -------
    Path
        The file that a link points to, or else the path itself.

    Raises
    ------
    InvalidInput
        For a folder, a device, a pipe, a read-only file, a URL, or a name that cannot be used.

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
        has_folder = target.absolute().parent.is_dir()
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be written ({error.strerror}).") from error
    if not has_folder and as_address(path) is not None:
        raise InvalidInput(
            f"{path} must be a path on this machine, got an address. "
            "Write a file here and copy it there."
        )
    if not has_folder:
        raise InvalidInput(
            f"{path} must be a file in an existing folder. Make {target.parent} first."
        )
    return target


def _is_writable(path: Path) -> bool:
    """Whether mode and system allow a write; the mode counts for root too."""
    return bool(path.stat().st_mode & 0o222) and os.access(path, os.W_OK)


def output_folder(path: str | os.PathLike[str]) -> Path:
    """Validate the path of a folder for outputs, which need not exist yet.

    Parameters
    ----------
    path : path

    Returns
    -------
    Path

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
        raise UnreadableFile(f"{path} cannot be written ({error.strerror}).") from error
    if as_address(path) is not None and not path.exists():
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
    if length > MAX_NAME_BYTES:
        raise InvalidInput(
            f"the name of an output must be at most {MAX_NAME_BYTES} bytes long, got {length}: "
            f"{path.name[:40]}..."
        )


_writers: dict[str, int] = {}  # paths that this process writes, and the thread that does
_writers_lock = threading.Lock()
_temporary: dict[Path, None] = {}  # locks and unfinished outputs, in the order of their creation
_BUSY = "{path} is being written by another {writer}. Wait for it or pass another path."
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


@contextmanager
def lock(path: str | os.PathLike[str], *, wait: bool = False) -> Iterator[None]:
    """Be the only writer of a path among the processes and threads of this user on this machine.

    The lock is a file in a private folder, held by the system: it ends with the process, and one
    that a killed process left behind is taken over. The thread that holds it may take it again.
    Other users and machines do not see it. Their files are not mixed with ours, because every
    output is written to a temporary file first; the last one stays.

    Parameters
    ----------
    path : path
        Need not exist.
    wait : bool
        Whether to wait for another writer, and not to raise.

    Raises
    ------
    InvalidInput
        If there is another writer; the message names its process.

    Examples
    --------
    >>> with lock("scores.npy"):  # doctest: +SKIP
    ...     write("scores.npy")
    """
    path = Path(path)
    key, this_thread = os.path.realpath(path), threading.get_ident()
    while True:
        with _writers_lock:
            writer = _writers.get(key)
            if writer is None:
                _writers[key] = this_thread
        if writer in (None, this_thread) or not wait:
            break
        time.sleep(_POLL_S)
    if writer == this_thread:
        yield
        return
    if writer is not None:
        raise InvalidInput(_BUSY.format(path=path, writer="thread of this process"))
    try:
        with _process_lock(path, key, wait=wait):
            yield
    finally:
        del _writers[key]


@contextmanager
def _process_lock(path: Path, key: str, *, wait: bool) -> Iterator[None]:
    folder = _lock_folder()
    if fcntl is None or folder is None:
        yield
        return
    file = folder / f"{hash_bytes(os.fsencode(key))[:32]}.lock"
    while True:
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
        except OSError:  # a full disk, or not our file: the output is written atomically anyway
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "not known"
            os.close(descriptor)
            raise InvalidInput(_BUSY.format(path=path, writer=f"process (pid {pid})")) from None
        except OSError:  # a disk without locks
            break
        if _is_same(descriptor, file):
            break
        os.close(descriptor)  # its holder removed it between our open and our flock
    _temporary[file] = None
    try:
        with suppress(OSError):  # on a full disk the lock works all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)
        del _temporary[file]


def hold_file(file: IO[bytes] | IO[str], path: Path) -> None:
    """Lock an open file that other users and machines may share, until it is closed.

    For files that are written in place: a log, or the unfinished scores of ``path``. Raises if
    another process has it locked. On a disk without locks nothing is locked.
    """
    if fcntl is None:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InvalidInput(_BUSY.format(path=path, writer="process")) from None
    except OSError:  # a disk without locks
        pass


def _lock_folder() -> Path | None:
    """The private folder of locks; None if this user cannot have one."""
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
    """Write a file as a whole or not at all, through a temporary file beside it.

    On an exception or Ctrl-C the temporary file is removed and the old file, if any, stays. A
    second writer of the same path gets an error. Temporary files of killed writers are removed.
    The new file has the mode of the old one.

    Parameters
    ----------
    path : path
        Where the file goes. A link stays, and its target is replaced.
    check : callable, optional
        Reads the finished temporary file. If it raises, the old file stays.

    Yields
    ------
    Path
        The temporary file.

    Examples
    --------
    >>> with atomic_write("report.txt") as unfinished:  # doctest: +SKIP
    ...     unfinished.write_text("done")
    """
    path = output_path(path)
    with lock(path):
        _remove_abandoned(path, f"{path.stem}.", path.suffix)
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
            _temporary.pop(unfinished, None)
            if descriptor is not None:
                os.close(descriptor)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text atomically, with the same line ends on every system."""
    with atomic_write(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def write_bytes(path: str | os.PathLike[str], raw: bytes) -> None:
    """Write bytes atomically, and read them back before they take their place."""

    def check(unfinished: Path) -> None:
        if unfinished.stat().st_size != len(raw) or hash_file(unfinished) != hash_bytes(raw):
            raise UnreadableFile(f"{unfinished} does not hold what was written to it.")

    with atomic_write(path, check=check) as unfinished:
        unfinished.write_bytes(raw)


def _claim_file(path: Path) -> tuple[Path, int | None]:
    """Create a temporary file with the mode of the output, and lock it as long as we live."""
    while True:
        # Some writers append their own suffix to a name that lacks it.
        unfinished = path.with_name(f".{path.stem}.{secrets.token_hex(6)}{path.suffix}")
        _temporary[unfinished] = None
        try:
            descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o666)
            keep_mode(unfinished, path)
        except OSError as error:
            _temporary.pop(unfinished)
            raise UnreadableFile(f"{path} cannot be written ({error.strerror}).") from error
        if fcntl is None:  # Windows replaces no file that is open
            os.close(descriptor)
            return unfinished, None
        with suppress(OSError):  # a disk without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same(descriptor, unfinished):
            return unfinished, descriptor
        os.close(descriptor)  # removed by another writer before we had the lock
        _temporary.pop(unfinished)


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
    """Raise if the finished file cannot be read again."""
    try:
        check(unfinished)
    except OddslipError as error:
        reason = str(error).replace(str(unfinished), "it")
        raise UnreadableFile(
            f"{path} was not written, since what was read back is wrong: {reason}"
        ) from error


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside ``path``, removed at the end unless the caller renamed it.

    Several processes may have one each for the same path. Folders of killed processes are removed.
    """
    if path.parent.is_dir():
        _remove_abandoned(path, f"{path.name}.", "", folders=True)
    unfinished, descriptor = _claim_folder(path)
    _temporary[unfinished] = None
    try:
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        os.close(descriptor)
        del _temporary[unfinished]


def _claim_folder(path: Path) -> tuple[Path, int]:
    """Create a temporary folder, and lock it as long as we live."""
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
        os.close(descriptor)  # removed by another writer before we had the lock


def _remove_abandoned(path: Path, stem: str, suffix: str, *, folders: bool = False) -> None:
    """Remove temporary files or folders that no living process has locked."""
    if fcntl is None:
        return
    pattern = re.compile(rf"\.{re.escape(stem)}[0-9a-f]{{12}}{re.escape(suffix)}")
    flags = _NO_LINK | (os.O_DIRECTORY if folders else os.O_RDWR)
    for name in filter(pattern.fullmatch, os.listdir(path.absolute().parent)):
        with suppress(OSError):  # of another user, a link, or on a disk without locks
            descriptor = os.open(path.with_name(name), flags)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if in use
                _remove(path.with_name(name))
            finally:
                os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def abandon() -> None:
    """Remove locks and unfinished outputs, for a process that is about to end."""
    for path in reversed(list(_temporary)):  # a lock after what it guards
        _remove(path)


@contextmanager
def disk_full_message(
    path: Path, advice: str = "Free disk space, or pass another path."
) -> Iterator[None]:
    """Turn errors of a full disk, or of a file that may not grow, into one line."""
    try:
        yield
    except Exception as error:
        # NumPy reports how much it wrote and no errno, polars the errno in its text only.
        number = getattr(error, "errno", None)
        short = isinstance(error, OSError) and number is None and " requested and " in str(error)
        match = re.search(r"\(os error (\d+)\)", str(error))
        number = int(match[1]) if match else number
        if isinstance(error, OddslipError) or not (short or number in _DISK_FULL):
            raise
        why = os.strerror(errno.ENOSPC if number is None else number)
        raise UnreadableFile(f"{path} cannot be written ({why}). {advice}") from error


def flush(path: Path) -> None:
    """Write the bytes of a file to disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def hash_bytes(raw: bytes) -> str:
    """SHA-256 of some bytes."""
    return hash_pieces([raw])


def hash_pieces(pieces: Iterable[Buffer]) -> str:
    """SHA-256 of bytes or contiguous arrays, one after another.

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
    """SHA-256 of a file, read in small pieces; ``advance`` gets the size of each."""
    digest = hashlib.sha256()
    try:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(CHUNK_BYTES):
                digest.update(piece)
                advance(len(piece))
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read ({error.strerror}).") from error
    return digest.hexdigest()


def unreadable(path: object, error: Exception, otherwise: str) -> UnreadableFile:
    """The error to raise if a file cannot be read: the reason, or that it is ``otherwise``."""
    if isinstance(error, FileNotFoundError):
        return UnreadableFile(f"{path} does not exist.")
    if isinstance(error, IsADirectoryError):
        return UnreadableFile(f"{path} is a folder, not a file.")
    if isinstance(error, PermissionError):
        return UnreadableFile(f"{path} may not be read. Check its permissions.")
    return UnreadableFile(f"{path} is {otherwise} ({first_line(error)}).")
