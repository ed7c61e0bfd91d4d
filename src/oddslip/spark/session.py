"""Apache Spark as an engine, through DataFrames and `mapInArrow` only.

RDDs, accumulators and contexts are not used, since serverless sessions and Spark Connect have none.
A retried task counts once, since only the output of a successful attempt is used.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from oddslip.errors import InvalidInput, MissingDependency, OddslipError, first_line
from oddslip.spark.jobs import run_job_batch
from oddslip.spark.messages import Kinds, Message
from oddslip.spark.rows import LABEL_FIELDS, check_columns
from oddslip.spark.tasks import Batches, map_rows, merge_shards, read_rows, tally_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession

Task = Callable[[Message, Batches], Iterator[pa.RecordBatch]]
TASK_SCHEMA = "shard int, data binary"
CLOSURE_BYTES = 8 * 1024 * 1024  # larger messages are sent to tasks as a file
FLOATS: dict[str, np.dtype] = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}


class SparkTable:
    """A DataFrame whose rows are read by Spark's tasks.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame

    def collect(
        self, message: Message, columns: Sequence[str], n_shards: int
    ) -> Iterator[tuple[int, memoryview]]:
        """See `oddslip.spark.base.Engine`."""
        output = self._over(tally_rows, message, columns, TASK_SCHEMA)
        if n_shards > 1:
            output = output.repartition(n_shards, "shard").mapInArrow(merge_shards, TASK_SCHEMA)
        for batch in _fetch(output).to_batches():
            yield from read_rows(batch)

    def check(self, column: str) -> None:
        """See `oddslip.spark.base.Engine`."""
        check_columns(self.frame.columns, {"a column": column})
        score_type(self.frame, column)

    def attach(self, message: Message, columns: Sequence[str], fields: dict[str, str]) -> DataFrame:
        """See `oddslip.spark.base.Engine`."""
        types = dict(self.frame.dtypes)
        schema = ", ".join(f"{_quoted([n])[0]} {t or types[n]}" for n, t in fields.items())
        return self._over(map_rows, message, columns, schema)

    def _over(self, task: Task, message: Message, columns: Sequence[str], schema: str) -> DataFrame:
        frame = self.frame.select(*_quoted(columns)) if columns else self.frame
        return frame.mapInArrow(self._with_message(task, message), schema)

    def _with_message(
        self, task: Task, message: Message
    ) -> Callable[..., Iterator[pa.RecordBatch]]:
        """The task with its message: in the closure, or in a file that executors map."""
        if len(message.data) <= CLOSURE_BYTES:
            return partial(run_in_worker, task, message)
        name = f"oddslip-{hashlib.sha256(message.data).hexdigest()[:32]}"
        path = Path(_shared_folder().name, name)
        if not path.exists():
            path.write_bytes(message.data)
        # Another session may have sent the same file; Spark accepts it again.
        self.frame.sparkSession.addArtifacts(str(path), file=True)
        return partial(run_from_file, task, message.kinds, name)


class SparkFiles(SparkTable):
    """Parquet files that tasks read themselves, without the JVM.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    n_units : int
        Number of row groups, which are divided among the tasks.
    n_partitions : int, optional
        Number of tasks; default: one per core.
    """

    def __init__(
        self, session: SparkSession, n_units: int, n_partitions: int | None = None
    ) -> None:
        # One task per core by default, since each task has a fixed cost.
        super().__init__(session.range(0, n_units, 1, n_partitions))

    def check(self, column: str) -> None:
        """Does nothing: the tasks check the files."""

    def _over(self, task: Task, message: Message, columns: Sequence[str], schema: str) -> DataFrame:
        return super()._over(task, message, (), schema)


class SparkWorkers:
    """Tasks of a session that run jobs, one each.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def width(self) -> int:
        """Spark's default number of tasks: in most clusters, one per core."""
        from pyspark.sql.functions import spark_partition_id

        places = self.session.range(0, 1 << 20).select(spark_partition_id().alias("at"))
        return int(_fetch(places.agg({"at": "max"})).column(0)[0].as_py()) + 1

    def run(self, shared: Path, kinds: Kinds, n_jobs: int) -> Iterator[tuple[int, bytes]]:
        """See `oddslip.spark.jobs.Workers`."""
        # Executors that join later fetch the file too, so it stays until the process ends.
        path = Path(_shared_folder().name, shared.name)
        if not path.exists():
            shutil.move(shared, path)
        try:
            self.session.addArtifacts(str(path), file=True)
        except Exception as error:
            raise _explain(error) from error
        places = self.session.range(0, n_jobs, 1, n_jobs)
        output = places.mapInArrow(
            partial(run_from_file, run_job_batch, kinds, shared.name), TASK_SCHEMA
        )
        for batch in _fetch(output).to_batches():
            yield from ((number, bytes(data)) for number, data in read_rows(batch))


def _fetch(frame: DataFrame) -> pa.Table:
    """The rows of a small frame; Spark's errors become one line."""
    try:
        table: pa.Table = frame.toArrow()
    except OddslipError:
        raise
    except Exception as error:
        raise _explain(error) from error
    return table


@cache
def _shared_folder() -> tempfile.TemporaryDirectory[str]:
    """Folder of the files that executors fetch; it lives as long as this process."""
    return tempfile.TemporaryDirectory(prefix="oddslip-")


