"""Cost per cell of tables that tasks read, beside this machine on the same Parquet files.

At toy size tasks are processes of this machine. Real ones are Spark's, with two threads: rows as
files that tasks read themselves, and as an array column of a DataFrame.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

import oddslip
from benchmarks.timing import Times, agree, line, title, work_folder
from oddslip.engines.processes import Processes
from oddslip.engines.rows import Layout
from oddslip.sources.table import TableSource

K = 7
NAMES = {"labels": "labels", "row_id": "row_id"}


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    group: int  # rows of a row group
    parts: tuple[int, ...]
    spark: bool


REAL = Size(131_209, 1_000, 4_096, (4, 16), True)
TOY = Size(2_000, 50, 500, (2, 4), False)


def write_files(folder: Path, size: Size) -> None:
    """Rows with a list of scores, the true labels, and an id; labels once more as a matrix."""
    rng = np.random.default_rng(0)
    file = folder / "part-0.parquet"
    writer, truth = None, []
    for first in range(0, size.n_rows, size.group):
        n = min(size.group, size.n_rows - first)
        scores = rng.random((n, size.n_labels), dtype=np.float32)
        true = rng.random((n, size.n_labels), dtype=np.float32) < 6 * scores**4 / size.n_labels
        ends = pa.array(np.arange(0, scores.size + 1, size.n_labels, dtype=np.int32))
        table = pa.table(
            {
                "row_id": np.arange(first, first + n),
                "scores": pa.ListArray.from_arrays(ends, pa.array(scores.reshape(-1))),
                "labels": [np.flatnonzero(row).tolist() for row in true],
            }
        )
        truth.append(sparse.csr_array(true))
        writer = writer or pq.ParquetWriter(file, table.schema, compression="none")
        writer.write_table(table)
    assert writer is not None
    writer.close()
    sparse.save_npz(folder / "labels.npz", sparse.vstack(truth))


def tree_seconds() -> float:
    """CPU seconds of this process and of all below it: the JVM, and Python's workers below that."""
    parents: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents.setdefault(int(fields[1]), []).append(pid)
        seconds[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    found, todo = 0.0, [os.getpid()]
    while todo:
        pid = todo.pop()
        found += seconds.get(pid, 0.0)
        todo += parents.get(pid, [])
    return found


def measure_tree(call: Callable[[], Any], repeats: int = 2) -> tuple[Any, Times]:
    """The best of some calls."""
    taken = []
    for _ in range(repeats):
        cpu, wall = tree_seconds(), time.perf_counter()
        outcome = call()
        # The kernel counts in hundredths of a second.
        taken.append(Times(max(tree_seconds() - cpu, 0.01), time.perf_counter() - wall))
    return outcome, Times(*map(min, zip(*taken, strict=True)))


def verbs(rows: Any) -> dict[str, Callable[[], float]]:
    """A pass that ranks and resamples; and two that count all cells between the positives."""
    return {
        "evaluate": lambda: (
            oddslip.evaluate(rows(), k=K, n_replicates=200, keyed=True)["map"].value
        ),
        "isotonic counts": lambda: oddslip.metrics.mean_auc(rows()),
    }


def run(size: Size) -> None:
    """Each verb on every engine."""
    with work_folder() as folder:
        write_files(folder, size)
        file = folder / "part-0.parquet"
        engines: dict[str, Callable[[], Any]] = {}
        if size.spark:
            from oddslip.engines.spark import start_session

            session = start_session("local[2]", spark_ui_enabled="false", spark_driver_memory="2g")
            for parts in size.parts:
                frame = session.read.parquet(str(file)).coalesce(parts)
                engines[f"Spark, array column, {parts} partitions"] = lambda frame=frame: (
                    oddslip.open_source(frame, **NAMES)
                )
            engines["Spark, tasks read the files"] = lambda: oddslip.open_source(
                file, engine=session, **NAMES
            )
        else:
            table = pq.read_table(file)
            layout = Layout(
                size.n_labels, "probability", np.dtype(np.float32), None, "scores", "labels",
                "row_id",
            )  # fmt: skip
            for parts in size.parts:
                step = -(-size.n_rows // parts)
                cut = [table.slice(at, step).to_batches() for at in range(0, size.n_rows, step)]
                engines[f"tables in this process, {parts} parts"] = lambda cut=cut: TableSource(
                    Processes(cut, 1), layout
                )
        compare(file, engines, size)
        if size.spark:
            session.stop()


def compare(file: Path, engines: dict[str, Callable[[], Any]], size: Size) -> None:
    """Tables of times; the local engine reads the same Parquet file."""
    plain, labels = file.with_name("plain.parquet"), file.with_name("labels.npz")
    table = pq.ParquetFile(file)
    with pq.ParquetWriter(plain, table.schema_arrow.remove(2), compression="none") as writer:
        for group in range(table.num_row_groups):
            writer.write_table(table.read_row_group(group, columns=["row_id", "scores"]))
    for name in verbs(None):
        title(f"{name} at {size.n_rows:,} x {size.n_labels:,} float32, Parquet")
        wanted, local = measure_tree(verbs(lambda: oddslip.open_source(plain, labels))[name])
        line("this machine, threads", local)
        for engine, rows in engines.items():
            found, times = measure_tree(verbs(rows)[name])
            line(engine, times, local)
            agree(f"{name}, {engine}", found, wanted, 1e-9)
