"""`.npy` and `.npz` files: memory-mapped where they can be, never unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oddslip.archives import DAMAGED, read_npy, read_npz, refusal
from oddslip.errors import OddslipError, UnreadableFile
from oddslip.sparse import is_sparse_npz, read_sparse_npz


def read_sparse(path: Path) -> Any | None:
    """The matrix that scipy.sparse saved in an .npz file, or None where it holds none."""
    try:
        return read_sparse_npz(path) if is_sparse_npz(path) else None
    except OddslipError:
        raise
    except DAMAGED as error:
        raise refusal(path, error) from error


def read_labels_npz(path: Path) -> Any:
    """Labels from an .npz: a matrix saved by scipy.sparse, or one dense array."""
    matrix = read_sparse(path)
    if matrix is not None:
        return matrix
    cells = read_npz(path)
    if cells.ndim != 2:
        raise UnreadableFile(f"{path} must be of shape (rows, labels), got shape {cells.shape}.")
    return cells


__all__ = ["read_labels_npz", "read_npy", "read_npz", "read_sparse"]
