"""The direct shift: weighted margin minus unweighted margin, where the twin is at hand.

The median of a label needs all its cells in order, but not in memory: cells are counted in bins,
the bin that holds the median becomes the next range, and once few enough are left they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.panels import Kind
from oddslip.shifts.odds import logit_block
from oddslip.shifts.pairs import check_pair, open_twin, pair_blocks
from oddslip.shifts.thresholds import saturated_key
from oddslip.sources import Source, open_source

KEPT_CELLS = 2**25  # a quarter of a gigabyte
BIN_BITS = 9  # each further pass narrows a range by this many bits of a key
TOP = np.uint64(0xFFDFFFFFFFFFFFFF)  # key of the largest finite difference

Keys = NDArray[np.uint64]


def direct_shift(
    weighted: Any,
    unweighted: Any,
    *,
    kind: Kind | None = None,
    unweighted_kind: Kind | None = None,
    kept_cells: int = KEPT_CELLS,
) -> NDArray[np.float64]:
    """Per label, the median of weighted margin - unweighted margin over unsaturated cells.

    Parameters
    ----------
    weighted, unweighted : anything of shape (n_rows, n_labels)
        The two arms: arrays, panels, sources or paths.
    kind, unweighted_kind : {"probability", "margin"}, optional
        What the scores are; probabilities unless said otherwise, and the twin of the same kind.
    kept_cells : int
        How many cells may be held at once. With more cells than that, further passes narrow
        down where the medians are.

    Returns
    -------
    numpy.ndarray of shape (n_labels,)
        In nat. NaN for a label in which every cell is saturated in one arm or the other.

    Examples
    --------
    >>> direct_shift([[0.75], [0.9]], [[0.5], [0.75]]).round(6).tolist()
    [1.098612]
    """
    arm = open_source(weighted, kind=kind)
    twin = open_twin(unweighted, unweighted_kind, arm)
    check_pair(arm, twin, "weighted and unweighted scores")
    if arm.n_rows * arm.n_labels <= kept_cells:
        return _median_of_rows(np.concatenate(list(_differences(arm, twin))))
    return _stream_median(arm, twin, kept_cells)


def _differences(arm: Source, twin: Source) -> Iterator[NDArray[np.float64]]:
    """Differences block by block; NaN where either arm is saturated."""
    for pair in pair_blocks(arm, twin):
        one, other = (panel.checked() for panel in pair)
        gap = logit_block(one)
        gap -= logit_block(other)
        for panel in (one, other):
            gap[panel.keys() >= saturated_key(panel.scores.dtype, panel.kind)] = np.nan
        yield gap


def _median_of_rows(gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    medians = np.full(gaps.shape[1], np.nan)
    for label, column in enumerate(gaps.T):
        cells = column[~np.isnan(column)]
        if cells.size:
            medians[label] = np.median(cells)
    return medians


def _stream_median(arm: Source, twin: Source, kept_cells: int) -> NDArray[np.float64]:
    """The same medians in bounded memory. Ranges are of keys: whole numbers, so none is lost."""
    from oddslip.kernels.keys import keys_of, scores_of

    # (key of every difference, whether it counts), block by block, as often as asked.
    def blocks() -> Iterator[tuple[Keys, NDArray[np.bool_]]]:
        for gap in _differences(arm, twin):
            yield keys_of(gap, "margin"), ~np.isnan(gap)

    total = sum((known.sum(axis=0) for _, known in blocks()), np.zeros(arm.n_labels, np.int64))
    lower = _select(blocks, np.maximum(total - 1, 0) // 2, total, kept_cells)
    lower[total == 0] = 0
    # The upper middle cell is the lower one again, or the next above it.
    reached = np.zeros_like(total)
    above = np.full_like(lower, TOP)
    for keys, known in blocks():
        higher = known & (keys > lower)
        reached += (known & ~higher).sum(axis=0)
        above = np.minimum(above, np.where(higher, keys, TOP).min(axis=0))
    upper = np.where(reached > total // 2, lower, above)
    middle = scores_of(lower, "margin") / 2 + scores_of(upper, "margin") / 2
    return np.where(total > 0, middle, np.nan)


def _select(
    blocks: Callable[[], Iterator[tuple[Keys, NDArray[np.bool_]]]],
    rank: NDArray[np.int64],
    total: NDArray[np.int64],
    kept_cells: int,
) -> Keys:
    """The key of each label that has ``rank`` keys before it in order."""
    labels = np.arange(rank.size)
    rank, left = rank.copy(), total.copy()
    low = np.zeros(rank.size, np.uint64)
    bits = 64  # every range is 2^bits wide
    while bits > 0 and left.sum() > kept_cells:
        shift = np.uint64(max(0, bits - BIN_BITS))
        counts = np.zeros((rank.size, 2**BIN_BITS), np.int64)
        for keys, known in blocks():
            place = (keys - low) >> shift
            inside = known & (keys >= low) & (place < 2**BIN_BITS)
            flat = (place.astype(np.int64) + labels * 2**BIN_BITS)[inside]
            counts += np.bincount(flat, minlength=counts.size).reshape(counts.shape)
        before = np.cumsum(counts, axis=1)
        found = np.minimum((before <= rank[:, None]).sum(axis=1), 2**BIN_BITS - 1)
        rank -= (before - counts)[labels, found]
        left = counts[labels, found]
        low += found.astype(np.uint64) << shift
        bits = int(shift)
    if bits == 0:
        return low
    kept: list[list[Keys]] = [[] for _ in labels]
    widest = np.uint64(2**bits - 1)
    for keys, known in blocks():
        inside = known & (keys >= low) & (keys - low <= widest)
        for label in np.flatnonzero(inside.any(axis=0)):
            kept[label].append(keys[inside[:, label], label])
    for label in np.flatnonzero(total):
        low[label] = np.partition(np.concatenate(kept[label]), rank[label])[rank[label]]
    return low