def run_from_file(
    task: Task, kinds: Kinds, name: str, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Run a task whose message is in a file of the session, which is memory-mapped."""
    from pyspark import SparkFiles as Files

    data = np.memmap(Files.get(name), np.uint8, "r")
    yield from run_in_worker(task, Message(kinds, data), batches)  # type: ignore[arg-type]


def run_in_worker(task: Task, message: Message, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Run a task in a Spark worker, which runs other tasks after it."""
    yield from task(message, batches)
    set_modules_aside(len(sys.modules))


@cache
def set_modules_aside(n_modules: int) -> None:
    """Exclude loaded modules from garbage collection, once per number of modules.

    Spark's workers collect garbage after every task, over all objects of all modules: 35
    milliseconds with ours, most of the time of a small task.
    """
    gc.collect()
    gc.freeze()


def current_session() -> SparkSession:
    """The active session, or a new one on this machine."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return start_session()  # raises an error with the install command
    return SparkSession.getActiveSession() or start_session()


def start_session(master: str = "local[*]", **config: object) -> SparkSession:
    """The active session, or a new one on this master.

    Parameters
    ----------
    master : str
        ``local[*]``, ``local-cluster[2,1,2048]``, ``spark://host:7077`` or ``sc://host`` (Connect).
    **config
        Settings of Spark, with ``_`` for each dot: ``spark_executor_memory="2g"``.

    Returns
    -------
    pyspark.sql.SparkSession
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependency(
            'Spark needs pyspark and Java 17. Run: pip install "oddslip[spark]"'
        ) from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # default: the system's Python
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
            f"({first_line(error)}). Is Java 17 installed, and the master running?"
        ) from error
    if not connect:
        session.sparkContext.setLogLevel("ERROR")
    return session


def table_form(frame: DataFrame, scores: str | None) -> str:
    """Form of a table: "rows" of score lists, "listed" candidates, or "long", a row per cell."""
    name = scores or ("scores" if "scores" in frame.columns else "score")
    if name not in frame.columns:
        return "rows"  # the error comes from the code that reads the column
    kind = _field(frame, name).dataType
    if kind.typeName() in FLOATS:
        return "long"
    is_listed = kind.typeName() == "array" and kind.elementType.typeName() == "struct"
    return "listed" if is_listed else "rows"


def grouped(
    frame: DataFrame, scores: str | None, labels: str | None, row_id: str | None
) -> tuple[DataFrame, str, str | None, str]:
    """A long table with the candidates of each row in one list, at the cost of one shuffle.

    The default names of the columns are those of a long Parquet file: row, label, score and,
    for true labels, true.
    """
    from pyspark.sql.functions import col, collect_list, struct

    scores, row_id = scores or "score", row_id or "row"
    roles = {"scores": scores, "row_id": row_id, "label": "label", "labels": labels}
    check_columns(frame.columns, roles)
    cells = {"label": "label", "score": scores} | ({} if labels is None else {"true": labels})
    fields = [col(_quoted([name])[0]).alias(part) for part, name in cells.items()]
    lists = collect_list(struct(*fields)).alias("scores")
    rows = frame.groupBy(_quoted([row_id])[0]).agg(lists)
    return rows, "scores", None if labels is None else "scores", row_id


def score_type(frame: DataFrame, name: str) -> tuple[DataFrame, np.dtype]:
    """The frame with scores as lists, and the dtype of a cell. ML vectors become lists."""
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


def label_type(frame: DataFrame, name: str) -> str:
    """Form of true labels: names ("string"), numbers ("int") or a field of candidates ("true")."""
    kind = _field(frame, name).dataType
    cell = kind.elementType.typeName() if kind.typeName() == "array" else None
    if cell == "struct" and "true" in kind.elementType.names:  # candidates with their own labels
        return "true"
    if cell == "string":
        return "string"
    if cell in ("byte", "short", "integer", "long"):
        return "int"
    raise InvalidInput(
        f"{name} must be of type array<int> or array<string>, got {kind.simpleString():.60}. "
        "List the true labels of each row."
    )


def default_labels(frame: DataFrame, *, named: bool) -> str | None:
    """The column ``labels`` if it lists labels, else None.

    Names are only accepted if the names of all labels are known (``named``).
    """
    if "labels" not in frame.columns:
        return None
    try:
        form = label_type(frame, "labels")
    except InvalidInput:  # another column of this name
        return None
    return "labels" if form == "int" or (form == "string" and named) else None


def first_width(frame: DataFrame, name: str) -> int:
    """Number of scores in the first row."""
    row = frame.select(_quoted([name])[0]).first()
    if row is None:
        raise InvalidInput("a table must hold at least one row, got none.")
    if row[0] is None or not len(row[0]):
        raise InvalidInput(f"{name} must hold one score per label, got none in the first row.")
    return len(row[0])


def _field(frame: DataFrame, name: str) -> Any:
    return next(field for field in frame.schema.fields if field.name == name)


def _quoted(columns: Sequence[str]) -> list[str]:
    """Names quoted for Spark, so that they may hold any character."""
    return ["`" + name.replace("`", "``") + "`" for name in columns]


def _explain(error: Exception) -> OddslipError:
    """Our error with the one informative line of Spark's error."""
    text = str(error)
    if "No module named 'oddslip" in text or "No module named 'pyarrow'" in text:
        return MissingDependency(
            "executors need the driver's version of oddslip, and one has none. "
            "Install the same version on every worker, or point PYSPARK_PYTHON at one that has it."
        )
    if "No space left on device" in text:
        return SparkFailed(
            "a Spark job failed: the disk of a worker is full (No space left on device). Free "
            "some space, or set spark.local.dir to another disk."
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("at ")]  # Java's stack
    informative = [line for line in lines if "Error" in line or "Exception" in line]
    cause = (informative[-1] if informative else first_line(error))[:300]
    return SparkFailed(f"a Spark job failed: {cause}")


class SparkFailed(OddslipError, RuntimeError):  # noqa: N818
    """A Spark job failed."""
