"""Isotonic fits of all labels: ours against a loop of scikit-learn, in CPU and in wall time.

Run: python -m benchmarks.isotonic
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from oddslip.counting import count_cells
from oddslip.sources import open_source

N_ROWS, N_LABELS = 131_209, 200
EVERY = 10  # scikit-learn fits every tenth label; its time is scaled up
REPEATS = 5


def draw_spread(rng: np.random.Generator) -> NDArray[np.float32]:
    return rng.random((N_ROWS, N_LABELS), np.float32)


def draw_crowded(rng: np.random.Generator) -> NDArray[np.float32]:
    margins = 2 * rng.standard_normal((N_ROWS, N_LABELS), np.float32) - 6
    return 1 / (1 + np.exp(-margins))


def draw_saturated(rng: np.random.Generator) -> NDArray[np.float32]:
    scores = rng.random((N_ROWS, N_LABELS), np.float32)
    scores[rng.random((N_ROWS, N_LABELS), np.float32) < 0.2] = 1.0
    return scores


SHAPES: dict[str, Callable[[np.random.Generator], NDArray[np.float32]]] = {
    "spread out": draw_spread,
    "crowded near 0": draw_crowded,
    "20% at 1.0": draw_saturated,
}


def measure(work: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """CPU and wall seconds, each the best of some runs."""
    runs = []
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        runs.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(cpu for cpu, _ in runs), min(wall for _, wall in runs)


def run() -> None:
    rng = np.random.default_rng(0)
    print(f"{N_ROWS:,} x {N_LABELS} float32, prevalences 2e-4 to 2e-2, best of {REPEATS} runs.")
    print(f"scikit-learn: best of 2, float64, every {EVERY}th label, scaled by the labels fitted.")
    print("shape            CPU ratio  wall ratio  ours ns/cell  scikit-learn ns/cell  max diff")
    for shape, draw in SHAPES.items():
        scores = draw(rng)
        chance = np.geomspace(2e-4, 2e-2, N_LABELS)
        labels = rng.random(scores.shape, np.float32) < chance * 2 * np.clip(
            scores / scores.mean(axis=0), 0, 2
        )
        fitted = range(EVERY // 2, N_LABELS, EVERY)
        columns = [scores[:, j].astype(np.float64) for j in fitted]
        truths = [labels[:, j].astype(np.float64) for j in fitted]
        peers = []

        def fit_ours() -> Any:
            return count_cells(open_source(scores, labels)).isotonic_knots()  # noqa: B023

        def fit_theirs() -> None:
            peers[:] = [  # noqa: B023
                IsotonicRegression(out_of_bounds="clip").fit(x, y)
                for x, y in zip(columns, truths, strict=True)  # noqa: B023
            ]

        indptr, x, y = fit_ours()
        ours_cpu, ours_wall = measure(fit_ours, REPEATS)
        theirs_cpu, theirs_wall = (
            seconds * N_LABELS / len(columns) for seconds in measure(fit_theirs, 2)
        )
        difference = max(
            np.abs(
                np.interp(column, x[slice(*indptr[j : j + 2])], y[slice(*indptr[j : j + 2])])
                - peer.predict(column)
            ).max()
            for j, column, peer in zip(fitted, columns, peers, strict=True)
        )
        print(
            f"{shape:16} {theirs_cpu / ours_cpu:9.1f} {theirs_wall / ours_wall:11.1f} "
            f"{ours_cpu / scores.size * 1e9:13.1f} {theirs_cpu / scores.size * 1e9:21.1f} "
            f"{difference:9.1e}"
        )


if __name__ == "__main__":
    run()
