"""NumPy's files: sizes in headers are compared with the file before anything is allocated.

A header of a hundred bytes can claim 10^18 cells, and a member of an archive unpack to a thousand
times its size. So a member must have exactly the length of its header, and fit into memory. Reading
a member block by block would skip its CRC, so the CRC is compared once, when it is opened.
"""

from __future__ import annotations

import io
import math
import os
import re
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np

from oddslip.errors import OddslipError, UnreadableFile
from oddslip.io.container import MAX_INFLATION
from oddslip.io.files import unreadable
from oddslip.io.inputs import FileArray, check_memory, input_path

# Errors of NumPy and zipfile for files that are cut short, damaged or of another kind.
DAMAGED = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_CHUNK_BYTES = 1 << 20


class Header(NamedTuple):
    """The header of an array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype
    start: int  # of the cells, in bytes

    @property
    def n_bytes(self) -> int:
        """Bytes of the array, including its header."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> Header:
    """Read the header of an array; Python objects raise."""
    first = stream.tell()
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version} of the format is not known")
    read_shape = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read_shape(stream)
    if dtype.hasobject:
        raise ValueError("object arrays need pickle")
    if any(side < 0 for side in shape):
        raise ValueError(f"a shape must not be negative, got {shape}")
    return Header(shape, fortran, dtype, stream.tell() - first)


def read_npy(path: Path) -> FileArray:
    """Open the array of an .npy file, to be read block by block."""
    try:
        with input_path(path).open("rb") as file:
            if file.read(2) == b"PK":
                raise UnreadableFile(
                    f"{path} is an .npz archive, not an .npy file. Rename it to .npz."
                )
            file.seek(0)
            header = read_header(file)
            array = open_array(path, header)
            array.state.check(path, file.fileno())
        if header.n_bytes > array.state.n_bytes:
            raise ValueError(f"it claims {header.n_bytes:,} bytes and has {array.state.n_bytes:,}")
    except OddslipError:
        raise
    except DAMAGED as error:
        raise refusal(path, error) from error
    return array


def map_npy(path: Path) -> np.ndarray:
    """Memory-map the array of an .npy file that nobody overwrites."""
    array = read_npy(path)
    order: Any = "C" if array.by_rows else "F"
    return np.memmap(path, array.stored, "r", array.start, array.shape, order)


def read_npz(path: Path) -> FileArray | np.ndarray:
    """Open the only array of an .npz file; a compressed one is read as a whole.

    Either way its bytes are compared with the CRC of the archive.
    """
    try:
        with zipfile.ZipFile(input_path(path)) as archive:
            members = list_arrays(archive)
            if len(members) != 1:
                names = ", ".join(item.filename.removesuffix(".npy") for item in members[:6])
                raise UnreadableFile(
                    f"{path} must hold exactly one array, got {len(members)}"
                    + (f" ({names})." if members else ".")
                )
            if members[0].compress_type == zipfile.ZIP_STORED:
                return open_member(path, members[0])
            return read_member(archive, members[0], path)
    except OddslipError:
        raise
    except DAMAGED as error:
        raise refusal(path, error) from error


def refusal(path: Path, error: Exception) -> UnreadableFile:
    """The error to raise if NumPy cannot read a file."""
    if not isinstance(error, OSError) and re.search("pickle|object", str(error), re.IGNORECASE):
        return UnreadableFile(
            f"{path} is not a plain numeric array, or holds Python objects, which are never "
            "loaded. Save it again with numpy.save from a float array."
        )
    return unreadable(path, error, "cut short or not a NumPy file")


def list_arrays(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The arrays of an archive, in their order."""
    return [item for item in archive.infolist() if item.filename.endswith(".npy")]


def check_archive(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise if the members of an archive do not fit into memory together."""
    check_memory(path, sum(_unpacked(member) for member in archive.infolist()))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an .npz by name, if they fit into memory together."""
    path = input_path(path)
    with zipfile.ZipFile(path) as archive:
        return unpack_arrays(archive, path)


def unpack_arrays(archive: zipfile.ZipFile, path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an open archive by name."""
    check_archive(archive, path)
    return {
        member.filename.removesuffix(".npy"): read_member(archive, member, path)
        for member in list_arrays(archive)
    }


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> np.ndarray:
    """Read an array of an archive; zipfile compares its CRC."""
    check_memory(path, _unpacked(member))
    with archive.open(member) as stream:
        _check_length(read_header(stream), member)
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def open_member(path: Path, member: zipfile.ZipInfo) -> FileArray:
    """Open an uncompressed array at its offset in the archive."""
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)  # lengths of the local header's name and extra field
        name, extra = np.frombuffer(file.read(4), "<u2")
        offset = member.header_offset + 30 + int(name) + int(extra)
        file.seek(offset)
        header = read_header(file)
        array = open_array(path, header, offset)
        _check_length(header, member)
        file.seek(offset)
        if _crc_of(file, member.file_size) != member.CRC:
            raise zipfile.BadZipFile(f"Bad CRC-32 for file {member.filename!r}")
        array.state.check(path, file.fileno())
    return array


def open_array(path: Path, header: Header, offset: int = 0) -> FileArray:
    """Open the array whose header begins at an offset of a file."""
    start = offset + header.start
    return FileArray(path, header.shape, header.dtype, start, by_rows=not header.fortran)


def _crc_of(file: IO[bytes], n_bytes: int) -> int:
    """CRC-32 of the next bytes, read through a small buffer."""
    buffer = memoryview(bytearray(min(_CHUNK_BYTES, max(1, n_bytes))))
    crc = 0
    while n_bytes:
        size = file.readinto(buffer[: min(n_bytes, len(buffer))])  # type: ignore[attr-defined]
        if not size:
            raise EOFError("the archive ends before its array does")
        crc = zlib.crc32(buffer[:size], crc)
        n_bytes -= size
    return crc


def _check_length(header: Header, member: zipfile.ZipInfo) -> None:
    if header.n_bytes != member.file_size:
        raise ValueError(
            f"{member.filename!r} claims {header.n_bytes:,} bytes and has {member.file_size:,}"
        )


def _unpacked(member: zipfile.ZipInfo) -> int:
    """Unpacked size of a member; raises if its packed bytes cannot give so much."""
    if member.file_size > MAX_INFLATION * member.compress_size + 64:
        raise ValueError(
            f"{member.filename!r} claims {member.file_size:,} bytes, "
            f"packed into {member.compress_size:,}"
        )
    return member.file_size


def npy_header(dtype: np.dtype, shape: tuple[int, int]) -> bytes:
    """The first bytes of an .npy file."""
    header = io.BytesIO()
    fields = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, fields)
    return header.getvalue()


def is_allocated(path: Path, header: bytes, size: int) -> bool:
    """Whether a file has the header and length that `allocate` wrote."""
    with path.open("rb") as file:
        return file.read(len(header)) == header and os.fstat(file.fileno()).st_size == size


def allocate(path: Path, header: bytes, size: int) -> None:
    """Create an .npy file of full size, so that a full disk is an error before the work."""
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(header)
        file.flush()
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
