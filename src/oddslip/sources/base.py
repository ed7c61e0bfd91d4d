"""`Source`: yields panels block by block, any number of times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oddslip.core.labels import Positives
from oddslip.core.panel import Kind, Panel, SampleWeight
from oddslip.core.row_ids import Keys, hash_ids, hash_row_numbers
from oddslip.core.tally import Tally
from oddslip.core.threads import map_blocks, run_tally
from oddslip.core.types import Ints

T = TypeVar("T", bound=Tally)
R = TypeVar("R")

BLOCK_BYTES = 8 * 1024 * 1024
MAX_SMALL_ROWS = 65_536  # up to so many rows, all keys are kept in memory


class Source(ABC):
    """Panels in blocks of rows. Subclasses set the attributes and yield the blocks in order."""

    n_rows: int
    n_labels: int
    kind: Kind
    dtype: np.dtype[np.floating]
    label_names: tuple[str, ...] | None
    has_labels: bool
    sample_weight: SampleWeight | None = None
    partial: bool = False  # whether cells may be absent: excluded, or not candidates
    _totals: Any = None
    _row_keys: Keys | None = None
    indexed: bool = False  # whether rows came in a frame, whose index numbers rows without ids
    kind_is_stored: bool = False  # whether the data store their kind
    ordered: bool = True  # whether rows have numbers, and blocks come in their order
    threads: int | None = None  # of every pass; None for all available cores

    @property
    def total_weight(self) -> float:
        """Total weight of the rows; their number without sample weights."""
        return float(self.n_rows) if self.sample_weight is None else self.sample_weight.total

    def totals(self) -> Any:
        """Weight of the present cells per label; that of all rows if no cell is absent."""
        if not self.partial:
            return self.total_weight
        if self._totals is None:
            parts = self.map(lambda panel: panel.n_present(), what="cells there")
            self._totals = sum(part for _, part in parts)
        return self._totals

    @abstractmethod
    def blocks(self) -> Iterator[Panel]:
        """The panels, in row order. A block may be read lazily, when its scores are used."""

    def row_ids(self) -> NDArray | None:  # type: ignore[type-arg]
        """Ids of all rows, or None where rows are only numbered."""
        return None

    def row_keys(self) -> Keys:
        """Key of every row: see `oddslip.core.row_ids`. Ids are hashed once."""
        if self._row_keys is None:
            ids = self.row_ids()
            self._row_keys = hash_row_numbers(0, self.n_rows) if ids is None else hash_ids(ids)
        return self._row_keys

    def small_keys(self) -> Keys | None:
        """Keys of all rows where these are few, else None."""
        return self.row_keys() if self.n_rows <= MAX_SMALL_ROWS else None

    def positives(self) -> Positives:
        """True labels of all rows, read without the scores where possible."""
        return join_positives(block.positives() for block in self.blocks())

    def label_counts(self) -> Ints:
        """Positives of each label."""
        return np.bincount(self.positives().indices, minlength=self.n_labels)

    @property
    def has_ids(self) -> bool:
        """Whether rows have ids."""
        return self.row_ids() is not None

    def rank(self, k: int, maps: Any = None) -> Any:
        """The top K of every row of a table, by the scores or by maps of them, as a table."""
        raise NotImplementedError

    def show(self, choose: Callable[..., Any], **options: Any) -> Any:
        """The labels that are chosen of every row of a table, as a table."""
        raise NotImplementedError

    def transform(self, maps: Any, dtype: Any = None) -> Any:
        """Calibrated scores of every row of a table, as a table."""
        raise NotImplementedError

    def run(self, tally: T, *, what: str = "rows") -> T:
        """Feed all rows to the tally and return it."""
        return run_tally(
            self._keyed_blocks(), tally, n_rows=self.n_rows, threads=self.threads, what=what
        )

    def map(self, function: Callable[[Panel], R], *, what: str = "rows") -> Iterator[tuple[int, R]]:
        """Yield (first row, ``function(block)``) in row order, computed on threads."""
        return map_blocks(
            self._keyed_blocks(), function, n_rows=self.n_rows, threads=self.threads, what=what
        )

    def _keyed_blocks(self) -> Iterator[Panel]:
        """The blocks, with row keys if these were computed before."""
        for block in self.blocks():
            if self._row_keys is not None and block._row_keys is None:
                start = block.first_row
                block._row_keys = self._row_keys[start : start + block.n_rows]
            yield block


def block_rows(n_labels: int, itemsize: int) -> int:
    """Rows per block of about eight megabytes: small in memory, large enough for a task."""
    return max(1, BLOCK_BYTES // (n_labels * itemsize))


def join_positives(parts: Iterable[Positives]) -> Positives:
    """Positives of neighbouring blocks of rows as one."""
    blocks = list(parts)
    counts = np.concatenate([[0], *(part.counts for part in blocks)])
    return Positives(
        np.cumsum(counts, dtype=np.int64),
        np.concatenate([np.empty(0, np.int32), *(part.indices for part in blocks)]),
    )
