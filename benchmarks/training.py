"""One-vs-rest training with LightGBM against the loops of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.timing import Stages, agree, line, lines, scaled, take_time, title
from oddslip import OneVsRest

CHECKED = 1_000  # rows whose probabilities are compared


class Data(NamedTuple):
    """Rows to train on: sparse counts below a density of 1, else dense normal features."""

    n_rows: int
    n_features: int
    density: float
    n_labels: int


class Size(NamedTuple):
    wide: Data
    narrow: Data
    peer_labels: int  # labels the peers train; their times are scaled up
    rounds: int


REAL = Size(Data(60_000, 8_000, 0.004, 40), Data(20_000, 500, 1.0, 24), peer_labels=4, rounds=60)
TOY = Size(Data(1_000, 200, 0.05, 6), Data(600, 20, 1.0, 6), peer_labels=2, rounds=5)


def make_rows(data: Data, seed: int = 0) -> tuple[Any, NDArray[np.uint8]]:
    """Features, and labels of 1 to 5 % that depend on them."""
    rng = np.random.default_rng(seed)
    shape = (data.n_rows, data.n_features)
    X: Any = rng.normal(size=shape) if data.density >= 1 else make_counts(rng, shape, data.density)
    Y = np.zeros((data.n_rows, data.n_labels), np.uint8)
    for label in range(data.n_labels):
        margins = X @ rng.normal(size=data.n_features) + rng.logistic(size=data.n_rows)
        Y[:, label] = margins > np.quantile(margins, 1 - rng.uniform(0.01, 0.05))
    return X, Y


def make_counts(rng: np.random.Generator, shape: tuple[int, int], density: float) -> Any:
    """Sparse counts, as of purchases: most cells 0, most others 1 or 2."""
    # Drawn row by row: scipy.sparse.random shuffles all cells and would be the peak of memory.
    indptr = np.concatenate([[0], np.cumsum(rng.binomial(shape[1], density, shape[0]))])
    columns = rng.integers(0, shape[1], indptr[-1], dtype=np.int32)
    counts = rng.geometric(0.6, indptr[-1]).astype(np.float64)
    X = sparse.csr_matrix((counts, columns, indptr), shape)
    X.sum_duplicates()
    return X


def booster_parameters(rounds: int) -> dict[str, Any]:
    """What both sides are told, under names that both know."""
    return {"n_estimators": rounds, "learning_rate": 0.05, "num_leaves": 31}


def train_in_stages(
    model: OneVsRest, X: Any, Y: NDArray[np.uint8]
) -> tuple[Stages, NDArray[np.float64]]:
    """Times of binning, growing and predicting; and the margins predicted."""
    stages = Stages()
    prepared = stages("binning", lambda: model.prepare(X))
    stages("growing", lambda: model.fit(prepared, Y))
    return stages, stages("predicting", lambda: model.predict_margin(X))


def warm_up(rounds: int = 1) -> None:
    """Load LightGBM and the kernels, so that neither time nor memory of that is measured."""
    X, Y = make_rows(Data(200, 4, 1.0, 2))
    OneVsRest(parameters=booster_parameters(rounds)).fit(X, Y).predict_proba(X)


def compare(name: str, data: Data, size: Size, targets: tuple[str, str]) -> None:
    from lightgbm import LGBMClassifier
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import MultiOutputClassifier

    X, Y = make_rows(data)
    part, scale = Y[:, : size.peer_labels], data.n_labels / size.peer_labels
    told = booster_parameters(size.rounds)
    shape = f"{data.n_rows:,} x {data.n_features:,}"
    title(f"{name}: {shape}, {data.n_labels} labels, {size.rounds} trees each")
    model, ours = take_time(lambda: OneVsRest(parameters=told).fit(X, Y))
    line("OneVsRest, grouped", ours)
    found = model.predict_proba(X[:CHECKED])[:, : size.peer_labels]

    def peer(name: str, fit: Callable[[], Any], target: str) -> Any:
        fitted, times = take_time(fit)
        line(f"{name}, {size.peer_labels} labels (scaled up)", scaled(times, scale), ours, target)
        return fitted

    loop = MultiOutputClassifier(LGBMClassifier(**told, verbosity=-1, n_jobs=2))
    pool = OneVsRestClassifier(LGBMClassifier(**told, verbosity=-1, n_jobs=1), n_jobs=2)
    pool.fit(X[:CHECKED, :2], part[:CHECKED])  # its workers are started and stay
    peer("MultiOutputClassifier", lambda: loop.fit(X, part), targets[0])
    peer("OneVsRestClassifier", lambda: pool.fit(X, part), targets[1])
    for fitted in (loop, pool):
        rows = [each.predict_proba(X[:CHECKED])[:, 1] for each in fitted.estimators_]
        agree("probabilities", found, np.stack(rows, axis=1), 1e-6)
    some = Y[:, : min(8, data.n_labels)]
    stages, _ = train_in_stages(OneVsRest(parameters=told, threads=1), X, some)
    lines(stages.done, f"{some.shape[1]} labels on one thread: ")


def run(size: Size) -> None:
    warm_up()
    compare("Wide sparse counts", size.wide, size, ("target 4x wall", "target 3x wall"))
    compare("Narrow dense", size.narrow, size, ("target 1.5x wall", "target 1.2x wall"))
