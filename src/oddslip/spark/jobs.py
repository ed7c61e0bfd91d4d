"""Jobs: an importable function that tasks call with a number, returning bytes.

Shared data is written to one file, which every machine maps. A job that ran twice counts once,
since only the output of a successful attempt is used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from oddslip.errors import InvalidInput, OddslipError
from oddslip.spark.messages import Kinds, Message, unpack, write_message
from oddslip.spark.tasks import (
    FAILED,
    SCHEMA,
    Batches,
    check_versions,
    read_error,
    versions,
    write_error,
)

Job = Callable[[dict[str, Any], int], bytes]


class Workers(Protocol):
    """The interface that runs jobs."""

    def width(self) -> int:
        """Number of jobs that run in parallel."""
        ...

    def run(self, shared: Path, kinds: Kinds, n_jobs: int) -> Iterator[tuple[int, bytes]]:
        """Run `run_job_batch` with a shared file over the places 0 to ``n_jobs``, one per task."""
        ...


def open_workers(engine: Any) -> Workers:
    """The workers of an engine: "spark", a Spark session, or workers themselves."""
    if (isinstance(engine, str) and engine == "spark") or hasattr(engine, "addArtifacts"):
        from oddslip.spark.session import SparkWorkers, current_session

        return SparkWorkers(current_session() if isinstance(engine, str) else engine)
    if not (hasattr(engine, "run") and hasattr(engine, "width")):
        raise InvalidInput(f'engine must be "spark" or a session of Spark, got {engine!r:.60}.')
    workers: Workers = engine
    return workers


def run_jobs(
    workers: Workers, job: Job, shared: dict[str, Any], numbers: Sequence[int]
) -> Iterator[tuple[int, bytes]]:
    """``job(shared, number)`` for each number: pairs of a number and its bytes, in any order."""
    if not numbers:
        return
    content = {"job": job, "shared": shared, "numbers": list(numbers), "versions": versions()}
    with tempfile.TemporaryDirectory(prefix="oddslip-") as folder:
        path, kinds = write_message(folder, content)
        for number, data in workers.run(path, kinds, len(numbers)):
            if number == FAILED:
                raise read_error(data)
            yield number, data


def run_job_batch(message: Message, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Run the jobs whose places the batches hold."""
    try:
        content = unpack(message)
        check_versions(content["versions"])
        for batch in batches:
            for place in batch.column(0).to_pylist():
                number = content["numbers"][place]
                data = content["job"](content["shared"], number)
                columns = [pa.array([number], pa.int32()), pa.array([data])]
                yield pa.record_batch(columns, schema=SCHEMA)
    except OddslipError as error:
        yield write_error(error)
