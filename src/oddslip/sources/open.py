"""`open_source`: scores and labels in any supported form as one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import numpy as np

from oddslip.core.labels import (
    Labels,
    Positives,
    as_labels,
    is_nested,
    labels_from_lists,
)
from oddslip.core.panel import Kind, Panel, SparsePanel, no_cells, read_sample_weight
from oddslip.core.row_ids import UnorderedNames, is_frame
from oddslip.core.sparse import read_array
from oddslip.core.threads import available_threads
from oddslip.core.types import LabelsLike, ScoresLike
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.paths import InputFiles, find_files, form_of, is_files, is_path
from oddslip.sources.arrays import ArraySource, ChainedSource, check_alike
from oddslip.sources.base import Source, join_positives
from oddslip.sources.frames import is_table, open_table
from oddslip.sources.sparse import SparseSource, list_sparse, read_long
from oddslip.sources.views import PartialSource, WeightedSource

if TYPE_CHECKING:
    from oddslip.sources.batches import Batches

Nan = Literal["refuse", "absent"]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a source is: see `open_source`."""

    kind: Kind | None = None
    label_names: Sequence[str] | None = None
    row_ids: Any = None
    exclude: LabelsLike = None
    nan: Nan = "refuse"


class RowOptions(TypedDict, total=False):
    """What the rows of a verb are; see `open_rows`."""

    kind: Kind | None
    label_names: Sequence[str] | None
    exclude: LabelsLike
    nan: Nan
    threads: int | None


# Has the keywords of the verbs, so that each of them passes its own on.
def open_rows(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    exclude: LabelsLike = None,
    nan: Nan = "refuse",
    threads: int | None = None,
    purpose: str | None = None,
) -> Source:
    """Open the rows of a verb: the gate that all verbs share.

    Parameters
    ----------
    scores, labels, kind, label_names, exclude, nan
        As in `open_source`.
    threads : int, optional
        Threads of every pass over these rows; checked before anything is read.
    purpose : str, optional
        What labels are needed for; without it scores alone will do.

    Returns
    -------
    Source

    Examples
    --------
    >>> open_rows([[0.9, 0.2]], threads=1).threads
    1
    """
    available_threads(threads)
    source = open_source(
        scores, labels, kind=kind, label_names=label_names, exclude=exclude, nan=nan
    )
    if purpose is not None and not source.has_labels:
        raise InvalidInput(
            f"labels are needed to {purpose}, got scores alone. Pass labels as well."
        )
    if threads is not None:
        source = copy(source) if source is scores else source
        source.threads = threads
    return source


def weigh_rows(source: Source, sample_weight: Any) -> Source:
    """The source with a weight for each row; without weights the source itself."""
    if sample_weight is None:
        return source
    if not source.ordered:
        raise InvalidInput(
            "sample_weight goes with rows of this machine, got a Spark table. Collect a sample of "
            "the rows, and pass that."
        )
    ids, indexed = source.row_ids(), source.indexed
    weight = read_sample_weight(sample_weight, source.n_rows, ids, indexed=indexed)
    assert weight is not None
    return WeightedSource(source, weight)


def kind_for(scores: ScoresLike, kind: Kind | None) -> Kind | None:
    """This kind for bare scores; None for a panel or a source, which brings its own."""
    return None if isinstance(scores, Source | Panel) else kind


