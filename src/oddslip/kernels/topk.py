"""The K highest keys of each row, in one pass, whatever order the row is in.

A long row is cut into segments of 16 lanes x 8 cells, and segments into groups of 8. One vectorised
sweep keeps the largest key of each lane of each segment, then of each group, then of the row. The
K-th largest of the 16 lane maxima is a *floor*: at least K cells reach it, so only lanes that reach
it are looked into, about K of them. That bounds the work for sorted rows as well as for random
ones. A row in which many lanes tie at the floor (saturated scores) takes the first columns at the
floor instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.kernels.compiling import called, inlined, kernel

LANES = 16
DEPTH = 8
SEGMENT = LANES * DEPTH
LONG_ROW = 4 * SEGMENT  # below this the sweep does not pay


@inlined
def _offer(key, column, best, columns, filled, k):  # type: ignore[no-untyped-def]
    """Offer a cell to the k best so far: higher key first, then lower column."""
    if filled < k:
        place = filled
        filled += 1
    elif key > best[k - 1] or (key == best[k - 1] and column < columns[k - 1]):
        place = k - 1
    else:
        return filled
    while place > 0 and (
        best[place - 1] < key or (best[place - 1] == key and columns[place - 1] > column)
    ):
        best[place] = best[place - 1]
        columns[place] = columns[place - 1]
        place -= 1
    best[place] = key
    columns[place] = column
    return filled


@inlined
def _highest(cells, start, depth, out, at):  # type: ignore[no-untyped-def]
    """The largest of each lane among ``depth`` steps of cells from ``start`` on."""
    for lane in range(LANES):
        top = cells[start + lane]
        for step in range(1, depth):
            top = max(top, cells[start + step * LANES + lane])
        out[at + lane] = top


@called
def _sweep(row, lanes, groups, tops):  # type: ignore[no-untyped-def]
    """Fill the maxima of lanes, groups and of the row. What is past the row's end stays 0."""
    n_labels = row.shape[0]
    n_whole = n_labels // SEGMENT
    for segment in range(n_whole):
        _highest(row, segment * SEGMENT, DEPTH, lanes, segment * LANES)
    last = n_whole * LANES
    for lane in range(LANES):
        lanes[last + lane] = 0
    for start in range(n_whole * SEGMENT, n_labels - LANES + 1, LANES):
        for lane in range(LANES):
            lanes[last + lane] = max(lanes[last + lane], row[start + lane])
    for column in range(n_labels // LANES * LANES, n_labels):
        lane = column % LANES
        lanes[last + lane] = max(lanes[last + lane], row[column])
    for group in range(groups.shape[0] // LANES):
        _highest(lanes, group * SEGMENT, DEPTH, groups, group * LANES)
    for lane in range(LANES):
        tops[lane] = groups[lane]
    for start in range(LANES, groups.shape[0], LANES):
        for lane in range(LANES):
            tops[lane] = max(tops[lane], groups[start + lane])


@called
def _find_floor(tops, k):  # type: ignore[no-untyped-def]
    """The k-th largest of the lanes' maxima: the least that fewer than k others exceed."""
    highest = tops[0]
    for lane in range(1, LANES):
        highest = max(highest, tops[lane])
    floor = highest
    for lane in range(LANES):
        above = 0
        for other in range(LANES):
            above += tops[other] > tops[lane]
        floor = min(floor, tops[lane] if above < k else highest)
    return floor


@called
def _collect(row, threshold, lanes, flags, words, starts, hits, cells):  # type: ignore[no-untyped-def]
    """Columns of the cells that reach the threshold, appended without a branch per cell."""
    n_labels = row.shape[0]
    n_lanes = (n_labels + SEGMENT - 1) // SEGMENT * LANES
    for lane in range(n_lanes):
        flags[lane] = lanes[lane] >= threshold
    n_words = 0
    for word in range(n_lanes // 8):
        starts[n_words] = 8 * word
        n_words += words[word] != 0
    n_hits = 0
    for word in range(n_words):
        start = starts[word]
        for lane in range(start, start + 8):
            hits[n_hits] = lane
            n_hits += flags[lane]
    n_cells = 0
    for hit in range(n_hits):
        first = hits[hit] // LANES * SEGMENT + hits[hit] % LANES
        for column in range(first, min(first + SEGMENT, n_labels), LANES):
            cells[n_cells] = column
            n_cells += row[column] >= threshold
    return n_cells


@inlined
def _long_row(  # type: ignore[no-untyped-def]
    row, k, lanes, groups, tops, flags, words, starts, hits, cells, best, columns
):
    """Top k of one long row; returns how many cells of the row equal the k-th."""
    _sweep(row, lanes, groups, tops)
    floor = _find_floor(tops, k)
    reaching = 0
    for lane in range(LANES):
        reaching += tops[lane] >= floor
    # More than k lanes reach the floor: a tie there. Look above it first, then fill from the left.
    threshold = floor + 1 if reaching > k else floor
    n_cells = _collect(row, threshold, lanes, flags, words, starts, hits, cells)
    filled = 0
    for cell in range(n_cells - 1, -1, -1):  # from the right: an ascending row comes best first
        column = cells[cell]
        filled = _offer(row[column], column, best, columns, filled, k)
    at_kth = 0
    if filled == k:
        for cell in range(n_cells):
            at_kth += row[cells[cell]] == best[k - 1]
        return at_kth
    column = 0
    while filled < k:
        if row[column] == floor:
            best[filled] = floor
            columns[filled] = column
            filled += 1
        column += 1
    for column in range(row.shape[0]):
        at_kth += row[column] == floor
    return at_kth


@inlined
def _short_row(row, k, best, columns):  # type: ignore[no-untyped-def]
    """Top k of one short row, or for large k; returns how many cells equal the k-th."""
    for place in range(k):
        best[place] = 0
    # From the right, so that among equals the lower column comes last and takes the place.
    for column in range(row.shape[0] - 1, -1, -1):
        key = row[column]
        if key < best[k - 1]:
            continue
        moving = column
        for place in range(k):
            swap = key >= best[place]
            other_key = best[place]
            other = columns[place]
            best[place] = key if swap else other_key
            columns[place] = moving if swap else other
            key = other_key if swap else key
            moving = other if swap else moving
    at_kth = 0
    for column in range(row.shape[0]):
        at_kth += row[column] == best[k - 1]
    return at_kth


_OUT = "int64, int32[:,::1], {key}[:,::1], int64[::1])"


@kernel(
    "void(const uint32[:,::1], const int64[::1], " + _OUT.format(key="uint32"),
    "void(const uint64[:,::1], const int64[::1], " + _OUT.format(key="uint64"),
)
def rank_rows(keys: Any, rows: Any, k: Any, columns: Any, best: Any, at_kth: Any) -> None:
    """Columns and keys of the k highest cells of the given rows, best first.

    Equal keys rank the lower column first. ``at_kth`` counts the cells of the row that equal its
    k-th; where it exceeds those shown, the top k is decided by ties.
    """
    n_labels = keys.shape[1]
    n_groups = n_labels // (SEGMENT * DEPTH) + 1
    lanes = np.zeros(n_groups * SEGMENT, keys.dtype)
    groups = np.empty(n_groups * LANES, keys.dtype)
    tops = np.empty(LANES, keys.dtype)
    flags = np.empty(lanes.size, np.uint8)
    words = flags.view(np.uint64)
    starts = np.empty(lanes.size // 8 + 1, np.int32)
    hits = np.empty(lanes.size + 1, np.int32)
    cells = np.empty(n_labels + 1, np.int32)
    long = n_labels >= LONG_ROW and k <= LANES // 2
    for i in range(rows.shape[0]):
        row = keys[rows[i]]
        if long:
            at_kth[i] = _long_row(
                row, k, lanes, groups, tops, flags, words, starts, hits, cells, best[i], columns[i]
            )
        else:
            at_kth[i] = _short_row(row, k, best[i], columns[i])


def rank_keys(
    keys: NDArray[Any], k: int, rows: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int32], NDArray[Any], NDArray[np.int64]]:
    """What `rank_rows` fills in, for these rows or for all."""
    rows = np.arange(len(keys)) if rows is None else rows
    columns = np.empty((rows.size, k), np.int32)
    best = np.empty((rows.size, k), keys.dtype)
    at_kth = np.empty(rows.size, np.int64)
    rank_rows(keys, rows, k, columns, best, at_kth)
    return columns, best, at_kth
