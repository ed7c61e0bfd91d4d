"""Choosing among the paper's seven candidates by 5-fold cross-validation, 40,000 x 1,000 float32.

Against one fit-and-evaluate of ours (a plain loop over folds and candidates does 35 of them), and
against the same rule as a loop over scikit-learn, run on some labels and scaled up. Then "auto"
with all its candidates, beside fits of its smooth maps on the rows of the folds themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import argsort_rows, fit_isotonic, precision_of_rows
from benchmarks.timing import agree, line, measure, title
from oddslip import Repair
from oddslip.calibrators import Isotonic, build_calibrator
from oddslip.selection.folds import assign_folds
from oddslip.sources import open_source

K, N_FOLDS, SEED = 7, 5, 42
TAUS = (0, 1, 2, 5, 10)
SMOOTH = ("label_free", "temperature", "offset", "hierarchical", "platt", "beta")


class Size(NamedTuple):
    n_rows: int
    n_labels: int
    part: int  # labels that scikit-learn is given


REAL = Size(40_000, 1_000, part=20)
TOY = Size(1_500, 60, part=15)


def make_panel(size: Size) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """A weighted arm: all labels alike in level, true ones as rare as 1 in 2,000 to 1 in 30."""
    rng = np.random.default_rng(0)
    level = rng.permutation(np.log(np.geomspace(5e-4, 3e-2, size.n_labels))).astype(np.float32)
    margin = 1.5 * rng.standard_normal((size.n_rows, size.n_labels), np.float32)
    labels = rng.random(margin.shape, np.float32) < 1 / (1 + np.exp(1 - level - margin))
    return 1 / (1 + np.exp(-margin)), labels


def fit_and_evaluate(scores: NDArray[np.float32], labels: NDArray[np.bool_]) -> float:
    """One isotonic fit on four folds' worth of rows, and MAP@K of the rest, calibrated."""
    cut = len(scores) - len(scores) // N_FOLDS
    ranking = Isotonic().fit(scores[:cut], labels[:cut]).rank(scores[cut:], k=K)
    return float(precision_of_rows(ranking, labels[cut:]).mean())


def rows_of_folds(scores: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """The rows of each fold, as `Repair` assigns them."""
    source = open_source(scores)
    folds = assign_folds(source, N_FOLDS, seed=SEED)[0].of_keys(source.row_keys())
    return [np.flatnonzero(folds == fold) for fold in range(N_FOLDS)]


def fit_smooth_by_rows(scores: NDArray[np.float32], labels: NDArray[np.bool_]) -> None:
    """Every smooth candidate fitted on the rows of four folds, five times; nothing is ranked."""
    for held in rows_of_folds(scores):
        kept = np.setdiff1d(np.arange(len(scores)), held)
        rows, truth = scores[kept], labels[kept]
        for name in SMOOTH:
            build_calibrator(name).fit(rows, truth)


def choose_by_loop(scores: NDArray[np.float32], labels: NDArray[np.bool_]) -> dict[str, float]:
    """Out-of-fold MAP@K of raw, pooled and isotonic, which is fitted once for all taus."""
    values = scores.astype(np.float64)
    gained: dict[str, list[NDArray[np.float64]]] = {}
    for held in rows_of_folds(scores):
        kept = np.ones(len(scores), bool)
        kept[held] = False
        pooled = fit_isotonic([values[kept].ravel()], [labels[kept].ravel()])[0]
        fits = fit_isotonic(values[kept].T, labels[kept].T)
        calibrated = np.stack([fit.predict(values[held, j]) for j, fit in enumerate(fits)], axis=1)
        positives = labels[kept].sum(axis=0)
        prior = (positives + 0.5) / (kept.sum() + 1)
        ranked = {
            "raw": values[held],
            "pooled": pooled.predict(values[held].ravel()).reshape(calibrated.shape),
            **{f"isotonic-{tau}": np.where(positives > tau, calibrated, prior) for tau in TAUS},
        }
        for name, cells in ranked.items():
            rows = precision_of_rows(argsort_rows(cells, K), labels[held])
            gained.setdefault(name, []).append(rows)
    return {name: float(np.concatenate(rows).mean()) for name, rows in gained.items()}


def run(size: Size) -> None:
    scores, labels = make_panel(size)
    shape = f"{size.n_rows:,} x {size.n_labels:,} float32"
    title(f"choosing among seven by {N_FOLDS} folds, {shape}, K={K}")
    one = measure(lambda: fit_and_evaluate(scores, labels), 7)
    rule = measure(lambda: Repair(k=K, rule="paper").fit(scores, labels), 5)
    line("the paper's rule, seven candidates, ours", rule)
    line("one fit (4 folds) and evaluation (1), ours", one, rule, "target: 0.12x; in a loop: 0.03x")
    some = (scores[:, : size.part], labels[:, : size.part])
    theirs = measure(lambda: choose_by_loop(*some), 1, size.n_labels / size.part)
    line(f"scikit-learn, shared fits, {size.part} labels (scaled up)", theirs, rule)
    auto = measure(lambda: Repair(k=K, weights="balanced").fit(scores, labels), 1)
    line('rule="auto", all candidates, ours', auto)
    by_hand = measure(lambda: fit_smooth_by_rows(scores, labels), 1)
    line("its six smooth maps by rows, fold by fold, ours", by_hand, auto)
    table = Repair(k=K, rule="paper", n_folds=N_FOLDS, seed=SEED).fit(*some).table_
    means = choose_by_loop(*some)
    ours = dict(zip(table.candidates, table.means, strict=True))
    agree(
        f"out-of-fold MAP of {', '.join(means)}",
        [ours[name] for name in means],
        list(means.values()),
        1e-9,
    )
