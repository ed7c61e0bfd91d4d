"""`.npy` and `.npz` files: memory-mapped where they can be, never unpickled."""

from __future__ import annotations

import re
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import OddslipError, UnreadableFile
from oddslip.files import unreadable
from oddslip.labels import DenseLabels, Labels, labels_from_sparse
from oddslip.sparse import is_sparse_npz, read_sparse_npz

# What NumPy, zipfile and SciPy raise on a file that is cut short, damaged or of another kind.
_DAMAGED = (
    ValueError,
    OSError,
    EOFError,
    KeyError,
    NotImplementedError,  # a zip method or encryption that zipfile does not know
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npy(path: Path) -> NDArray[Any]:
    """The array of an .npy file, memory-mapped and read-only."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"PK"
        if zipped:
            raise UnreadableFile(f"{path} is an .npz archive, not an .npy file. Rename it to .npz.")
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OddslipError:
        raise
    except _DAMAGED as error:
        raise _refusal(path, error) from error
    return array


def read_npz(path: Path) -> NDArray[Any]:
    """The one array of an .npz file: memory-mapped if stored, read whole if compressed."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [item for item in archive.infolist() if item.filename.endswith(".npy")]
            if len(members) != 1:
                names = ", ".join(item.filename.removesuffix(".npy") for item in members[:6])
                raise UnreadableFile(
                    f"{path} must hold exactly one array, got {len(members)}"
                    + (f" ({names})." if members else ".")
                )
            if members[0].compress_type == zipfile.ZIP_STORED:
                return _map_member(path, members[0])
            with archive.open(members[0]) as stream:
                return np.lib.format.read_array(stream, allow_pickle=False)
    except OddslipError:
        raise
    except _DAMAGED as error:
        raise _refusal(path, error) from error


def read_sparse(path: Path) -> Any | None:
    """The matrix that scipy.sparse saved in an .npz file, or None where it holds none."""
    try:
        return read_sparse_npz(path) if is_sparse_npz(path) else None
    except OddslipError:
        raise
    except _DAMAGED as error:
        raise _refusal(path, error) from error


def read_labels_npz(path: Path) -> Labels:
    """Labels from an .npz: a matrix saved by scipy.sparse, or one dense array."""
    matrix = read_sparse(path)
    if matrix is not None:
        return labels_from_sparse(matrix)
    cells = read_npz(path)
    if cells.ndim != 2:
        raise UnreadableFile(f"{path} must be of shape (rows, labels), got shape {cells.shape}.")
    return DenseLabels(cells)


def _map_member(path: Path, member: zipfile.ZipInfo) -> NDArray[Any]:
    """A memory map of an uncompressed member, at the place where its bytes lie in the archive."""
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)  # lengths of the local header's name and extra field
        name, extra = np.frombuffer(file.read(4), "<u2")
        file.seek(member.header_offset + 30 + int(name) + int(extra))
        version = np.lib.format.read_magic(file)
        header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = header(file)
        if dtype.hasobject:
            raise ValueError("object arrays need pickle")
        order = "F" if fortran else "C"
        return np.memmap(path, dtype, "r", file.tell(), shape, order)  # type: ignore[call-overload, no-any-return]


def _refusal(path: Path, error: Exception) -> UnreadableFile:
    if not isinstance(error, OSError) and re.search("pickle|object", str(error), re.IGNORECASE):
        return UnreadableFile(
            f"{path} is not a plain numeric array, or holds Python objects, which are never "
            "loaded. Save it again with numpy.save from a float array."
        )
    return unreadable(path, error, "cut short or not a NumPy file")
