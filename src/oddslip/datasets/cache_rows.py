"""A `Recommendation` as plain files: matrices as .npz, arrays as .npy, the rest as JSON."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse, load_npz, save_npz

from oddslip.datasets.caches import recall_entry
from oddslip.datasets.recommendations import Period, Recommendation
from oddslip.errors import UnreadableFile

DESCRIPTION = "recommendation.json"
_PERIODS = ("train", "validation", "test")
_DAMAGED = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)


def recall_rows(
    folder: str | os.PathLike[str], what: Mapping[str, Any], build: Callable[[], Recommendation]
) -> Recommendation:
    """The rows kept under that name, or else built now and kept; see `recall_entry`.

    Examples
    --------
    >>> recall_rows("cache", {"sha256": "..."}, build)  # doctest: +SKIP
    """
    built: list[Recommendation] = []

    def fill(entry: Path) -> None:
        built.append(build())
        save_rows(entry, built[0])

    entry = recall_entry(folder, what, fill)
    return built[0] if built else load_rows(entry)


def save_rows(folder: Path, rows: Recommendation) -> None:
    """Write a recommendation into a folder. The same rows give the same bytes."""
    for name in _PERIODS:
        period: Period = getattr(rows, name)
        for part, matrix in (("X", period.X), ("Y", period.Y)):
            if issparse(matrix):
                # Not compressed: it is read far more often than written.
                save_npz(folder / f"{part}_{name}.npz", matrix, compressed=False)
            else:
                np.save(folder / f"{part}_{name}.npy", matrix, allow_pickle=False)
        np.save(folder / f"ids_{name}.npy", period.row_ids, allow_pickle=False)
    description = {
        "name": rows.name, "settings": rows.settings, "sha256": rows.sha256,
        "label_names": rows.label_names, "feature_names": rows.feature_names,
    }  # fmt: skip
    (folder / DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")


def load_rows(folder: Path) -> Recommendation:
    """Read what `save_rows` wrote. Sparse matrices are read once, without copies; a dense X
    stays on disk.
    """
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        periods = {
            name: Period(
                X=_load_matrix(folder, f"X_{name}"),
                Y=_load_matrix(folder, f"Y_{name}"),
                row_ids=np.load(folder / f"ids_{name}.npy", allow_pickle=False),
            )
            for name in _PERIODS
        }
        return Recommendation(
            name=description["name"],
            train=periods["train"],
            validation=periods["validation"],
            test=periods["test"],
            label_names=tuple(description["label_names"]),
            feature_names=tuple(description["feature_names"]),
            settings=description["settings"],
            sha256=description["sha256"],
        )
    except _DAMAGED as error:
        raise UnreadableFile(
            f"{folder} must hold rows as they were kept, got other or damaged files. Remove it."
        ) from error


def _load_matrix(folder: Path, name: str) -> Any:
    sparse = folder / f"{name}.npz"
    if sparse.exists():
        return load_npz(sparse)
    return np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
