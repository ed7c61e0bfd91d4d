"""What the counts of a label's slots say: its isotonic fit, and how many pairs it orders well.

Pool-adjacent-violators runs over the groups *below u_1, at u_1, between u_1 and u_2, ...*. Means
are compared as fractions of whole numbers, so no rounding ever decides what is pooled.

Interval k of label j lies at ``indptr[j] + j + k`` in the arrays of intervals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.kernels.compiling import inlined, kernel


@inlined
def _is_less(a, b, c, d):  # type: ignore[no-untyped-def]
    """Whether a / b < c / d, exactly, for whole numbers of any size."""
    if b < 0x7FFFFFFF and d < 0x7FFFFFFF:
        return a * d < c * b
    while a // b == c // d:  # same whole part: compare the fractions turned upside down
        a, b, c, d = d, c % d, b, a % b
        if b == 0 or d == 0:
            return b != 0
    return a // b < c // d


@inlined
def _pool(hits, cells, firsts, lasts, depth, n_hits, n_cells, first, last):  # type: ignore[no-untyped-def]
    """Put a group on the stack of blocks; pool while its mean is not above the one before."""
    while depth > 0 and not _is_less(hits[depth - 1], cells[depth - 1], n_hits, n_cells):
        depth -= 1
        n_hits += hits[depth]
        n_cells += cells[depth]
        first = firsts[depth]
    hits[depth] = n_hits
    cells[depth] = n_cells
    firsts[depth] = first
    lasts[depth] = last
    return depth + 1


_POOLING = (
    "int64(const int64[::1], const {key}[::1], const int64[::1], const int64[::1], "
    "const int64[::1], const {key}[::1], const {key}[::1], const boolean[::1], "
    "int64[::1], {key}[::1], float64[::1])"
)


@kernel(_POOLING.format(key="uint32"), _POOLING.format(key="uint64"))
def pool_labels(
    indptr: Any,
    keys: Any,
    positives: Any,
    negatives_at: Any,
    negatives_between: Any,
    largest_between: Any,
    lowest: Any,
    wanted: Any,
    knot_indptr: Any,
    knots: Any,
    values: Any,
) -> Any:
    """Knots of the isotonic fit of every wanted label, written one after another.

    A block of the fit gives its first and its last key, or one knot if they are the same. Returns
    the number of knots; there is room for ``2 * (keys.size + n_labels)``.
    """
    n_labels = indptr.shape[0] - 1
    deepest = 0
    for label in range(n_labels):
        deepest = max(deepest, 2 * (indptr[label + 1] - indptr[label]) + 1)
    hits = np.empty(deepest, np.int64)
    cells = np.empty(deepest, np.int64)
    firsts = np.empty(deepest, keys.dtype)
    lasts = np.empty(deepest, keys.dtype)
    n_knots = 0
    for label in range(n_labels):
        knot_indptr[label] = n_knots
        if not wanted[label]:
            continue
        depth = 0
        for at in range(indptr[label], indptr[label + 1] + 1):
            interval = at + label
            if negatives_between[interval] > 0:
                # The mean is 0, so this group is pooled with what lies before it, if anything
                # does; else it starts at the label's lowest cell.
                depth = _pool(
                    hits,
                    cells,
                    firsts,
                    lasts,
                    depth,
                    0,
                    negatives_between[interval],
                    lowest[label],
                    largest_between[interval],
                )
            if at == indptr[label + 1]:
                break
            n_cells = positives[at] + negatives_at[at]
            if n_cells > 0:
                depth = _pool(
                    hits, cells, firsts, lasts, depth, positives[at], n_cells, keys[at], keys[at]
                )
        for block in range(depth):
            value = hits[block] / cells[block]
            knots[n_knots] = firsts[block]
            values[n_knots] = value
            n_knots += 1
            if lasts[block] != firsts[block]:
                knots[n_knots] = lasts[block]
                values[n_knots] = value
                n_knots += 1
    knot_indptr[n_labels] = n_knots
    return n_knots


@kernel(
    "void(const int64[::1], const int64[::1], const int64[::1], const int64[::1], "
    "int64[::1], int64[::1])"
)
def count_pairs(
    indptr: Any,
    positives: Any,
    negatives_at: Any,
    negatives_between: Any,
    high: Any,
    low: Any,
) -> None:
    """Twice the number of (positive, negative) pairs in order, a tie counting half.

    The number is ``high * 2**24 + low``: two sums, since one might not fit.
    """
    for label in range(indptr.shape[0] - 1):
        below = 0
        for at in range(indptr[label], indptr[label + 1]):
            below += negatives_between[at + label]
            twice = 2 * below + negatives_at[at]
            below += negatives_at[at]
            high[label] += positives[at] * (twice >> 24)
            low[label] += positives[at] * (twice & 0xFFFFFF)


@kernel(
    "void(const int32[::1], const uint32[::1], int64[::1], uint32[::1])",
    "void(const int32[::1], const uint64[::1], int64[::1], uint64[::1])",
)
def group_keys(labels: Any, keys: Any, places: Any, grouped: Any) -> None:
    """Bring the keys of each label together. ``places`` holds where each label's next key goes."""
    for i in range(labels.shape[0]):
        grouped[places[labels[i]]] = keys[i]
        places[labels[i]] += 1
