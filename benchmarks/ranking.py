"""Top K and MAP at 20,000 x 4,000 float32, K = 7; many places of a long row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import oddslip
from benchmarks.peers import argpartition_rows, argsort_rows, precision_of_rows
from benchmarks.timing import agree, line, measure, title
from oddslip.metrics import average_precision_at_k

K = 7


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    part: int  # rows given to the slow peers; their time is scaled up
    positives: float  # a row
    long_row: int  # labels of the rows of which many places are shown
    many: tuple[int, ...]  # places


REAL = Size(
    20_000, 4_000, part=2_000, positives=4, long_row=1_000_000, many=(100, 1_000, 80_000, 1_000_000)
)
TOY = Size(500, 200, part=250, positives=2, long_row=2_000, many=(100, 1_000, 2_000))


def score_shapes(shape: tuple[int, int]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    scores = np.random.default_rng(0).random(shape, dtype=np.float32)
    yield "uniform", scores
    yield "sorted (worst case)", np.sort(scores, axis=1)
    saturated = scores.copy()
    saturated[np.random.default_rng(1).random(shape, dtype=np.float32) < 0.2] = 1
    yield "20% of cells tied at 1.0", saturated


def ranx_map(labels: NDArray[np.bool_], ranking: NDArray[np.int32]) -> Callable[[], float]:
    """A call that scores these very rankings with ranx."""
    from numba.typed import List
    from ranx.metrics import average_precision

    qrels, run = List(), List()
    for row, top in zip(labels, ranking, strict=True):
        true = np.flatnonzero(row)
        if true.size:
            qrels.append(np.column_stack([true, np.ones_like(true)]).astype(np.float64))
            run.append(np.column_stack([top, np.arange(K, 0, -1)]).astype(np.float64))
    return lambda: float(average_precision(qrels, run, K).mean())


def compare_top(scores: NDArray[np.float32], name: str, size: Size) -> None:
    part, scale = scores[: size.part], size.n_rows / size.part
    title(f"top {K} of {size.n_rows:,} x {size.n_labels:,} float32, {name}")
    ranking = oddslip.rank(scores, k=K)
    ours = measure(lambda: oddslip.rank(scores, k=K), 15)
    line("oddslip.rank", ours)
    sort = measure(lambda: argsort_rows(part, K), 2, scale)
    line("numpy argsort, stable (scaled up)", sort, ours, "target: 60x")
    split = measure(lambda: np.argpartition(-part, K, axis=1), 2, scale)
    line("numpy argpartition (scaled up)", split, ours, "target: 20x")
    largest = measure(lambda: scores.max(), 15)
    line("scores.max(), reading the cells once", largest, ours, "target: 0.33x")
    agree("top labels", ranking[: size.part], argsort_rows(part, K))


def compare_many(size: Size) -> None:
    scores = np.random.default_rng(3).random((2, size.long_row), dtype=np.float32)
    for k in size.many:
        title(f"top {k:,} of 2 x {size.long_row:,} float32, uniform, one thread")
        ours = measure(lambda k=k: oddslip.rank(scores, k=k, threads=1), 3)
        line("oddslip.rank", ours)
        line("numpy argsort, stable", measure(lambda k=k: argsort_rows(scores, k), 2), ours)
        split = measure(lambda k=k: argpartition_rows(scores, k), 2)
        line("numpy argpartition, then argsort of the part", split, ours)
        agree("top labels", oddslip.rank(scores, k=k), argsort_rows(scores, k))


def compare_map(
    scores: NDArray[np.float32], labels: NDArray[np.bool_], name: str, size: Size
) -> None:
    def from_scores(n_rows: int | None = None) -> float:
        found = average_precision_at_k(scores[:n_rows], labels[:n_rows], k=K)
        return float(found)

    def by_numpy() -> float:
        top = argsort_rows(scores[: size.part], K)
        return float(precision_of_rows(top, labels[: size.part]).mean())

    title(f"MAP@{K} from scores to mean, {name}")
    ours = measure(from_scores, 7)
    line("oddslip average_precision_at_k", ours)
    theirs = measure(by_numpy, 2, size.n_rows / size.part)
    line("numpy argsort, take, cumsum (scaled up)", theirs, ours, "target: 40x")
    ranx = ranx_map(labels, oddslip.rank(scores, k=K))
    found = ranx()
    line("ranx, of rankings already made", measure(ranx, 5), ours)
    agree("MAP", from_scores(size.part), by_numpy(), 1e-12)
    by_relevant = average_precision_at_k(scores, labels, k=K, denominator="relevant")
    agree("MAP over all true labels", by_relevant, found, 1e-12)


def run(size: Size) -> None:
    shape = (size.n_rows, size.n_labels)
    chance = size.positives / size.n_labels
    labels = np.random.default_rng(2).random(shape, dtype=np.float32) < chance
    for name, scores in score_shapes(shape):
        compare_top(scores, name, size)
        compare_map(scores, labels, name, size)
    compare_many(size)
