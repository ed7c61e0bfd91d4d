"""Apache Spark as an engine: DataFrames and `mapInArrow` alone, classic and Connect alike.

No RDD, accumulator or context is touched: serverless sessions and Spark Connect have none. A task
counts once however often it ran, since only what a successful attempt gives is kept.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from oddslip.errors import InvalidInput, MissingDependency, OddslipError
from oddslip.spark.jobs import run_job_batch
from oddslip.spark.messages import Message
from oddslip.spark.rows import LABEL_FIELDS
from oddslip.spark.tasks import map_rows, merge_shards, read_rows, tally_rows

OF_TASKS = "shard int, data binary"
CLOSURE_BYTES = 8 * 1024 * 1024  # what tasks are told beyond this goes to them as a file
FLOATS: dict[Any, np.dtype[Any]] = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}


class SparkTable:
    """A DataFrame whose rows are read by Spark's tasks.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def collect(
        self, parcel: Message, columns: Sequence[str], n_shards: int
    ) -> Iterator[tuple[int, memoryview]]:
        """See `oddslip.spark.base.Engine`."""
        given = self._over(tally_rows, parcel, columns, OF_TASKS)
        if n_shards > 1:
            given = given.repartition(n_shards, "shard").mapInArrow(merge_shards, OF_TASKS)
        for batch in _fetched(given).to_batches():
            yield from read_rows(batch)

    def check(self, column: str) -> None:
        """See `oddslip.spark.base.Engine`."""
        check_column(self.frame, "a column", column)
        score_type(self.frame, column)

    def attach(self, parcel: Message, columns: Sequence[str], fields: dict[str, str]) -> Any:
        """See `oddslip.spark.base.Engine`."""
        types = dict(self.frame.dtypes)
        schema = ", ".join(f"{_quoted([n])[0]} {t or types[n]}" for n, t in fields.items())
        return self._over(map_rows, parcel, columns, schema)

    def _over(self, task: Any, parcel: Message, columns: Sequence[str], schema: str) -> Any:
        frame = self.frame.select(*_quoted(columns)) if columns else self.frame
        return frame.mapInArrow(self._told(task, parcel), schema)

    def _told(self, task: Any, parcel: Message) -> Any:
        """The task with what it is told: in the closure, or in a file that executors map."""
        if len(parcel.data) <= CLOSURE_BYTES:
            return partial(run_in_worker, task, parcel)
        name = f"oddslip-{hashlib.sha256(parcel.data).hexdigest()[:32]}"
        path = Path(_sent().name, name)
        if not path.exists():
            path.write_bytes(parcel.data)
        # Another session may have been told the same; the same file again is no matter to Spark.
        self.frame.sparkSession.addArtifacts(str(path), file=True)
        return partial(run_from_file, task, parcel.kinds, name)


class SparkFiles(SparkTable):
    """Parquet files that tasks read themselves: the JVM never touches a cell.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    n_units : int
        Row groups in all; a task takes some.
    n_partitions : int, optional
    """

    def __init__(self, session: Any, n_units: int, n_partitions: int | None = None) -> None:
        # One task for each core, unless told: each has its fixed cost.
        super().__init__(session.range(0, n_units, 1, n_partitions))

    def check(self, column: str) -> None:
        """Files are looked into by the tasks."""

    def _over(self, task: Any, parcel: Message, columns: Sequence[str], schema: str) -> Any:
        return super()._over(task, parcel, (), schema)


class SparkWorkers:
    """Tasks of a session that run jobs, one each.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    """

    def __init__(self, session: Any) -> None:
        self.session = session

    def width(self) -> int:
        """As many tasks as Spark starts unless told: in most clusters, one for each core."""
        from pyspark.sql.functions import spark_partition_id

        places = self.session.range(0, 1 << 20).select(spark_partition_id().alias("at"))
        return int(_fetched(places.agg({"at": "max"})).column(0)[0].as_py()) + 1

    def run(self, shared: Path, kinds: tuple[Any, ...], n_jobs: int) -> Iterator[tuple[int, bytes]]:
        """See `oddslip.spark.jobs.Workers`."""
        # An executor that comes later fetches it too, whatever it runs: it lies here to the end.
        kept = Path(_sent().name, shared.name)
        if not kept.exists():
            shutil.move(shared, kept)
        try:
            self.session.addArtifacts(str(kept), file=True)
        except Exception as error:
            raise _explained(error) from error
        places = self.session.range(0, n_jobs, 1, n_jobs)
        given = places.mapInArrow(
            partial(run_from_file, run_job_batch, kinds, shared.name), OF_TASKS
        )
        for batch in _fetched(given).to_batches():
            yield from ((number, bytes(data)) for number, data in read_rows(batch))


