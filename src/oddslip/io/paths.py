"""Find input files: a path, a pattern such as ``scores-*.parquet``, a folder, a list, a URL.

Files of a pattern or a folder come in the natural order of their names: part-2 before part-10.
Those of a list keep its order.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard, TypeVar

from oddslip.errors import InvalidInput, UnreadableFile, first_line

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileSystem

Form = Literal["array", "csv", "parquet"]
FORMS: dict[str, Form] = {
    ".npy": "array",
    ".npz": "array",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
}
ENDINGS = ".npy, .npz, .csv or .parquet"
CONNECT_S, REQUEST_S, MAX_ATTEMPTS = 5, 20, 2  # for a store that does not answer
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+-]+):[/\\]+(.*)", re.DOTALL)


class Remote:
    """A file at a URL, with the few attributes of a path that readers use."""

    def __init__(self, filesystem: FileSystem, inner: str, address: str) -> None:
        self.filesystem, self.inner, self.address = filesystem, inner, address
        self.name = inner.rsplit("/", 1)[-1]

    def __str__(self) -> str:
        return self.address

    def open(self, mode: str = "rb") -> NativeFile:
        """Open the file for random access."""
        return self.filesystem.open_input_file(self.inner)


File = TypeVar("File", Path, Remote)


class InputFiles(NamedTuple):
    """Files of one form, in reading order, and their name in error messages."""

    name: Path | str
    form: Form
    files: list[Any]  # of Path or Remote


def is_path(thing: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether this is a path, and not the data."""
    return isinstance(thing, str | os.PathLike)


def is_files(thing: object) -> bool:
    """Whether this is a path, a pattern, a URL, or a list of them.

    A list of texts is one of files if every text ends like a file.
    """
    if is_path(thing):
        return True
    if not isinstance(thing, list | tuple) or not thing:
        return False
    return all(is_path(each) and Path(each).suffix in FORMS for each in thing)


def find_files(path: Any) -> InputFiles:
    """Find the files of a path, a pattern, a URL, or a list of them.

    Parameters
    ----------
    path : path or list of paths

    Returns
    -------
    InputFiles

    Examples
    --------
    >>> find_files("scores.npy").form
    'array'
    """
    if is_path(path):
        return _find(path)
    parts = [_find(each) for each in path]
    first = parts[0]
    for part in parts:
        if part.form != first.form:
            raise InvalidInput(
                f"files of a list must be of one form, got {part.name} after {first.name}."
            )
    files = [file for part in parts for file in part.files]
    name = f"{first.name} and {len(files) - 1} more" if len(files) > 1 else first.name
    return InputFiles(name, first.form, files)


def _find(path: str | os.PathLike[str]) -> InputFiles:
    address = as_address(path)
    if address is not None:
        return _find_remote(address)
    path = Path(path)
    if _exists(path) or not glob.has_magic(str(path)):
        if path.is_dir():
            return InputFiles(path, "parquet", _parquet_files(path, path.iterdir()))
        return InputFiles(path, form_of(path), [path])
    files = natural(Path(name) for name in glob.iglob(str(path)))
    files = [file for file in files if file.suffix in FORMS]
    if not files:
        raise UnreadableFile(f"{path} must match a file that ends in {ENDINGS}, but none does.")
    other = next((each for each in files if form_of(each) != form_of(files[0])), None)
    if other is not None:
        raise InvalidInput(
            f"{path} must match files of one form, got {other.name} and {files[0].name}."
        )
    return InputFiles(path, form_of(files[0]), files)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # the reader explains it
        return False


def form_of(path: Path) -> Form:
    """The form of a file, by its ending."""
    form = FORMS.get(path.suffix)
    if form is None:
        if not _exists(path):
            raise UnreadableFile(f"{path} does not exist.")
        raise UnreadableFile(f"{path} must end in {ENDINGS}, got {path.suffix or 'no ending'!r}.")
    return form


def natural(files: Iterable[File]) -> list[File]:
    """Sort files by name, and the numbers in names as numbers.

    Examples
    --------
    >>> [path.name for path in natural([Path("part-10"), Path("part-2"), Path("part-02b")])]
    ['part-2', 'part-02b', 'part-10']
    """

    def key(file: File) -> tuple[list[tuple[int, str]], str]:
        parts = re.split(r"([0-9]+)", str(file))
        return [(int(p), "") if at % 2 else (-1, p) for at, p in enumerate(parts)], str(file)

    return sorted(files, key=key)


def _parquet_files(folder: Path | str, files: Iterable[File]) -> list[File]:
    """The Parquet files of a folder, without names that start with a dot or an underscore."""
    files = natural(
        file
        for file in files
        if file.name[:1] not in ("", ".", "_") and file.name.endswith((".parquet", ".pq"))
    )
    if not files:
        raise UnreadableFile(f"{folder} is a folder without .parquet files.")
    return files


