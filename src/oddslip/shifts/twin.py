"""Two arms over the same cells: the direct shift between them, and the cost of ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip import DEFAULT_SEED
from oddslip.core.arguments import check_seed
from oddslip.core.panel import Kind, Panel, check_k
from oddslip.core.threads import check_all_rows
from oddslip.core.types import Array, Bools, Floats, LabelsLike, ScoresLike
from oddslip.errors import InvalidInput
from oddslip.shifts.odds import logit_block
from oddslip.sources import Source
from oddslip.sources.open import Nan, kind_for, open_rows
from oddslip.sources.views import ColumnSource, align_columns, align_rows, pair_blocks
from oddslip.tallies.logodds_histogram import saturated_key

EDGE = np.float64(1e-6)  # the direct shift ignores probabilities this close to 0 or 1
KEPT_CELLS = 2**25  # a quarter of a gigabyte


def direct_shift(
    weighted: ScoresLike,
    unweighted: ScoresLike,
    *,
    kind: Kind | None = None,
    unweighted_kind: Kind | None = None,
    kept_cells: int = KEPT_CELLS,
) -> Floats:
    """Median of weighted margin - unweighted margin per label, by the paper's definition.

    The median is over the cells whose probability is strictly inside (1e-6, 1 - 1e-6) in both
    arms. Further out a stored probability determines its log-odds poorly.

    Parameters
    ----------
    weighted, unweighted : anything of shape (n_rows, n_labels)
        The two arms: arrays, panels, sources or paths.
    kind, unweighted_kind : {"probability", "margin"}, optional
        Scale of each arm's scores. Default: probability, and the same kind for the twin.
    kept_cells : int
        Cells to hold in memory. With more cells than that, each pass takes some of the labels.

    Returns
    -------
    numpy.ndarray of shape (n_labels,)
        In nat; NaN for a label without such a cell.

    Examples
    --------
    >>> direct_shift([[0.75], [0.9]], [[0.5], [0.75]]).round(6).tolist()
    [1.098612]
    """
    arm = open_rows(weighted, kind=kind)
    twin = open_twin(unweighted, unweighted_kind, arm)
    width = max(1, kept_cells // arm.n_rows)
    tiles = np.split(np.arange(arm.n_labels), range(width, arm.n_labels, width))
    return np.concatenate(
        [_median_gaps(ColumnSource(arm, tile), ColumnSource(twin, tile)) for tile in tiles]
    )


def reorder_saturated(
    weighted: ScoresLike,
    order: Any,
    *,
    k: int,
    labels: LabelsLike = None,
    seed: int = DEFAULT_SEED,
    kind: Kind | None = None,
    order_kind: Kind | None = None,
) -> NDArray[np.int32]:
    """Rank the weighted scores with the saturated cells of each row reordered.

    The saturated cells stay at the top of the row. Among themselves they are ordered by another
    panel (the twin's order), by the true labels (an oracle, positives first), or at random. All
    other cells rank as before.

    Parameters
    ----------
    weighted : anything of shape (n_rows, n_labels)
        Scores whose saturated cells are reordered.
    order : anything of shape (n_rows, n_labels), "random", or None
        Scores that define the order, or "random". None if labels are given.
    k : int
        Slots per row.
    labels : optional
        True labels: positives first.
    seed : int
        Seed of the random order.
    kind, order_kind : {"probability", "margin"}, optional
        Scale of the scores. Default: probability, and the same kind for the order.

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
    arm = open_rows(weighted, labels, kind=kind)
    k = check_k(k, arm.n_labels)
    keyed: Iterator[tuple[Panel, Array]]
    if order is None:
        keyed = ((panel, panel.truths().astype(np.uint32)) for panel in arm.blocks())
    elif isinstance(order, str) and order == "random":
        dice = np.random.default_rng(check_seed(seed))
        keyed = (
            # Below 2^31, so that moving them up by one stays within their type.
            (panel, dice.integers(2**31, size=(panel.n_rows, panel.n_labels)).astype(np.uint32))
            for panel in arm.blocks()
        )
    else:
        twin = open_twin(order, order_kind, arm, what="weighted and order")
        keyed = ((panel, other.checked().keys()) for panel, other in pair_blocks(arm, twin))
    ranking = np.empty((arm.n_rows, k), np.int32)
    start = 0
    for panel, keys in keyed:
        ranking[start : start + panel.n_rows] = _rank(panel, keys, k)
        start += panel.n_rows
    check_all_rows(start, arm.n_rows)
    return ranking


def open_twin(
    scores: ScoresLike,
    kind: Kind | None,
    arm: Source,
    *,
    what: str = "weighted and unweighted scores",
    exclude: LabelsLike = None,
    nan: Nan = "refuse",
) -> Source:
    """Open the scores of a twin, with rows and labels in the order of the arm.

    Its kind defaults to the kind of the arm, unless a panel or source carries its own.
    """
    kind = kind_for(scores, arm.kind) if kind is None else kind
    sides = "scores", "other scores"
    twin = align_rows(arm, open_rows(scores, kind=kind, nan=nan, threads=arm.threads), sides)
    shapes = (arm.n_rows, arm.n_labels), (twin.n_rows, twin.n_labels)
    if shapes[0] != shapes[1]:
        raise InvalidInput(f"{what} must have the same shape, got {shapes[0]} and {shapes[1]}.")
    twin = align_columns(arm, twin, sides)
    return twin if exclude is None else open_rows(twin, exclude=exclude)


def _median_gaps(arm: Source, twin: Source) -> Floats:
    """Median of `log_odds_gap` of each label; NaN without a cell."""
    gaps = np.concatenate([log_odds_gap(one, other) for one, other in pair_blocks(arm, twin)])
    medians = np.full(arm.n_labels, np.nan)
    for label, column in enumerate(gaps.T):
        cells = column[~np.isnan(column)]
        if cells.size:
            medians[label] = np.median(cells)
    return medians


def log_odds_gap(one: Panel, other: Panel) -> Floats:
    """Difference of log-odds between two blocks; NaN where a cell is absent or at the edge."""
    one, other = one.checked(), other.checked()
    gap = logit_block(one)
    gap -= logit_block(other)
    for panel in (one, other):
        present = panel.present()
        if present is not None:
            gap[~present] = np.nan
        gap[~_inside(panel)] = np.nan
    return gap


def _inside(panel: Panel) -> Bools:
    """Cells away from 0 and 1. The edge is float64 for scores of any dtype."""
    if panel.kind == "probability":
        return np.asarray((panel.scores > EDGE) & (panel.scores < 1 - EDGE))
    return np.asarray(np.abs(panel.scores) < np.log1p(-EDGE) - np.log(EDGE))


def _rank(panel: Panel, order: Array, k: int) -> NDArray[np.int32]:
    """Rank the saturated cells by ``order``, then the others by their keys."""
    from oddslip.kernels.topk import rank_keys

    panel = panel.checked()
    keys = panel.keys()
    saturated = keys >= saturated_key(panel.scores.dtype, panel.kind)
    # A key of 0 ranks last; all others move up by one, which does not overflow.
    first = rank_keys(np.where(saturated, order + order.dtype.type(1), order.dtype.type(0)), k)[0]
    rest = rank_keys(np.where(saturated, keys.dtype.type(0), keys + keys.dtype.type(1)), k)[0]
    n_first = np.minimum(saturated.sum(axis=1, keepdims=True), k)
    slots = np.arange(k)
    return np.where(
        slots < n_first, first, np.take_along_axis(rest, np.maximum(slots - n_first, 0), axis=1)
    )