def open_source(
    table: Any = None,
    labels: LabelsLike = None,
    *,
    scores: ScoresLike = None,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    row_ids: Any = None,
    exclude: LabelsLike = None,
    nan: Nan = "refuse",
    columns: Mapping[str, str] | None = None,
    row_id: str | None = None,
    unweighted: str | None = None,
    engine: Any = None,
) -> Source:
    """Open scores and labels: arrays, frames, files, tables, a panel or a source.

    Files are ``.npy``, ``.npz``, ``.csv`` or ``.parquet``: a path, a pattern such as
    ``"scores-*.parquet"``, a folder of Parquet files, or a list of paths. Files of a pattern or a
    folder are read in the natural order of their names, part-2 before part-10. Parquet may be at an
    address such as ``s3://bucket/scores.parquet``. Anything with ``__arrow_c_stream__`` (an Arrow
    table or reader, a DuckDB relation) and a LazyFrame of polars are read like Parquet files; those
    that are computed or can be read only once go through a temporary file. A Spark DataFrame is
    read by Spark; ``scores``, ``labels``, ``row_id`` and ``unweighted`` name its columns.

    Parameters
    ----------
    table, labels
        Scores and labels of shape (n_rows, n_labels). A panel or a source brings its own labels,
        kind and names. Or a Spark DataFrame, or with ``engine`` a folder of Parquet files: its
        column "labels" lists the true labels, unless ``labels`` names another column.
    scores : str, optional
        Of a Spark table: the column with a list of scores per row, or of candidates (label,
        score); "scores" by default. Of a long one: the score of a cell, whose label is in "label".
    kind : {"probability", "margin"}, optional
        What the scores are; by default the kind stored in the file, else probabilities.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    row_ids : sequence, optional
        Ids of the rows, where the scores bring none; they also hold for labels and exclusions in
        the same row order. Rows are matched by id, or by number on a side without ids; rows that
        cannot be matched are an error.
    exclude : optional
        Labels of each row that may not be shown, in any form that labels have: a scipy.sparse
        matrix, lists of indices or names, or a file. Their cells are ignored.
    nan : {"refuse", "absent"}
        What a missing score means: an error, or that the label is not a candidate of the row. Then
        its cell is ignored, and a long table need not hold every label in every row.
    columns : dict, optional
        Columns of a long table, where they have other names than those of
        :doc:`evaluate </evaluate>`: ``{"row": "shopper", "label": "dish", "score": "p"}``, and
        ``"true"`` if the table has such a column. Other columns are ignored. The same names hold
        for tables of labels and of ``exclude``, as far as they have such columns.
    row_id, unweighted : str, optional
        Of a Spark table: the column of row ids, and the column with the scores of the twin.
    engine : SparkSession, optional
        Let Spark's tasks read the Parquet files of a folder that every executor sees.

    Scores in a scipy.sparse matrix are those of the candidates; the other cells are absent.

    Examples
    --------
    >>> source = open_source([[0.9, 0.2, 0.6]], [[1, 0, 0]])
    >>> source.n_rows, source.n_labels
    (1, 3)
    """
    options = SourceOptions(kind, label_names, row_ids, exclude, nan)
    spark = {"row_id": row_id, "unweighted": unweighted}
    if engine is not None or is_spark(table):
        spark |= {"scores": scores, "labels": labels}
        return _open_spark(table, engine, columns, spark, options)
    for name, column in spark.items():
        if column is not None:
            raise InvalidInput(
                f"{name} names a column of a Spark table, got another kind of table."
            )
    if (table is None) == (scores is None):
        raise InvalidInput("scores must be given once, got them twice or not at all.")
    scores = table if scores is None else scores
    if nan not in get_args(Nan):
        raise InvalidInput(f'nan must be "refuse" or "absent", got {nan!r:.60}.')
    if columns is not None:
        scores = _open_long_columns(scores, columns)
        labels, exclude = (
            _open_long_columns(values, columns, truths=True) for values in (labels, exclude)
        )
        options = replace(options, exclude=exclude)
    return _without_cells(_open_whole(scores, labels, options), options)


def open_like(
    scores: ScoresLike, layout: Any, *, kind: Kind | None, label_names: Sequence[str] | None
) -> ScoresLike:
    """A Spark table opened with the columns of a layout, or None; other scores unchanged."""
    if not is_spark(scores):
        return scores
    columns: Any = {"scores": layout.scores, "row_id": layout.row_id} if layout else {}
    return open_source(scores, kind=kind, label_names=label_names, **columns)


def _without_cells(whole: Source, options: SourceOptions) -> Source:
    """The source without excluded and missing cells."""
    if options.exclude is None and (options.nan == "refuse" or isinstance(whole, SparseSource)):
        return whole
    excluded = None
    if options.exclude is not None:
        excluded = _open_excluded(options.exclude, whole, beside=options.row_ids is not None)
    if options.nan == "refuse" and excluded is not None and not excluded.indices.size:
        return whole
    return PartialSource(whole, excluded, nan=options.nan == "absent")


def _open_excluded(exclude: LabelsLike, whole: Source, *, beside: bool) -> Positives:
    """Excluded labels, checked as true labels are."""
    try:
        if is_nested(exclude) and not is_files(exclude):  # lists, never cells
            exclude = labels_from_lists(exclude, whole.n_labels, whole.label_names)
        shape = (whole.n_rows, whole.n_labels)
        panel = Panel(no_cells(shape), label_names=whole.label_names, row_ids=whole.row_ids())
        add_labels(panel, exclude, indexed=whole.indexed, beside=beside)
        return panel.positives()
    except InvalidInput as error:
        raise InvalidInput(f"exclude is read as labels are: {error}") from error


