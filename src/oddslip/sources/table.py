"""Tables that Spark tasks read: rows have no order and stay on their machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oddslip.core.labels import Positives
from oddslip.core.panel import Kind, Panel, SparsePanel, check_k, check_names, take_cells
from oddslip.core.row_ids import Keys, need_ids
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Array, Ints, LabelsLike, ScoresLike
from oddslip.errors import InvalidInput
from oddslip.io.progress import progress_bar
from oddslip.sources.base import MAX_SMALL_ROWS, Source
from oddslip.sources.parquet.columns import is_text
from oddslip.spark.base import Engine, run_tally
from oddslip.spark.messages import pack
from oddslip.spark.rows import LABEL_FIELDS, Layout, check_columns
from oddslip.spark.tasks import list_cells, top_of_panel, versions

_ID_TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "string": "string",
}


class LabelCounts(MergeableTally):
    """Positives of each label, and with ``partial`` its present cells. No score is read."""

    JOINED: ClassVar = {"counts": "add", "present": "add", "n_rows": "add", "_keys": "append"}

    def __init__(self, n_labels: int, partial: bool = False) -> None:
        self.partial, self.n_rows = partial, 0
        self._keys: list[Keys] = []
        self.counts = np.zeros(n_labels, np.int64)
        self.present = np.zeros(n_labels if partial else 0)

    def spec(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"n_labels": self.counts.size, "partial": self.partial}

    def add(self, panel: Panel) -> None:
        """Count one block."""
        if panel.labels is not None:
            self.counts += np.bincount(panel.positives().indices, minlength=self.counts.size)
        if self.partial:
            self.present += panel.n_present()
        self.n_rows += panel.n_rows
        if panel.row_ids is not None:
            self._keys.append(panel.row_keys())
        self._drop_keys()

    def merge(self, other: Self) -> None:
        """Add the counts of another tally."""
        super().merge(other)
        self._drop_keys()

    def _drop_keys(self) -> None:
        if self.n_rows > MAX_SMALL_ROWS:
            self._keys = []

    def small_keys(self) -> Keys | None:
        """Keys of all rows where these are few, else None."""
        if self.n_rows > MAX_SMALL_ROWS:
            return None
        return np.concatenate([np.empty(0, np.uint64), *self._keys])

    def result(self) -> Ints:
        """Positives per label."""
        return self.counts


class TableSource(Source):
    """A table that an engine reads: tallies run in its tasks, over rows in any order.

    Every pass counts the rows and sums their keys. A pass over other rows than the one before is an
    error: a table that is computed again each time may change.

    Parameters
    ----------
    engine : Engine
    layout : Layout
    id_type : str
        Type of the row ids, where the engine does not know it.
    more : dict
        Further arguments of the tasks.
    """

    ordered = False

    def __init__(self, engine: Engine, layout: Layout, *, id_type: str = "", **more: Any) -> None:
        self.engine, self.layout, self.id_type, self.more = engine, layout, id_type, more
        self.n_labels, self.kind, self.dtype = layout.n_labels, layout.kind, layout.dtype
        self.label_names, self.has_labels = layout.label_names, layout.labels is not None
        self.partial = layout.listed
        self.n_passes = 0
        self._row_digest: tuple[int, int] | None = None
        self._counts: Ints | None = None
        self._small_keys: Keys | None = None

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """Rows of the table: counted once, without their scores."""
        if self._row_digest is None:
            self._count()
        assert self._row_digest is not None
        return self._row_digest[0]

    @property
    def has_ids(self) -> bool:
        """Whether rows have ids."""
        return self.layout.row_id is not None

    def small_keys(self) -> Keys | None:
        """Keys of all rows where these are few, else None."""
        need_ids(self.has_ids, "what is decided")
        if self._counts is None:
            self._count()
        return self._small_keys

    def label_counts(self) -> Ints:
        """Positives of each label: one pass over the labels alone."""
        if self._counts is None:
            self._count()
        assert self._counts is not None
        return self._counts.copy()

    def totals(self) -> Any:
        """Present cells per label; the number of rows if no cell is absent."""
        if self.partial and self._totals is None:
            self._count()
        return self._totals if self.partial else float(self.n_rows)

    def _count(self) -> None:
        narrow = self.layout._replace(scores=None, twin=None)
        if not narrow.columns or self.partial:  # a true label counts where it is a candidate
            narrow = self.layout._replace(twin=None)
        tally = self._run(LabelCounts(self.n_labels, self.partial), narrow, "labels")
        self._counts, self._totals = tally.counts, tally.present
        self._small_keys = tally.small_keys()

    def run(self, tally: Any, *, what: str = "rows") -> Any:
        """Feed all rows to the tally, in tasks, and return it."""
        return self._run(tally, self.layout, what)

    def _run(self, tally: Any, layout: Layout, what: str) -> Any:
        self.n_passes += 1
        with progress_bar(what, 1) as advance:
            result, n_rows, keys = run_tally(self.engine, tally, layout, **self.more)
            advance(1)
        if not n_rows:
            raise InvalidInput("a table must hold at least one row, got none.")
        if self._row_digest is not None and self._row_digest != (n_rows, keys):
            raise InvalidInput(
                f"a table must hold the same rows in every pass, got {n_rows:,} rows where "
                f"{self._row_digest[0]:,} were counted, or other ones. Write it to files, or cache "
                "it."
            )
        self._row_digest = n_rows, keys
        return result

    def with_twin(self, column: str) -> TableSource:
        """The same table, with the scores of another model as its twin."""
        return self._with_columns(twin=column)

    def of_twin(self) -> TableSource:
        """The table with the other model's scores in place of these."""
        return self._with_columns(scores=self.layout.twin, twin=None)

    def _with_columns(self, **columns: Any) -> TableSource:
        for column in columns.values():
            if column is not None:
                self.engine.check(column)
        layout = self.layout._replace(**columns)
        other = TableSource(self.engine, layout, id_type=self.id_type, **self.more)
        other._row_digest, other._counts, other._totals = (
            self._row_digest,
            self._counts,
            self._totals,
        )
        other._small_keys = self._small_keys
        return other

    def rank(self, k: int, maps: Any = None) -> Any:
        """The top K of every row, by the scores or by maps of them, as a table."""
        return self.show(rank_cells, k=check_k(k, self.n_labels), maps=maps)

    def show(self, choose: Callable[..., Any], **options: Any) -> Any:
        """The labels that ``choose(panel, **options)`` gives for every row, as a table.

        It is an importable function, and gives columns, -1 in empty slots, and their values.
        """
        label = "int" if self.label_names is None else "string"
        top = f"array<struct<label: {label}, score: double>>"
        return self._attach(show_rows, {"top": top}, choose=choose, **options)

    def transform(self, maps: Any, dtype: Any = None) -> Any:
        """Calibrated scores of every row, as a table."""
        cell = {4: "float", 8: "double"}[np.dtype(dtype or self.dtype).itemsize]
        if self.layout.listed:
            label = "int" if self.label_names is None else "string"
            cell = f"struct<label: {label}, score: {cell}>"
        name = self.layout.scores or "scores"
        options = {"maps": maps, "dtype": np.dtype(dtype or self.dtype), "name": name}
        return self._attach(transform_rows, {name: f"array<{cell}>"}, **options)

    def _attach(self, make: Callable[..., Any], fields: dict[str, str], **options: Any) -> Any:
        row_id = self.layout.row_id
        if row_id is None:
            raise InvalidInput("rows of a table need an id, got none. Pass row_id=...")
        layout = self.layout._replace(labels=None, twin=None)
        message = {"layout": layout, "make": make, "options": options, "versions": versions()}
        columns = {row_id: self.id_type} | fields
        return self.engine.attach(pack(message | self.more), layout.columns, columns)

    def blocks(self) -> NoReturn:
        """Not supported: rows stay on their machines."""
        raise InvalidInput(
            "rows of a table stay on its machines, but this needs them in order. "
            "Collect a sample, and pass that."
        )

    def positives(self) -> Positives:
        """Not supported: there may be more than memory holds."""
        return self.blocks()

    def map(self, function: Any, *, what: str = "rows") -> Iterator[Any]:
        """Not supported: the result would be as long as the table."""
        return self.blocks()


