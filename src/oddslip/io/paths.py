"""Where files are: a path, a pattern such as ``scores-*.parquet``, a folder, a list, an address.

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
from typing import Any, Literal, NamedTuple

from oddslip.errors import InvalidInput, UnreadableFile, first_line

Form = Literal["array", "csv", "parquet"]
FORMS: dict[str, Form] = {
    ".npy": "array", ".npz": "array", ".parquet": "parquet", ".pq": "parquet", ".csv": "csv",
    ".tsv": "csv",
}  # fmt: skip
ENDINGS = ".npy, .npz, .csv or .parquet"
CONNECT_S, REQUEST_S, ATTEMPTS = 5, 20, 2  # of a store that does not answer
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+-]+):[/\\]+(.*)", re.DOTALL)


class Remote:
    """A file at an address, with the few manners of a path that its readers use."""

    def __init__(self, filesystem: Any, inner: str, address: str) -> None:
        self.filesystem, self.inner, self.address = filesystem, inner, address
        self.name = inner.rsplit("/", 1)[-1]

    def __str__(self) -> str:
        return self.address

    def open(self, mode: str = "rb") -> Any:
        """The file, to be read at any place."""
        return self.filesystem.open_input_file(self.inner)


class Found(NamedTuple):
    """Files of one form, in the order in which they are read; and what errors call them."""

    called: Any
    form: Form
    files: list[Any]


def is_path(thing: Any) -> bool:
    """Whether this names a file rather than being the data."""
    return isinstance(thing, str | os.PathLike)


def is_files(thing: Any) -> bool:
    """Whether this names files: a path, a pattern, an address, or a list of them.

    A list of texts could be other things. It names files if every text ends like one.
    """
    if is_path(thing):
        return True
    if not isinstance(thing, list | tuple) or not thing:
        return False
    return all(is_path(each) and Path(each).suffix in FORMS for each in thing)


def find_files(given: Any) -> Found:
    """The files that a path, a pattern, an address or a list of them names.

    Examples
    --------
    >>> find_files("scores.npy").form
    'array'
    """
    if is_path(given):
        return _find(given)
    parts = [_find(each) for each in given]
    first = parts[0]
    for part in parts:
        if part.form != first.form:
            raise InvalidInput(
                f"files of a list must be of one form, got {part.called} after {first.called}."
            )
    files = [file for part in parts for file in part.files]
    called = f"{first.called} and {len(files) - 1} more" if len(files) > 1 else first.called
    return Found(called, first.form, files)


def _find(given: Any) -> Found:
    address = as_address(given)
    if address is not None:
        return _find_remote(address)
    path = Path(given)
    if _exists(path) or not glob.has_magic(str(path)):
        if path.is_dir():
            return Found(path, "parquet", _parquet_files(path, path.iterdir()))
        return Found(path, form_of(path), [path])
    files = natural(Path(name) for name in glob.iglob(str(path)))
    files = [file for file in files if file.suffix in FORMS]
    if not files:
        raise UnreadableFile(f"{path} must match a file that ends in {ENDINGS}, but none does.")
    stranger = next((each for each in files if form_of(each) != form_of(files[0])), None)
    if stranger is not None:
        raise InvalidInput(
            f"{path} must match files of one form, got {stranger.name} and {files[0].name}."
        )
    return Found(path, form_of(files[0]), files)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # who opens it says what is wrong
        return False


def form_of(path: Path) -> Form:
    """What a file is, by its ending."""
    form = FORMS.get(path.suffix)
    if form is None:
        if not _exists(path):
            raise UnreadableFile(f"{path} does not exist.")
        raise UnreadableFile(f"{path} must end in {ENDINGS}, got {path.suffix or 'no ending'!r}.")
    return form


def natural(files: Iterable[Any]) -> list[Any]:
    """Files in the order of their names, numbers in them counted as numbers.

    Examples
    --------
    >>> [path.name for path in natural([Path("part-10"), Path("part-2"), Path("part-02b")])]
    ['part-2', 'part-02b', 'part-10']
    """

    def key(file: Any) -> tuple[Any, ...]:
        parts = re.split(r"([0-9]+)", str(file))
        return (*((int(p), "") if at % 2 else (-1, p) for at, p in enumerate(parts)), str(file))

    return sorted(files, key=lambda file: (key(file)[:-1], str(file)))


def _parquet_files(place: Any, files: Iterable[Any]) -> list[Any]:
    """Those of a folder's files that count. Names that start with a dot or underscore do not."""
    kept = natural(
        file
        for file in files
        if file.name[:1] not in ("", ".", "_") and file.name.endswith((".parquet", ".pq"))
    )
    if not kept:
        raise UnreadableFile(f"{place} is a folder without .parquet files.")
    return kept


