"""What-if: the ranking an ideal weighted model would show, from the unweighted scores alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddslip.core.arguments import as_numbers
from oddslip.core.panel import Kind, Panel, check_k
from oddslip.core.results import plain
from oddslip.core.tally import State
from oddslip.core.weights import check_weights
from oddslip.errors import InvalidInput
from oddslip.sources import open_source


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """What the weights alone would do to the top K.

    Attributes
    ----------
    ranking : numpy.ndarray of shape (n_rows, k)
        Labels by unweighted log-odds + ln w_j, best first.
    mean_overlap : float
        Of the k labels of a row, how many the unweighted top k shows too; mean over rows.
    share_changed : float
        Share of rows whose top k, as a set, is not the unweighted one.
    hits, unweighted_hits : float or None
        True labels among the k, mean over rows, with and without weights; needs labels.
    """

    ranking: NDArray[np.int32]
    mean_overlap: float
    share_changed: float
    hits: float | None = None
    unweighted_hits: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers."""
        return plain({field.name: getattr(self, field.name) for field in fields(self)})  # type: ignore[no-any-return]


def what_if(
    unweighted: Any,
    weights: ArrayLike,
    labels: Any = None,
    *,
    k: int,
    kind: Kind | None = None,
    threads: int | None = None,
) -> WhatIf:
    """Rank by unweighted log-odds + ln w_j: what training with these weights should lead to.

    The shifted scores exist for one block of rows at a time. Probabilities are clipped at 1e-12.
    A weight common to all labels leaves the order as it is, clipped or not.

    Parameters
    ----------
    unweighted : anything of shape (n_rows, n_labels)
        Scores of the unweighted model: an array, a panel, a source or a path.
    weights : array-like of shape (n_labels,)
        Positive and finite.
    labels : optional
        What was true; counts the hits of both rankings.
    k : int
        Slots per row.
    kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise.
    threads : int, optional
        Threads to use; all cores available unless told.

    Examples
    --------
    >>> ideal = what_if([[0.6, 0.5, 0.1]], [1.0, 1.0, 20.0], k=2)
    >>> ideal.ranking.tolist(), ideal.mean_overlap, ideal.share_changed
    ([[2, 0]], 1.0, 1.0)
    """
    source = open_source(unweighted, labels, kind=kind)
    k = check_k(k, source.n_labels)
    weight = check_weights(weights, source.n_labels, label_names=source.label_names)
    return source.run(WhatIfTally(weight, k, source.has_labels), threads=threads).result()


def overlap(ranking: ArrayLike, other: ArrayLike) -> NDArray[np.int64]:
    """Items that both rankings show, counted per row.

    Parameters
    ----------
    ranking, other : array-like of int, shape (n_rows, k)
        No item twice in a row; -1 where a slot is empty.

    Examples
    --------
    >>> overlap([[0, 1], [2, 3]], [[1, 0], [3, 4]]).tolist()
    [2, 1]
    """
    one, two = np.asarray(ranking), np.asarray(other)
    whole = one.dtype.kind in "iu" and two.dtype.kind in "iu"
    if one.ndim != 2 or one.shape != two.shape or not whole:
        raise InvalidInput(
            "rankings must be whole numbers of one shape (rows, k), "
            f"got {one.dtype} {one.shape} and {two.dtype} {two.shape}."
        )
    for shown in (one, two):
        ordered = np.sort(shown, axis=1)
        same = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        twice = same.any(axis=1)
        if twice.any():
            raise InvalidInput(
                f"a ranking must not show an item twice, got one at row {int(twice.argmax())}."
            )
    return _count_shared(one, two)


def flips(
    margin_j: ArrayLike, margin_k: ArrayLike, weight_j: ArrayLike, weight_k: ArrayLike
) -> NDArray[np.bool_]:
    """Whether the weights reverse a pair of labels strictly; everything broadcasts.

    For a label j that is ahead by its unweighted margin, this is margin_j - margin_k
    < ln w_k - ln w_j; the other way round for one that is behind. Equal margins never flip.

    Examples
    --------
    >>> flips([2.0, 2.0], [1.0, 1.0], 1.0, [2.0, 3.0]).tolist()
    [False, True]
    """
    gap = as_numbers("margin_j", margin_j) - as_numbers("margin_k", margin_k)
    weights = as_numbers("weight_j", weight_j), as_numbers("weight_k", weight_k)
    if not all((each > 0).all() for each in weights):
        raise InvalidInput("weights must be above 0, got one that is not.")
    pull = np.log(weights[1]) - np.log(weights[0])
    reversed_pair: NDArray[np.bool_] = np.where(gap > 0, gap < pull, (gap < 0) & (gap > pull))
    return reversed_pair


