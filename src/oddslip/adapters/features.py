"""Tables of features: dense or sparse, in memory or in a file, and their hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from oddslip.core import sparse
from oddslip.core.arguments import reject_masked
from oddslip.core.panel import Panel
from oddslip.core.row_ids import (
    counts_up,
    is_frame,
    is_numbering,
    match_rows,
    row_names,
    take_ids,
    warn_caller,
)
from oddslip.core.sparse import read_array
from oddslip.core.types import Array, FeaturesLike, FilePath, Ints, LabelsLike
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.files import hash_pieces
from oddslip.io.inputs import FileArray

ROW_ID = "row_id"  # the column of a table of features that holds row ids
_HASH_BYTES = 64 * 1024 * 1024


class NamedTable(NamedTuple):
    """A table without its ids, and the names of its rows and columns, if any."""

    table: FeaturesLike
    row_ids: Array | None
    columns: tuple[str, ...] | None
    framed: bool  # whether it is a data frame, whose rows have numbers if not names


def split_names(table: FeaturesLike, *, truths: bool = False) -> NamedTable:
    """Separate a table from the names of its rows and columns.

    Parameters
    ----------
    table
        Any table; data frames and series have names.
    truths : bool
        Whether these are labels, whose ids may be in any column that `take_ids` accepts. A column
        such as ``user`` may be a feature, so ids of features are only read from ``row_id``.

    Returns
    -------
    NamedTable

    Examples
    --------
    >>> import pandas as pd
    >>> split_names(pd.DataFrame({"age": [41.0], "row_id": ["u"]})).columns
    ('age',)
    """
    framed = hasattr(table, "to_numpy")
    if truths:
        table, ids = take_ids(table)
    else:
        ids = frame_ids(table)
        if is_frame(table) and ROW_ID in table.columns:
            table = table[[name for name in table.columns if name != ROW_ID]]
    if not is_frame(table) or counts_up(table.columns):
        return NamedTable(table, ids, None, framed)
    return NamedTable(table, ids, tuple(map(str, table.columns)), framed)


def frame_ids(table: FeaturesLike) -> Array | None:
    """Row ids of a data frame: its column ``row_id``, or else its pandas index."""
    if is_frame(table) and ROW_ID in table.columns:
        ids: Array = table[ROW_ID].to_numpy()
        return ids
    return row_names(table)


def match_tables(
    one: NamedTable, other: NamedTable, what: tuple[str, str], *, n_rows: tuple[int, int]
) -> Ints | None:
    """Position of each row of one table in the other, see `match_rows`."""
    framed = one.framed if one.row_ids is None else other.framed
    return match_rows(one.row_ids, other.row_ids, what, n_rows=n_rows, indexed=framed)


def without_index(table: FeaturesLike) -> FeaturesLike:
    """A pandas frame or series with rows numbered from 0; no cell is copied."""
    if row_names(table) is None:
        return table
    numbered = table.copy(deep=False)
    numbered.index = range(len(table))
    return numbered


def open_features(X: FeaturesLike) -> NamedTable:
    """Training features as `as_features` returns them, with the names of rows and columns."""
    features = split_names(X)
    return features._replace(table=as_features(features.table))


def label_panel(panel: Panel, X: FeaturesLike, labels: LabelsLike) -> Panel:
    """The panel of scores of X with the labels of its rows, if any."""
    if labels is not None:
        panel.add_labels(labels, indexed=hasattr(X, "to_numpy"))
    return panel


def as_features(X: FeaturesLike) -> FeaturesLike:
    """Features as a two-dimensional array, CSR or CSC matrix, without copying where possible."""
    if hasattr(X, "tocsr"):
        return sparse.as_features(X)
    if is_frame(X):
        X = X.to_numpy()
    array = X
    if not isinstance(X, FileArray):
        array = np.asanyarray(reject_masked("X", X, column="feature"))
    if array.ndim != 2:
        raise InvalidInput(f"X must be of shape (rows, features), got shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"X must hold numbers, got dtype {array.dtype}. Encode text and categories first."
        )
    return array


def check_features(
    X: FeaturesLike, n_features: int, names: Sequence[str] | None = None
) -> FeaturesLike:
    """Features of rows to score, with columns in the order of training.

    Parameters
    ----------
    X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)
        Columns of a frame are matched by name. If one side has no names, columns are matched by
        number if the names are numbers, and else by position, with a warning.
    n_features : int
        Number of features in training.
    names : sequence of str, optional
        Names of the features in training.

    Returns
    -------
    array, CSR or CSC matrix of shape (n_rows, n_features)

    Examples
    --------
    >>> import pandas as pd
    >>> check_features(pd.DataFrame({"b": [1.0], "a": [2.0]}), 2, ["a", "b"])
    array([[2., 1.]])
    """
    table, _, columns, _ = split_names(X)
    order = _order_features(columns, names, n_features)
    if order is not None:
        table = table.iloc[:, order] if hasattr(table, "iloc") else table[:, order]
    features = as_features(table)
    if features.shape[1] != n_features:
        raise InvalidInput(
            f"X must have the {n_features} features of training, got {features.shape[1]}."
        )
    return features


def _order_features(
    columns: Sequence[str] | None, names: Sequence[str] | None, n_features: int
) -> list[int] | None:
    """Position of each training feature among the columns; None if the order is the same."""
    if columns is None and names is None:
        return None
    if columns is None or names is None:
        present = columns or names
        if present is None or not is_numbering(present) or len(present) != n_features:
            holder, other = ("X", "the model") if names is None else ("the model", "X")
            warn_caller(
                f"features are matched by position, because {holder} has feature names and {other} "
                "has none."
            )
            return None
        numbers = tuple(map(str, range(n_features)))
        columns, names = columns or numbers, names or numbers
    if tuple(columns) == tuple(names):
        return None
    position = {name: at for at, name in enumerate(columns)}
    missing = next((name for name in names if name not in position), None)
    training_names = set(names)
    extra = next((name for name in columns if name not in training_names), None)
    if missing is None and extra is None and len(position) < len(columns):
        extra = next(name for name in columns if list(columns).count(name) > 1)
    if missing is None and extra is None:
        return [position[name] for name in names]
    problem = f"got {extra!r:.60}" if extra is not None else f"{missing!r:.60} is missing"
    raise InvalidInput(
        f"X must have the features of training, each once, but {problem}. Name its columns as in "
        "training, or pass .to_numpy() to go by position."
    )


def sliceable(X: FeaturesLike) -> FeaturesLike:
    """Features that can be sliced by rows cheaply: CSC becomes CSR."""
    return X.tocsr() if getattr(X, "format", None) == "csc" else X


def read_features(path: FilePath) -> FeaturesLike:
    """Features from a .npy file, a .npz file of one array, or a scipy.sparse .npz file."""
    path = Path(path)
    if path.suffix not in (".npy", ".npz"):
        raise UnreadableFile(
            f"{path} must end in .npy or .npz, got {path.suffix or 'no ending'!r}."
        )
    return as_features(read_array(path))


def as_whole(X: FeaturesLike) -> FeaturesLike:
    """Features in memory, as learners need them for training."""
    return np.asarray(X) if isinstance(X, FileArray) else X


def hash_features(X: FeaturesLike) -> str:
    """A hash of the cells, dtype and layout of features."""
    return hash_pieces(_pieces(X))


def _pieces(X: FeaturesLike) -> Iterator[bytes | memoryview]:
    if hasattr(X, "tocsr"):
        yield f"{X.format} {X.shape} {X.data.dtype}".encode()
        for part in (X.indptr, X.indices, X.data):
            yield np.ascontiguousarray(part).data
        return
    yield f"dense {X.shape} {X.dtype}".encode()
    step = max(1, _HASH_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    for start in range(0, X.shape[0], step):
        yield np.ascontiguousarray(X[start : start + step]).data
