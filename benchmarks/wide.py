"""Few rows and many labels, 3,000 rows of 250, 1,000 and 4,000 labels: what a label costs.

Fits of all rows, the choice of a repair and a diagnosis, whose fits grow with the labels and hardly
with the rows. Beside them, isotonic regression and Platt scaling by scikit-learn, label by label.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

import oddslip
from benchmarks.peers import fit_isotonic
from benchmarks.timing import Stages, Times, agree, alone, line, lines, scaled, take_time, title
from oddslip.calibrators import Hierarchical, Isotonic, Platt

K = 7


class Size(NamedTuple):
    n_rows: int
    n_labels: tuple[int, ...]
    part: int  # labels that scikit-learn is given


REAL = Size(3_000, (250, 1_000, 4_000), part=50)
TOY = Size(400, (40,), part=10)


def make_panel(n_rows: int, n_labels: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Labels as rare as 1 in 1,000 to 1 in 3, and scores shifted by their weights."""
    rng = np.random.default_rng(0)
    prevalence = np.maximum(10 ** rng.uniform(-3, -0.5, n_labels), 2 / n_rows)
    margin = logit(prevalence) + 1.2 * rng.standard_normal((n_rows, n_labels))
    labels = rng.random(margin.shape) < expit(margin)
    noise = 0.3 * rng.standard_normal(margin.shape)
    return expit(0.8 * margin + rng.uniform(0, 3, n_labels) + noise).astype(np.float32), labels


def jobs(scores: Any, labels: Any) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    return {
        "evaluate": lambda: oddslip.evaluate(scores, labels, k=K),
        "Isotonic().fit": lambda: Isotonic().fit(scores, labels),
        "Platt().fit": lambda: Platt().fit(scores, labels),
        "Hierarchical().fit": lambda: Hierarchical().fit(scores, labels),
        'Repair(rule="auto").fit': lambda: oddslip.Repair(k=K).fit(scores, labels),
        "diagnose": lambda: oddslip.diagnose(scores, labels, k=K),
    }


def take_job(name: str, n_rows: int, n_labels: int) -> Times:
    """In a process of its own: what a job takes, after a small one that loads all modules."""
    jobs(*make_panel(200, 10))[name]()
    call = jobs(*make_panel(n_rows, n_labels))[name]
    stages = Stages()
    stages(name, call)
    lines(stages.done)
    return stages.done[0].times


def fit_platt(scores: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Unpenalised logistic regression on the log-odds, label by label; the calibrated cells."""
    from sklearn.linear_model import LogisticRegression

    columns = []
    for x, y in zip(logit(scores).T[:, :, None], labels.T, strict=True):
        fit = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10).fit(x, y)
        columns.append(fit.predict_proba(x)[:, 1])
    return np.stack(columns, axis=1)


def fit_by_peer(scores: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Isotonic regression, label by label; the calibrated cells."""
    fits = fit_isotonic(scores.T, labels.T)
    return np.stack([fit.predict(x) for fit, x in zip(fits, scores.T, strict=True)], axis=1)


def compare(panel: tuple[Any, Any], part: int, ours: dict[str, Times]) -> None:
    """The peer on some labels, scaled up; ours must calibrate them alike."""
    scores, labels = panel[0][:, :part].astype(np.float64), panel[1][:, :part]
    peers = {Isotonic: (fit_by_peer, 1e-9), Platt: (fit_platt, 1e-6)}
    for calibrator, (fit, tolerance) in peers.items():
        name = calibrator.__name__
        theirs, times = take_time(partial(fit, scores, labels))
        times = scaled(times, panel[0].shape[1] / part)
        line(f"scikit-learn, {name}, {part} labels (scaled up)", times, ours[f"{name}().fit"])
        agree(f"{name} maps", calibrator().fit_transform(scores, labels), theirs, tolerance)


def run(size: Size) -> None:
    for n_labels in size.n_labels:
        title(f"{size.n_rows:,} x {n_labels:,} float32, K = {K}")
        panel = make_panel(size.n_rows, n_labels)
        ours = {name: alone(take_job, name, size.n_rows, n_labels) for name in jobs(*panel)}
        compare(panel, size.part, ours)
