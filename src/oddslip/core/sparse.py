"""Sparse matrices looked through before compiled code sees them.

scipy.sparse and our kernels follow ``indptr`` and ``indices`` without a look: a wrong one reads or
writes memory that is not theirs. So every sparse matrix, from memory or from a file, passes here
first: integer arrays of the right length, ``indptr`` from 0 to the number of stored cells without
a fall, every index within its axis. One pass over each array, before any cast or conversion.

What is stored twice: features are added up, as scipy does, but never within a small integer type;
labels must name a cell once, and are refused otherwise. (Lists of label indices are sets: there a
label named twice is a label named.)
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.core.types import Array, Ints
from oddslip.errors import InvalidInput, OddslipError, UnreadableFile
from oddslip.io.arrays import DAMAGED, read_npy, read_npz, refusal, unpack_arrays
from oddslip.io.inputs import input_path

MOST = 2**31 - 1  # rows or columns: kernels count columns in 32 bits
MAX_EMPTY = 2**27  # rows of a file beyond its cells: a few bytes could claim billions of rows


def check_sparse(matrix: Any, what: str) -> Any:
    """A sparse matrix as scipy's, or an error where its arrays point outside of it.

    ``what`` names it. One of scipy comes back as it is.
    """
    from scipy.sparse import issparse

    matrix = matrix if issparse(matrix) else matrix.tocsr()
    shape = getattr(matrix, "shape", ())
    check = _CHECKS.get(getattr(matrix, "format", ""))
    if check is None or len(shape) != 2:
        kind = getattr(matrix, "format", type(matrix).__name__)
        raise InvalidInput(
            f"{what} must be a two-dimensional scipy.sparse matrix, got {kind} of shape {shape}."
        )
    rows, columns = _sides(shape, what)
    _check_numbers(matrix.dtype, what)
    check(matrix, rows, columns, what)
    return matrix


def as_rows(matrix: Any, what: str) -> Any:
    """A checked matrix as CSR. Cells stored twice stay apart, except those of COO."""
    return _fresh(check_sparse(matrix, what)).tocsr()


def as_features(matrix: Any) -> Any:
    """A checked matrix of numbers as CSR or CSC, each cell stored once, in order."""
    from scipy.sparse import csc_matrix, csr_matrix

    matrix = check_sparse(matrix, "X")
    # Matrices, not arrays: the boosters know only those. Their cells are shared.
    form = csc_matrix if matrix.format == "csc" else csr_matrix
    rows = form(_fresh(matrix))
    twice = matrix.format == "coo" and rows.nnz < matrix.nnz
    if not twice and ascends(rows.indptr, rows.indices):
        rows.has_canonical_format = True  # known now, so nobody looks again
        return rows
    whole = rows.dtype.kind in "iu"  # sums of small integers would wrap
    summed = form(_fresh(matrix).astype(np.float64)) if whole else rows.copy()
    summed.has_canonical_format = summed.has_sorted_indices = False
    summed.sum_duplicates()
    return summed if twice or summed.nnz < rows.nnz else rows


def label_rows(matrix: Any, name_of: Callable[[int], str] = str) -> tuple[Ints, NDArray[np.int32]]:
    """``indptr`` and ascending ``indices`` of the true cells of a checked 0/1 matrix."""
    matrix = check_sparse(matrix, "labels")
    if matrix.format == "coo":
        _check_once(matrix, name_of)
    rows = _fresh(matrix).tocsr()
    indptr, indices, cells = rows.indptr, rows.indices, rows.data
    if cells.dtype != np.bool_:
        wrong = (cells != 0) & (cells != 1)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InvalidInput(
                f"labels must be 0 or 1, got {cells[at]:g} "
                f"at row {_row_of(indptr, at)}, label {name_of(int(indices[at]))!r}."
            )
    if not ascends(indptr, indices):
        rows = rows.copy()
        rows.has_sorted_indices = False
        rows.sort_indices()
        indptr, indices, cells = rows.indptr, rows.indices, rows.data
        same = np.flatnonzero(indices[1:] == indices[:-1]) + 1
        same = same[~np.isin(same, indptr)]
        if same.size:
            raise InvalidInput(_twice(_row_of(indptr, int(same[0])), indices[same[0]], name_of))
    true = cells != 0
    if not true.all():
        ends = np.concatenate([[0], np.cumsum(true)])
        indptr, indices = ends[indptr], indices[true]
    return indptr.astype(np.int64), indices.astype(np.int32)


def ascends(indptr: Array, indices: Array) -> bool:
    """Whether indices rise within each row, which also means that none is there twice."""
    if indices.size < 2:
        return True
    rises = indices[1:] > indices[:-1]
    firsts = indptr[1:-1]
    rises[firsts[(firsts > 0) & (firsts < indices.size)] - 1] = True
    return bool(rises.all())


def read_array(path: Path) -> Any:
    """The array of an .npy or .npz file, or the matrix that `scipy.sparse.save_npz` wrote.

    The arrays of a matrix are checked before scipy sees them.
    """
    if path.suffix != ".npz":
        return read_npy(path)
    try:
        with zipfile.ZipFile(input_path(path)) as archive:
            if not _PARTS & set(archive.namelist()):
                return read_npz(path)
            arrays = {name: _native(each) for name, each in unpack_arrays(archive, path).items()}
        return _from_arrays(arrays, str(path))
    except InvalidInput as error:
        raise UnreadableFile(str(error)) from error
    except OddslipError:
        raise
    except DAMAGED as error:
        raise refusal(path, error) from error


_PARTS = {"indices.npy", "row.npy", "offsets.npy"}  # one of them is in every saved matrix
_ARRAYS = {  # of each form, beside its cells
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}


def _from_arrays(arrays: Mapping[str, Array], what: str) -> Any:
    from scipy import sparse

    kind = arrays["format"].item()
    kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
    if kind not in _ARRAYS:
        raise InvalidInput(f"{what} must be csr, csc, coo, bsr or dia, got {kind[:20]!r}.")
    shape, data = arrays["shape"], arrays["data"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise InvalidInput(
            f"{what} must have a shape of two whole numbers, got {shape.ravel()[:3]}."
        )
    rows, columns = _sides(tuple(shape.tolist()), what)
    if kind != "csr" and rows > data.size + MAX_EMPTY:
        raise InvalidInput(
            f"{what} must have at most {MAX_EMPTY:,} rows more than cells, got {rows:,} rows and "
            f"{data.size:,} cells."
        )
    _check_numbers(data.dtype, what)
    places = {name: arrays[name] for name in _ARRAYS[kind]}
    _CHECKS[kind](SimpleNamespace(data=data, **places), rows, columns, what)
    array = bool(arrays["_is_array"].item()) if "_is_array" in arrays else False
    form = getattr(sparse, f"{kind}_{'array' if array else 'matrix'}")
    parts = (data, tuple(places.values())) if kind == "coo" else (data, *places.values())
    return form(parts, shape=(rows, columns))


def _native(array: Array) -> Array:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _fresh(matrix: Any) -> Any:
    """The same arrays in a new matrix: flags that someone set by hand stay behind."""
    if matrix.format not in ("csr", "csc"):
        return matrix
    fresh = copy(matrix)
    fresh.has_canonical_format = fresh.has_sorted_indices = False
    return fresh


def _sides(shape: tuple[Any, ...], what: str) -> tuple[int, int]:
    if not all(isinstance(side, int | np.integer) and 0 <= side <= MOST for side in shape):
        raise InvalidInput(f"{what} must have between 0 and {MOST} rows and columns, got {shape}.")
    return int(shape[0]), int(shape[1])


def _check_numbers(dtype: np.dtype[Any], what: str) -> None:
    if dtype.kind not in "biuf":
        raise InvalidInput(f"{what} must hold numbers, got sparse cells of dtype {dtype}.")


def _check_csr(matrix: Any, rows: int, columns: int, what: str) -> None:
    _check_compressed(matrix, rows, columns, what, "row", "column")


def _check_csc(matrix: Any, rows: int, columns: int, what: str) -> None:
    _check_compressed(matrix, columns, rows, what, "column", "row")


def _check_compressed(
    matrix: Any, majors: int, minors: int, what: str, major: str, minor: str
) -> None:
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    _check_line(data, what, "data", kinds="biuf")
    _check_indptr(indptr, indices, majors, what)
    if len(data) != len(indices):
        raise InvalidInput(
            f"{what} must have an index for each of {len(data)} cells, got {len(indices)}."
        )
    _check_indices(indices, minors, f"{what}: {minor}", lambda at: f"{major} {_row_of(indptr, at)}")


def _check_indptr(indptr: Any, indices: Any, majors: int, what: str) -> None:
    _check_line(indptr, what, "indptr")
    _check_line(indices, what, "indices")
    if len(indptr) != majors + 1:
        raise InvalidInput(f"{what}: indptr must hold {majors + 1} numbers, got {len(indptr)}.")
    if indptr[0] != 0 or indptr[-1] != len(indices):
        raise InvalidInput(
            f"{what}: indptr must go from 0 to the {len(indices)} stored cells, "
            f"got {indptr[0]} to {indptr[-1]}."
        )
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        raise InvalidInput(f"{what}: indptr must never fall, it does after {np.argmax(falls)}.")


def _check_indices(
    indices: Any, size: int, index: str, place: Callable[[int], str] = "stored cell {}".format
) -> None:
    """Refuse an index outside of 0 to size - 1. Before any cast, which might wrap it."""
    if indices.size == 0:
        return
    if int(indices.min()) < 0 or int(indices.max()) >= size:
        at = int(np.argmax((indices < 0) | (indices >= size)))
        raise InvalidInput(
            f"{index} indices must be between 0 and {size - 1}, got {indices[at]} at {place(at)}."
        )


def _check_line(array: Any, what: str, name: str, kinds: str = "iu") -> None:
    flat = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.isnative
    if not flat or array.dtype.kind not in kinds:
        actual = (
            f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else "none"
        )
        expected = "whole numbers" if kinds == "iu" else "cells"
        raise InvalidInput(f"{what}: {name} must be a flat array of {expected}, got {actual}.")


def _check_coo(matrix: Any, rows: int, columns: int, what: str) -> None:
    _check_line(matrix.data, what, "data", kinds="biuf")
    for name, size, index in (("row", rows, "row"), ("col", columns, "column")):
        places = getattr(matrix, name)
        _check_line(places, what, name)
        if len(places) != len(matrix.data):
            raise InvalidInput(
                f"{what} must have a {index} for each of {len(matrix.data)} cells, "
                f"got {len(places)}."
            )
        _check_indices(places, size, f"{what}: {index}")


def _check_bsr(matrix: Any, rows: int, columns: int, what: str) -> None:
    data = matrix.data
    if data.ndim != 3 or 0 in data.shape[1:] or rows % data.shape[1] or columns % data.shape[2]:
        raise InvalidInput(
            f"{what}: blocks must tile shape {(rows, columns)}, got data of shape {data.shape}."
        )
    _check_indptr(matrix.indptr, matrix.indices, rows // data.shape[1], what)
    _check_indices(matrix.indices, columns // data.shape[2], f"{what}: block")
    if len(data) != len(matrix.indices):
        raise InvalidInput(
            f"{what} must have an index for each of {len(data)} blocks, got {len(matrix.indices)}."
        )


def _check_dia(matrix: Any, rows: int, columns: int, what: str) -> None:
    data, offsets = matrix.data, matrix.offsets
    _check_line(offsets, what, "offsets")
    if data.ndim != 2 or len(data) != len(offsets):
        raise InvalidInput(
            f"{what} must have a diagonal for each of {len(offsets)} offsets, "
            f"got data of shape {data.shape}."
        )
    outside = offsets.size and (int(offsets.min()) <= -rows or int(offsets.max()) >= columns)
    if outside or len(np.unique(offsets)) < len(offsets):
        raise InvalidInput(
            f"{what}: offsets must be different and between {1 - rows} and {columns - 1}, "
            f"got {offsets[:6].tolist()}."
        )


def _check_lil(matrix: Any, rows: int, columns: int, what: str) -> None:
    if len(matrix.rows) != rows or len(matrix.data) != rows:
        raise InvalidInput(f"{what} must have {rows} lists of columns, got {len(matrix.rows)}.")
    for row, (indices, cells) in enumerate(zip(matrix.rows, matrix.data, strict=True)):
        if not isinstance(indices, list) or not isinstance(cells, list):
            raise InvalidInput(f"{what} must hold lists, got another thing at row {row}.")
        if len(indices) != len(cells):
            raise InvalidInput(
                f"{what} must have a column for each of {len(cells)} cells of row {row}, "
                f"got {len(indices)}."
            )
        _check_whole(indices, columns, f"{what}: column", row)


def _check_dok(matrix: Any, rows: int, columns: int, what: str) -> None:
    for place in matrix.keys():  # noqa: SIM118 - a matrix, which is not iterated by its keys
        if not isinstance(place, tuple) or len(place) != 2:
            raise InvalidInput(f"{what} must have keys (row, column), got {place!r:.60}.")
        _check_whole([place[0]], rows, f"{what}: row", place[0])
        _check_whole([place[1]], columns, f"{what}: column", place[0])


def _check_whole(indices: list[Any], size: int, index: str, row: Any) -> None:
    for place in indices:
        if not isinstance(place, int | np.integer) or not 0 <= place < size:
            raise InvalidInput(
                f"{index} indices must be between 0 and {size - 1}, got {place!r:.30} at row "
                f"{row!r:.30}."
            )


_CHECKS: dict[str, Callable[[Any, int, int, str], None]] = {
    "csr": _check_csr,
    "csc": _check_csc,
    "coo": _check_coo,
    "bsr": _check_bsr,
    "dia": _check_dia,
    "lil": _check_lil,
    "dok": _check_dok,
}


def _check_once(matrix: Any, name_of: Callable[[int], str]) -> None:
    """Refuse a cell that COO names twice: scipy would add it up, in a small type perhaps."""
    places = matrix.row.astype(np.int64) * matrix.shape[1] + matrix.col
    if bool((places[1:] > places[:-1]).all()):
        return
    places.sort()
    same = np.flatnonzero(places[1:] == places[:-1])
    if same.size:
        row, label = divmod(int(places[same[0]]), matrix.shape[1])
        raise InvalidInput(_twice(row, label, name_of))


def _twice(row: int, label: Any, name_of: Callable[[int], str]) -> str:
    return (
        f"labels must name each cell once, got row {row}, label {name_of(int(label))!r} twice. "
        "Drop the repeats."
    )


def _row_of(indptr: Array, at: int) -> int:
    return int(np.searchsorted(indptr, at, side="right")) - 1
