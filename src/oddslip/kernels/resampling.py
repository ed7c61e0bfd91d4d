"""How often each row is drawn in a resample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from oddslip.kernels.compiling import inlined, kernel


@inlined
def _mix(state):  # type: ignore[no-untyped-def]
    """splitmix64: a counter in, 64 well-mixed bits out."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel("void(const uint64[::1], const int64[::1], float64[:,::1])")
def count_draws(seeds: Any, n_draws: Any, counts: Any) -> None:
    """Replicate b draws ``n_draws[b]`` of the columns of ``counts`` with replacement."""
    n = counts.shape[1]
    step = np.uint64(0x9E3779B97F4A7C15)
    for b in range(counts.shape[0]):
        drawn = counts[b]
        drawn[:] = 0.0
        state = seeds[b]
        for _ in range(n_draws[b]):
            state += step
            drawn[np.int64((_mix(state) >> np.uint64(11)) * 1.1102230246251565e-16 * n)] += 1.0