class WhatIfTally:
    """Rankings of blocks of rows with and without weights; the first is kept."""

    def __init__(self, weights: NDArray[np.float64], k: int, has_labels: bool = False) -> None:
        self.weights, self.k, self.has_labels = weights, k, has_labels
        self.common = bool((weights == weights[0]).all())
        self.rankings: dict[int, NDArray[np.int32]] = {}
        self.shared = self.changed = self.hits = self.unweighted_hits = 0

    def empty_like(self) -> Self:
        """An empty tally for another thread."""
        return type(self)(**self.spec())

    def spec(self) -> dict[str, Any]:
        """The arguments of a fresh one."""
        return {"weights": self.weights, "k": self.k, "has_labels": self.has_labels}

    def state(self) -> State:
        """Rankings one after the other, with the first row and the rows of each; and counts."""
        places = [(first, len(block)) for first, block in self.rankings.items()]
        none = np.empty((0, self.k), np.int32)
        return {
            "places": (np.array(places, np.int64).reshape(-1, 2), "append"),
            "rankings": (np.concatenate([none, *self.rankings.values()]), "append"),
            "counts": (
                np.array([self.shared, self.changed, self.hits, self.unweighted_hits]), "add"
            ),
        }  # fmt: skip

    def restore(self, state: State) -> None:
        """Take over rankings and counts."""
        first, sizes = state["places"][0].T
        blocks = np.split(state["rankings"][0], np.cumsum(sizes)[:-1])
        self.rankings = dict(zip(first.tolist(), blocks, strict=False))
        self.shared, self.changed, self.hits, self.unweighted_hits = state["counts"][0].tolist()

    def add(self, panel: Panel) -> None:
        """Rank one block of rows both ways."""
        from oddslip.kernels.topk import rank_keys

        panel = panel.checked()
        absent = panel.absent
        plain = rank_keys(panel.keys(), self.k, None, absent)[0]
        ranking = plain
        if not self.common:
            ranking = rank_keys(self._shifted(panel), self.k, None, absent)[0]
        shared = _count_shared(plain, ranking)
        self.shared += int(shared.sum())
        self.changed += int((shared < (plain >= 0).sum(axis=1)).sum())
        if self.has_labels:
            truth = np.zeros((panel.n_rows, panel.n_labels), np.bool_)
            positives = panel.positives()
            truth[np.repeat(np.arange(panel.n_rows), positives.counts), positives.indices] = True
            hits = np.take_along_axis(truth, ranking, 1) & (ranking >= 0)
            self.hits += int(hits.sum())
            plain_hits = np.take_along_axis(truth, plain, 1) & (plain >= 0)
            self.unweighted_hits += int(plain_hits.sum())
        self.rankings[panel.first_row] = ranking

    def _shifted(self, panel: Panel) -> NDArray[Any]:
        """Keys of the shifted scores. Odds grow with log-odds and need no logarithm."""
        from oddslip.kernels.keys import keys_of
        from oddslip.kernels.logits import weigh_odds

        if panel.kind == "margin":
            shifted = np.add(panel.scores, np.log(self.weights), order="C", dtype=np.float64)
            keys: NDArray[Any] = keys_of(shifted, "margin")
            return keys
        odds = np.empty(panel.scores.shape)
        # The largest weight is scaled to 1, so that no odds leave float64.
        weigh_odds(np.ascontiguousarray(panel.scores), self.weights / self.weights.max(), odds)
        return odds.view(np.uint64)

    def merge(self, other: Self) -> None:
        """Take over what another tally has seen."""
        self.rankings |= other.rankings
        self.shared += other.shared
        self.changed += other.changed
        self.hits += other.hits
        self.unweighted_hits += other.unweighted_hits

    def result(self) -> WhatIf:
        """The ranking in row order, and how it differs."""
        ranking = np.concatenate([self.rankings[row] for row in sorted(self.rankings)])
        rows = len(ranking)
        return WhatIf(
            ranking=ranking,
            mean_overlap=self.shared / rows,
            share_changed=self.changed / rows,
            hits=self.hits / rows if self.has_labels else None,
            unweighted_hits=self.unweighted_hits / rows if self.has_labels else None,
        )


def _count_shared(one: NDArray[Any], two: NDArray[Any]) -> NDArray[np.int64]:
    both = np.sort(np.concatenate([one, two], axis=1), axis=1)
    return np.asarray(((both[:, 1:] == both[:, :-1]) & (both[:, 1:] >= 0)).sum(axis=1))
