"""The top K of every row, and the tally that keeps what metrics need of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from oddslip.labels import Positives
from oddslip.panels import Kind, Panel, check_k
from oddslip.sources import open_source
from oddslip.tallies import State


def rank(
    scores: Any,
    *,
    k: int,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    threads: int | None = None,
) -> NDArray[np.int32]:
    """The K highest labels of every row, best first.

    Parameters
    ----------
    scores : array-like of shape (n_rows, n_labels), data frame, path, Panel or source
    k : int
        Slots per row, ``1 <= k <= n_labels``.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.
    label_names : sequence of str, optional
        Names of the labels; a frame or a file brings its own.
    threads : int, optional
        Threads to use; all cores available unless told.

    Returns
    -------
    ndarray of int32, shape (n_rows, k)
        Label indices. Equal scores rank the lower index first. Of a Spark table, a DataFrame: its
        row ids, and ``top``, a list of (label, score) each.

    Examples
    --------
    >>> rank([[0.9, 0.2, 0.6], [0.5, 0.5, 0.1]], k=2)
    array([[0, 2],
           [0, 1]], dtype=int32)
    """
    source = open_source(scores, kind=kind, label_names=label_names)
    k = check_k(k, source.n_labels)
    if not source.ordered:
        return source.rank(k)  # type: ignore[no-any-return]
    ranking = np.empty((source.n_rows, k), np.int32)
    for first, columns in source.map(
        lambda panel: rank_panel(panel, k), threads=threads, what="ranking rows"
    ):
        ranking[first : first + len(columns)] = columns
    return ranking


def rank_panel(panel: Panel, k: int) -> NDArray[np.int32]:
    """The top k of every row of one block, checked on the way."""
    from oddslip.kernels.topk import rank_keys

    columns: NDArray[np.int32]
    columns, best, _ = rank_keys(panel.keys(), k)
    if int(best[:, 0].max()) > panel.limit:
        return rank_panel(panel.mended(), k)
    return columns


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """Top K of the rows with a true label, in row order, with their positives and ties.

    ``joined`` marks places that tie with the place before, ``at_kth`` counts the cells of the row
    that tie with the last place, ``sides`` places each positive above (1), at (0) or below (-1)
    the last place.
    """

    n_rows: int
    n_labels: int
    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    joined: NDArray[np.uint8]
    at_kth: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    sides: NDArray[np.int8]

    @classmethod
    def made(cls, columns: NDArray[np.int32], positives: Positives, n_labels: int) -> Rankings:
        """Of rankings already made, of all rows: their ties are decided, by whoever made them."""
        rows = np.flatnonzero(positives.counts)
        part = positives.take(rows)
        return cls(
            n_rows=len(columns),
            n_labels=n_labels,
            rows=rows,
            columns=np.ascontiguousarray(columns[rows]),
            joined=np.zeros((rows.size, columns.shape[1]), np.uint8),
            at_kth=np.ones(rows.size, np.int64),
            indptr=part.indptr,
            indices=part.indices,
            sides=np.zeros(part.indices.size, np.int8),
        )

    @property
    def decided_by_ties(self) -> NDArray[np.bool_]:
        """Rows in which more cells tie with the last place than there are places left."""
        k = self.columns.shape[1]
        start = np.maximum.accumulate(np.where(self.joined, 0, np.arange(k)), axis=1)[:, -1]
        return np.asarray(self.at_kth > k - start)


class RankingTally:
    """Ranks the rows that have a true label, and keeps what every metric at K needs."""

    def __init__(self, k: int, n_labels: int) -> None:
        self.k, self.n_labels = k, n_labels
        self.n_rows = 0
        self.blocks: list[_RankedBlock] = []

    def fresh(self) -> Self:
        """An empty tally of the same kind."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"k": self.k, "n_labels": self.n_labels}

    def state(self) -> State:
        """The blocks one after the other, with how many rows and cells each has."""
        whole = map(np.concatenate, zip(_no_rows(self.k), *self.blocks, strict=True))
        sizes = [(block.rows.size, block.indices.size) for block in self.blocks]
        return {
            "n_rows": (np.array(self.n_rows), "add"),
            "sizes": (np.array(sizes, np.int64).reshape(-1, 2), "append"),
            **{
                name: (array, "append")
                for name, array in zip(_RankedBlock._fields, whole, strict=True)
            },
        }

    def restore(self, state: State) -> None:
        """Take over blocks."""
        self.n_rows = state["n_rows"][0].item()
        rows, cells = np.cumsum(state["sizes"][0], axis=0)[:-1].T
        of_cells = ("indices", "sides")
        parts = [
            np.split(state[name][0], cells if name in of_cells else rows)
            for name in _RankedBlock._fields
        ]
        self.blocks = [_RankedBlock(*block) for block in zip(*parts, strict=True)]

    def add(self, panel: Panel) -> None:
        """Rank one block."""
        from oddslip.kernels.hits import place_positives
        from oddslip.kernels.keys import largest_key
        from oddslip.kernels.topk import rank_keys

        positives = panel.positives()
        counts = positives.counts
        rows = np.flatnonzero(counts)
        keys = panel.keys()
        columns, best, at_kth = rank_keys(keys, self.k, rows)
        # Ranked rows show their largest key; rows that were passed over are looked at here.
        largest = best[:, 0].max(initial=0) if rows.size == panel.n_rows else largest_key(keys)
        if int(largest) > panel.limit:
            return self.add(panel.mended())
        indptr = np.concatenate([[0], np.cumsum(counts[rows])])
        sides = np.empty(positives.indices.size, np.int8)
        kth = np.ascontiguousarray(best[:, -1])
        place_positives(keys, rows, indptr, positives.indices, kth, sides)
        joined = np.zeros(best.shape, np.uint8)
        joined[:, 1:] = best[:, 1:] == best[:, :-1]
        self.n_rows += panel.n_rows
        self.blocks.append(
            _RankedBlock(
                rows=rows + panel.first_row,
                columns=columns,
                joined=joined,
                at_kth=at_kth,
                counts=counts[rows],
                indices=positives.indices,
                sides=sides,
            )
        )
        return None

    def merge(self, other: Self) -> None:
        """Take over another tally's rows."""
        self.n_rows += other.n_rows
        self.blocks += other.blocks

    def result(self) -> Rankings:
        """All rows with a true label, in row order."""
        # Blocks without such rows hold nothing.
        blocks = [block for block in self.blocks if block.rows.size]
        blocks.sort(key=lambda block: int(block.rows[0]))
        whole = _RankedBlock(*map(np.concatenate, zip(_no_rows(self.k), *blocks, strict=True)))
        return Rankings(
            n_rows=self.n_rows,
            n_labels=self.n_labels,
            rows=whole.rows,
            columns=whole.columns,
            joined=whole.joined,
            at_kth=whole.at_kth,
            indptr=np.concatenate([[0], np.cumsum(whole.counts)]),
            indices=whole.indices,
            sides=whole.sides,
        )


class _RankedBlock(NamedTuple):
    """The rows of a block with a true label; ``counts`` says how many of ``indices`` each has."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    joined: NDArray[np.uint8]
    at_kth: NDArray[np.int64]
    counts: NDArray[np.int64]
    indices: NDArray[np.int32]
    sides: NDArray[np.int8]


def _no_rows(k: int) -> _RankedBlock:
    return _RankedBlock(
        rows=np.empty(0, np.int64),
        columns=np.empty((0, k), np.int32),
        joined=np.empty((0, k), np.uint8),
        at_kth=np.empty(0, np.int64),
        counts=np.empty(0, np.int64),
        indices=np.empty(0, np.int32),
        sides=np.empty(0, np.int8),
    )
