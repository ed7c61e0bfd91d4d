"""Features of rows: dense or sparse, from memory or a file, and their fingerprint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from oddslip import sparse
from oddslip.arguments import unmasked
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.files import hash_pieces
from oddslip.inputs import FileArray
from oddslip.sources.npy import read_npy, read_npz, read_sparse

_HASH_BYTES = 64 * 1024 * 1024


def as_features(X: Any) -> Any:
    """Features as a two-dimensional array, CSR or CSC matrix. Nothing is copied without need."""
    if hasattr(X, "tocsr"):
        return sparse.as_features(X)
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):
        X = X.to_numpy()
    array: Any = X
    if not isinstance(X, FileArray):
        array = np.asanyarray(unmasked("X", X, column="feature"))
    if array.ndim != 2:
        raise InvalidInput(f"X must be of shape (rows, features), got shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"X must hold numbers, got dtype {array.dtype}. Encode text and categories first."
        )
    return array


def check_features(X: Any, n_features: int) -> Any:
    """Features of rows to score: as many columns as the model was trained on."""
    checked = as_features(X)
    if checked.shape[1] != n_features:
        raise InvalidInput(
            f"X must have the {n_features} features of training, got {checked.shape[1]}."
        )
    return checked


def sliceable(X: Any) -> Any:
    """Features of which blocks of rows are cheap to take: CSC becomes CSR."""
    return X.tocsr() if getattr(X, "format", None) == "csc" else X


def read_features(path: str | Path) -> Any:
    """Features from .npy or .npz of one array, read where they are used, or a scipy.sparse .npz."""
    path = Path(path)
    if path.suffix == ".npy":
        return as_features(read_npy(path))
    if path.suffix != ".npz":
        raise UnreadableFile(
            f"{path} must end in .npy or .npz, got {path.suffix or 'no ending'!r}."
        )
    matrix = read_sparse(path)
    return as_features(read_npz(path) if matrix is None else matrix)


def as_whole(X: Any) -> Any:
    """Features in memory, as learners need them for training."""
    return np.asarray(X) if isinstance(X, FileArray) else X


def hash_features(X: Any) -> str:
    """A fingerprint of features: the same for the same cells in the same form."""
    return hash_pieces(_pieces(X))


def _pieces(X: Any) -> Iterator[Any]:
    if hasattr(X, "tocsr"):
        yield f"{X.format} {X.shape} {X.data.dtype}".encode()
        for part in (X.indptr, X.indices, X.data):
            yield np.ascontiguousarray(part).data
        return
    yield f"dense {X.shape} {X.dtype}".encode()
    step = max(1, _HASH_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    for start in range(0, X.shape[0], step):
        yield np.ascontiguousarray(X[start : start + step]).data
