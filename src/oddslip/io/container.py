"""One file format for everything we save: a JSON header, arrays and bytes, and their SHA-256.

The layout, in this order:

======== ======================================================================================
8 bytes  magic, ``oddslip`` and a zero byte
4 bytes  version of the format, 3, as an unsigned little-endian integer
8 bytes  length of the header, likewise
header   JSON: ``kind``, ``meta`` and ``members``
32 bytes SHA-256 of everything before it
members  one after another; zero bytes fill up the start and the end of each to a multiple of 64
======== ======================================================================================

A member lists its ``name``, ``dtype`` (null for plain bytes), ``shape``, ``offset`` (from the first
member), ``bytes`` (in the file), ``encoding`` (null or "zlib") and ``sha256`` (of its bytes in the
file). The digest of the header covers the digests of the members, so any change is found.

NumPy and the standard library only: `oddslip.serving.runtime` loads this module.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from oddslip.errors import OddslipError, UnreadableFile, first_line
from oddslip.io.files import atomic_write, unreadable
from oddslip.io.inputs import check_memory, input_path
from oddslip.io.json import parse_json

MAGIC = b"oddslip\0"
VERSION = 3
ALIGNMENT = 64
START = struct.Struct("<8sIQ")
START_BYTES = 80  # enough for `older_kind`
MAX_DIMENSIONS = 32
MAX_INFLATION = 1032  # times its size that deflate can unpack to
_DIGEST_BYTES = 32
_COMPRESSION_LEVEL = 1
_DTYPE = re.compile(r"[<>|][biufcSU][1-9][0-9]{0,8}|[<>][mM]8(\[[0-9]{0,9}[A-Za-z]{1,2}\])?")
_WRITERS = {"repair": " Save one with `oddslip fit`.", "model": " Save one with `oddslip train`."}
_LOADERS = {
    "repair": " Load it with oddslip.load_repair.",
    "model": " Load it with OneVsRest.load.",
}
_ADVICE = {"group": "Remove it to train it again.", "message": "Run again."}
_DAMAGED = (ArithmeticError, EOFError, LookupError, MemoryError, TypeError, ValueError, zlib.error)


class Container(NamedTuple):
    """The contents of a container.

    Attributes
    ----------
    meta : dict
        What the writer passed as ``meta``.
    arrays : dict of str to ndarray
        Read from a file they are writable, read from bytes they are views of these.
    blobs : dict of str to bytes
        Members that are plain bytes.
    """

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    blobs: dict[str, bytes]


class _Member(NamedTuple):
    name: str
    dtype: np.dtype | None
    shape: tuple[int, ...]
    offset: int
    n_bytes: int
    encoding: str | None
    sha256: str | None

    @property
    def n_bytes_decoded(self) -> int:
        return math.prod(self.shape) * (1 if self.dtype is None else self.dtype.itemsize)


# ------------------------------------------------------------------------------------------ writing


def write_container(
    path: str | os.PathLike[str],
    kind: str,
    meta: Mapping[str, object],
    members: Mapping[str, np.ndarray | bytes],
    *,
    compress: Collection[str] = (),
    check: Callable[[Path], object] | None = None,
) -> None:
    """Write arrays and bytes to a file, atomically, and read it back before it takes its place.

    Parameters
    ----------
    path : path
    kind : str
        What the file holds, such as "repair"; `read_container` asks for it.
    meta : mapping
        JSON values without NaN.
    members : mapping of str to ndarray or bytes
    compress : collection of str
        Names of members to compress.
    check : callable, optional
        Reads the finished file and raises if it is wrong; `read_container` by default.

    Examples
    --------
    >>> write_container("r.oddslip", "repair", {}, {"x": np.ones(3)})  # doctest: +SKIP
    """
    check_file = check or (lambda unfinished: read_container(unfinished, kind))
    pieces = container_pieces(kind, meta, members, compress=compress)
    with atomic_write(path, check=check_file) as unfinished, unfinished.open("wb") as file:
        for piece in pieces:
            file.write(piece)


def container_pieces(
    kind: str,
    meta: Mapping[str, object],
    members: Mapping[str, np.ndarray | bytes],
    *,
    compress: Collection[str] = (),
    digests: bool = True,
) -> Iterator[bytes | memoryview]:
    """The bytes of a container, piece by piece; arrays are not copied.

    Parameters
    ----------
    kind, meta, members, compress
        See `write_container`.
    digests : bool
        Whether to compute the SHA-256 of the members. `read_container` only reads a container
        without them if it is asked not to verify.

    Yields
    ------
    bytes-like

    Examples
    --------
    >>> data = b"".join(container_pieces("model", {"seed": 1}, {"x": np.arange(2)}))
    >>> read_container(data, "model").arrays["x"]
    array([0, 1])
    """
    entries, bodies, offset = [], [], 0
    for name, member in members.items():
        body, dtype, shape = _encode(name, member)
        if name in compress:
            body = zlib.compress(body, _COMPRESSION_LEVEL)
        entries.append(
            {
                "name": name,
                "dtype": dtype,
                "shape": shape,
                "offset": offset,
                "bytes": len(body),
                "encoding": "zlib" if name in compress else None,
                "sha256": hashlib.sha256(body).hexdigest() if digests else None,
            }
        )
        bodies.append(body)
        offset += len(body) + _padding(len(body))
    header = {"kind": kind, "meta": meta, "members": entries}
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    head = START.pack(MAGIC, VERSION, len(text)) + text
    head += hashlib.sha256(head).digest()
    for piece in (head, *bodies):
        yield piece
        yield bytes(_padding(len(piece)))


def _encode(
    name: str, member: np.ndarray | bytes
) -> tuple[bytes | memoryview, str | None, list[int]]:
    """Bytes, type and shape of a member."""
    if not isinstance(member, np.ndarray):
        return member, None, [len(member)]
    if not _DTYPE.fullmatch(member.dtype.str):
        raise TypeError(f"{name} must hold numbers or fixed-width text, got {member.dtype}")
    flat = np.ascontiguousarray(member).reshape(-1)
    return flat.view(np.uint8).data, member.dtype.str, list(member.shape)


def _padding(n_bytes: int) -> int:
    return -n_bytes % ALIGNMENT


# ------------------------------------------------------------------------------------------ reading


def read_container(
    source: str | os.PathLike[str] | bytes | memoryview,
    kind: str,
    *,
    verify: bool = True,
) -> Container:
    """Read a container from a file, or from bytes.

    Sizes are compared with those of the file before anything is allocated.

    Parameters
    ----------
    source : path or bytes-like
    kind : str
        What it must hold.
    verify : bool
        Whether to compare the members with their SHA-256. The header is always compared.

    Returns
    -------
    Container

    Raises
    ------
    UnreadableFile
        If it is missing, cut short, altered, or of another kind or version.

    Examples
    --------
    >>> data = b"".join(container_pieces("group", {}, {"model": b"tree"}))
    >>> read_container(data, "group").blobs["model"]
    b'tree'
    """
    if not isinstance(source, str | os.PathLike):
        view = memoryview(source).cast("B")  # buffers of pyarrow are signed
        reader = _Reader(f"the {kind}", lambda start, stop: view[start:stop], view.nbytes)
        return reader.read(kind, verify)
    path = input_path(source)
    try:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            return _Reader(path, _read_slices(file), size).read(kind, verify)
    except OddslipError:
        raise
    except OSError as error:
        raise unreadable(path, error, "not to be read") from error


def older_kind(start: bytes) -> str | None:
    """The kind of a file that version 0.1 or 0.2 wrote, by its first bytes; None for any other.

    Examples
    --------
    >>> older_kind(START.pack(MAGIC, 2, 0))
    'repair'
    """
    if start[:8] == MAGIC and start[8:12] in (b"\1\0\0\0", b"\2\0\0\0"):
        return "repair"
    if start[:2] == b"PK" and start[30:40] == b"model.json":
        return "model"
    return "group" if re.match(rb"[0-9a-f]{64}\n", start) else None


def read_start(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a file, for `older_kind`."""
    path = input_path(path)
    try:
        with path.open("rb", buffering=0) as file:
            start: bytes = file.read(START_BYTES)
            return start
    except OSError as error:
        raise unreadable(path, error, "not to be read") from error


