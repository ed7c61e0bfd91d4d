"""Rows that score 1% of 50,000 labels, beside the dense path; and 1% of the cells excluded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import oddslip
from benchmarks.timing import agree, line, measure, title
from oddslip.calibrators import Isotonic
from oddslip.metrics import average_precision_at_k

K = 7


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    candidates: int  # of each row
    part: int  # rows given to the dense path; its time is scaled up
    excluded_labels: int  # labels of the panel of which cells are excluded


REAL = Size(20_000, 50_000, candidates=500, part=1_000, excluded_labels=4_000)
TOY = Size(400, 300, candidates=30, part=200, excluded_labels=120)


def make_candidates(size: Size) -> tuple[Any, Any]:
    """Scores of candidates, and which of them are true; some labels are candidates more often."""
    rng = np.random.default_rng(0)
    step = size.n_labels / size.candidates
    starts = np.arange(size.candidates) * step
    labels = (starts + step * rng.random((size.n_rows, size.candidates)) ** 2).astype(np.int32)
    indptr = np.arange(size.n_rows + 1) * size.candidates
    cells = (0.01 + 0.98 * rng.random(labels.size, np.float32)).astype(np.float32)
    shape = (size.n_rows, size.n_labels)
    scores = sparse.csr_array((cells, labels.ravel(), indptr), shape=shape)
    true = scores.copy()
    true.data = (rng.random(cells.size) < 0.02 * cells).astype(np.int8)
    true.eliminate_zeros()
    return scores, true


def compare_candidates(size: Size) -> None:
    scores, true = make_candidates(size)
    few, few_true = scores[: size.part], true[: size.part]
    zeros = few.toarray()
    dense = np.where(zeros > 0, zeros, np.float32(np.nan))
    scale = size.n_rows / size.part
    what = f"{size.n_rows:,} x {size.n_labels:,} float32, {size.candidates} candidates a row"

    title(f"top {K} of {what}")
    ours = measure(lambda: oddslip.rank(scores, k=K), 3)
    line("oddslip.rank of candidates", ours)
    line("all cells (scaled up)", measure(lambda: oddslip.rank(zeros, k=K), 2, scale), ours)
    agree("top labels", oddslip.rank(few, k=K), oddslip.rank(zeros, k=K))

    title(f"MAP@{K} of {what}")
    ours = measure(lambda: average_precision_at_k(scores, true, k=K), 3)
    line("oddslip, of candidates", ours)
    peer = measure(lambda: average_precision_at_k(zeros, few_true, k=K), 2, scale)
    line("all cells (scaled up)", peer, ours)
    found = average_precision_at_k(few, few_true, k=K)
    agree("MAP", [found], [average_precision_at_k(zeros, few_true, k=K)], 1e-12)

    title(f"isotonic fit of {what}")
    ours = measure(lambda: Isotonic().fit(scores, true), 2)
    line("Isotonic().fit on candidates", ours)
    peer = measure(lambda: Isotonic().fit(zeros, few_true), 1, scale)
    line("on all cells (scaled up)", peer, ours)
    peer = measure(lambda: Isotonic().fit(dense, few_true, nan="absent"), 1, scale)
    line('all cells, most of them NaN, nan="absent" (scaled up)', peer, ours)
    one = Isotonic().fit(few, few_true)
    other = Isotonic().fit(dense, few_true, nan="absent")
    agree("knots", one.fitted_.maps.y, other.fitted_.maps.y)

    title(f"repaired top {K} of {what}")
    fitted = Isotonic().fit(scores, true).fitted_
    ours = measure(lambda: fitted.rank(scores, k=K), 3)
    line("repair.rank of candidates", ours)
    peer = measure(lambda: fitted.rank(zeros, k=K), 2, scale)
    line("all cells (scaled up)", peer, ours)
    agree("top labels", fitted.rank(few, k=K), fitted.rank(dense, k=K, nan="absent"))


def exclude_some(scores: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.asarray(np.random.default_rng(2).random(scores.shape, np.float32) < 0.01)


def compare_excluded(size: Size) -> None:
    rng = np.random.default_rng(1)
    shape = (size.n_rows, size.excluded_labels)
    scores = rng.random(shape, np.float32)
    true = sparse.csr_array(rng.random(shape, np.float32) < 0.01 * scores)
    gone = exclude_some(scores)
    some, part = sparse.csr_array(gone), size.part
    what = f"{shape[0]:,} x {shape[1]:,} float32, 1% of the cells excluded"
    fitted = Isotonic().fit(scores, true).fitted_
    without = np.where(gone[:part], np.float32(-1), scores[:part])

    for name, call in (
        (f"top {K}", lambda **told: oddslip.rank(scores, k=K, **told)),
        (f"MAP@{K}", lambda **told: average_precision_at_k(scores, true, k=K, **told)),
        (f"repaired top {K}", lambda **told: fitted.rank(scores, k=K, **told)),
        ("isotonic fit", lambda **told: Isotonic().fit(scores, true, **told)),
    ):
        title(f"{name} of {what}")
        line("with exclusions", ours := measure(lambda call=call: call(exclude=some), 3))
        line("without", measure(call, 3), ours, "below 1: what exclusions cost")
        found = oddslip.rank(scores[:part], k=K, exclude=some[:part])
        agree("top labels", found, np.argsort(-without, axis=1, kind="stable")[:, :K])


def run(size: Size) -> None:
    """Candidates beside all cells, then exclusions beside none."""
    compare_candidates(size)
    compare_excluded(size)
