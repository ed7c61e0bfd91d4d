"""The top K of every row, and the tally that keeps what metrics need of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from oddslip.core.labels import Positives
from oddslip.core.panel import Kind, Panel, SparsePanel, check_k, take_cells
from oddslip.core.results import frame_like, name_ranking
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Array, Bools, Ints, LabelsLike, ScoresLike
from oddslip.sources.open import Nan, open_rows


def rank(
    scores: ScoresLike,
    *,
    k: int,
    kind: Kind | None = None,
    label_names: Sequence[str] | None = None,
    exclude: LabelsLike = None,
    nan: Nan = "refuse",
    names: bool = False,
    with_scores: bool = False,
    threads: int | None = None,
) -> Any:
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
    exclude : optional
        Labels of each row that may not be shown, because it has them already or must not have
        them: a scipy.sparse matrix of the shape of the scores, lists of label indices or names, or
        a file of either. They take no slot.
    nan : {"refuse", "absent"}
        What a score that is NaN means: an error, or that its label is no candidate of the row.
    names : bool
        Names of labels instead of their indices; None where a slot is empty. Of a pandas frame, a
        frame with its index and the columns label_1 to label_k.
    with_scores : bool
        Also the scores of what is shown: a pair of arrays; or of frames, with the columns score_1
        to score_k in the second.
    threads : int, optional
        Threads to use; all available cores by default.

    Returns
    -------
    ndarray of int32, shape (n_rows, k)
        Label indices. Equal scores rank the lower index first. A row with fewer than k labels to
        show has -1 in its last slots, and NaN for their scores. Of a Spark table, a DataFrame: its
        row ids, and ``top``, a list of (label, score) each.

    Examples
    --------
    >>> rank([[0.9, 0.2, 0.6], [0.5, 0.5, 0.1]], k=2)
    array([[0, 2],
           [0, 1]], dtype=int32)
    >>> rank([[0.9, 0.2, 0.6], [0.5, 0.5, 0.1]], k=2, exclude=[[0], []])
    array([[2, 1],
           [0, 1]], dtype=int32)
    >>> import pandas as pd
    >>> scores = pd.DataFrame([[0.9, 0.2, 0.6]], index=["ann"], columns=["fig", "plum", "pear"])
    >>> rank(scores, k=2, names=True)
        label_1 label_2
    ann     fig    pear
    """
    source = open_rows(
        scores, kind=kind, label_names=label_names, exclude=exclude, nan=nan, threads=threads
    )
    k = check_k(k, source.n_labels)
    if not source.ordered:
        return source.rank(k)
    ranking = np.empty((source.n_rows, k), np.int32)
    shown_scores = np.empty((source.n_rows, k), source.dtype) if with_scores else None

    def rank_block(panel: Panel) -> tuple[NDArray[np.int32], Array | None]:
        columns = rank_panel(panel, k)
        return columns, take_cells(panel, columns) if with_scores else None

    for first, (columns, cells) in source.map(rank_block, what="ranking rows"):
        ranking[first : first + len(columns)] = columns
        if shown_scores is not None:
            shown_scores[first : first + len(columns)] = cells
    labels = name_ranking(ranking, source.label_names, scores) if names else ranking
    if shown_scores is None:
        return labels
    return labels, frame_like(scores, shown_scores, "score") if names else shown_scores


def rank_panel(panel: Panel, k: int) -> NDArray[np.int32]:
    """The top k of every row of one block, checked on the way; -1 where labels are too few."""
    from oddslip.kernels.topk import rank_keys, rank_lists

    columns: NDArray[np.int32]
    if isinstance(panel, SparsePanel):
        columns, _, _ = rank_lists(*panel.positions, panel.cell_keys(), k)
        return columns
    columns, best, _ = rank_keys(panel.keys(), k, None, panel.absent)
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
    rows: Ints
    columns: NDArray[np.int32]
    joined: NDArray[np.uint8]
    at_kth: Ints
    indptr: Ints
    indices: NDArray[np.int32]
    sides: NDArray[np.int8]

    @classmethod
    def of(cls, columns: NDArray[np.int32], positives: Positives, n_labels: int) -> Rankings:
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
    def decided_by_ties(self) -> Bools:
        """Rows in which more cells tie with the last place than there are places left."""
        k = self.columns.shape[1]
        start = np.maximum.accumulate(np.where(self.joined, 0, np.arange(k)), axis=1)[:, -1]
        # A row with an empty slot shows all it has.
        return np.asarray((self.at_kth > k - start) & (self.columns[:, -1] >= 0))


