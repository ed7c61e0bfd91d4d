"""Functions that run in a task: rows in, states of tallies or finished rows out.

A task receives a `Message` and compares versions first. Our own errors are returned as a row, so
that the user reads one line and the task is not retried.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oddslip import __version__
from oddslip.core.panel import Panel
from oddslip.core.tally import State, Tally, merge_states
from oddslip.core.types import Array
from oddslip.errors import InvalidInput, MissingDependency, OddslipError, UnreadableFile
from oddslip.spark.messages import Message, pack, unpack
from oddslip.spark.rows import (
    Layout,
    cut_blocks,
    read_panel,
    read_panels,
    sum_of_keys,
    whole_column,
)

SCHEMA = pa.schema([("shard", pa.int32()), ("data", pa.binary())])
FAILED = -1  # the shard of an error
ROWS, KEYS = "#rows", "#keys"  # number of rows, and the sum of their keys
ERRORS = {each.__name__: each for each in (InvalidInput, MissingDependency, UnreadableFile)}

Batches = Iterable[pa.RecordBatch]


def versions() -> dict[str, str]:
    """Versions that must be the same on every machine."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"oddslip": __version__, "NumPy": np.__version__, "Python": python}


def check_versions(driver: dict[str, str], executor: dict[str, str] | None = None) -> None:
    """Raise unless these versions are the versions of the driver."""
    for name, here in (versions() if executor is None else executor).items():
        if here != driver[name]:
            raise InvalidInput(
                f"every executor must run {name} {driver[name]}, as the driver does, got {here} "
                f"on {platform.node()}. Install the same version there."
            )


def tally_rows(message: Message, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Add the rows to a tally, and yield its state, cut into shards."""
    try:
        content = unpack(message)
        check_versions(content["versions"])
        tally: Tally = content["tally"]
        layout: Layout = content["layout"]
        n_rows, keys = 0, 0
        for panel in read_panels(read_units(content, batches), layout):
            tally.add(panel)
            n_rows += panel.n_rows
            keys += sum_of_keys(panel)
        state = tally.state() if n_rows else {}
        state[ROWS] = np.array([n_rows]), "add"
        state[KEYS] = np.array([keys % 2**64], np.uint64), "add"
        for shard, piece in cut_state(state, content["shards"]):
            yield write_row(shard, piece)
    except OddslipError as error:
        yield write_error(error)


def merge_shards(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Merge the states of each shard; two are in memory at a time."""
    merged: dict[int, State] = {}
    for batch in batches:
        for shard, data in read_rows(batch):
            if shard == FAILED:
                yield _row(shard, bytes(data))
                return
            piece = read_state(data)
            merged[shard] = merge_states([merged[shard], piece]) if shard in merged else piece
    for shard, state in merged.items():
        yield write_row(shard, state)


def read_units(content: dict[str, Any], batches: Batches) -> Batches:
    """The batches themselves, or the row groups whose numbers they hold."""
    if "units" not in content:
        return batches
    return _read_files(content["units"], content["layout"], batches)


def _read_files(
    units: list[tuple[str, int]], layout: Layout, batches: Batches
) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    for batch in batches:
        for at in batch.column(0).to_pylist():
            path, group = units[at]
            try:
                with pq.ParquetFile(path, memory_map=True) as file:
                    # A row group may be larger than memory.
                    yield from file.iter_batches(layout.block_rows, [group], layout.columns)
            except (OSError, pa.ArrowException) as error:
                raise UnreadableFile(
                    f"{path} cannot be read by an executor ({type(error).__name__}). "
                    "Files must lie where every executor sees them."
                ) from error


# ---------------------------------------------------------------------------------- states as bytes


def cut_state(state: State, n_shards: int) -> Iterator[tuple[int, State]]:
    """Pieces of a state. Appended arrays and row counts go to the first piece."""
    if n_shards == 1:
        yield 0, state
        return
    for shard in range(n_shards):
        piece: State = {}
        for name, (array, how) in state.items():
            if name.startswith("#") or how == "append":
                if shard == 0:
                    piece[name] = array, how
                continue
            flat = array.reshape(-1)
            start, stop = (flat.size * at // n_shards for at in (shard, shard + 1))
            if stop > start:
                piece[name] = flat[start:stop], how
        if piece:
            yield shard, piece


def join_shards(shards: dict[int, State], shapes: dict[str, tuple[int, ...]]) -> State:
    """The whole state in these shapes, copied into new arrays."""
    pieces: dict[str, list[Array]] = {}
    joins: dict[str, Any] = {}
    for shard in sorted(shards):
        for name, (array, how) in shards[shard].items():
            pieces.setdefault(name, []).append(array)
            joins[name] = how
    state: State = {}
    for name, parts in pieces.items():
        # A view of received bytes may not be aligned.
        whole = np.array(parts[0]) if len(parts) == 1 else np.concatenate(parts)
        if name in shapes and joins[name] != "append":
            whole = whole.reshape(shapes[name])
        state[name] = whole, joins[name]
    return state


def write_row(shard: int, state: State) -> pa.RecordBatch:
    """A piece of a state as a row."""
    tree = {name: list(piece) for name, piece in state.items()}
    return _row(shard, pack(tree).data)


def read_state(data: bytes | memoryview) -> State:
    """A piece of a state from its bytes; its arrays are views of them."""
    return {name: (piece[0], piece[1]) for name, piece in unpack(Message((), data)).items()}


def write_error(error: OddslipError) -> pa.RecordBatch:
    """An error as a row."""
    return _row(FAILED, pack([type(error).__name__, str(error)]).data)


def read_error(data: bytes | memoryview) -> OddslipError:
    """An error from its bytes."""
    name, message = unpack(Message((), data))
    return ERRORS.get(name, OddslipError)(message)


def _row(shard: int, data: bytes | memoryview) -> pa.RecordBatch:
    return pa.record_batch([pa.array([shard], pa.int32()), pa.array([data])], schema=SCHEMA)


def read_rows(batch: pa.RecordBatch) -> Iterator[tuple[int, memoryview]]:
    """The rows that tasks return, as views: states may be gigabytes."""
    for shard, data in zip(batch.column("shard"), batch.column("data"), strict=True):
        yield shard.as_py(), memoryview(data.as_buffer())


# ------------------------------------------------------------------------------------ rows for rows


def map_rows(message: Message, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Finished rows: the columns that ``make`` computes for a panel, beside the row ids."""
    content = unpack(message)
    check_versions(content["versions"])
    layout: Layout = content["layout"]
    compute: Callable[..., dict[str, pa.Array]] = content["make"]
    for block in cut_blocks(read_units(content, batches), layout):
        columns = {str(layout.row_id): whole_column(block, str(layout.row_id))}
        columns |= compute(read_panel(block, layout), **content["options"])
        yield pa.record_batch(list(columns.values()), names=list(columns))


def top_of_panel(panel: Panel, *, columns: NDArray[np.int32], values: Array) -> pa.Array:
    """The top K of each row, as lists of (label, score); shorter where a slot is empty."""
    filled = columns >= 0
    ends = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    return list_cells(panel, ends, columns[filled], values[filled].astype(np.float64))


def list_cells(panel: Panel, ends: Array, labels: NDArray[np.int32], values: Array) -> pa.Array:
    """Lists of (label, score), one for each row."""
    names: pa.Array = pa.array(labels)
    if panel.label_names is not None:
        names = pa.array(panel.label_names, pa.string()).take(names)
    cells = pa.StructArray.from_arrays([names, pa.array(values)], ["label", "score"])
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), cells)
