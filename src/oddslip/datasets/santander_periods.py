"""Rows in order of time, cut into three periods, and kept in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, load_npz, save_npz

from oddslip.datasets.recommendations import Period, Recommendation
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.sources.sinks import write_scores

_RECORD = "recommendation.json"


def cut_rows(n_rows: int) -> tuple[int, int]:
    """Where the validation and the test period start: 65, 15 and 20% of the rows, by count.

    Validation and test are rounded down, and training has the rest. So the paper's counts come
    out of its 12,690,664 rows to the row.

    Examples
    --------
    >>> cut_rows(100)
    (65, 80)
    """
    n_validation, n_test = n_rows * 15 // 100, n_rows * 20 // 100
    if n_validation == 0:
        raise InvalidInput(
            f"at least 7 rows must have a following row to be cut into three periods, got {n_rows}."
        )
    return n_rows - n_validation - n_test, n_rows - n_test


def cut_periods(name: str, X: Any, Y: Any, row_ids: NDArray[Any], **rest: Any) -> Recommendation:
    """Rows in order of time, as a recommendation of three periods."""
    n_rows = int(X.shape[0])
    start, end = cut_rows(n_rows)
    parts = (slice(0, start), slice(start, end), slice(end, n_rows))
    train, validation, test = (Period(X[part], Y[part], row_ids[part]) for part in parts)
    return Recommendation(name, train, validation, test, **rest)


def keep_rows(
    folder: Path,
    blocks: Iterable[tuple[int, NDArray[np.float32]]],
    Y: csr_matrix,
    row_ids: NDArray[np.int64],
    record: dict[str, Any],
) -> None:
    """Write rows into a folder: features block by block, in whatever order blocks come."""
    width = len(record["feature_names"])
    write_scores(folder / "X.npy", blocks, n_rows=len(row_ids), n_labels=width, dtype=np.float32)
    save_npz(folder / "Y.npz", Y, compressed=False)
    np.save(folder / "ids.npy", row_ids, allow_pickle=False)
    (folder / _RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")


def open_rows(folder: Path) -> Recommendation:
    """The rows of a folder. Features are memory-mapped."""
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        return cut_periods(
            record["name"],
            np.load(folder / "X.npy", mmap_mode="r", allow_pickle=False),
            csr_matrix(load_npz(folder / "Y.npz")),
            np.load(folder / "ids.npy", allow_pickle=False),
            label_names=tuple(record["label_names"]),
            feature_names=tuple(record["feature_names"]),
            settings=record["settings"],
            sha256=record["sha256"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise UnreadableFile(
            f"{folder} must hold rows as they were kept, got other or damaged files. Remove it."
        ) from None
