"""Tables of other libraries through Arrow: frames, relations, lazy frames, streams.

Tables in memory are read in place. Tables that are computed or can be read only once (a DuckDB
relation, a LazyFrame, a RecordBatchReader) go through a spool: every pass then sees the same rows,
and memory holds one batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from oddslip.core.row_ids import ROW_ID_NAMES, is_frame, row_names
from oddslip.errors import InvalidInput, OddslipError, first_line
from oddslip.sources.long.roles import looks_long

LAZY_ROWS = 16 * 1024  # rows of a lazy frame per batch


def is_table(thing: Any) -> bool:
    """Whether this is read through Arrow, and not as an array.

    Frames whose columns are all labels are arrays with names. Frames with lists, row ids or one
    line per cell are tables. Does not load pandas, polars, DuckDB or pyarrow.
    """
    if not hasattr(thing, "__arrow_c_stream__"):
        return is_lazy(thing) or hasattr(thing, "file_batches")  # already opened
    if is_frame(thing):
        return not _all_cells(thing)
    # A series is an array with names.
    return type(thing).__module__.partition(".")[0] not in ("pandas", "polars")


def is_lazy(thing: Any) -> bool:
    """Whether this is a LazyFrame of polars."""
    return type(thing).__module__.startswith("polars.") and type(thing).__name__ == "LazyFrame"


def _all_cells(frame: Any) -> bool:
    """Whether every column of a frame holds numbers that can be cells of a label."""
    kinds = _kinds(frame)
    if _looks_long(frame):
        return False
    return all(
        kind in "biuf" and not (kind in "iu" and name in ROW_ID_NAMES) for name, kind in kinds
    )


def _looks_long(frame: Any) -> bool:
    """Whether lines of a frame are cells, and not rows."""
    kinds = _kinds(frame)
    return looks_long([name for name, _ in kinds], {name for name, kind in kinds if kind in "bf"})


def _kinds(frame: Any) -> list[tuple[str, str]]:
    """Names of the columns, and the kind of their cells as NumPy calls it."""

    def kind_of(dtype: Any) -> str:
        if hasattr(dtype, "kind"):
            return str(dtype.kind)
        return "f" if dtype.is_float() else "i" if dtype.is_integer() else str(dtype)[0].lower()

    names = map(str, frame.columns)
    return [(name, kind_of(dtype)) for name, dtype in zip(names, frame.dtypes, strict=True)]


def open_table(thing: Any) -> Any:
    """Batches of a table that `is_table` accepts."""
    import pyarrow as pa

    from oddslip.sources.batches import Batches, TableBatches
    from oddslip.sources.spool import SpooledBatches

    if isinstance(thing, Batches):
        return thing
    called = f"the {type(thing).__name__}"
    with _one_line_errors(called):
        if is_lazy(thing):
            frames = _lazy_batches(thing)
            first = pa.table(next(frames))
            schema, tables = first.schema, chain([first], map(pa.table, frames))
            batches = (batch for table in tables for batch in table.to_batches())
            return SpooledBatches(called, schema, batches)
        if isinstance(thing, pa.Table | pa.RecordBatch):
            return TableBatches(pa.table(thing), called)
        if is_frame(thing):
            return TableBatches(_frame_table(thing), called)
        if hasattr(thing, "to_numpy") or isinstance(thing, pa.ChunkedArray | pa.Array):
            return TableBatches(pa.table({"labels": pa.chunked_array(thing)}), called)
        reader = pa.RecordBatchReader.from_stream(thing)
        return SpooledBatches(called, reader.schema, _stream_batches(reader, called))


def _frame_table(frame: Any) -> Any:
    """A frame of pandas with its index as row ids, or of polars."""
    import pyarrow as pa

    if not hasattr(frame, "index"):
        return pa.table(frame)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    ids = row_names(frame)
    if ids is None or set(ROW_ID_NAMES) & set(table.column_names) or _looks_long(frame):
        return table
    return table.add_column(0, "row_id", pa.array(ids))


def _lazy_batches(lazy: Any) -> Iterator[Any]:
    """Frames of a lazy frame, in order. Versions without `collect_batches` collect it whole."""
    if not hasattr(lazy, "collect_batches"):
        return iter([lazy.collect()])
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars: this method may change
        batches = iter(lazy.collect_batches(chunk_size=LAZY_ROWS, maintain_order=True))
    first = next(batches, None)
    return iter([lazy.limit(0).collect()]) if first is None else chain([first], batches)


def _stream_batches(reader: Any, called: str) -> Iterator[Any]:
    """Batches of a stream, with one-line errors."""
    while True:
        with _one_line_errors(called):
            batch = next(reader, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _one_line_errors(called: str) -> Iterator[None]:
    """Turn any error of another library into `InvalidInput`, with a one-line message."""
    try:
        yield
    except (OddslipError, OSError):
        raise
    except Exception as error:
        raise InvalidInput(
            f"{called} must hand over its rows through Arrow, but did not ({first_line(error)})."
        ) from error
