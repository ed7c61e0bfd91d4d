"""Realized shift against sixty bisection steps in NumPy, in one run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from benchmarks.timing import agree, line, measure, title
from oddslip.shifts import realized_shift

STEPS, RUN_STEPS = 60, 6
CHECKED = 3  # labels


class Size(NamedTuple):
    n_rows: int
    n_labels: int


REAL = Size(131_209, 200)
TOY = Size(2_000, 10)


def bisect(
    margins: NDArray[np.float64], prior: NDArray[np.float64], steps: int
) -> NDArray[np.float64]:
    """Every step takes the sigmoid of the whole matrix."""
    low, high = np.full(prior.size, -40.0), np.full(prior.size, 40.0)
    for _ in range(steps):
        middle = (low + high) / 2
        above = expit(margins - middle).mean(axis=0) > prior
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray((low + high) / 2)


def run(size: Size) -> None:
    rng = np.random.default_rng(0)
    prior = rng.permutation(np.geomspace(1e-4, 0.2, size.n_labels))
    noise = 1.5 * rng.standard_normal((size.n_rows, size.n_labels), dtype=np.float32)
    scores = expit(noise + rng.normal(-1, 1, size.n_labels).astype(np.float32))
    title(f"realized shift of {size.n_rows:,} x {size.n_labels} float32 probabilities")
    found = realized_shift(scores, prior)
    ours = measure(lambda: realized_shift(scores, prior))
    line(f"oddslip realized_shift, {found.n_passes} passes", ours)
    margins = logit(np.clip(scores.astype(np.float64), 1e-12, 1 - 1e-12))  # not counted
    peer = measure(lambda: bisect(margins, prior, RUN_STEPS), 1, STEPS / RUN_STEPS)
    line(f"{STEPS} bisection steps ({RUN_STEPS} run, scaled up)", peer, ours, "target: 10x")
    oracle = bisect(margins[:, :CHECKED], prior[:CHECKED], STEPS)
    agree(f"shift of {CHECKED} labels in nat", found.shift[:CHECKED], oracle, 1e-9)
