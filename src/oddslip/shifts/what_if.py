"""What-if: the ranking of an ideal weighted model, computed from unweighted scores."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oddslip.core.arguments import as_numbers
from oddslip.core.panel import Kind, Panel, check_k
from oddslip.core.results import plain
from oddslip.core.tally import MergeableTally
from oddslip.core.types import Array, Bools, Floats, Ints, JsonObject, LabelsLike, ScoresLike
from oddslip.core.weights import check_weights
from oddslip.errors import InvalidInput
from oddslip.sources.open import open_rows


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """Effect of ideal weights on the top K.

    Attributes
    ----------
    ranking : numpy.ndarray of shape (n_rows, k)
        Labels by unweighted log-odds + ln w_j, best first.
    mean_overlap : float
        Labels of the top k that are also in the unweighted top k; mean over rows.
    share_changed : float
        Share of rows whose top k, as a set, differs from the unweighted one.
    hits, unweighted_hits : float or None
        True labels in the top k with and without weights, mean over rows; None without labels.
    """

    ranking: NDArray[np.int32]
    mean_overlap: float
    share_changed: float
    hits: float | None = None
    unweighted_hits: float | None = None

    def to_dict(self) -> JsonObject:
        """All fields as lists and numbers."""
        return plain({field.name: getattr(self, field.name) for field in fields(self)})  # type: ignore[no-any-return]


def what_if(
    unweighted: ScoresLike,
    weights: ArrayLike,
    labels: LabelsLike = None,
    *,
    k: int,
    kind: Kind | None = None,
    threads: int | None = None,
) -> WhatIf:
    """Rank by unweighted log-odds + ln w_j, the ideal effect of training with these weights.

    Probabilities are clipped at 1e-12. A weight common to all labels does not change the order,
    even of clipped cells.

    Parameters
    ----------
    unweighted : anything of shape (n_rows, n_labels)
        Scores of the unweighted model: an array, a panel, a source or a path.
    weights : array-like of shape (n_labels,)
        Positive and finite.
    labels : optional
        True labels, to count the hits of both rankings.
    k : int
        Slots per row.
    kind : {"probability", "margin"}, optional
        Scale of the scores; default: probability.
    threads : int, optional
        Threads to use; default: all available cores.

    Returns
    -------
    WhatIf

    Examples
    --------
    >>> ideal = what_if([[0.6, 0.5, 0.1]], [1.0, 1.0, 20.0], k=2)
    >>> ideal.ranking.tolist(), ideal.mean_overlap, ideal.share_changed
    ([[2, 0]], 1.0, 1.0)
    """
    source = open_rows(unweighted, labels, kind=kind, threads=threads)
    k = check_k(k, source.n_labels)
    weight = check_weights(weights, source.n_labels, label_names=source.label_names)
    return source.run(WhatIfTally(weight, k, source.has_labels)).result()


def overlap(ranking: ArrayLike, other: ArrayLike) -> Ints:
    """Number of items that two rankings share in each row.

    Parameters
    ----------
    ranking, other : array-like of int, shape (n_rows, k)
        No item twice in a row; -1 where a slot is empty.

    Returns
    -------
    numpy.ndarray of int64, shape (n_rows,)

    Examples
    --------
    >>> overlap([[0, 1], [2, 3]], [[1, 0], [3, 4]]).tolist()
    [2, 1]
    """
    one, two = np.asarray(ranking), np.asarray(other)
    are_integers = one.dtype.kind in "iu" and two.dtype.kind in "iu"
    if one.ndim != 2 or one.shape != two.shape or not are_integers:
        raise InvalidInput(
            "rankings must be whole numbers of one shape (rows, k), "
            f"got {one.dtype} {one.shape} and {two.dtype} {two.shape}."
        )
    for items in (one, two):
        ordered = np.sort(items, axis=1)
        same = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        has_duplicate = same.any(axis=1)
        if has_duplicate.any():
            row = int(has_duplicate.argmax())
            raise InvalidInput(f"a ranking must not show an item twice, got one at row {row}.")
    return _count_shared(one, two)


def flips(
    margin_j: ArrayLike, margin_k: ArrayLike, weight_j: ArrayLike, weight_k: ArrayLike
) -> Bools:
    """Whether the weights strictly reverse the order of a pair of labels.

    If label j leads by its unweighted margin, the order flips where margin_j - margin_k
    < ln w_k - ln w_j; and vice versa if it trails. Equal margins never flip.

    Parameters
    ----------
    margin_j, margin_k : array-like
        Unweighted margins of both labels.
    weight_j, weight_k : array-like
        Weights of both labels, above 0.

    Returns
    -------
    numpy.ndarray of bool
        The arguments broadcast.

    Examples
    --------
    >>> flips([2.0, 2.0], [1.0, 1.0], 1.0, [2.0, 3.0]).tolist()
    [False, True]
    """
    gap = as_numbers("margin_j", margin_j) - as_numbers("margin_k", margin_k)
    weights = as_numbers("weight_j", weight_j), as_numbers("weight_k", weight_k)
    if not all((weight > 0).all() for weight in weights):
        raise InvalidInput("weights must be above 0, got one that is not.")
    pull = np.log(weights[1]) - np.log(weights[0])
    reversed_pair: Bools = np.where(gap > 0, gap < pull, (gap < 0) & (gap > pull))
    return reversed_pair


class WhatIfTally(MergeableTally):
    """Rankings of blocks of rows with and without weights; stores the weighted ones."""

    JOINED: ClassVar = {
        **dict.fromkeys(("shared", "changed", "hits", "unweighted_hits"), "add"),
        **dict.fromkeys(("rows", "rankings"), "append"),
    }

    def __init__(self, weights: Floats, k: int, has_labels: bool = False) -> None:
        self.weights, self.k, self.has_labels = weights, k, has_labels
        self.common = bool((weights == weights[0]).all())
        self.rows: list[Ints] = []
        self.rankings: list[NDArray[np.int32]] = []
        self.shared = self.changed = self.hits = self.unweighted_hits = 0

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
            truth = panel.truths().view(np.bool_)
            hits = np.take_along_axis(truth, ranking, 1) & (ranking >= 0)
            self.hits += int(hits.sum())
            plain_hits = np.take_along_axis(truth, plain, 1) & (plain >= 0)
            self.unweighted_hits += int(plain_hits.sum())
        self.rows.append(np.arange(panel.first_row, panel.first_row + panel.n_rows))
        self.rankings.append(ranking)

    def _shifted(self, panel: Panel) -> Array:
        """Keys of the shifted scores. Odds rank as log-odds do, without a logarithm."""
        from oddslip.kernels.keys import keys_of
        from oddslip.kernels.logits import weigh_odds

        if panel.kind == "margin":
            shifted = np.add(panel.scores, np.log(self.weights), order="C", dtype=np.float64)
            keys: Array = keys_of(shifted, "margin")
            return keys
        odds = np.empty(panel.scores.shape)
        # The largest weight is scaled to 1, so that no odds overflow.
        weigh_odds(np.ascontiguousarray(panel.scores), self.weights / self.weights.max(), odds)
        return odds.view(np.uint64)

    def result(self) -> WhatIf:
        """The ranking in row order, and how it differs."""
        ranking = np.concatenate(self.rankings)[np.argsort(np.concatenate(self.rows))]
        rows = len(ranking)
        return WhatIf(
            ranking=ranking,
            mean_overlap=self.shared / rows,
            share_changed=self.changed / rows,
            hits=self.hits / rows if self.has_labels else None,
            unweighted_hits=self.unweighted_hits / rows if self.has_labels else None,
        )


def _count_shared(one: Array, two: Array) -> Ints:
    both = np.sort(np.concatenate([one, two], axis=1), axis=1)
    return np.asarray(((both[:, 1:] == both[:, :-1]) & (both[:, 1:] >= 0)).sum(axis=1))