def show_rows(panel: Panel, *, choose: Callable[..., Any], **options: Any) -> dict[str, pa.Array]:
    """The chosen labels of each row of a panel."""
    panel = panel.checked()
    columns, values = choose(panel, **options)
    return {"top": top_of_panel(panel, columns=columns, values=values)}


def rank_cells(panel: Panel, *, k: int, maps: Any) -> tuple[NDArray[np.int32], Array]:
    """The top K of each row of a panel; of calibrated scores only those K are computed."""
    from oddslip.kernels.topk import rank_keys, rank_lists

    if maps is not None:
        columns = maps.rank_panel(panel, k)
    elif isinstance(panel, SparsePanel):
        columns = rank_lists(*panel.positions, panel.cell_keys(), k)[0]
    else:
        columns = rank_keys(panel.keys(), k)[0]
    values = take_cells(panel, columns)
    if maps is not None:
        there = columns >= 0  # -1 where candidates are too few
        raw, values = values[there], np.full(columns.shape, np.nan)
        values[there] = maps.probabilities_at(raw, columns[there])
    return columns, values


def transform_rows(panel: Panel, *, maps: Any, dtype: Any, name: str) -> dict[str, pa.Array]:
    """Calibrated scores of each row of a panel."""
    cells = maps.transform_panel(panel, dtype)
    if isinstance(panel, SparsePanel):
        ends, labels = panel.positions
        values = cells.reshape(-1)[panel.positions.places(panel.n_labels)]
        return {name: list_cells(panel, ends, labels, values)}
    ends = np.arange(0, cells.size + 1, cells.shape[1], dtype=np.int32)
    return {name: pa.ListArray.from_arrays(pa.array(ends), pa.array(cells.reshape(-1)))}


