"""`open_source`: scores and labels in any form a user has, as one source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.labels import Labels
from oddslip.panels import Kind, Panel
from oddslip.sources.arrays import ArraySource
from oddslip.sources.npys import read_labels_npz, read_npy, read_npz
from oddslip.sources.source import Source


def open_source(
    scores: Any,
    labels: Any = None,
    *,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    row_ids: Any = None,
) -> Source:
    """Open scores and labels, whatever they are: arrays, frames, paths, a panel or a source.

    Files are `.npy`, `.npz` or `.parquet` (a folder counts as Parquet). ``kind`` is
    "probability" unless said otherwise.
    """
    if isinstance(scores, Source | Panel):
        if labels is not None or kind is not None or label_names is not None:
            raise InvalidInput(
                f"a {type(scores).__name__} brings its own labels, kind and names; "
                "pass it alone, or pass its scores instead."
            )
        return scores if isinstance(scores, Source) else ArraySource(scores)
    if is_path(scores):
        path = Path(scores)
        if is_parquet(path):
            from oddslip.sources.parquets import ParquetSource

            return ParquetSource(
                path, labels, kind=kind or "probability", label_names=label_names
            )
        scores = read_npy(path) if path.suffix != ".npz" else read_npz(path)
    if is_path(labels):
        labels = open_labels(Path(labels), label_names)
    return ArraySource(
        Panel(
            scores, labels, kind=kind or "probability", label_names=label_names, row_ids=row_ids
        )
    )


def open_labels(path: Path, label_names: Sequence[str] | None = None) -> Labels | Any:
    """Labels from a file: .npy, .npz (dense or scipy.sparse) or Parquet."""
    if is_parquet(path):
        from oddslip.sources.parquet_labels import read_labels_parquet

        return read_labels_parquet(path, label_names)
    return read_labels_npz(path) if path.suffix == ".npz" else read_npy(path)


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