def _open_whole(scores: ScoresLike, labels: LabelsLike, options: SourceOptions) -> Source:
    row_ids = options.row_ids
    if isinstance(scores, Source | Panel):
        described = (labels, options.kind, options.label_names, row_ids)
        if any(argument is not None for argument in described):
            raise InvalidInput(
                f"a {type(scores).__name__} brings its own labels, kind and names; "
                "pass it alone, or pass its scores instead."
            )
        if isinstance(scores, Panel):
            scores = _source_of(scores)
        return _with_ordered_names(scores)
    if is_file_or_table(scores):
        input_files = find_files(scores) if is_files(scores) else None
        if input_files is None or input_files.form != "array":
            files = open_table(scores) if input_files is None else open_columns(input_files)
            return _open_columns(files, labels, options)
        arrays = [read_array(file) for file in input_files.files]
        if len(arrays) > 1:
            return _open_chain(arrays, input_files.files, labels, options)
        (scores,) = arrays
    scores = _native(scores)
    if hasattr(scores, "tocsr"):
        return _open_sparse(scores, labels, options)
    panel, indexed = Panel(scores, **_panel_options(options)), is_frame(scores)
    add_labels(panel, labels, indexed=indexed, beside=row_ids is not None)
    source = ArraySource(panel)
    source.indexed = indexed
    return source


def _source_of(panel: Panel) -> Source:
    """The source of a panel, whose rows are numbered from 0 also where it was cut from another."""
    if panel.first_row:
        panel = panel.rows(0, panel.n_rows)
        panel.first_row, panel._row_keys = 0, None
    return SparseSource(panel) if isinstance(panel, SparsePanel) else ArraySource(panel)


def _panel_options(options: SourceOptions) -> dict[str, Any]:
    """Options of a panel in memory; scores are probabilities by default."""
    return {
        "kind": "probability" if options.kind is None else options.kind,
        "label_names": options.label_names,
        "row_ids": options.row_ids,
    }


def _with_ordered_names(source: Source) -> Source:
    """The source, whose label order a caller can read, so that label positions are valid."""
    if not isinstance(source.label_names, UnorderedNames):
        return source
    renamed = copy(source)
    renamed.label_names = tuple(source.label_names)
    return renamed


def open_columns(files: InputFiles, **options: Any) -> Batches:
    """Parquet or CSV files as a table of columns. Options are those of `CsvBatches`."""
    if files.form == "parquet":
        from oddslip.sources.parquet.files import ParquetFiles

        return ParquetFiles(files)
    from oddslip.sources.csv import CsvBatches

    return CsvBatches(files, **options)


def _open_long_columns(thing: Any, columns: Mapping[str, str], *, truths: bool = False) -> Any:
    """A long table whose columns the user names; anything else unchanged."""
    from oddslip.sources.long.table import as_long

    input_files = find_files(thing) if is_files(thing) else None
    if input_files is not None and input_files.form != "array":
        files = open_columns(input_files, truths=truths, label_names=(), columns=columns)
        return (
            files if input_files.form == "csv" else as_long(files, columns=columns, truths=truths)
        )
    if is_table(thing) or is_frame(thing):
        return as_long(open_table(thing), columns=columns, truths=truths)
    if truths:
        return thing
    raise InvalidInput(f"columns name those of a long table, got {thing!r:.60}.")


def _open_columns(files: Batches, labels: LabelsLike, options: SourceOptions) -> Source:
    from oddslip.sources.long.table import as_long, is_long
    from oddslip.sources.parquet.source import ParquetSource

    if options.row_ids is not None:
        raise InvalidInput(
            f"row_ids must be a column of {files.path}, got them apart. Add a column row_id."
        )
    names, is_partial = options.label_names, options.nan == "absent"
    files = as_long(files, label_names=names)
    if is_partial and is_long(files.schema):
        return _open_long(files, labels, options)
    return ParquetSource(files, labels, kind=options.kind, label_names=names, nan=is_partial)


def _open_chain(
    arrays: list[Any], files: list[Path], labels: LabelsLike, options: SourceOptions
) -> Source:
    panel_options = _panel_options(options)
    sparse = next((f for f, a in zip(files, arrays, strict=True) if hasattr(a, "tocsr")), None)
    if sparse is not None:
        raise InvalidInput(f"files of a list must hold dense arrays, got {sparse}, a sparse one.")
    kind = panel_options["kind"]
    parts = [ArraySource(Panel(_native(array), kind=kind)) for array in arrays]
    check_alike(parts, files)
    shape = (sum(part.n_rows for part in parts), parts[0].n_labels)
    whole = Panel(no_cells(shape, parts[0].dtype), **panel_options)
    add_labels(whole, labels, beside=options.row_ids is not None)
    return ChainedSource(parts, whole)


def _open_sparse(scores: ScoresLike, labels: LabelsLike, options: SourceOptions) -> SparseSource:
    panel = SparsePanel.of(*list_sparse(scores), int(scores.shape[1]), **_panel_options(options))
    add_labels(panel, labels, beside=True)
    return SparseSource(panel)


def _open_long(files: Batches, labels: LabelsLike, options: SourceOptions) -> SparseSource:
    from oddslip.sources.long.table import check_long
    from oddslip.sources.parquet.source import stored_kind

    check_long(files)
    kind, kind_is_stored = stored_kind(files, options.kind)
    panel = read_long(files, kind, options.label_names)
    if labels is not None and panel.labels is not None:
        raise InvalidInput(f"labels must come from one place, but {files.path} holds some as well.")
    add_labels(panel, labels)
    source = SparseSource(panel)
    source.kind_is_stored = kind_is_stored
    return source


