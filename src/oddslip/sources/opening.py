"""`open_source`: scores and labels in any form a user has, as one source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.labels import Labels
from oddslip.panels import Kind, Panel
from oddslip.sources.arrays import ArraySource
from oddslip.sources.base import Source
from oddslip.sources.npy import read_labels_npz, read_npy, read_npz


def open_source(
    table: Any = None,
    labels: Any = None,
    *,
    scores: Any = None,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    row_ids: Any = None,
    row_id: str | None = None,
    unweighted: str | None = None,
    engine: Any = None,
) -> Source:
    """Open scores and labels, whatever they are: arrays, frames, paths, a panel or a source.

    Files are ``.npy``, ``.npz`` or ``.parquet`` (a folder counts as Parquet). A DataFrame of Spark
    stays where it is; ``scores``, ``labels``, ``row_id`` and ``unweighted`` name its columns.

    Parameters
    ----------
    table, labels
        Scores and labels of shape (n_rows, n_labels). A panel or a source brings its own labels,
        kind and names. Or a DataFrame of Spark, or with ``engine`` a folder of Parquet files.
    scores : str, optional
        Of a Spark table: the column with a list of scores per row; "scores" unless told.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    row_ids : sequence, optional
        Names of the rows.
    row_id, unweighted : str, optional
        Of a Spark table: the column that names rows, and that with the scores of the twin.
    engine : SparkSession, optional
        Let Spark's tasks read the Parquet files of a folder that every executor sees.

    Examples
    --------
    >>> source = open_source([[0.9, 0.2, 0.6]], [[1, 0, 0]])
    >>> source.n_rows, source.n_labels
    (1, 3)
    """
    columns = {"row_id": row_id, "unweighted": unweighted}
    if engine is not None or is_spark(table):
        return _open_spark(
            table, engine, scores=scores, labels=labels, row_ids=row_ids, kind=kind,
            label_names=label_names, **columns,
        )  # fmt: skip
    for name, column in columns.items():
        if column is not None:
            raise InvalidInput(
                f"{name} names a column of a Spark table, got another kind of table."
            )
    if (table is None) == (scores is None):
        raise InvalidInput("scores must be given once, got them twice or not at all.")
    scores = table if scores is None else scores
    if isinstance(scores, Source | Panel):
        if any(given is not None for given in (labels, kind, label_names, row_ids)):
            raise InvalidInput(
                f"a {type(scores).__name__} brings its own labels, kind and names; "
                "pass it alone, or pass its scores instead."
            )
        return scores if isinstance(scores, Source) else ArraySource(scores)
    kind = "probability" if kind is None else kind
    if is_path(scores):
        path = Path(scores)
        if is_parquet(path):
            from oddslip.sources.parquet.source import ParquetSource

            if row_ids is not None:
                raise InvalidInput(
                    f"row_ids must be a column of {path}, got them apart. Add a column row_id."
                )
            return ParquetSource(path, labels, kind=kind, label_names=label_names)
        scores = read_npz(path) if path.suffix == ".npz" else read_npy(path)
    scores = _native(scores)
    if is_path(labels):
        panel = Panel(scores, kind=kind, label_names=label_names, row_ids=row_ids)
        scores, label_names, row_ids = panel.scores, panel.label_names, panel.row_ids
        labels = open_labels(Path(labels), label_names, shape=panel.scores.shape)
    return ArraySource(
        Panel(scores, _native(labels), kind=kind, label_names=label_names, row_ids=row_ids)
    )


def is_spark(thing: Any) -> bool:
    """Whether this is a DataFrame of Spark; asks without loading Spark."""
    return type(thing).__module__.startswith("pyspark.sql") and hasattr(thing, "mapInArrow")


def _open_spark(table: Any, engine: Any, *, row_ids: Any, **told: Any) -> Source:
    from oddslip.sources.table import open_files, open_table

    if row_ids is not None:
        raise InvalidInput("rows of a table are named by a column, got row_ids. Pass row_id=...")
    for name in ("scores", "labels"):
        if told[name] is not None and not isinstance(told[name], str):
            raise InvalidInput(f"{name} must name a column of the table, got {told[name]!r:.60}.")
    if engine is None:
        return open_table(table, **told)
    if not is_path(table):
        raise InvalidInput(
            f"with an engine, a folder of Parquet files is opened, got {table!r:.60}."
        )
    return open_files(Path(table), engine, **told)


def open_labels(
    path: Path,
    label_names: Sequence[str] | None = None,
    *,
    shape: tuple[int, ...] | None = None,
) -> Labels | Any:
    """Labels from a file: .npy, .npz (dense or scipy.sparse) or Parquet.

    Parquet that only lists the true cells can not say how many rows and labels there are;
    ``shape``, that of the scores, does.
    """
    if is_parquet(path):
        from oddslip.sources.parquet.labels import read_labels_parquet

        return read_labels_parquet(path, label_names, shape=shape)
    return read_labels_npz(path) if path.suffix == ".npz" else read_npy(path)


def _native(cells: Any) -> Any:
    """Cells in this machine's byte order. Only foreign ones are copied."""
    dtype = getattr(cells, "dtype", None)
    if isinstance(cells, np.ndarray) and isinstance(dtype, np.dtype) and not dtype.isnative:
        return cells.astype(dtype.newbyteorder("="))
    return cells


def is_path(thing: Any) -> bool:
    """Whether this names a file rather than being the data."""
    return isinstance(thing, str | os.PathLike)


def is_parquet(path: Path) -> bool:
    """Whether this path is Parquet: by its ending, or a folder of such files."""
    if path.suffix in (".parquet", ".pq") or path.is_dir():
        return True
    if path.suffix not in (".npy", ".npz"):
        if not path.exists():
            raise UnreadableFile(f"{path} does not exist.")
        raise UnreadableFile(
            f"{path} must end in .npy, .npz or .parquet, got {path.suffix or 'no ending'!r}."
        )
    return False
