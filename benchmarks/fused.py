"""Calibrate and rank in one pass, against calibrating first and ranking then. One thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import oddslip
from benchmarks.peers import argsort_rows, fit_isotonic, make_labels
from benchmarks.timing import agree, line, measure, title
from oddslip.calibrators import Isotonic, Platt

K = 7


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    part: int  # rows given to the slow peers; their cost per row does not depend on it


REAL = Size(20_000, 2_000, part=1_000)
TOY = Size(1_000, 40, part=250)


def make_scores(size: Size) -> NDArray[np.float32]:
    """Weighted scores: most cells low, every label with its own level and spread."""
    rng = np.random.default_rng(0)
    level = rng.normal(-3.0, 1.5, size.n_labels).astype(np.float32)
    margins = level + 2 * rng.standard_normal((size.n_rows, size.n_labels), np.float32)
    return np.asarray(1 / (1 + np.exp(-margins)), np.float32)


def compare(name: str, fitted: Any, scores: NDArray[np.float32], size: Size) -> tuple[Any, Any]:
    """Print a table; both rankings of the part."""
    part, scale = scores[: size.part], size.n_rows / size.part

    def rank_fused() -> NDArray[np.int32]:
        fresh = replace(fitted, maps=replace(fitted.maps))  # nothing remembered of earlier calls
        return np.asarray(fresh.rank(scores, k=K, threads=1))

    def transform_and_rank() -> NDArray[np.int32]:
        return oddslip.rank(fitted.transform(scores, threads=1), k=K, threads=1)

    def transform_and_sort() -> NDArray[np.int64]:
        return argsort_rows(fitted.transform(part, dtype=np.float64, threads=1), K)

    shape = f"{size.n_rows:,} x {size.n_labels:,} float32"
    title(f"calibrate and rank {shape}, {name} maps, one thread")
    ours = measure(rank_fused, 3)
    line("fused rank", ours)
    line("transform, then our rank", measure(transform_and_rank, 2), ours)
    sort = measure(transform_and_sort, 2, scale)
    line("transform, then stable argsort (scaled up)", sort, ours, "target: 10x")
    alone = measure(lambda: fitted.transform(part, threads=1), 3, scale)
    line("transform alone (scaled up)", alone, ours)
    return rank_fused()[: size.part], transform_and_sort()


def run(size: Size) -> None:
    scores = make_scores(size)
    prevalence = np.geomspace(1e-3, 0.3, size.n_labels, dtype=np.float32)
    labels = make_labels(scores, np.random.default_rng(2).permutation(prevalence))
    fitted = Isotonic().fit(scores, labels).fitted_
    agree("top labels", *compare("isotonic", fitted, scores, size))
    peers = fit_isotonic(scores[:, :3].T, labels[:, :3].T)
    values = [peer.predict(scores[:, j].astype(np.float64)) for j, peer in enumerate(peers)]
    agree("values of 3 labels", fitted.transform(scores, dtype=np.float64)[:, :3].T, values, 1e-12)
    ranking, theirs = compare("affine", Platt().fit(scores, labels).fitted_, scores, size)
    # Different log-odds may round to one probability, so a few places may change hands.
    agree("share of places that differ", np.mean(ranking != theirs), 0, 1e-3)
