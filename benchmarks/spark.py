"""Cost per cell of tables that tasks read, beside this machine on the same Parquet files.

At toy size tasks run in this process. Real ones are Spark's, with two threads: rows as files that
tasks read themselves, and as an array column of a DataFrame, in few partitions and in many. The
start of a session and its first Python job are lines of their own. CPU seconds are those of the
driver, the JVM and Python's workers together. Then rows that Spark makes up, up to 10^8: what the
driver holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse
from tests.support.processes import Processes

import oddslip
from benchmarks._tree import Cost, Tree
from benchmarks.timing import agree, forget_peak, line, read_status, title, work_folder
from oddslip.sources.table import TableSource
from oddslip.spark.rows import Layout

K = 7
NAMES = {"labels": "labels", "row_id": "row_id"}
N_MADE_UP = 8  # labels of rows that Spark makes up


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    group: int  # rows of a row group
    parts: tuple[int, ...]
    repeats: int


class Sizes(NamedTuple):
    tables: tuple[Size, ...]
    made_up: dict[str, tuple[int, ...]]  # numbers of rows by verb
    spark: bool


REAL = Sizes(
    (
        Size(131_209, 1_000, 4_096, (2, 8, 33), 3),
        Size(1_000_000, 1_000, 4_096, (2, 16, 64), 1),
    ),
    {"evaluate": (10**6, 10**7, 10**8), "Repair": (10**5, 10**6), "diagnose": (10**5, 10**6)},
    True,
)
TOY = Sizes((Size(2_000, 50, 500, (2, 4), 1),), {"evaluate": (1_000, 2_000)}, False)


def write_files(folder: Path, size: Size) -> None:
    """Rows with a list of scores, the true labels, and an id; labels once more as a matrix."""
    rng = np.random.default_rng(0)
    writer = plain = None
    truth = []
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
        without = table.drop_columns("labels")
        if writer is None or plain is None:
            files = ("part-0.parquet", table.schema), ("plain.parquet", without.schema)
            writer, plain = (
                pq.ParquetWriter(folder / name, schema, compression="none")
                for name, schema in files
            )
        writer.write_table(table)
        plain.write_table(without)
    assert writer is not None
    assert plain is not None
    writer.close()
    plain.close()
    sparse.save_npz(folder / "labels.npz", sparse.vstack(truth))


def verbs(rows: Any) -> dict[str, Callable[[], float]]:
    """A pass that ranks and resamples; and two that count all cells between the positives."""
    return {
        "evaluate": lambda: (
            oddslip.evaluate(rows(), k=K, n_replicates=200, keyed=True)["map"].value
        ),
        "isotonic counts": lambda: oddslip.metrics.mean_auc(rows()),
    }


def best_of(tree: Tree, call: Callable[[], Any], repeats: int) -> tuple[Any, Cost]:
    """The cheapest of some calls."""
    outcomes = [tree.measure(call) for _ in range(repeats)]
    return min(outcomes, key=lambda outcome: outcome[1].times.cpu)


def run(sizes: Sizes) -> None:
    """Each verb on every engine, at every size."""
    with Tree() as tree:
        session = start(tree) if sizes.spark else None
        for size in sizes.tables:
            with work_folder() as folder:
                write_files(folder, size)
                compare(tree, folder, size, dict(engines(folder, size, session)))
        title(f"rows made up with {N_MADE_UP} labels; peaks are those of the Python driver")
        for verb, numbers in sizes.made_up.items():
            for n_rows in numbers:
                make_up(tree, verb, n_rows, session)
        if session is not None:
            session.stop()


def start(tree: Tree) -> Any:
    """A session with two threads. It and its first Python job cost more than a small table."""
    from oddslip.spark.session import start_session

    title("what comes first, once")
    settings = {"spark_ui_enabled": "false", "spark_driver_memory": "2g"}
    session, cost = tree.measure(lambda: start_session("local[2]", **settings))
    line("start a session", cost.times)
    for name in ("the first Python job, of two tasks that do nothing", "the same again"):
        job = session.range(0, 2, 1, 2).mapInArrow(_pass_on, "id long")
        line(name, tree.measure(job.count)[1].times)
    many = session.range(0, 64, 1, 64).mapInArrow(_pass_on, "id long")
    many.count()
    line("64 tasks that do nothing", tree.measure(many.count)[1].times)
    return session


def _pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def engines(
    folder: Path, size: Size, session: Any
) -> Iterator[tuple[str, Callable[[], TableSource]]]:
    """What opens the files, by form of table and number of partitions."""
    file = folder / "part-0.parquet"
    if session is None:
        table = pq.read_table(file)
        for parts in size.parts:
            yield f"in this process, {parts} parts", cut(table, size, parts)
        return
    from oddslip.spark.session import SparkFiles

    for parts in size.parts:

        def read_by_tasks(parts: int = parts) -> TableSource:
            source = oddslip.open_source(file, engine=session, **NAMES)
            source.engine = SparkFiles(session, len(source.more["units"]), parts)
            return source

        yield f"Spark, tasks read the files, {parts} partitions", read_by_tasks
    frame = session.read.parquet(str(file)).select("row_id", "scores", "labels")
    for parts in size.parts:

        def read_by_spark(parts: int = parts) -> TableSource:
            # Spark cuts files when it reads them.
            most = -(-file.stat().st_size // parts)
            session.conf.set("spark.sql.files.openCostInBytes", "0")
            session.conf.set("spark.sql.files.maxPartitionBytes", str(most))
            return oddslip.open_source(frame, **NAMES)

        yield f"Spark, array column, {parts} partitions", read_by_spark


def cut(table: pa.Table, size: Size, parts: int) -> Callable[[], TableSource]:
    """A table in parts, each read by a task in this process."""
    layout = Layout(
        size.n_labels, "probability", np.dtype(np.float32), None, "scores", "labels", "row_id"
    )
    step = -(-size.n_rows // parts)
    batches = [table.slice(at, step).to_batches() for at in range(0, size.n_rows, step)]
    return lambda: TableSource(Processes(batches, 1), layout)


def compare(
    tree: Tree, folder: Path, size: Size, opened: dict[str, Callable[[], TableSource]]
) -> None:
    """Tables of times; the local engine reads the same Parquet file, without its labels."""
    plain, labels = folder / "plain.parquet", folder / "labels.npz"
    for name in verbs(None):
        title(f"{name} at {size.n_rows:,} x {size.n_labels:,} float32, Parquet")
        ours = verbs(lambda: oddslip.open_source(plain, labels))[name]
        wanted, local = best_of(tree, ours, size.repeats)
        line("this machine, threads", local.times, note=per_cell(local, size))
        for engine, rows in opened.items():
            found, cost = best_of(tree, verbs(rows)[name], size.repeats)
            line(engine, cost.times, local.times, per_cell(cost, size))
            agree(f"{name}, {engine}", found, wanted, 1e-9)


def per_cell(cost: Cost, size: Size) -> str:
    """CPU nanoseconds of a cell, and the seconds by role."""
    spent = ", ".join(f"{role} {seconds:.2f}" for role, seconds in sorted(cost.seconds.items()))
    return f"{cost.times.cpu / size.n_rows / size.n_labels * 1e9:.1f} ns a cell; {spent}"


# ------------------------------------------------------------------------ what the driver holds


def make_up(tree: Tree, verb: str, n_rows: int, session: Any) -> None:
    """A verb over rows that nobody stored: the driver's peak above what it held before."""
    source = (
        oddslip.open_source(_frame(session, n_rows), **NAMES)
        if session is not None
        else cut(_table(n_rows), Size(n_rows, N_MADE_UP, 0, (), 0), 2)()
    )
    calls: dict[str, Callable[[], Any]] = {
        "evaluate": lambda: oddslip.evaluate(source, k=3, n_replicates=20),
        "Repair": lambda: oddslip.Repair(k=3).fit(source),
        "diagnose": lambda: oddslip.diagnose(source, k=3, n_replicates=100),
    }
    held = forget_peak()
    found, cost = tree.measure(calls[verb])
    peak = read_status("VmHWM") - held
    line(f"{verb}, {n_rows:,} rows", cost.times, peak_bytes=peak, note=f"{held / 1e6:.0f} before")
    if session is None:
        table = _table(n_rows)
        scores = table.column("scores").combine_chunks().flatten().to_numpy()
        labels = table.column("labels").to_pylist()
        wanted, times = tree.measure(
            lambda: oddslip.evaluate(scores.reshape(n_rows, -1), labels, k=3, n_replicates=0)
        )
        line("the same here", times.times, cost.times)
        agree("MAP of rows made up", found["map"].value, wanted["map"].value, 1e-12)


def _frame(session: Any, n_rows: int) -> Any:
    cells = ", ".join(
        f"cast(pmod(hash(id, {label}), 65536) / 65536 as float)" for label in range(N_MADE_UP)
    )
    return session.range(n_rows).selectExpr(
        "id as row_id",
        f"array({cells}) as scores",
        f"array(cast(pmod(hash(id, 99), {N_MADE_UP}) as int)) as labels",
    )


def _table(n_rows: int) -> pa.Table:
    rng = np.random.default_rng(2)
    cells = rng.random(n_rows * N_MADE_UP, np.float32)
    ends = pa.array(np.arange(0, cells.size + 1, N_MADE_UP, dtype=np.int32))
    return pa.table(
        {
            "row_id": np.arange(n_rows),
            "scores": pa.ListArray.from_arrays(ends, pa.array(cells)),
            "labels": rng.integers(0, N_MADE_UP, (n_rows, 1)).tolist(),
        }
    )
