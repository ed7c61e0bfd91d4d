"""`open_source`: scores and labels in any form a user has, as one source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.labels import Labels
from oddslip.panels import Kind, Panel, label_row_ids
from oddslip.sources.arrays import ArraySource
from oddslip.sources.base import Source
from oddslip.sources.npy import read_labels_npz, read_npy, read_npz


def open_source(
    scores: Any,
    labels: Any = None,
    *,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    row_ids: Any = None,
) -> Source:
    """Open scores and labels, whatever they are: arrays, frames, paths, a panel or a source.

    Files are ``.npy``, ``.npz`` or ``.parquet`` (a folder counts as Parquet).

    Parameters
    ----------
    scores, labels
        Of shape (n_rows, n_labels). A panel or a source brings its own labels, kind and names.
    kind : {"probability", "margin"}, optional
        What the scores are; as a file says that we wrote, else probabilities.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    row_ids : sequence, optional
        Names of the rows. Where scores and labels both have some, be it as the index of a frame
        or as a column of a file, rows are matched by them.

    Examples
    --------
    >>> source = open_source([[0.9, 0.2, 0.6]], [[1, 0, 0]])
    >>> source.n_rows, source.n_labels
    (1, 3)
    """
    if isinstance(scores, Source | Panel):
        if any(given is not None for given in (labels, kind, label_names, row_ids)):
            raise InvalidInput(
                f"a {type(scores).__name__} brings its own labels, kind and names; "
                "pass it alone, or pass its scores instead."
            )
        return scores if isinstance(scores, Source) else ArraySource(scores)
    if is_path(scores):
        path = Path(scores)
        if is_parquet(path):
            from oddslip.sources.parquet.source import ParquetSource

            if row_ids is not None:
                raise InvalidInput(
                    f"row_ids must be a column of {path}, got them apart. Add a column row_id."
                )
            return ParquetSource(path, labels, kind=kind, label_names=label_names)
        kind = kind or "probability"
        scores = read_npz(path) if path.suffix == ".npz" else read_npy(path)
    scores, kind = _native(scores), "probability" if kind is None else kind
    if is_path(labels):
        panel = Panel(scores, kind=kind, label_names=label_names, row_ids=row_ids)
        scores, label_names, row_ids = panel.scores, panel.label_names, panel.row_ids
        shape = panel.scores.shape
        labels = open_labels(Path(labels), label_names, shape=shape, row_ids=row_ids)
    panel = Panel(scores, _native(labels), kind=kind, label_names=label_names, row_ids=row_ids)
    source = ArraySource(panel)
    source.labels_named = panel.row_ids is not None and label_row_ids(labels) is not None
    return source


def open_labels(
    path: Path,
    label_names: Sequence[str] | None = None,
    *,
    shape: tuple[int, ...] | None = None,
    row_ids: Any = None,
) -> Labels | Any:
    """Labels from a file: .npy, .npz (dense or scipy.sparse) or Parquet.

    Parquet that only lists the true cells can not say how many rows and labels there are;
    ``shape``, that of the scores, does; ``row_ids`` are theirs.
    """
    if is_parquet(path):
        from oddslip.sources.parquet.labels import read_labels_parquet

        return read_labels_parquet(path, label_names, shape=shape, row_ids=row_ids)
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
