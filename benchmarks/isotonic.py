"""Isotonic fits of all labels, against a loop of scikit-learn.

Rare labels at 131,209 x 200 float32, for scores of several shapes; then labels with many positives
at 60,000 x 60, for scores that are calibrated and more or less steep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import fit_isotonic, make_labels
from benchmarks.timing import agree, line, measure, title
from oddslip.calibrators import Isotonic


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    every: int  # one label in so many is fitted by scikit-learn; its time is scaled up
    rarest: float
    n_rows_common: int
    n_labels_common: int


REAL = Size(131_209, 200, 10, 2e-4, n_rows_common=60_000, n_labels_common=60)
TOY = Size(2_000, 20, 4, 5e-3, n_rows_common=9_000, n_labels_common=4)
COMMON = ((0.01, 1.5), (0.03, 1.5), (0.1, 1.5), (0.3, 1.5), (0.1, 6.0), (0.1, 12.0))


def score_shapes(shape: tuple[int, int]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    rng = np.random.default_rng(0)
    yield "spread out", rng.random(shape, np.float32)
    yield "crowded near 0", 1 / (1 + np.exp(6 - 2 * rng.standard_normal(shape, np.float32)))
    saturated = rng.random(shape, np.float32)
    saturated[rng.random(shape, np.float32) < 0.2] = 1
    yield "20% of cells at 1.0", saturated


def draw_calibrated(
    shape: tuple[int, int], prevalence: float, spread: float, dtype: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Probabilities whose log-odds have this spread, and labels that are true as often as they say.

    The share of positives is the prevalence; spreads of 6 and 12 make scores steep.
    """
    rng = np.random.default_rng(0)
    noise = spread * rng.standard_normal(shape)
    low, high = -20.0 * spread, 20.0 * spread
    for _ in range(60):
        middle = (low + high) / 2
        mean = (1 / (1 + np.exp(-np.clip(noise[:2_000] + middle, -700, 700)))).mean()
        low, high = (middle, high) if mean < prevalence else (low, middle)
    scores = 1 / (1 + np.exp(-(noise + low)))
    return scores.astype(dtype), rng.random(shape) < scores


def run(size: Size) -> None:
    shape = (size.n_rows, size.n_labels)
    prevalence = np.geomspace(size.rarest, 100 * size.rarest, size.n_labels, dtype=np.float32)
    for name, scores in score_shapes(shape):
        compare(name, scores, make_labels(scores, prevalence), size.every)
    shape = (size.n_rows_common, size.n_labels_common)
    for dtype in (np.float32, np.float64):
        for share, spread in COMMON:
            name = f"{share:.0%} positives, log-odds spread by {spread:g}"
            scores, labels = draw_calibrated(shape, share, spread, dtype)
            compare(name, scores, labels, size.every)


def compare(name: str, scores: NDArray[Any], labels: NDArray[np.bool_], every: int) -> None:
    """One table. Scikit-learn fits one label in so many; its time is scaled up."""
    n_rows, n_labels = scores.shape
    part = slice(every // 2, None, every)
    n_part = len(range(n_labels)[part])
    columns, truths = scores[:, part].T.astype(np.float64), labels[:, part].T
    title(f"isotonic fits, {n_rows:,} x {n_labels} {scores.dtype}, {name}")
    fitted = Isotonic().fit(scores, labels).fitted_
    ours = measure(lambda: Isotonic().fit(scores, labels), 9)
    line("oddslip Isotonic().fit", ours)
    theirs = measure(lambda: fit_isotonic(columns, truths), 2, n_labels / n_part)
    line(f"scikit-learn, {n_part} labels (scaled up)", theirs, ours, "target: 15x CPU")
    peers = fit_isotonic(columns, truths)
    values = np.stack([peer.predict(x) for peer, x in zip(peers, columns, strict=True)], axis=1)
    agree("fitted values", fitted.transform(scores, dtype=np.float64)[:, part], values, 1e-12)
    per_cell = (times.cpu / scores.size * 1e9 for times in (ours, theirs))
    print("  CPU per cell: ours {:.1f} ns, theirs {:.0f} ns".format(*per_cell))