def open_table(
    table: Any,
    *,
    scores: str | None,
    labels: LabelsLike,
    row_id: str | None,
    unweighted: str | None = None,
    kind: Kind | None,
    label_names: Sequence[str] | None,
) -> TableSource:
    """A Spark DataFrame as a source."""
    from oddslip.spark import session as spark

    form = spark.table_form(table, scores)
    if form == "long":
        table, scores, labels, row_id = spark.grouped(table, scores, labels, row_id)
    elif labels is None:
        labels = spark.default_labels(table, named=label_names is not None)
    scores = scores or "scores"
    columns = {"scores": scores, "labels": labels, "row_id": row_id, "unweighted": unweighted}
    check_columns(table.columns, columns)
    is_sparse = form != "rows"
    _check_candidates(is_sparse, unweighted, label_names)
    table, dtype = spark.score_type(table, scores)
    if unweighted is not None:
        table, other = spark.score_type(table, unweighted)
        if other != dtype:
            raise InvalidInput(
                f"{unweighted} must be of the type of {scores}, {dtype}, got {other}."
            )
    by_name = labels is not None and spark.label_type(table, labels) == "string"
    if by_name and label_names is None:
        raise InvalidInput("labels listed by name need label_names, got none. Pass label_names=...")
    n_labels = spark.first_width(table, scores) if label_names is None else len(tuple(label_names))
    layout = _layout(columns, kind, dtype, label_names, n_labels=n_labels, listed=is_sparse)
    return TableSource(spark.SparkTable(table), layout)


