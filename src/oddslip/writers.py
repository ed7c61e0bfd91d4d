"""Atomic writers of scores and rankings to .npy, .csv and .parquet files."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from oddslip.core.panel import Kind, check_names
from oddslip.core.types import Array
from oddslip.errors import InvalidInput, first_line
from oddslip.io.arrays import npy_header
from oddslip.io.files import atomic_write

Parts = Iterator[tuple[int, tuple[Array, ...]]]


def write_scores(
    path: str | os.PathLike[str],
    blocks: Iterable[tuple[int, Array]],
    *,
    n_rows: int,
    n_labels: int,
    dtype: DTypeLike,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    row_ids: Any = None,
) -> None:
    """Write scores to an .npy, .csv or .parquet file.

    Parameters
    ----------
    path : str or path
        Ends in .npy, or in .parquet: then a column ``scores`` of lists, ``row_id`` if there are
        row ids, and the label names and the kind in the metadata, all of which `open_source`
        reads back. An .npy file holds no names, ids or kind. A .csv file has a column per label,
        named after it, and ``row_id``; a name that a spreadsheet would run as a formula gets an
        apostrophe before it, which `open_source` removes.
    blocks : iterable of (first_row, cells)
        Blocks of rows in any order, each row once.
    n_rows, n_labels : int
        Shape of the whole.
    dtype : dtype
        float32 or float64.
    kind : {"probability", "margin"}, optional
        What the scores are.
    label_names, row_ids : sequence, optional
        Names of the labels and of the rows.

    Examples
    --------
    >>> write_scores("s.npy", [(0, cells)], n_rows=2, n_labels=3, dtype="f4")  # doctest: +SKIP
    """
    path = Path(path)
    dtype = np.dtype(dtype)
    names = check_names(label_names, n_labels)
    parts = ((first, (cells,)) for first, cells in blocks)
    if check_ending(path) == ".npy":
        _write_npy(path, parts, (n_rows, n_labels), dtype)
        return
    if path.suffix == ".csv":
        header = [str(j) for j in range(n_labels)] if names is None else list(names)
        _write_csv(
            path,
            parts,
            (n_rows, n_labels),
            header,
            row_ids,
            "row_id",
            lambda cells: [np.ascontiguousarray(cells, dtype)[:, j] for j in range(n_labels)],
        )
        return
    import pyarrow as pa

    value = pa.from_numpy_dtype(dtype)
    schema = pa.schema([("scores", pa.list_(value, n_labels))])
    metadata = {} if names is None else {"oddslip.label_names": json.dumps(names)}
    if kind is not None:
        metadata["oddslip.kind"] = kind
    schema = schema.with_metadata(metadata) if metadata else schema
    ids = _as_ids(row_ids, n_rows)
    if ids is not None:
        schema = schema.insert(0, pa.field("row_id", ids.type))

    def columns(first: int, cells: Array) -> list[Any]:
        flat = pa.array(np.ascontiguousarray(cells, dtype).ravel())
        lists = pa.FixedSizeListArray.from_arrays(flat, n_labels)
        return [lists] if ids is None else [ids.slice(first, len(cells)), lists]

    _write_parquet(path, parts, (n_rows, n_labels), schema, columns)


def write_ranking(
    path: str | os.PathLike[str],
    blocks: Iterable[tuple[int, Array] | tuple[int, Array, Array]],
    *,
    n_rows: int,
    k: int,
    scores_dtype: DTypeLike | None = None,
    label_names: Sequence[str] | None = None,
    row_ids: Any = None,
) -> None:
    """Write the top K of each row to an .npy, .csv or .parquet file.

    Parameters
    ----------
    path : str or path
        Ends in .npy: label indices of shape (n_rows, k); or in .parquet: columns ``row``,
        ``labels`` (names where known, else indices) and perhaps ``scores``, lists of length k;
        or in .csv: columns ``row``, ``label_1`` to ``label_k`` and perhaps ``score_1`` to
        ``score_k``.
    blocks : iterable of (first_row, labels) or (first_row, labels, scores)
        Blocks of rows in any order, each row once; label indices, best first.
    n_rows, k : int
        Shape of the whole.
    scores_dtype : dtype, optional
        Type of the scores, if the blocks bring scores. Not for .npy.
    label_names, row_ids : sequence, optional
        Names of the labels and of the rows.

    Examples
    --------
    >>> write_ranking("top.npy", [(0, ranking)], n_rows=2, k=7)  # doctest: +SKIP
    """
    path = Path(path)
    parts = ((first, tuple(arrays)) for first, *arrays in blocks)
    if check_ending(path) == ".npy":
        if scores_dtype is not None:
            raise InvalidInput(f"a ranking with scores must go to .csv or .parquet, got {path}.")
        _write_npy(path, parts, (n_rows, k), np.dtype(np.int32))
        return
    if path.suffix == ".csv":
        _write_ranking_csv(path, parts, (n_rows, k), scores_dtype, label_names, row_ids)
        return
    import pyarrow as pa

    names = None if label_names is None else pa.array([str(name) for name in label_names])
    ids = _as_ids(row_ids, n_rows)
    fields = [
        ("row", pa.int64() if ids is None else ids.type),
        ("labels", pa.list_(pa.int32() if names is None else pa.string())),
    ]
    if scores_dtype is not None:
        fields.append(("scores", pa.list_(pa.from_numpy_dtype(np.dtype(scores_dtype)))))

    def list_array(cells: Any, n: int) -> Any:
        return pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32) * k), cells)

    def columns(first: int, labels: Array, *scores: Array) -> list[Any]:
        n = len(labels)
        flat_labels = np.ascontiguousarray(labels, np.int32).ravel()
        # An empty slot, -1, is a null.
        indices = pa.array(flat_labels, mask=flat_labels < 0)
        rows = pa.array(np.arange(first, first + n)) if ids is None else ids.slice(first, n)
        arrays = [rows, list_array(indices if names is None else names.take(indices), n)]
        if scores_dtype is not None:
            flat = np.ascontiguousarray(scores[0], scores_dtype).ravel()
            arrays.append(list_array(pa.array(flat), n))
        return arrays

    _write_parquet(path, parts, (n_rows, k), pa.schema(fields), columns)


def check_ending(path: Path) -> str:
    """The ending of a file that scores or rankings can go to."""
    if path.suffix not in (".npy", ".csv", ".parquet", ".pq"):
        raise InvalidInput(
            f"{path} must end in .npy, .csv or .parquet, got {path.suffix or 'no ending'!r}."
        )
    return path.suffix


def _as_ids(row_ids: Any, n_rows: int) -> Any:
    if row_ids is None:
        return None
    import pyarrow as pa

    if len(row_ids) != n_rows:
        raise InvalidInput(
            f"row_ids must hold one id per row, n_rows={n_rows}, got {len(row_ids)}."
        )
    try:
        return pa.array(row_ids)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(
            "row_ids must be whole numbers or text to go to a table, got others "
            f"({first_line(error)})."
        ) from error


def _write_npy(path: Path, parts: Parts, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    """Write blocks of rows, in any order, to an .npy file."""
    # Written by position, not through a memory map: a full disk then raises an error instead of a
    # bus error, and written pages do not count as memory of this process.
    rows = _Rows(shape)
    with atomic_write(path) as unfinished, unfinished.open("wb") as file:
        start = file.write(npy_header(dtype, shape))
        for first, (cells, *_) in parts:
            rows.take(first, cells)
            file.seek(start + first * shape[1] * dtype.itemsize)
            file.write(np.ascontiguousarray(cells, dtype).data)
        rows.check_whole()


def _write_ranking_csv(
    path: Path,
    parts: Parts,
    shape: tuple[int, int],
    scores_dtype: DTypeLike | None,
    label_names: Sequence[str] | None,
    row_ids: Any,
) -> None:
    """The top K as CSV: an empty slot is an empty cell."""
    import pyarrow as pa

    from oddslip.sources.csv import escape_formula

    k = shape[1]
    names = None
    if label_names is not None:
        names = pa.array([escape_formula(str(name)) for name in label_names])
    header = [f"label_{slot + 1}" for slot in range(k)]
    header += [] if scores_dtype is None else [f"score_{slot + 1}" for slot in range(k)]

    def columns(labels: Array, *scores: Array) -> list[Any]:
        arrays = []
        for slot in range(k):
            indices = np.ascontiguousarray(labels[:, slot], np.int32)
            slots = pa.array(indices, mask=indices < 0)
            arrays.append(slots if names is None else names.take(slots))
        if scores_dtype is not None:
            for slot in range(k):
                cells = np.ascontiguousarray(scores[0][:, slot], scores_dtype)
                arrays.append(pa.array(cells, mask=labels[:, slot] < 0))
        return arrays

    _write_csv(path, parts, shape, header, row_ids, "row", columns, numbered=True)


def _write_csv(
    path: Path,
    parts: Parts,
    shape: tuple[int, int],
    header: list[str],
    row_ids: Any,
    id_column: str,
    columns: Callable[..., list[Any]],
    numbered: bool = False,
) -> None:
    """Write blocks of rows as CSV, block by block; a column of ids, or of row numbers, first."""
    import csv as texts

    import pyarrow as pa
    from pyarrow import csv

    from oddslip.sources.csv import escape_formula

    ids = _as_ids(row_ids, shape[0])
    if ids is not None and pa.types.is_string(ids.type):
        ids = pa.array([None if text is None else escape_formula(text) for text in ids.to_pylist()])
    if ids is not None or numbered:
        header = [id_column, *header]
    with atomic_write(path) as unfinished, unfinished.open("wb") as file:
        line = io.StringIO()
        texts.writer(line, lineterminator="\r\n").writerow(map(escape_formula, header))
        file.write(line.getvalue()[:-2].encode() + b"\n")
        for first, arrays in _in_order(parts, shape):
            cells = columns(*arrays)
            n = len(arrays[0])
            if ids is not None:
                cells = [ids.slice(first, n), *cells]
            elif numbered:
                cells = [np.arange(first, first + n), *cells]
            batch = pa.record_batch(
                [pa.array(c) for c in cells], [str(j) for j in range(len(cells))]
            )
            csv.write_csv(batch, file, csv.WriteOptions(include_header=False))


def _write_parquet(
    path: Path,
    parts: Parts,
    shape: tuple[int, int],
    schema: Any,
    columns: Callable[..., list[Any]],
) -> None:
    """Write blocks of rows to a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [field.name for field in schema if not pa.types.is_nested(field.type)]
    if "labels" in schema.names:
        texts.append("labels.list.element")
    with (
        atomic_write(path) as unfinished,
        pq.ParquetWriter(unfinished, schema, compression="zstd", use_dictionary=texts) as writer,
    ):
        for first, arrays in _in_order(parts, shape):
            batch = pa.record_batch(columns(first, *arrays), schema=schema)
            writer.write_batch(batch)


