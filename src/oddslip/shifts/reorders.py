"""What the ties cost: the weighted ranking with its saturated cells put in another order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.errors import InvalidInput
from oddslip.panels import Kind, Panel, check_k
from oddslip.shifts.pairs import check_pair, open_twin, pair_blocks
from oddslip.shifts.thresholds import saturated_key
from oddslip.sources import open_source


def reorder_saturated(
    weighted: Any,
    order: Any,
    *,
    k: int,
    labels: Any = None,
    kind: Kind | None = None,
    order_kind: Kind | None = None,
) -> NDArray[np.int32]:
    """Rank the weighted scores, the saturated cells of a row in an order of their own.

    The saturated cells keep their places at the top of the row and change them among themselves:
    by another panel (the twin's order), or by the true labels (an oracle, positives first).
    All other cells rank as before.

    Parameters
    ----------
    weighted : anything of shape (n_rows, n_labels)
        Scores whose saturated cells are put in order.
    order : anything of shape (n_rows, n_labels), or None
        Scores that say the order. None if labels are given.
    k : int
        Slots per row.
    labels : optional
        What was true. Needed where order is None.
    kind, order_kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise, and the order of the same kind.

    Returns
    -------
    numpy.ndarray of shape (n_rows, k)
        Labels, best first.

    Examples
    --------
    >>> reorder_saturated([[1.0, 1.0, 0.7]], [[0.2, 0.3, 0.9]], k=3).tolist()
    [[1, 0, 2]]
    >>> reorder_saturated([[1.0, 1.0, 0.7]], None, k=2, labels=[[0, 1, 1]]).tolist()
    [[1, 0]]
    """
    if (order is None) == (labels is None):
        raise InvalidInput("either order or labels must be given, and not both.")
    arm = open_source(weighted, labels, kind=kind)
    k = check_k(k, arm.n_labels)
    ranking = np.empty((arm.n_rows, k), np.int32)
    start = 0
    if order is None:
        for panel in arm.blocks():
            ranking[start : start + panel.n_rows] = _rank(panel, _truth_keys(panel), k)
            start += panel.n_rows
        return ranking
    twin = open_twin(order, order_kind, arm)
    check_pair(arm, twin, "weighted and order")
    for panel, other in pair_blocks(arm, twin):
        ranking[start : start + panel.n_rows] = _rank(panel, other.checked().keys(), k)
        start += panel.n_rows
    return ranking


def _truth_keys(panel: Panel) -> NDArray[Any]:
    positives = panel.positives()
    keys = np.zeros((panel.n_rows, panel.n_labels), np.uint32)
    keys[np.repeat(np.arange(panel.n_rows), positives.counts), positives.indices] = 1
    return keys


def _rank(panel: Panel, order: NDArray[Any], k: int) -> NDArray[np.int32]:
    """Saturated cells by the order, then the others by their own keys."""
    panel = panel.checked()
    from oddslip.kernels.topk import rank_keys

    keys = panel.keys()
    saturated = keys >= saturated_key(panel.scores.dtype, panel.kind)
    # A key of 0 stands for "not here"; all others move up by one, for which there is room.
    first = rank_keys(np.where(saturated, order + order.dtype.type(1), order.dtype.type(0)), k)[0]
    rest = rank_keys(np.where(saturated, keys.dtype.type(0), keys + keys.dtype.type(1)), k)[0]
    n_first = np.minimum(saturated.sum(axis=1, keepdims=True), k)
    slots = np.arange(k)
    return np.where(
        slots < n_first, first, np.take_along_axis(rest, np.maximum(slots - n_first, 0), axis=1)
    )