def _layout(
    columns: Mapping[str, str | None],
    kind: Kind | None,
    dtype: np.dtype[Any],
    label_names: Sequence[str] | None,
    *,
    n_labels: int,
    listed: bool,
) -> Layout:
    return Layout(
        n_labels=n_labels,
        kind=kind or "probability",
        dtype=dtype,
        label_names=check_names(label_names, n_labels),
        scores=columns["scores"],
        labels=columns["labels"],
        row_id=columns["row_id"],
        twin=columns["unweighted"],
        listed=listed,
    )


def _check_candidates(is_sparse: bool, unweighted: ScoresLike, label_names: Any) -> None:
    if not is_sparse:
        return
    if label_names is None:
        raise InvalidInput("candidates need label_names, got none. Pass label_names=...")
    if unweighted is not None:
        raise InvalidInput(
            "unweighted goes with rows that score every label, got candidates. Leave it out."
        )


def open_files(
    path: Path,
    session: Any,
    *,
    scores: str | None,
    labels: LabelsLike,
    row_id: str | None,
    unweighted: str | None = None,
    kind: Kind | None,
    label_names: Sequence[str] | None,
) -> TableSource:
    """Parquet files that tasks read themselves, from a folder that every executor sees."""
    import pyarrow.parquet as pq

    from oddslip.spark.session import SparkFiles

    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InvalidInput(f"{path} must hold files that end in .parquet, got none.")
    footers = [pq.read_metadata(file) for file in files]
    units = [
        (str(file.resolve()), group)
        for file, footer in zip(files, footers, strict=True)
        for group in range(footer.num_row_groups)
    ]
    schema = pq.read_schema(files[0])
    scores = scores or "scores"
    if labels is None and _lists_labels(schema, by_name=label_names is not None):
        labels = "labels"
    columns = {"scores": scores, "labels": labels, "row_id": row_id, "unweighted": unweighted}
    check_columns(schema.names, columns)
    dtype, is_sparse = _score_type(schema, scores)
    _check_candidates(is_sparse, unweighted, label_names)
    if label_names is None:
        first = next(pq.ParquetFile(files[0]).iter_batches(1, columns=[scores]))
        n_labels = len(first.column(0)[0])
    else:
        n_labels = len(tuple(label_names))
    layout = _layout(columns, kind, dtype, label_names, n_labels=n_labels, listed=is_sparse)
    engine = SparkFiles(session, len(units))
    return TableSource(engine, layout, id_type=_id_type(schema, row_id), units=units)


def _score_type(schema: pa.Schema, scores: str) -> tuple[np.dtype[Any], bool]:
    """The type of a score, and whether each row lists candidates."""
    listed = schema.field(scores).type
    cell = getattr(listed, "value_type", None)
    is_sparse = cell is not None and bool(pa.types.is_struct(cell))
    if cell is not None and is_sparse:
        fields = {field.name: field.type for field in cell}
        cell = fields.get("score") if set(fields) & set(LABEL_FIELDS) else None
    if cell is None or str(cell) not in ("float", "double"):
        raise InvalidInput(
            f"{scores} must be a list of float or double, or of candidates (label, score), "
            f"got {listed!s:.80}."
        )
    return np.dtype(cell.to_pandas_dtype()), is_sparse


def _id_type(schema: pa.Schema, row_id: str | None) -> str:
    if row_id is None:
        return ""
    stored = schema.field(row_id).type
    if str(stored) not in _ID_TYPES:
        raise InvalidInput(f"{row_id} must hold whole numbers or text, got {stored}.")
    return _ID_TYPES[str(stored)]


def _lists_labels(schema: pa.Schema, *, by_name: bool) -> bool:
    """Whether files have a column ``labels`` that can be read, as `default_labels` decides."""
    kind = schema.field("labels").type if "labels" in schema.names else None
    cell = getattr(kind, "value_type", None)
    if cell is None:
        return False
    return bool(pa.types.is_integer(cell) or (by_name and is_text(cell)))
