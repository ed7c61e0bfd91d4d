"""What the layouts of a Parquet table share: the blocks they yield, row ids, label names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput
from oddslip.panels import check_names
from oddslip.sources.parquet_cells import id_cells

ID_ROWS = 64 * 1024  # rows per batch where only ids are read


class Block(NamedTuple):
    """Some rows of a table. What was not asked for, or is not there, is None."""

    n_rows: int
    scores: NDArray[Any] | None
    truths: NDArray[np.bool_] | None
    ids: NDArray[Any] | None


def matched_names(wanted: Sequence[str] | None, found: list[str]) -> tuple[str, ...]:
    """The file's label names in the wanted order; the same names must be on both sides."""
    if wanted is None:
        return tuple(found)
    told = tuple(str(name) for name in wanted)
    stranger = next((name for name in told if name not in set(found)), None)
    if stranger is not None:
        raise InvalidInput(f"label_names must be those of the file, which lacks {stranger!r}.")
    unnamed = next((name for name in found if name not in set(told)), None)
    if unnamed is not None:
        raise InvalidInput(
            f"label_names must name every label of the file, {unnamed!r} is missing."
        )
    return check_names(told, len(found)) or ()


def batch_ids(batch: Any, column: str | None, first_row: int) -> NDArray[Any] | None:
    """Row ids of a batch."""
    return None if column is None else id_cells(batch.column(column), first_row)


def read_ids(batches: Iterator[Any], column: str, first: int = 0) -> NDArray[Any]:
    """Row ids of these batches."""
    parts = []
    for batch in batches:
        parts.append(id_cells(batch.column(column), first))
        first += batch.num_rows
    return np.concatenate(parts)
