"""The look through a sparse matrix before compiled code follows it, beside the job that it guards.

The peer is scipy's own full check of the same matrix. Both must let the same matrices through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

import oddslip
from benchmarks.timing import agree, line, measure, title
from benchmarks.training import Data, booster_parameters, make_rows
from oddslip.core.sparse import ascends, check_sparse
from oddslip.errors import InvalidInput


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    prevalence: float
    features: Data
    rounds: int
    repeats: int


REAL = Size(40_000, 1_000, 0.01, Data(20_000, 1_000, 0.02, 32), rounds=60, repeats=5)
TOY = Size(300, 40, 0.1, Data(600, 50, 0.1, 4), rounds=5, repeats=2)
BREAKS: dict[str, tuple[str, int, int]] = {  # array, place, what stands there
    "an index one too far": ("indices", 5, 10**6),
    "an index below zero": ("indices", 5, -1),
    "indptr that falls": ("indptr", 2, 10**6),
    "indptr that starts late": ("indptr", 0, 1),
    "indptr that ends late": ("indptr", -1, 10**9),
}


def look_through(matrix: Any) -> bool:
    """Ours, as every verb does it: indices, pointers, order, repeats."""
    check_sparse(matrix, "the matrix")
    return ascends(matrix.indptr, matrix.indices)


def look_with_scipy(matrix: Any) -> bool:
    """The peer's, on the same arrays in a new matrix: a flag that was set is not believed."""
    fresh = csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    fresh.check_format(full_check=True)
    return bool(fresh.has_canonical_format)


def lets_through(look: Callable[[Any], bool], matrix: Any) -> bool:
    try:
        return look(matrix)
    except (InvalidInput, ValueError):
        return False


def break_matrix(matrix: Any, name: str) -> Any:
    """A copy with one number changed after scipy has made it."""
    array, place, number = BREAKS[name]
    broken = matrix.copy()
    getattr(broken, array)[place] = number
    return broken


def compare(name: str, matrix: Any, job: Callable[[], Any], repeats: int) -> None:
    title(f"{name}: {matrix.shape[0]:,} x {matrix.shape[1]:,}, {matrix.nnz:,} cells stored")
    whole = measure(job, repeats)
    line("the whole job", whole)
    ours = measure(lambda: look_through(matrix), 3 * repeats)
    line("the look through its matrix", ours, note=f"{ours.cpu / whole.cpu:.2%} of the job's CPU")
    line("scipy's full check", measure(lambda: look_with_scipy(matrix), 3 * repeats), ours)
    tried = [matrix, *(break_matrix(matrix, each) for each in BREAKS)]
    answers = [
        [lets_through(look, each) for each in tried] for look in (look_through, look_with_scipy)
    ]
    agree("what is let through", *answers)


def run(size: Size) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((size.n_rows, size.n_labels), np.float32)
    labels = csr_matrix(rng.random(scores.shape, np.float32) < size.prevalence)
    compare(
        "evaluate, sparse labels",
        labels,
        lambda: oddslip.evaluate(scores, labels, k=7, n_replicates=0),
        size.repeats,
    )
    X, Y = make_rows(size.features)
    model = oddslip.OneVsRest(parameters=booster_parameters(size.rounds)).fit(X, Y)
    compare("score, sparse features", X, lambda: model.predict_margin(X), size.repeats)
