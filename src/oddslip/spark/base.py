"""`Engine`: the interface that runs tasks over the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from oddslip.core.tally import State, merge_states
from oddslip.spark.messages import Message, pack
from oddslip.spark.rows import Layout
from oddslip.spark.tasks import (
    FAILED,
    KEYS,
    ROWS,
    join_shards,
    read_error,
    read_state,
    versions,
)

SHARD_BYTES = 4 * 1024 * 1024  # states larger than this are merged by the tasks themselves


class Engine(Protocol):
    """A table whose rows are read by tasks."""

    def collect(
        self, message: Message, columns: Sequence[str], n_shards: int
    ) -> Iterator[tuple[int, memoryview]]:
        """Run `oddslip.spark.tasks.tally_rows` over all rows, and yield the output of the tasks.

        With more than one shard, the pieces of each are merged by `merge_shards`.
        """
        ...

    def check(self, column: str) -> None:
        """Raise if a column is missing."""
        ...

    def attach(self, message: Message, columns: Sequence[str], fields: dict[str, str]) -> Any:
        """A table with the output of `oddslip.spark.tasks.map_rows`, computed lazily.

        ``fields`` are the names and types of its columns; an empty type keeps the type of the
        column with this name.
        """
        ...


def run_tally(engine: Engine, tally: Any, layout: Layout, **options: Any) -> tuple[Any, int, int]:
    """One pass: the tally after all rows, the number of rows and the sum of their keys."""
    result = tally.empty_like()
    empty: State = result.state()
    size = sum(array.nbytes for array, how in empty.values() if how != "append")
    shapes = {name: array.shape for name, (array, _) in empty.items()}
    empty_arrays = {name: part for name, part in empty.items() if not part[0].size}
    del empty  # it is as large as the result
    n_shards = -(-max(size, 1) // SHARD_BYTES)
    content = {"tally": tally, "layout": layout, "shards": n_shards, "versions": versions()}
    output = engine.collect(pack(content | options), layout.columns, n_shards)
    state = join_shards(_merge(output), shapes)
    n_rows, keys = (int(state.pop(name)[0][0]) if name in state else 0 for name in (ROWS, KEYS))
    if n_rows:
        result.restore(empty_arrays | state)  # empty arrays are in no shard
    return result, n_rows, keys


def _merge(output: Iterator[tuple[int, memoryview]]) -> dict[int, State]:
    """The state of each shard."""
    shards: dict[int, list[State]] = {}
    for shard, data in output:
        if shard == FAILED:
            raise read_error(data)
        shards.setdefault(shard, []).append(read_state(data))
    return {shard: merge_states(states) for shard, states in shards.items()}
