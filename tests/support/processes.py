"""Processes of this machine as an engine: the tasks of `oddslip.spark`, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from oddslip.errors import InvalidInput
from oddslip.spark.jobs import run_job_batch
from oddslip.spark.messages import Message
from oddslip.spark.tasks import map_rows, merge_shards, read_rows, tally_rows


class Processes:
    """An Arrow table cut into parts, each read by a task in a process of its own.

    Parameters
    ----------
    parts : list of list of pyarrow.RecordBatch
    n_processes : int
        1: tasks run here, one after the other.
    """

    def __init__(self, parts: list[list[pa.RecordBatch]], n_processes: int = 2) -> None:
        self.parts, self.n_processes = parts, n_processes

    def collect(
        self, message: Message, columns: Sequence[str], n_shards: int
    ) -> Iterator[tuple[int, memoryview]]:
        """See `oddslip.spark.base.Engine`."""
        batches = self._run(tally_rows, message, columns)
        if n_shards > 1:
            batches = list(merge_shards(batches))
        for batch in batches:
            yield from read_rows(batch)

    def check(self, column: str) -> None:
        """See `oddslip.spark.base.Engine`."""
        names = next(batch.schema.names for part in self.parts for batch in part)
        if column not in names:
            raise InvalidInput(f"the table must have a column {column!r:.60}, got {names!s:.120}.")

    def attach(self, message: Message, columns: Sequence[str], fields: dict[str, str]) -> Any:
        """The finished rows."""
        return pa.Table.from_batches(self._run(map_rows, message, columns))

    def _run(self, task: Any, message: Message, columns: Sequence[str]) -> list[pa.RecordBatch]:
        parts = [[batch.select(list(columns)) for batch in part] for part in self.parts]
        work = partial(_run_task, task, message)
        if self.n_processes == 1:
            return [batch for part in parts for batch in work(part)]
        with ProcessPoolExecutor(self.n_processes, get_context("spawn")) as pool:
            return [batch for batches in pool.map(work, parts) for batch in batches]


class ProcessWorkers:
    """Processes of this machine that run jobs, one at a time each.

    Parameters
    ----------
    n_processes : int
        1: jobs run here, one after the other.
    """

    def __init__(self, n_processes: int = 2) -> None:
        self.n_processes = n_processes

    def width(self) -> int:
        """See `oddslip.spark.jobs.Workers`."""
        return self.n_processes

    def run(self, shared: Path, kinds: tuple[Any, ...], n_jobs: int) -> Iterator[tuple[int, bytes]]:
        """See `oddslip.spark.jobs.Workers`."""
        work = partial(_run_jobs, shared, kinds)
        if self.n_processes == 1:
            for place in range(n_jobs):
                yield from work(place)
            return
        with ProcessPoolExecutor(self.n_processes, get_context("spawn")) as pool:
            running = [pool.submit(work, place) for place in range(n_jobs)]
            for future in as_completed(running):
                yield from future.result()


def _run_jobs(shared: Path, kinds: tuple[Any, ...], place: int) -> list[tuple[int, bytes]]:
    batch = pa.record_batch([pa.array([place])], ["place"])
    batches = run_job_batch(Message(kinds, np.memmap(shared, np.uint8, "r")), [batch])
    return [(number, bytes(data)) for batch in batches for number, data in read_rows(batch)]


def _run_task(task: Any, message: Message, part: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return list(task(message, iter(part)))
