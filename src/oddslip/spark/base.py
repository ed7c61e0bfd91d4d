"""`Engine`: what starts tasks over the rows of a table. A second one is this much work."""

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
        self, parcel: Message, columns: Sequence[str], n_shards: int
    ) -> Iterator[tuple[int, memoryview]]:
        """Run `oddslip.spark.tasks.tally_rows` over all rows; give what the tasks gave.

        With more than one shard, `merge_shards` has merged the pieces of each.
        """
        ...

    def check(self, column: str) -> None:
        """Refuse a column that is not there."""
        ...

    def attach(self, parcel: Message, columns: Sequence[str], fields: dict[str, str]) -> Any:
        """A table of what `oddslip.spark.tasks.map_rows` gives; nothing is computed yet.

        ``fields`` are names and types of its columns; an empty type is the column's own.
        """
        ...


def run_tally(engine: Engine, tally: Any, layout: Layout, **more: Any) -> tuple[Any, int, int]:
    """One pass: the tally with all that was seen, the number of rows and the sum of their keys."""
    fresh = tally.empty_like()
    empty: State = fresh.state()
    size = sum(array.nbytes for array, how in empty.values() if how != "append")
    shapes = {name: array.shape for name, (array, _) in empty.items()}
    nothing = {name: part for name, part in empty.items() if not part[0].size}
    del empty  # it is as large as what will come
    n_shards = -(-max(size, 1) // SHARD_BYTES)
    told = {"tally": tally, "layout": layout, "shards": n_shards, "versions": versions(), **more}
    state = join_shards(_merged(engine.collect(pack(told), layout.columns, n_shards)), shapes)
    n_rows, keys = (int(state.pop(name)[0][0]) if name in state else 0 for name in (ROWS, KEYS))
    if n_rows:
        fresh.restore(nothing | state)  # what has no number is in no piece
    return fresh, n_rows, keys


def _merged(given: Iterator[tuple[int, memoryview]]) -> dict[int, State]:
    """The state of each shard."""
    shards: dict[int, list[State]] = {}
    for shard, data in given:
        if shard == FAILED:
            raise read_error(data)
        shards.setdefault(shard, []).append(read_state(data))
    return {shard: merge_states(states) for shard, states in shards.items()}
