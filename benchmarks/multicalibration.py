"""`Repair` beside MCGrad, the multicalibration library: gain on new rows, and the time of a fit.

Rows of a weighted model, 40 labels. MCGrad has its default settings, the label as its segment,
without and with numbers of the row. It is no dependency: without it its lines are left out. A loop
of scikit-learn's isotonic regression is the peer whose answer ours must equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import oddslip
from benchmarks.peers import fit_isotonic
from benchmarks.timing import agree, line, take_time, title
from experiments.mcgrad import calibrate_with_mcgrad
from oddslip.calibrators import Isotonic
from oddslip.datasets import synthetic_pair

K = 7
Floats = NDArray[np.float64]


class Size(NamedTuple):
    n_rows: int  # to fit on, and as many to judge on
    n_labels: int


REAL = Size(4_000, 40)
TOY = Size(300, 6)


Method = Callable[[Floats, Floats, Floats], Floats]
by_row = partial(calibrate_with_mcgrad, by_row=True)


def repair_cells(scores: Floats, labels: Floats, others: Floats) -> Floats:
    """By the default rule."""
    repair = oddslip.Repair(k=min(K, scores.shape[1] - 1)).fit(scores, labels)
    return repair.transform(others)  # type: ignore[no-any-return]


def fit_ours(scores: Floats, labels: Floats, others: Floats) -> Floats:
    """Isotonic regression per label."""
    return Isotonic().fit(scores, labels).transform(others)  # type: ignore[no-any-return]


def fit_by_loop(scores: Floats, labels: Floats, others: Floats) -> Floats:
    """The same by a loop over scikit-learn's."""
    fits = fit_isotonic(scores.T, labels.T)
    return np.column_stack([fit.predict(each) for fit, each in zip(fits, others.T, strict=True)])


def run(size: Size) -> None:
    pair = synthetic_pair(2 * size.n_rows, size.n_labels, noise=0.5, prevalence=(0.02, 0.4), seed=0)
    fit, new = slice(None, size.n_rows), slice(size.n_rows, None)
    scores, labels = pair.weighted.astype(np.float64), pair.labels
    k = min(K, size.n_labels - 1)

    def judge(cells: Floats) -> float:
        return float(oddslip.evaluate(cells, labels[new], k=k, n_replicates=0)["map"].value)

    raw = judge(scores[new])
    ours: dict[str, Method] = {'Repair(rule="auto")': repair_cells, "Isotonic": fit_ours}
    peers = {"scikit-learn, isotonic": ("Isotonic", fit_by_loop)}
    if find_spec("mcgrad") is None:
        print("  MCGrad is not installed: left out.")
    else:
        both = {"label": calibrate_with_mcgrad, "label and row": by_row}
        peers |= {f"MCGrad, {name}": ('Repair(rule="auto")', each) for name, each in both.items()}
    shape = f"{size.n_rows:,} x {size.n_labels}"
    title(f"calibrate {shape}, map as many new rows; raw MAP@{k} {raw:.4f}, gains")
    repair_cells(*(each[:200] for each in (scores, labels, scores)))  # loads all modules
    times, cells = {}, {}
    for name, method in ours.items():
        cells[name], times[name] = take_time(partial(method, scores[fit], labels[fit], scores[new]))
        line(name, times[name], note=f"{judge(cells[name]) - raw:+.4f}")
    for name, (own, method) in peers.items():
        theirs, took = take_time(partial(method, scores[fit], labels[fit], scores[new]))
        line(name, took, times[own], note=f"{judge(theirs) - raw:+.4f}")
        if own == "Isotonic":
            agree("isotonic cells", cells[own], theirs, 1e-9)