# --- Addresses ------------------------------------------------------------------------------------


def as_address(given: Any) -> str | None:
    """s3://bucket/file where a path says so; a path itself joins the two slashes. None for a path.

    Examples
    --------
    >>> as_address(Path("s3://bucket/scores.parquet"))
    's3://bucket/scores.parquet'
    >>> as_address("scores.parquet") is None
    True
    """
    match = _ADDRESS.fullmatch(os.fspath(given))
    if match is None:
        return None
    scheme = match[1].lower()
    return f"{scheme}://{'/' if scheme == 'file' else ''}{match[2]}"


def _find_remote(address: str) -> Found:
    """Parquet files at an address: a file, a folder, or a pattern in the last part of it."""
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
            return Found(address, "parquet", _parquet_files(address, files))
        info = filesystem.get_file_info(inner)
        if info.type == fs.FileType.NotFound:
            raise UnreadableFile(f"{address} does not exist.")
        if info.type == fs.FileType.Directory:
            files = _parquet_files(address, _entries(filesystem, inner, plain.rstrip("/")))
            return Found(address, "parquet", files)
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(
            f"{address} can not be reached ({first_line(error)}). Check the address, the network "
            "and your credentials, or copy the files here."
        ) from error
    if not inner.endswith((".parquet", ".pq")):
        raise UnreadableFile(
            f"{address} must be Parquet to be read at an address. Copy other files here."
        )
    return Found(address, "parquet", [Remote(filesystem, inner, address)])


def _entries(filesystem: Any, folder: str, address: str) -> list[Remote]:
    from pyarrow import fs

    found = filesystem.get_file_info(fs.FileSelector(folder))
    return [
        Remote(filesystem, info.path, f"{address}/{info.base_name}")
        for info in found
        if info.type == fs.FileType.File
    ]


def _filesystem(address: str) -> tuple[Any, str]:
    """The store at an address and the path in it: pyarrow's own, or else one of fsspec's."""
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


def _s3(address: str) -> tuple[Any, str]:
    """S3 that gives up soon where nobody answers. Options stand in the address as pyarrow has them:
    ``?region=...&endpoint_override=...&scheme=...``."""
    from urllib.parse import parse_qsl, urlsplit

    from pyarrow import fs

    split = urlsplit(address)
    options: dict[str, Any] = dict(parse_qsl(split.query))
    known = ("region", "endpoint_override", "scheme")
    stranger = next((name for name in options if name not in known), None)
    if stranger is not None:
        raise UnreadableFile(
            f"{address} may say {', '.join(known)}, got {stranger!r:.60}. Keys come from the "
            "environment."
        )
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region:
        options.setdefault("region", region)
    filesystem = fs.S3FileSystem(
        connect_timeout=CONNECT_S,
        request_timeout=REQUEST_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        **options,
    )
    return filesystem, f"{split.netloc}{split.path}"


def _gcs(address: str) -> tuple[Any, str]:
    """Google's store. Left to itself it tries for a quarter of an hour."""
    from datetime import timedelta

    from pyarrow import fs

    inner = address.partition("://")[2]
    bucket = inner.removeprefix("anonymous@")
    limit = timedelta(seconds=REQUEST_S)
    filesystem = fs.GcsFileSystem(anonymous=inner != bucket, retry_time_limit=limit)
    return filesystem, bucket


__all__ = ["Found", "Remote", "as_address", "find_files", "form_of", "is_files", "is_path"]


def check_path(name: str, value: Any) -> Path:
    """A path, from a text or a path.

    Examples
    --------
    >>> check_path("checkpoint", "folder").name
    'folder'
    """
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise InvalidInput(f"{name} must be a path, got {value!r:.60}.")
    return Path(value)
