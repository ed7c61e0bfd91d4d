"""`.npy` and `.npz` files: memory-mapped where they can be, never unpickled."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.archives import DAMAGED, list_arrays, map_member, read_header, read_member
from oddslip.errors import OddslipError, UnreadableFile
from oddslip.files import unreadable
from oddslip.inputs import input_path
from oddslip.labels import DenseLabels, Labels, labels_from_sparse
from oddslip.sparse import is_sparse_npz, read_sparse_npz


def read_npy(path: Path) -> NDArray[Any]:
    """The array of an .npy file, memory-mapped and read-only."""
    try:
        with input_path(path).open("rb") as file:
            if file.read(2) == b"PK":
                raise UnreadableFile(
                    f"{path} is an .npz archive, not an .npy file. Rename it to .npz."
                )
            file.seek(0)
            claimed, size = read_header(file).n_bytes, os.fstat(file.fileno()).st_size
        if claimed > size:
            raise ValueError(f"it claims {claimed:,} bytes and has {size:,}")
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OddslipError:
        raise
    except DAMAGED as error:
        raise _refusal(path, error) from error
    return array


def read_npz(path: Path) -> NDArray[Any]:
    """The one array of an .npz file: memory-mapped if stored, read whole if compressed.

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
                return map_member(path, members[0])
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