def _read_slices(file: IO[bytes]) -> Callable[[int, int], memoryview]:
    """A function that reads the bytes from ``start`` to ``stop`` into a buffer of their own."""

    def read(start: int, stop: int) -> memoryview:
        buffer = memoryview(np.empty(stop - start, np.uint8))  # type: ignore[arg-type]
        file.seek(start)
        size = 0
        while size < buffer.nbytes:  # the system reads at most 2 GB at once
            n_bytes = file.readinto(buffer[size:])  # type: ignore[attr-defined]
            if not n_bytes:
                raise EOFError("it ends early")
            size += n_bytes
        return buffer

    return read


class _Reader:
    """Reads one container; ``name`` is what errors call it."""

    def __init__(self, name: object, get: Callable[[int, int], memoryview], size: int) -> None:
        self.name, self.get, self.size = name, get, size

    def read(self, kind: str, verify: bool) -> Container:
        advice = _ADVICE.get(kind, f"Save the {kind} again.")
        length = self._check_start(kind, advice)
        try:
            header = self._read_header(length)
            if header["kind"] == kind:
                return self._read_members(header, START.size + length + _DIGEST_BYTES, verify)
        except OddslipError:
            raise
        except _DAMAGED as error:
            raise UnreadableFile(
                f"{self.name} was altered or cut short: {first_line(error)}. {advice}"
            ) from error
        raise self._other_kind(header["kind"], kind)

    def _check_start(self, kind: str, advice: str) -> int:
        """Raise for other files and versions. Returns the length of the header."""
        start = bytes(self.get(0, min(self.size, START_BYTES)))
        if older_kind(start) is not None:
            raise self._other_kind(older_kind(start), kind)
        if not start.startswith(MAGIC):
            what = f"not a saved {kind}" if start else "an empty file"
            raise UnreadableFile(f"{self.name} is {what}.{_WRITERS.get(kind, '')}")
        if len(start) < START.size:
            raise UnreadableFile(f"{self.name} was altered or cut short. {advice}")
        _, version, length = START.unpack_from(start)
        if version != VERSION:
            raise UnreadableFile(
                f"{self.name} has format {version}, this version reads up to {VERSION}. "
                f"Update oddslip, or {advice[0].lower()}{advice[1:]}"
            )
        return int(length)

    def _other_kind(self, other: object, kind: str) -> UnreadableFile:
        loader = _LOADERS.get(other, "") if isinstance(other, str) else ""
        what = f"a {other}" if loader else f"{other!r:.30}"
        return UnreadableFile(f"{self.name} holds {what}, not a {kind}.{loader}")

    def _read_header(self, length: int) -> dict[str, Any]:
        end = START.size + length
        if end + _DIGEST_BYTES > self.size:
            raise ValueError("its header is longer than the file")
        head = self.get(0, end + _DIGEST_BYTES)
        if hashlib.sha256(head[:end]).digest() != head[end:]:
            raise ValueError("the checksum of its header does not agree")
        header: dict[str, Any] = parse_json(bytes(head[START.size : end]))
        if not isinstance(header["meta"], dict):
            raise ValueError("its meta must be a table")
        return header

    def _read_members(self, header: dict[str, Any], end: int, verify: bool) -> Container:
        members = [_read_entry(entry) for entry in header["members"]]
        first, offset = end + _padding(end), 0
        for member in members:
            if member.offset != offset:
                raise ValueError(f"{member.name!r:.30} does not follow the member before it")
            offset += member.n_bytes + _padding(member.n_bytes)
        if self.size != first + offset:
            raise ValueError(f"it must have {first + offset:,} bytes, got {self.size:,}")
        if len({member.name for member in members}) < len(members):
            raise ValueError("two members have one name")
        if isinstance(self.name, Path):  # bytes are in memory already
            check_memory(self.name, sum(member.n_bytes_decoded for member in members))
        if verify:
            self._check_padding(end, first)
        container = Container(header["meta"], {}, {})
        for member in members:
            stop = first + member.offset + member.n_bytes
            body = self.get(first + member.offset, stop)
            if verify:
                if hashlib.sha256(body).hexdigest() != member.sha256:
                    raise ValueError(f"the checksum of {member.name!r:.30} does not agree")
                self._check_padding(stop, stop + _padding(member.n_bytes))
            decoded = body if member.encoding is None else _inflate(body, member.n_bytes_decoded)
            if member.dtype is None:
                container.blobs[member.name] = bytes(decoded)
            else:
                cells = bytearray(decoded) if isinstance(decoded, bytes) else decoded
                container.arrays[member.name] = np.ndarray(member.shape, member.dtype, cells)
        return container

    def _check_padding(self, start: int, stop: int) -> None:
        if any(self.get(start, stop)):
            raise ValueError("there are bytes between its members")


