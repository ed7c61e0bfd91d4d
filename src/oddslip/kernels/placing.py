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

from oddslip.kernels.compiling import inlined, kernel

STRIP = 16
TILE = 2048


@inlined
def _turn(keys, start, stop, column, width, strip):  # type: ignore[no-untyped-def]
    """Copy some columns of some rows so that each column lies in one piece."""
    for i in range(start, stop):
        row = keys[i]
        for w in range(width):
            strip[w, i - start] = row[column + w]


@inlined
def _sift(cells, n, first, last, inner):  # type: ignore[no-untyped-def]
    """Collect the cells from ``first`` to below ``last``, without a branch per cell."""
    span = last - first
    n_inner = 0
    for i in range(n):
        key = cells[i]
        inner[n_inner] = key
        n_inner += np.int64(np.uint64(key - first) < np.uint64(span))
    return n_inner


@inlined
def _sweep(cells, n, first, last, counts, largest, bottom, top):  # type: ignore[no-untyped-def]
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
    counts[bottom] += np.int64(below)
    counts[top - 1] += np.int64(at_last)
    counts[top] += np.int64(above)
    largest[bottom] = max(largest[bottom], highest_below)
    if above > 0:
        largest[top] = max(largest[top], highest)
    return np.int64(below + at_last + above), lowest


@inlined
def _search(inner, n, u, u_start, u_last, buckets, start, shift, steps, counts, largest, label):  # type: ignore[no-untyped-def]
    """Tally cells that lie from the first key of a label to below its last."""
    first = u[u_start]
    for i in range(n):
        key = inner[i]
        at = np.int64(buckets[start + np.int64(np.uint64(key - first) >> shift)])
        step = np.int64(1) << steps
        while step > 1:
            step >>= 1
            # The last key is above every cell here, so looking no further than it is right.
            probe = min(at + step - 1, u_last)
            at += step if u[probe] < key else 0
        slot = 2 * at + label + np.int64(u[at] == key)
        counts[slot] += 1
        largest[slot] = max(largest[slot], key)


_FILLING = (
    "void(const int64[::1], const {key}[::1], const int64[::1], const uint64[::1], "
    "int32[::1], int64[::1])"
)


@kernel(_FILLING.format(key="uint32"), _FILLING.format(key="uint64"))
def fill_buckets(
    indptr: Any, u: Any, bucket_indptr: Any, shifts: Any, buckets: Any, steps: Any
) -> None:
    """For each bucket of each label the place of its first key, or of the next one after it.

    A key's bucket is its distance from the label's first key, shifted. ``steps`` says how many
    halvings find a key in the fullest bucket.
    """
    for label in range(indptr.shape[0] - 1):
        filled = bucket_indptr[label]
        fullest = 0
        held = 0
        for at in range(indptr[label], indptr[label + 1]):
            distance = np.uint64(u[at] - u[indptr[label]])
            bucket = bucket_indptr[label] + np.int64(distance >> shifts[label])
            held = 1 if bucket >= filled else held + 1
            fullest = max(fullest, held)
            while filled <= bucket:
                buckets[filled] = at
                filled += 1
        steps[label] = 0
        while (1 << steps[label]) <= fullest:
            steps[label] += 1


_PLACING = (
    "void(const {key}[:,::1], const int64[::1], const int64[::1], const {key}[::1], "
    "const int64[::1], const int32[::1], const uint64[::1], const int64[::1], "
    "int64[::1], {key}[::1], {key}[::1])"
)


@kernel(_PLACING.format(key="uint32"), _PLACING.format(key="uint64"))
def place_cells(
    keys: Any,
    label_of: Any,
    indptr: Any,
    u: Any,
    bucket_indptr: Any,
    buckets: Any,
    shifts: Any,
    steps: Any,
    counts: Any,
    largest: Any,
    lowest: Any,
) -> None:
    """Add every cell of a block to the slots of its label; ``lowest`` keeps a label's lowest key.

    Label j has keys ``u[indptr[j]:indptr[j + 1]]`` and slots from ``2 * indptr[j] + j``. Labels
    without a key are passed over.
    """
    n_rows, n_columns = keys.shape
    strip = np.empty((STRIP, TILE), keys.dtype)
    inner = np.empty(TILE + 1, keys.dtype)
    for start in range(0, n_rows, TILE):
        stop = min(start + TILE, n_rows)
        n = stop - start
        for column in range(0, n_columns, STRIP):
            width = min(STRIP, n_columns - column)
            _turn(keys, start, stop, column, width, strip)
            for w in range(width):
                label = label_of[column + w]
                u_start = indptr[label]
                u_last = indptr[label + 1] - 1
                if u_last < u_start:
                    continue
                cells = strip[w]
                first = u[u_start]
                last = u[u_last]
                slots = 2 * u_start + label
                top = 2 * u_last + 2 + label
                outside, low = _sweep(cells, n, first, last, counts, largest, slots, top)
                lowest[label] = min(lowest[label], low)
                if outside == n:
                    continue
                n_inner = _sift(cells, n, first, last, inner)
                _search(
                    inner,
                    n_inner,
                    u,
                    u_start,
                    u_last,
                    buckets,
                    bucket_indptr[label],
                    shifts[label],
                    steps[label],
                    counts,
                    largest,
                    label,
                )
