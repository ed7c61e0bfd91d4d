"""Look-up tables from the bits of a key to its neighbourhood among a label's keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.kernels.compiling import inlined, kernel
from oddslip.kernels.keys import UNSIGNED, keys_of

# Most bits of margins tell apart numbers near 0, where few margins lie. So all keys from ``low``
# to ``high`` share a bucket. Probabilities crowd near 0 and keep all their buckets.
GAPS: dict[tuple[np.dtype[Any], str], tuple[int, int]] = {
    (UNSIGNED[np.dtype(dtype)], kind): tuple(
        keys_of(np.array([[-end, end]], dtype), "margin")[0].tolist() if end else (0, 0)
    )
    for dtype in (np.float32, np.float64)
    for kind, end in (("probability", 0), ("margin", 2**-6))
}


@inlined
def squeeze(key, low, high):  # type: ignore[no-untyped-def]
    """The key without the gap: order is kept, all keys from ``low`` to ``high`` become equal."""
    return np.uint64(key) - min(max(np.uint64(key), low), high) + low


_FILLING = (
    "void(const int64[::1], const {key}[::1], uint64, uint64, const int64[::1], "
    "const uint64[::1], uint32[::1], uint64[::1])"
)


@kernel(_FILLING.format(key="uint32"), _FILLING.format(key="uint64"))
def fill_buckets(
    indptr: Any,
    u: Any,
    low: Any,
    high: Any,
    bucket_indptr: Any,
    shifts: Any,
    buckets: Any,
    steps: Any,
) -> None:
    """For each bucket of each label twice the place of its first key, plus 1 if it holds one.

    An empty bucket has the place of the next key. A key's bucket is its distance from the label's
    first key, without the gap, shifted. ``steps`` says how many halvings find a key in the
    fullest bucket.
    """
    for label in range(indptr.shape[0] - 1):
        filled = bucket_indptr[label]
        fullest = 0
        held = 0
        for at in range(indptr[label], indptr[label + 1]):
            distance = squeeze(u[at], low, high) - squeeze(u[indptr[label]], low, high)
            bucket = bucket_indptr[label] + np.int64(distance >> shifts[label])
            held = 1 if bucket >= filled else held + 1
            fullest = max(fullest, held)
            while filled <= bucket:
                buckets[filled] = 2 * at + (filled == bucket)
                filled += 1
        steps[label] = 0
        while (1 << np.int64(steps[label])) <= fullest:
            steps[label] += np.uint64(1)
