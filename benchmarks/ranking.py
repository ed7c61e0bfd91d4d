"""Top K and MAP at 20,000 x 4,000 float32, K = 7."""

from __future__ import annotations

import numpy as np

import oddslip
from benchmarks.timing import Times, line, measure, title
from oddslip.metrics import average_precision_at_k

N_ROWS, N_LABELS, K = 20_000, 4_000, 7
PART = 2_000  # rows given to the slow peers; their time is scaled up


def score_shapes():
    scores = np.random.default_rng(0).random((N_ROWS, N_LABELS), dtype=np.float32)
    yield "uniform", scores
    yield "sorted (worst case)", np.sort(scores, axis=1)
    saturated = scores.copy()
    saturated[np.random.default_rng(1).random(scores.shape, dtype=np.float32) < 0.2] = 1
    yield "20% of cells tied at 1.0", saturated


def numpy_map(scores, labels):
    """MAP@K the vectorised way: argsort, take, cumsum."""
    top = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    hits = np.take_along_axis(labels, top, axis=1)
    precision = np.cumsum(hits, axis=1) / np.arange(1, K + 1)
    true = labels.sum(axis=1)
    rows = true > 0
    gained = (precision * hits).sum(axis=1)[rows] / np.minimum(K, true[rows])
    return gained.mean()


def ranx_map(labels, ranking):
    """A call that scores these very rankings with ranx."""
    from numba.typed import List
    from ranx.metrics import average_precision

    qrels, run = List(), List()
    for row, top in zip(labels, ranking, strict=True):
        true = np.flatnonzero(row)
        if true.size:
            qrels.append(np.column_stack([true, np.ones_like(true)]).astype(np.float64))
            run.append(np.column_stack([top, np.arange(K, 0, -1)]).astype(np.float64))
    return lambda: average_precision(qrels, run, K).mean()


def run() -> None:
    from oddslip.metrics.at_k import metric_values, rank_source

    labels = np.random.default_rng(2).random((N_ROWS, N_LABELS), dtype=np.float32) < 0.001
    scale = N_ROWS / PART
    for name, scores in score_shapes():
        oddslip.rank(scores[:100], k=K)
        title(f"top {K} of {N_ROWS:,} x {N_LABELS:,} float32, {name}")
        ours = measure(lambda s=scores: oddslip.rank(s, k=K), 15)
        line("oddslip.rank", ours)
        part = scores[:PART]
        sort = measure(lambda p=part: np.argsort(-p, axis=1, kind="stable"), 2, scale)
        line("numpy argsort, stable (scaled up)", sort, ours, "target: 60x")
        split = measure(lambda p=part: np.argpartition(-p, K, axis=1), 2, scale)
        line("numpy argpartition (scaled up)", split, ours, "target: 20x")
        largest = measure(lambda s=scores: s.max(), 15)
        slower = Times(ours.cpu / largest.cpu, ours.wall / largest.wall)
        print(
            f"  {'scores.max()':44} {largest.cpu:9.4f} {largest.wall:9.4f}   "
            f"we take {slower.cpu:.2f}x its CPU, {slower.wall:.2f}x its wall   target: 3x at most"
        )
        print(
            f"  (reading the cells once is {sort.cpu / largest.cpu:.0f}x faster than argsort and "
            f"{split.cpu / largest.cpu:.0f}x faster than argpartition: the most that can be had)"
        )

        title(f"MAP@{K} from scores to mean, {name}")
        ours = measure(lambda s=scores: average_precision_at_k(s, labels, k=K), 7)
        line("oddslip average_precision_at_k", ours)
        theirs = measure(lambda p=part: numpy_map(p, labels[:PART]), 2, scale)
        line("numpy argsort, take, cumsum (scaled up)", theirs, ours, "target: 40x")
        assert np.isclose(
            numpy_map(part, labels[:PART]), average_precision_at_k(part, labels[:PART], k=K)
        )

    title(f"MAP@{K} of rankings already made, {name}")
    rankings = rank_source(oddslip.open_source(scores, labels), K)
    ours = measure(lambda: metric_values(rankings, denominator="relevant")[:, 0].mean(), 7)
    line("oddslip, all seven metrics", ours)
    call = ranx_map(labels, oddslip.rank(scores, k=K))
    assert np.isclose(call(), metric_values(rankings, denominator="relevant")[:, 0].mean())
    line("ranx average_precision, MAP alone", measure(call, 5), ours)