# --- Addresses ------------------------------------------------------------------------------------


def as_address(path: str | os.PathLike[str]) -> str | None:
    """The URL of a path such as ``s3://bucket/file``, whose slashes `Path` joins; None for others.

    Examples
    --------
    >>> as_address(Path("s3://bucket/scores.parquet"))
    's3://bucket/scores.parquet'
    >>> as_address("scores.parquet") is None
    True
    """
    match = _ADDRESS.fullmatch(os.fspath(path))
    if match is None:
        return None
    scheme = match[1].lower()
    return f"{scheme}://{'/' if scheme == 'file' else ''}{match[2]}"


def _find_remote(address: str) -> InputFiles:
    """Parquet files at a URL: a file, a folder, or a pattern in its last part."""
    import pyarrow as pa
    from pyarrow import fs

    plain = address.partition("?")[0] if not glob.has_magic(address) else address
    try:
        filesystem, inner = _filesystem(address)
        inner = inner.rstrip("/")
        folder, _, last = inner.rpartition("/")
        if glob.has_magic(last):
            entries = _entries(filesystem, folder, plain.rpartition("/")[0])
            files = [file for file in entries if fnmatch.fnmatchcase(file.name, last)]
            return InputFiles(address, "parquet", _parquet_files(address, files))
        info = filesystem.get_file_info(inner)
        if info.type == fs.FileType.NotFound:
            raise UnreadableFile(f"{address} does not exist.")
        if info.type == fs.FileType.Directory:
            files = _parquet_files(address, _entries(filesystem, inner, plain.rstrip("/")))
            return InputFiles(address, "parquet", files)
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(
            f"{address} cannot be reached ({first_line(error)}). Check the address, the network "
            "and your credentials, or copy the files here."
        ) from error
    if not inner.endswith((".parquet", ".pq")):
        raise UnreadableFile(
            f"{address} must be Parquet to be read at an address. Copy other files here."
        )
    return InputFiles(address, "parquet", [Remote(filesystem, inner, address)])


def _entries(filesystem: FileSystem, folder: str, address: str) -> list[Remote]:
    from pyarrow import fs

    return [
        Remote(filesystem, info.path, f"{address}/{info.base_name}")
        for info in filesystem.get_file_info(fs.FileSelector(folder))
        if info.type == fs.FileType.File
    ]


def _filesystem(address: str) -> tuple[FileSystem, str]:
    """The file system of a URL and the path in it: one of pyarrow's, or else of fsspec's."""
    import pyarrow as pa
    from pyarrow import fs

    if address.startswith("s3://"):
        return _s3(address)
    if address.startswith(("gs://", "gcs://")):
        return _gcs(address)
    try:
        filesystem, inner = fs.FileSystem.from_uri(address)
    except pa.ArrowInvalid as error:
        if "nrecognized filesystem" not in str(error):
            raise
        filesystem, inner = fs.FileSystem.from_uri(f"fsspec+{address}")
    return filesystem, str(inner)


def _s3(address: str) -> tuple[FileSystem, str]:
    """S3, with short timeouts. Options are those of pyarrow's URLs:
    ``?region=...&endpoint_override=...&scheme=...``."""
    from urllib.parse import parse_qsl, urlsplit

    from pyarrow import fs

    split = urlsplit(address)
    options: dict[str, Any] = dict(parse_qsl(split.query))
    names = ("region", "endpoint_override", "scheme")
    other = next((name for name in options if name not in names), None)
    if other is not None:
        raise UnreadableFile(
            f"{address} may say {', '.join(names)}, got {other!r:.60}. Keys come from the "
            "environment."
        )
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region:
        options.setdefault("region", region)
    filesystem = fs.S3FileSystem(
        connect_timeout=CONNECT_S,
        request_timeout=REQUEST_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=MAX_ATTEMPTS),
        **options,
    )
    return filesystem, f"{split.netloc}{split.path}"


def _gcs(address: str) -> tuple[FileSystem, str]:
    """Google Cloud Storage. Its default is to retry for 15 minutes."""
    from datetime import timedelta

    from pyarrow import fs

    inner = address.partition("://")[2]
    bucket = inner.removeprefix("anonymous@")
    limit = timedelta(seconds=REQUEST_S)
    filesystem = fs.GcsFileSystem(anonymous=inner != bucket, retry_time_limit=limit)
    return filesystem, bucket


def check_path(name: str, value: object) -> Path:
    """Validate a path, which may be a text; ``name`` is the name of the argument.

    Examples
    --------
    >>> check_path("checkpoint", "folder").name
    'folder'
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise InvalidInput(f"{name} must be a path, got {value!r:.60}.")
    return Path(value)