def add_labels(
    panel: Panel, labels: LabelsLike, *, indexed: bool = False, beside: bool = False
) -> None:
    """Open the true labels of a panel, if there are any: see `Panel.add_labels`."""
    if is_file_or_table(labels):
        shape, ids = (panel.n_rows, panel.n_labels), panel.row_ids
        labels = open_labels(labels, panel.label_names, shape=shape, row_ids=ids)
    if labels is not None:
        panel.add_labels(_native(labels), indexed=indexed, beside=beside)


def is_spark(thing: Any) -> bool:
    """Whether this is a Spark DataFrame. Does not load Spark."""
    return type(thing).__module__.startswith("pyspark.sql") and hasattr(thing, "mapInArrow")


def _open_spark(
    table: Any, engine: Any, long_columns: Any, columns: dict[str, Any], options: SourceOptions
) -> Source:
    """A table that Spark reads; ``columns`` are those of its rows, by their roles."""
    from oddslip.sources.table import open_files, open_table

    if options.exclude is not None or options.nan != "refuse":
        raise InvalidInput("exclude and nan go with rows of this machine, got a Spark table.")
    if long_columns is not None:
        raise InvalidInput(
            "columns of a Spark table are named by scores, labels and row_id, got columns."
        )
    if options.row_ids is not None:
        raise InvalidInput("rows of a table are named by a column, got row_ids. Pass row_id=...")
    for name in ("scores", "labels"):
        if columns[name] is not None and not isinstance(columns[name], str):
            raise InvalidInput(
                f"{name} must name a column of the table, got {columns[name]!r:.60}."
            )
    columns |= {"kind": options.kind, "label_names": options.label_names}
    if engine is None:
        return open_table(table, **columns)
    if not is_path(table):
        raise InvalidInput(
            f"with an engine, a folder of Parquet files is opened, got {table!r:.60}."
        )
    return open_files(Path(table), engine, **columns)


def is_file_or_table(thing: Any) -> bool:
    """Whether this is a path, or a table of another library; arrays are neither."""
    return not isinstance(thing, np.ndarray) and (is_files(thing) or is_table(thing))


def open_labels(
    thing: Any,
    label_names: Sequence[str] | None = None,
    *,
    shape: tuple[int, ...] | None = None,
    row_ids: Any = None,
) -> Labels | Any:
    """Labels from files or a table: .npy, .npz (dense or scipy.sparse), CSV, Parquet, Arrow.

    Tables that only list the true cells do not hold the number of rows and labels: ``shape`` is
    that of the scores, and ``row_ids`` are the ids of their rows.
    """
    input_files = find_files(thing) if is_files(thing) else None
    if input_files is None or input_files.form != "array":
        from oddslip.sources.parquet.labels import read_label_table

        files = (
            open_table(thing)
            if input_files is None
            else open_columns(input_files, truths=True, label_names=label_names)
        )
        return read_label_table(files, label_names, shape=shape, row_ids=row_ids)
    parts = [read_array(file) for file in input_files.files]
    for part, file in zip(parts, input_files.files, strict=True):
        if file.suffix == ".npz" and part.ndim != 2:
            raise UnreadableFile(f"{file} must be of shape (rows, labels), got shape {part.shape}.")
    return parts[0] if len(parts) == 1 else _stack(parts, input_files.files)


def _stack(parts: list[Any], files: list[Any]) -> Any:
    """Labels of several files, stacked by rows. Memory grows with the positives."""
    checked = [as_labels(_native(part), 0) for part in parts]
    widths = [labels.shape[1] for labels in checked]
    different = next((at for at, width in enumerate(widths) if width != widths[0]), None)
    if different is not None:
        raise InvalidInput(
            f"all files must have the same labels, but {files[different]} has {widths[different]} "
            f"and {files[0]} has {widths[0]}."
        )
    whole = join_positives(labels.positives(0, labels.shape[0]) for labels in checked)
    from scipy.sparse import csr_array

    true = np.ones(whole.indices.size, np.uint8), whole.indices, whole.indptr
    return csr_array(true, shape=(whole.indptr.size - 1, widths[0]))


def _native(cells: Any) -> Any:
    """Cells in native byte order; copied only if necessary."""
    dtype = getattr(cells, "dtype", None)
    if isinstance(cells, np.ndarray) and isinstance(dtype, np.dtype) and not dtype.isnative:
        return cells.astype(dtype.newbyteorder("="))
    return cells


def is_parquet(path: Path) -> bool:
    """Whether this path is Parquet: by its ending, or a folder of such files."""
    return path.is_dir() or form_of(path) == "parquet"
