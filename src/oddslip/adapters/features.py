"""Features of rows: dense or sparse, from memory or a file, and their fingerprint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from oddslip.core.sparse import read_sparse
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.arrays import read_npy, read_npz
from oddslip.io.files import hash_pieces
from oddslip.io.inputs import FileArray

ROW_ID = "row_id"  # the column of features that names their rows; pandas has an index as well
_HASH_BYTES = 64 * 1024 * 1024


class Named(NamedTuple):
    """A table without its ids: names of its rows and columns, each None where it has none."""

    table: Any
    row_ids: NDArray[Any] | None
    columns: tuple[str, ...] | None
    framed: bool  # whether it is a frame, which counts the rows that it does not name


def split_names(table: Any, *, truths: bool = False) -> Named:
    """A table and its names.

    Parameters
    ----------
    table
        Any; names come with a frame, and with the index of a series.
    truths : bool
        Whether these are labels, whose ids may be in any column that `take_ids` knows. Among
        features a column such as ``user`` may be one, so there ``row_id`` alone holds ids.

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
        return Named(table, ids, None, framed)
    return Named(table, ids, tuple(map(str, table.columns)), framed)


def frame_ids(table: Any) -> NDArray[Any] | None:
    """Names of the rows of a frame: its column ``row_id``, or else its index in pandas."""
    if is_frame(table) and ROW_ID in table.columns:
        ids: NDArray[Any] = table[ROW_ID].to_numpy()
        return ids
    return row_names(table)


def match_tables(
    one: Named, other: Named, what: tuple[str, str], *, n_rows: tuple[int, int]
) -> NDArray[np.int64] | None:
    """Where each row of one table stands among those of the other: see `match_rows`."""
    framed = one.framed if one.row_ids is None else other.framed
    return match_rows(one.row_ids, other.row_ids, what, n_rows=n_rows, indexed=framed)


def without_index(table: Any) -> Any:
    """The rows of a pandas frame or series numbered from 0; no cell is copied."""
    if row_names(table) is None:
        return table
    numbered = table.copy(deep=False)
    numbered.index = range(len(table))
    return numbered


def open_features(X: Any) -> Named:
    """Features of training, as `as_features` gives them, with the names of rows and columns."""
    given = split_names(X)
    return given._replace(table=as_features(given.table))


def label_panel(panel: Panel, X: Any, labels: Any) -> Panel:
    """A panel of scores of X, with the labels of its rows, if there are any."""
    if labels is not None:
        panel.add_labels(labels, indexed=hasattr(X, "to_numpy"))
    return panel


def as_features(X: Any) -> Any:
    """Features as a two-dimensional array, CSR or CSC matrix. Nothing is copied without need."""
    if hasattr(X, "tocsr"):
        return sparse.as_features(X)
    if is_frame(X):
        X = X.to_numpy()
    array: Any = X
    if not isinstance(X, FileArray):
        array = np.asanyarray(reject_masked("X", X, column="feature"))
    if array.ndim != 2:
        raise InvalidInput(f"X must be of shape (rows, features), got shape {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"X must hold numbers, got dtype {array.dtype}. Encode text and categories first."
        )
    return array


def check_features(X: Any, n_features: int, names: Sequence[str] | None = None) -> Any:
    """Features of rows to score, in the order of training.

    Parameters
    ----------
    X : array-like, scipy.sparse matrix or data frame of shape (n_rows, n_features)
        Columns of a frame are matched by name. Where one side has no names, columns go by number
        if the names are a numbering, and else by position, with a warning.
    n_features : int
        Of training.
    names : sequence of str, optional
        Names of the features of training.

    Examples
    --------
    >>> import pandas as pd
    >>> check_features(pd.DataFrame({"b": [1.0], "a": [2.0]}), 2, ["a", "b"])
    array([[2., 1.]])
    """
    given = split_names(X)
    order = _order_features(given.columns, names, n_features)
    table = given.table
    if order is not None:
        table = table.iloc[:, order] if hasattr(table, "iloc") else table[:, order]
    checked = as_features(table)
    if checked.shape[1] != n_features:
        raise InvalidInput(
            f"X must have the {n_features} features of training, got {checked.shape[1]}."
        )
    return checked


def _order_features(
    columns: Sequence[str] | None, names: Sequence[str] | None, n_features: int
) -> list[int] | None:
    """Where the features of training stand among the columns; None where they stand alike."""
    if columns is None and names is None:
        return None
    if columns is None or names is None:
        known = columns if names is None else names
        if known is None or not is_numbering(known) or len(known) != n_features:
            holder, other = ("X", "the model") if names is None else ("the model", "X")
            warn_caller(
                f"features go by position, because {holder} has feature names and {other} has none."
            )
            return None
        counted = tuple(map(str, range(n_features)))
        columns, names = columns or counted, names or counted
    if tuple(columns) == tuple(names):
        return None
    place = {name: at for at, name in enumerate(columns)}
    missing = next((name for name in names if name not in place), None)
    known_names = set(names)
    extra = next((name for name in columns if name not in known_names), None)
    if missing is None and extra is None and len(place) < len(columns):
        extra = next(name for name in columns if list(columns).count(name) > 1)
    if missing is None and extra is None:
        return [place[name] for name in names]
    came = f"got {extra!r:.60}" if extra is not None else f"{missing!r:.60} is missing"
    raise InvalidInput(
        f"X must have the features of training, each once, but {came}. Name its columns as in "
        "training, or pass .to_numpy() to go by position."
    )


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