def rank_rows(panel: Panel, k: int) -> Rankings:
    """Rankings of one block."""
    from oddslip.kernels.hits import place_positives
    from oddslip.kernels.keys import largest_key
    from oddslip.kernels.topk import rank_keys, rank_lists

    positives = panel.positives()
    rows = np.flatnonzero(positives.counts)
    counts = positives.counts[rows]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    if isinstance(panel, SparsePanel):
        keys = panel.cell_keys()
        columns, best, at_kth = rank_lists(*panel.positions, keys, k, rows)
        own_keys = keys[positives.among(panel.positions, panel.n_labels)]
        last = np.repeat(_last_shown(columns, best), counts)
        sides = (own_keys > last).astype(np.int8) - (own_keys < last)
    else:
        keys, absent = panel.keys(), panel.absent
        columns, best, at_kth = rank_keys(keys, k, rows, absent)
        # Ranked rows show their largest key; rows that were passed over are looked at here.
        all_ranked = rows.size == panel.n_rows and absent is None
        largest = best[:, 0].max(initial=0) if all_ranked else largest_key(keys)
        if int(largest) > panel.limit:
            return rank_rows(panel.mended(), k)
        sides = np.empty(positives.indices.size, np.int8)
        place_positives(keys, rows, indptr, positives.indices, _last_shown(columns, best), sides)
    joined = np.zeros(best.shape, np.uint8)
    joined[:, 1:] = best[:, 1:] == best[:, :-1]
    return Rankings(
        n_rows=panel.n_rows,
        n_labels=panel.n_labels,
        rows=rows + panel.first_row,
        columns=columns,
        joined=joined,
        at_kth=at_kth,
        indptr=indptr,
        indices=positives.indices,
        sides=sides,
    )


class RankingTally(MergeableTally):
    """Ranks the rows that have a true label, and keeps what every metric at K needs.

    Each of `PARTS` is a list of arrays, one of each block: what `Rankings` says of them, but
    ``counts`` of the positives in place of ``indptr``.
    """

    PARTS = ("rows", "columns", "joined", "at_kth", "counts", "indices", "sides")
    JOINED: ClassVar = {"n_rows": "add", **dict.fromkeys(PARTS, "append")}

    def __init__(self, k: int, n_labels: int) -> None:
        self.k, self.n_labels, self.n_rows = k, n_labels, 0
        self.rows: list[Ints] = [np.empty(0, np.int64)]
        self.columns: list[NDArray[np.int32]] = [np.empty((0, k), np.int32)]
        self.joined: list[NDArray[np.uint8]] = [np.empty((0, k), np.uint8)]
        self.at_kth: list[Ints] = [np.empty(0, np.int64)]
        self.counts: list[Ints] = [np.empty(0, np.int64)]
        self.indices: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
        self.sides: list[NDArray[np.int8]] = [np.empty(0, np.int8)]

    def add(self, panel: Panel) -> None:
        """Rank one block."""
        rankings = rank_rows(panel, self.k)
        self.n_rows += rankings.n_rows
        self.counts.append(np.diff(rankings.indptr))
        for part in self.PARTS:
            if part != "counts":
                getattr(self, part).append(getattr(rankings, part))

    def result(self) -> Rankings:
        """All rows with a true label, in row order."""
        rows, columns, joined, at_kth, counts, indices, sides = (
            np.concatenate(getattr(self, part)) for part in self.PARTS
        )
        order = np.argsort(rows, kind="stable")
        places: Any = np.arange(indices.size)
        cells = Positives(np.concatenate([[0], np.cumsum(counts)]), places).take(order)
        return Rankings(
            n_rows=self.n_rows,
            n_labels=self.n_labels,
            rows=rows[order],
            columns=columns[order],
            joined=joined[order],
            at_kth=at_kth[order],
            indptr=cells.indptr,
            indices=indices[cells.indices],
            sides=sides[cells.indices],
        )


def _last_shown(columns: NDArray[np.int32], best: Array) -> Array:
    """The key of the last label that each row shows."""
    if (columns[:, -1] >= 0).all():
        return np.ascontiguousarray(best[:, -1])
    last = np.maximum((columns >= 0).sum(axis=1) - 1, 0)
    return np.ascontiguousarray(best[np.arange(len(best)), last])
