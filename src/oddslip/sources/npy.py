"""`.npy` and `.npz` files: read block by block where they can be, never unpickled."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.archives import (
    DAMAGED,
    list_arrays,
    open_array,
    open_member,
    read_header,
    read_member,
)
from oddslip.errors import OddslipError, UnreadableFile
from oddslip.files import unreadable
from oddslip.inputs import FileArray, input_path
from oddslip.labels import DenseLabels, Labels, labels_from_sparse
from oddslip.sparse import is_sparse_npz, read_sparse_npz


def read_npy(path: Path) -> FileArray:
    """The array of an .npy file, read block by block where it is used."""
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
        raise _refusal(path, error) from error
    return array


def map_npy(path: Path) -> NDArray[Any]:
    """The array of an .npy file that we keep and never write over: memory-mapped, read-only."""
    checked = read_npy(path)
    order: Any = "C" if checked.by_rows else "F"
    return np.memmap(path, checked.stored, "r", checked.start, checked.shape, order)


def read_npz(path: Path) -> FileArray | NDArray[Any]:
    """The one array of an .npz file: read where it is used if stored, read whole if compressed.

    Either way its bytes are read once and compared with the archive's CRC.
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
        raise _refusal(path, error) from error


def read_sparse(path: Path) -> Any | None:
    """The matrix that scipy.sparse saved in an .npz file, or None where it holds none."""
    try:
        return read_sparse_npz(path) if is_sparse_npz(path) else None
    except OddslipError:
        raise
    except DAMAGED as error:
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


def _refusal(path: Path, error: Exception) -> UnreadableFile:
    if not isinstance(error, OSError) and re.search("pickle|object", str(error), re.IGNORECASE):
        return UnreadableFile(
            f"{path} is not a plain numeric array, or holds Python objects, which are never "
            "loaded. Save it again with numpy.save from a float array."
        )
    return unreadable(path, error, "cut short or not a NumPy file")