def _fetched(frame: Any) -> pa.Table:
    """The rows of a small frame; what went wrong is one line."""
    try:
        table: pa.Table = frame.toArrow()
    except OddslipError:
        raise
    except Exception as error:
        raise _explained(error) from error
    return table


@cache
def _sent() -> tempfile.TemporaryDirectory[str]:
    """Where files that executors fetch lie as long as this process lives."""
    return tempfile.TemporaryDirectory(prefix="oddslip-")


def run_from_file(
    task: Any, kinds: tuple[Any, ...], name: str, batches: Any
) -> Iterator[pa.RecordBatch]:
    """Run a task that is told what a file of the session says; the file is mapped, not read."""
    from pyspark import SparkFiles as Files

    data = np.memmap(Files.get(name), np.uint8, "r")
    yield from run_in_worker(task, Message(kinds, data), batches)  # type: ignore[arg-type]


def run_in_worker(task: Any, parcel: Message, batches: Any) -> Iterator[pa.RecordBatch]:
    """Run a task in a worker of Spark, which others will use after it."""
    yield from task(parcel, batches)
    set_modules_aside(len(sys.modules))


@cache
def set_modules_aside(n_modules: int) -> None:
    """Once for these modules: they are no garbage.

    Spark's workers look for garbage after every task, among all objects of all modules: 35
    milliseconds with ours, most of what a small task costs.
    """
    gc.collect()
    gc.freeze()


def current_session() -> Any:
    """The session there is; one on this machine where there is none."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return start_session()  # says what to install
    return SparkSession.getActiveSession() or start_session()


def start_session(master: str = "local[*]", **config: Any) -> Any:
    """A session on this master; the one there is, if there is one.

    Parameters
    ----------
    master : str
        ``local[*]``, ``local-cluster[2,1,2048]``, ``spark://host:7077`` or ``sc://host`` (Connect).
    **config
        Settings of Spark, with ``_`` for each dot: ``spark_executor_memory="2g"``.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependency(
            'Spark needs pyspark and Java 17. Run: pip install "oddslip[spark]"'
        ) from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else executors take the system's
    builder = SparkSession.builder.appName("oddslip")
    builder = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    for name, value in config.items():
        builder = builder.config(name.replace("_", "."), value)
    connect = master.startswith("sc://")
    builder = builder.remote(master) if connect else builder.master(master)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise InvalidInput(
            f"master must name a Spark cluster that answers, got {master!r:.80} "
            f"({_first_line(error)}). Is Java 17 installed, and the master running?"
        ) from error
    if not connect:
        session.sparkContext.setLogLevel("ERROR")
    return session


def table_form(frame: Any, scores: str | None) -> str:
    """How a frame holds scores: "rows" of lists, "listed" candidates, or "long", a row a cell."""
    name = scores or ("scores" if "scores" in frame.columns else "score")
    if name not in frame.columns:
        return "rows"  # refused by whoever looks for the column
    kind = _field(frame, name).dataType
    if kind.typeName() in FLOATS:
        return "long"
    is_listed = kind.typeName() == "array" and kind.elementType.typeName() == "struct"
    return "listed" if is_listed else "rows"


def grouped(
    frame: Any, scores: str | None, labels: str | None, row_id: str | None
) -> tuple[Any, str, str | None, str]:
    """A long table with the candidates of a row in one list: one shuffle, whenever it is read.

    Its columns are named as those of a long Parquet file are, unless told: row, label, score and,
    where it says what was true, true.
    """
    from pyspark.sql.functions import col, collect_list, struct

    scores, row_id = scores or "score", row_id or "row"
    for part, name in (("scores", scores), ("row_id", row_id), ("label", "label"),
                       ("labels", labels)):  # fmt: skip
        if name is not None:
            check_column(frame, part, name)
    cells = {"label": "label", "score": scores} | ({} if labels is None else {"true": labels})
    fields = [col(_quoted([name])[0]).alias(part) for part, name in cells.items()]
    lists = collect_list(struct(*fields)).alias("scores")
    found = frame.groupBy(_quoted([row_id])[0]).agg(lists)
    return found, "scores", None if labels is None else "scores", row_id