def _in_order(parts: Parts, shape: tuple[int, int]) -> Parts:
    """Yield the blocks in row order; blocks that come early wait."""
    rows = _Rows(shape)
    waiting: dict[int, tuple[Array, ...]] = {}
    following = 0
    for first, arrays in parts:
        rows.take(first, arrays[0])
        waiting[first] = arrays
        while following in waiting:
            ready = waiting.pop(following)
            if len(ready[0]):
                yield following, ready
            following += len(ready[0])
    rows.check_whole()


class _Rows:
    """Checks that every row is written exactly once."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.ranges: list[tuple[int, int]] = []

    def take(self, first: int, cells: Array) -> None:
        """Record a block of rows."""
        n_rows, width = self.shape
        if cells.ndim != 2 or cells.shape[1] != width or not 0 <= first <= n_rows - len(cells):
            raise InvalidInput(
                f"a block must fit into shape {self.shape}, got shape {cells.shape} at row {first}."
            )
        if len(cells):
            self.ranges.append((first, first + len(cells)))

    def check_whole(self) -> None:
        """Reject rows that came twice or not at all."""
        following = 0
        for first, stop in sorted(self.ranges):
            if first != following:
                what = "not at all" if first > following else "twice"
                raise InvalidInput(
                    f"each row must be written once, got row {min(first, following)} {what}."
                )
            following = stop
        if following != self.shape[0]:
            raise InvalidInput(f"each row must be written once, got row {following} not at all.")
