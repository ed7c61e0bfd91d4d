"""`Source`: something that yields panels, block by block, as often as asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from oddslip.panels import Kind, Panel
from oddslip.tallies import Tally, run_tally

T = TypeVar("T", bound=Tally)

BLOCK_BYTES = 8 * 1024 * 1024


class Source(ABC):
    """Panels in blocks of rows. Subclasses set the attributes and yield the blocks in order."""

    n_rows: int
    n_labels: int
    kind: Kind
    dtype: np.dtype[np.floating]
    label_names: tuple[str, ...] | None
    has_labels: bool

    @abstractmethod
    def blocks(self) -> Iterator[Panel]:
        """The panels, in row order. Blocks may be read lazily, by whoever uses them."""

    def row_ids(self) -> NDArray | None:  # type: ignore[type-arg]
        """Names of all rows, or None where rows are only numbered."""
        return None

    def run(self, tally: T, *, threads: int | None = None, what: str = "rows") -> T:
        """Feed all rows to the tally and return it."""
        return run_tally(self.blocks(), tally, n_rows=self.n_rows, threads=threads, what=what)


def block_rows(n_labels: int, itemsize: int) -> int:
    """Rows per block: about eight megabytes of scores: cheap to hold, dear enough to start."""
    return max(1, BLOCK_BYTES // (n_labels * itemsize))