def score_type(frame: Any, name: str) -> tuple[Any, np.dtype[Any]]:
    """The frame with these scores as lists, and what a cell is. ML vectors become lists."""
    kind: Any = _field(frame, name).dataType
    if kind.typeName() == "udt" or "VectorUDT" in str(kind):
        from pyspark.ml.functions import vector_to_array

        frame = frame.withColumn(name, vector_to_array(frame[_quoted([name])[0]]))
        return frame, np.dtype(np.float64)
    cell = kind.elementType.typeName() if kind.typeName() == "array" else None
    if cell == "struct":
        parts = {field.name: field.dataType.typeName() for field in kind.elementType.fields}
        cell = parts.get("score") if set(parts) & set(LABEL_FIELDS) else cell
    if cell not in FLOATS:
        raise InvalidInput(
            f"{name} must be of type array<float>, array<double>, a vector, or candidates "
            f"array<struct<label, score>>, "
            f"got {kind.simpleString():.60}. Put a row's scores into one list, in label order."
        )
    return frame, FLOATS[cell]


def label_type(frame: Any, name: str) -> str:
    """Whether true labels are listed by name ("string"), by number ("int"), or told ("true")."""
    kind = _field(frame, name).dataType
    cell = kind.elementType.typeName() if kind.typeName() == "array" else None
    if cell == "struct" and "true" in kind.elementType.names:  # candidates that say it themselves
        return "true"
    if cell == "string":
        return "string"
    if cell in ("byte", "short", "integer", "long"):
        return "int"
    raise InvalidInput(
        f"{name} must be of type array<int> or array<string>, got {kind.simpleString():.60}. "
        "List the true labels of each row."
    )


def default_labels(frame: Any, *, named: bool) -> str | None:
    """The column ``labels``, where there is one that lists labels; None where there is none.

    Names are read only where it is known which labels there are (``named``).
    """
    if "labels" not in frame.columns:
        return None
    try:
        form = label_type(frame, "labels")
    except InvalidInput:  # nobody said that these are the labels
        return None
    return "labels" if form == "int" or (form == "string" and named) else None


def first_width(frame: Any, name: str) -> int:
    """How many scores the first row holds."""
    row = frame.select(_quoted([name])[0]).first()
    if row is None:
        raise InvalidInput("a table must hold at least one row, got none.")
    if row[0] is None or not len(row[0]):
        raise InvalidInput(f"{name} must hold one score per label, got none in the first row.")
    return len(row[0])


def check_column(frame: Any, part: str, name: Any) -> str:
    """The name of a column that is there."""
    if not isinstance(name, str) or name not in frame.columns:
        listed = ", ".join(frame.columns)
        raise InvalidInput(f"{part} must name a column, one of {listed:.120}, got {name!r:.60}.")
    return name


def _field(frame: Any, name: str) -> Any:
    return next(field for field in frame.schema.fields if field.name == name)


def _quoted(columns: Sequence[str]) -> list[str]:
    """Names as Spark takes them whatever letters they hold."""
    return ["`" + name.replace("`", "``") + "`" for name in columns]


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200]


def _explained(error: Exception) -> OddslipError:
    """Spark's errors are pages long; what matters is one line of them."""
    text = str(error)
    if "No module named 'oddslip" in text or "No module named 'pyarrow'" in text:
        return MissingDependency(
            "executors need oddslip as the driver has it, and one has none. "
            "Install the same version on every worker, or point PYSPARK_PYTHON at one that has it."
        )
    if "No space left on device" in text:
        return SparkFailed(
            "a Spark job failed: the disk of a worker is full (No space left on device). Make room "
            "there, or let spark.local.dir name another disk."
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("at ")]  # Java's stack
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    cause = (telling[-1] if telling else _first_line(error))[:300]
    return SparkFailed(f"a Spark job failed: {cause}")


class SparkFailed(OddslipError, RuntimeError):  # noqa: N818
    """Spark gave up on a job."""
