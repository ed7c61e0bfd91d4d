"""Isotonic fits of all labels at 131,209 x 200 float32, against a loop of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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


REAL = Size(131_209, 200, every=10, rarest=2e-4)
TOY = Size(2_000, 20, every=4, rarest=5e-3)


def score_shapes(shape: tuple[int, int]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    rng = np.random.default_rng(0)
    yield "spread out", rng.random(shape, np.float32)
    yield "crowded near 0", 1 / (1 + np.exp(6 - 2 * rng.standard_normal(shape, np.float32)))
    saturated = rng.random(shape, np.float32)
    saturated[rng.random(shape, np.float32) < 0.2] = 1
    yield "20% of cells at 1.0", saturated


def run(size: Size) -> None:
    shape = (size.n_rows, size.n_labels)
    prevalence = np.geomspace(size.rarest, 100 * size.rarest, size.n_labels, dtype=np.float32)
    part = slice(size.every // 2, None, size.every)
    n_part = len(range(size.n_labels)[part])
    for name, scores in score_shapes(shape):
        labels = make_labels(scores, prevalence)
        columns, truths = scores[:, part].T.astype(np.float64), labels[:, part].T
        title(f"isotonic fits, {size.n_rows:,} x {size.n_labels} float32, {name}")
        fitted = Isotonic().fit(scores, labels).fitted_
        ours = measure(lambda s=scores, y=labels: Isotonic().fit(s, y), 9)
        line("oddslip Isotonic().fit", ours)
        theirs = measure(lambda c=columns, t=truths: fit_isotonic(c, t), 2, size.n_labels / n_part)
        line(f"scikit-learn, {n_part} labels (scaled up)", theirs, ours, "target: 15x CPU")
        peers = fit_isotonic(columns, truths)
        values = np.stack([peer.predict(x) for peer, x in zip(peers, columns, strict=True)], axis=1)
        agree("fitted values", fitted.transform(scores, dtype=np.float64)[:, part], values, 1e-12)
        per_cell = (times.cpu / scores.size * 1e9 for times in (ours, theirs))
        print("  CPU per cell: ours {:.1f} ns, theirs {:.0f} ns".format(*per_cell))