def _read_entry(entry: dict[str, Any]) -> _Member:
    """Validate an entry of the header."""
    name, dtype, shape, encoding = (entry[key] for key in ("name", "dtype", "shape", "encoding"))
    if not isinstance(name, str) or not (dtype is None or _DTYPE.fullmatch(dtype)):
        raise ValueError(f"a member has the name {name!r:.30} and the type {dtype!r:.30}")
    counts = [entry["offset"], entry["bytes"], *shape]
    if len(shape) > MAX_DIMENSIONS or not all(
        type(count) is int and 0 <= count < 2**63 for count in counts
    ):
        raise ValueError(f"{name!r:.30} has impossible sizes")
    if encoding not in (None, "zlib") or (dtype is None and len(shape) != 1):
        raise ValueError(f"{name!r:.30} is neither an array nor bytes")
    kind = None if dtype is None else np.dtype(dtype)
    member = _Member(
        name, kind, tuple(shape), entry["offset"], entry["bytes"], encoding, entry["sha256"]
    )
    n_bytes = member.n_bytes_decoded
    possible = n_bytes <= MAX_INFLATION * member.n_bytes + 64
    if not possible if encoding else n_bytes != member.n_bytes:
        raise ValueError(f"{name!r:.30} claims {n_bytes:,} bytes and has {member.n_bytes:,}")
    return member


def _inflate(body: memoryview, n_bytes: int) -> bytes:
    """Unpack a member, to exactly so many bytes."""
    stream = zlib.decompressobj()
    unpacked = stream.decompress(body, n_bytes + 1)
    if len(unpacked) != n_bytes or not stream.eof or stream.unused_data:
        raise ValueError(f"a member must unpack to {n_bytes:,} bytes")
    return unpacked
