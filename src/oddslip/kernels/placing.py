"""The place of every cell among the distinct keys of its label's positives.

A label with m distinct keys u_1 < ... < u_m has 2m + 1 *slots*: below u_1, at u_1, between u_1
and u_2, ..., at u_m, above u_m. For every slot the cells are counted and the largest key kept.
A *column* is a column of the scores; it belongs to a label, its own one or, for a pooled fit, the
only one.

Rows are taken in tiles, columns in strips as wide as a cache line. A strip is turned so that each
column lies in one piece; what lies below u_1, at u_m or above it is counted by vectorised sweeps.
The rest looks up a bucket of its bits and searches the few keys in there without a branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.kernels.buckets import squeeze
from oddslip.kernels.compiling import inlined, kernel

COUNT, LARGEST = 0, 1  # what a slot holds
STRIP = 16
TILE = 2048
PAD = 16  # columns of a strip a power of two apart would share one set of the cache


@inlined
def _turn(keys, start, stop, column, strip):  # type: ignore[no-untyped-def]
    """Copy a strip of some rows so that each of its columns lies in one piece."""
    width = min(STRIP, keys.shape[1] - column)
    if width == STRIP:  # a width known at compile time is twice as fast
        for i in range(start, stop):
            for w in range(STRIP):
                strip[w, i - start] = keys[i, column + w]
    else:
        for i in range(start, stop):
            for w in range(width):
                strip[w, i - start] = keys[i, column + w]
    return width


@inlined
def _sweep(cells, n, first, last, slots, bottom, top):  # type: ignore[no-untyped-def]
    """Tally the cells below ``first``, at ``last`` and above it; return how many, and the lowest.

    ``bottom`` is the slot below ``first`` and ``top`` the one above ``last``.
    """
    zero = cells.dtype.type(0)
    one = cells.dtype.type(1)
    lowest = cells[0]
    highest = zero
    highest_below = zero
    below = zero
    at_last = zero
    above = zero
    for i in range(n):
        key = cells[i]
        lowest = min(lowest, key)
        highest = max(highest, key)
        highest_below = max(highest_below, key if key < first else zero)
        below += one if key < first else zero
        at_last += one if key == last else zero
        above += one if key > last else zero
    slots[bottom, COUNT] += below
    slots[bottom, LARGEST] = max(slots[bottom, LARGEST], highest_below)
    slots[top - 1, COUNT] += at_last
    slots[top, COUNT] += above
    if above > 0:
        slots[top, LARGEST] = max(slots[top, LARGEST], highest)
    return np.int64(below + at_last + above), lowest


@inlined
def _sift(cells, n, first, last, inner):  # type: ignore[no-untyped-def]
    """Collect the cells from ``first`` to below ``last``, without a branch per cell."""
    span = np.uint64(last - first)
    n_inner = 0
    for i in range(n):
        inner[n_inner] = cells[i]
        n_inner += 1 if np.uint64(cells[i] - first) < span else 0
    return n_inner


@inlined
def _look_up(inner, n, first, shift, low, high, buckets, start, found, crowded):  # type: ignore[no-untyped-def]
    """The bucket entry of every cell, and which cells' buckets hold a key."""
    origin = squeeze(first, low, high)
    if low == high:
        for i in range(n):
            found[i] = buckets[start + (np.uint64(inner[i] - first) >> shift)]
    else:
        for i in range(n):
            found[i] = buckets[start + ((squeeze(inner[i], low, high) - origin) >> shift)]
    n_crowded = 0
    for i in range(n):
        crowded[n_crowded] = i
        n_crowded += 1 if found[i] & np.uint32(1) else 0
    return n_crowded


@inlined
def _search(inner, crowded, n, u, u_last, steps, found):  # type: ignore[no-untyped-def]
    """Turn the bucket entries of crowded cells into twice their place, odd where a key is met."""
    for c in range(n):
        i = crowded[c]
        key = inner[i]
        at = np.uint64(found[i] >> np.uint32(1))
        step = np.uint64(1) << steps
        while step > 2:
            step >>= np.uint64(1)
            # The last key is above every cell here, so looking no further than it is right.
            probe = min(at + step - np.uint64(1), u_last)
            at += step * np.uint64(u[probe] < key)
        at += np.uint64(u[at] < key)
        found[i] = np.uint32(np.uint64(2) * at + np.uint64(u[at] == key))


@inlined
def _tally(inner, found, n, slots, label):  # type: ignore[no-untyped-def]
    """Add cells to the slots they were found to belong to."""
    one = inner.dtype.type(1)
    for i in range(n):
        slot = label + np.uint64(found[i])
        slots[slot, COUNT] += one
        slots[slot, LARGEST] = max(slots[slot, LARGEST], inner[i])


_PLACING = (
    "void(const {key}[:,::1], const int64[::1], const int64[::1], const {key}[::1], "
    "uint64, uint64, const int64[::1], const uint32[::1], const uint64[::1], const uint64[::1], "
    "{key}[:,::1], {key}[::1])"
)


@kernel(_PLACING.format(key="uint32"), _PLACING.format(key="uint64"))
def place_cells(
    keys: Any,
    label_of: Any,
    indptr: Any,
    u: Any,
    low: Any,
    high: Any,
    bucket_indptr: Any,
    buckets: Any,
    shifts: Any,
    steps: Any,
    slots: Any,
    lowest: Any,
) -> None:
    """Add every cell of a block to the slots of its label; ``lowest`` keeps a label's lowest key.

    Label j has keys ``u[indptr[j]:indptr[j + 1]]`` and slots from ``2 * indptr[j] + j``. Labels
    without a key are passed over.
    """
    n_rows, n_columns = keys.shape
    strip = np.empty((STRIP, TILE + PAD), keys.dtype)
    inner = np.empty(TILE + 1, keys.dtype)
    found = np.empty(TILE, np.uint32)
    crowded = np.empty(TILE + 1, np.uint32)
    for start in range(0, n_rows, TILE):
        n = min(TILE, n_rows - start)
        for column in range(0, n_columns, STRIP):
            width = _turn(keys, start, start + n, column, strip)
            for w in range(width):
                label = label_of[column + w]
                if indptr[label] == indptr[label + 1]:
                    continue
                cells = strip[w]
                first = u[indptr[label]]
                u_last = np.uint64(indptr[label + 1] - 1)
                last = u[u_last]
                bottom = 2 * indptr[label] + label
                top = 2 * indptr[label + 1] + label
                outside, low_cell = _sweep(cells, n, first, last, slots, bottom, top)
                lowest[label] = min(lowest[label], low_cell)
                if outside == n:
                    continue
                n_inner = _sift(cells, n, first, last, inner)
                n_crowded = _look_up(
                    inner,
                    n_inner,
                    first,
                    shifts[label],
                    low,
                    high,
                    buckets,
                    np.uint64(bucket_indptr[label]),
                    found,
                    crowded,
                )
                _search(inner, crowded, n_crowded, u, u_last, steps[label], found)
                _tally(inner, found, n_inner, slots, np.uint64(label))
