"""`Engine`: what starts tasks over the rows of a table. A second one is this much work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from oddslip.engines.parcel import Parcel, pack
from oddslip.engines.rows import Layout
from oddslip.engines.task import (
    FAILED,
    KEYS,
    ROWS,
    join_shards,
    read_error,
    read_state,
    versions,
)
from oddslip.tallies import State, merge_states

SHARD_BYTES = 4 * 1024 * 1024  # states larger than this are merged by the tasks themselves


class Engine(Protocol):
    """A table whose rows are read by tasks."""

    def collect(
        self, parcel: Parcel, columns: Sequence[str], n_shards: int
    ) -> Iterator[tuple[int, bytes]]:
        """Run `oddslip.engines.task.tally_rows` over all rows; give what the tasks gave.

        With more than one shard, `merge_shards` has merged the pieces of each.
        """
        ...

    def check(self, column: str) -> None:
        """Refuse a column that is not there."""
        ...

    def attach(self, parcel: Parcel, columns: Sequence[str], fields: dict[str, str]) -> Any:
        """A table of what `oddslip.engines.task.map_rows` gives; nothing is computed yet.

        ``fields`` are names and types of its columns; an empty type is the column's own.
        """
        ...


class Pass(NamedTuple):
    """What one pass saw: the state of a tally, the number of rows, and the sum of their keys."""

    state: State
    n_rows: int
    keys: int

    @property
    def nbytes(self) -> int:
        """Bytes of the state."""
        return sum(array.nbytes for array, _ in self.state.values())


def plan_pass(tally: Any, layout: Layout, **more: Any) -> tuple[Parcel, int]:
    """What tasks are told to run a tally, and into how many shards they cut its state."""
    empty: State = tally.fresh().state()
    size = sum(array.nbytes for array, how in empty.values() if how != "append")
    n_shards = -(-max(size, 1) // SHARD_BYTES)
    told = {"tally": tally, "layout": layout, "shards": n_shards, "versions": versions(), **more}
    return pack(told), n_shards


def run_pass(
    engine: Engine, tally: Any, parcel: Parcel, columns: Sequence[str], n_shards: int
) -> Pass:
    """Run a tally over all rows."""
    shards: dict[int, list[State]] = {}
    for shard, data in engine.collect(parcel, columns, n_shards):
        if shard == FAILED:
            raise read_error(data)
        shards.setdefault(shard, []).append(read_state(data))
    merged = {shard: merge_states(states) for shard, states in shards.items()}
    state = join_shards(merged, tally.fresh().state())
    n_rows, keys = (int(state.pop(name)[0][0]) if name in state else 0 for name in (ROWS, KEYS))
    return Pass(state, n_rows, keys)
