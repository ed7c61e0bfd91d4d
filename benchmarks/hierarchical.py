"""Hierarchical fits at 131,209 x 200 float32, against a loop of scikit-learn's logistic regression.

The peer fits every label alone. So does the hierarchical model under a prior that is so wide that
it says nothing: there both must agree. What is timed is the fit that estimates the prior as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import agree, line, measure, title
from oddslip.calibrators import Hierarchical, HierarchicalIsotonic
from oddslip.calibrators.logistic.hierarchy import Hyper, fit_hierarchical
from oddslip.calibrators.logistic.moments import Cells
from oddslip.core import passes
from oddslip.sources import open_source


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    every: int  # one label in so many is fitted by scikit-learn; its time is scaled up
    rarest: float


REAL = Size(131_209, 200, every=10, rarest=2e-4)
TOY = Size(2_000, 20, every=4, rarest=2e-2)
WIDE = Hyper(np.zeros(4), 1.0, np.diag([1e8, 1e8]))


def fit_each(
    columns: NDArray[Any], truths: NDArray[Any], **settings: Any
) -> list[LogisticRegression]:
    """A fit for every label, in a loop."""
    return [
        LogisticRegression(**settings).fit(column[:, None], truth)
        for column, truth in zip(columns, truths, strict=True)
    ]


def fit_apart(margins: NDArray[np.float32], labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Intercept and slope of every label under a prior that says nothing."""
    source = open_source(margins, labels, kind="margin")
    cells = passes.run(source, Cells.read(source))
    passes.run(source, cells.summarise())
    n_labels = margins.shape[1]
    sums = cells.positives_about(0, np.zeros(n_labels))
    prior = np.full(n_labels, 0.01)
    fit = fit_hierarchical(cells.points, cells.weights, cells.n_positives, sums, prior, hyper=WIDE)
    return np.stack([fit.intercept, fit.slope])


def run(size: Size) -> None:
    rng = np.random.default_rng(0)
    prevalence = np.geomspace(size.rarest, 100 * size.rarest, size.n_labels)
    middle = np.log(prevalence / (1 - np.minimum(prevalence, 0.5)))
    margins = (middle + rng.standard_normal((size.n_rows, size.n_labels))).astype(np.float32)
    chance = 1 / (1 + np.exp(-(0.8 * margins - 0.5)))
    labels = rng.random(margins.shape, np.float32) < chance
    part = slice(size.every // 2, None, size.every)
    n_part = len(range(size.n_labels)[part])
    columns, truths = margins[:, part].T.astype(np.float64), labels[:, part].T
    title(f"hierarchical fits, {size.n_rows:,} x {size.n_labels} float32")
    ours = measure(lambda: Hierarchical(kind="margin").fit(margins, labels), 5)
    line("oddslip Hierarchical().fit", ours)
    mixed = measure(lambda: HierarchicalIsotonic(kind="margin").fit(margins, labels), 3)
    line("oddslip HierarchicalIsotonic().fit", mixed)
    theirs = measure(lambda: fit_each(columns, truths), 2, size.n_labels / n_part)
    line(f"scikit-learn, {n_part} labels (scaled up)", theirs, ours, "target: 10x CPU")
    exact = {"C": 1e9, "solver": "newton-cholesky", "tol": 1e-8}
    quick = measure(lambda: fit_each(columns, truths, **exact), 1, size.n_labels / n_part)
    line("the same, newton-cholesky and unpenalised", quick, ours)
    peers = fit_each(columns, truths, **exact)
    wanted = [[peer.intercept_[0] for peer in peers], [peer.coef_[0, 0] for peer in peers]]
    agree("intercept and slope, nothing shared", fit_apart(margins, labels)[:, part], wanted, 1e-3)
