"""`reproduce_synthetic`: a logistic truth with known marginals, and five learners on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.store import RESULTS, CellStore, check_names, score_ranking
from oddslip.calibrators import Ceiling, build_calibrator
from oddslip.core.labels import DenseLabels
from oddslip.core.weights import balance_ratios
from oddslip.datasets.synthetic import SyntheticRows, synthetic_rows
from oddslip.io.files import hash_bytes
from oddslip.io.progress import progress_bar
from oddslip.learners import OneVsRest
from oddslip.metrics import average_precision_at_k

N_ROWS = 20_000  # to train on, and as many to test
N_LABELS, N_FEATURES, K = 20, 8, 5
COMMONEST = 0.3  # prevalence of the commonest label; D decades below it is the rarest
# Standard deviation of a label's log-odds. Set so that the truth's own MAP@5 comes near the
# column "true marginals" of Table S10; nothing else of that table was looked at for it.
SIGNAL = 0.7
DECADES, EXPONENTS, SEEDS = (1, 2, 3), (0.0, 0.5, 1.0, 1.5), (0, 1, 2)
SATURATED = 1 - 1e-3  # as in Tables S8 and S9
TRAINING_SEED = 42
_LIGHTGBM = {"learning_rate": 0.05, "min_data_in_leaf": 20}
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "logistic": ("logistic", {"C": 1.0}),
    "lightgbm-30x4": ("lightgbm", {"num_iterations": 30, "num_leaves": 4, **_LIGHTGBM}),
    "lightgbm-300x31": ("lightgbm", {"num_iterations": 300, "num_leaves": 31, **_LIGHTGBM}),
    "xgboost": (
        "xgboost",
        {"n_estimators": 200, "max_depth": 5, "learning_rate": 0.05, "start": "weighted"},
    ),
    "mlp": ("mlp", {"hidden": [64, 64], "epochs": 20, "weight_decay": 1e-4}),
}
MEASURES = 1  # raised when what a cell measures changes

Cells = dict[str, dict[str, Any]]


def reproduce_synthetic(
    *,
    decades: Sequence[int] = DECADES,
    exponents: Sequence[float] = EXPONENTS,
    learners: Sequence[str] = tuple(LEARNERS),
    seeds: Sequence[int] = SEEDS,
    results: Any = RESULTS,
    finished: bool = False,
) -> Cells:
    """Draw, train, measure and keep every cell asked for; returns all of them by key.

    Parameters
    ----------
    decades, exponents, seeds : sequences
        Decades D that the prevalences span; exponents e of the weights w = r^e; seeds of worlds.
    learners : sequence of str
        Of `LEARNERS`.
    results : path
        Where finished cells are kept and found again.
    finished : bool
        Only read the cells that are finished.

    Examples
    --------
    >>> reproduce_synthetic(decades=[1], seeds=[0], learners=["logistic"])  # doctest: +SKIP
    """
    check_names("learners", learners, LEARNERS)
    check_names("decades", decades, DECADES)
    store = CellStore(results, "synthetic")
    cells: Cells = {}
    total = len(decades) * len(seeds) * len(exponents) * len(learners)
    with progress_bar("synthetic cells", total) as advance:
        for seed in seeds:
            for decade in decades:
                for exponent in exponents:
                    for learner in learners:
                        key = cell_key(decade, exponent, learner, seed)
                        settings = cell_settings(decade, exponent, learner, seed)
                        compute = partial(measure_cell, decade, exponent, learner, seed)
                        command = (
                            f"python -m experiments synthetic --decades {decade} "
                            f"--exponent {exponent:g} --learner {learner} --seed {seed}"
                        )
                        cell = store.find(
                            key, settings, None if finished else compute, command=command
                        )
                        if cell is not None:
                            cells[key] = cell
                        advance(1)
    return cells


def cell_key(decade: int, exponent: float, learner: str, seed: int) -> str:
    """The name a cell is kept under."""
    return f"D{decade}-e{exponent:g}-{learner}-seed{seed}"


def cell_settings(decade: int, exponent: float, learner: str, seed: int) -> dict[str, Any]:
    """All that a cell's numbers depend on."""
    name, parameters = LEARNERS[learner]
    return {
        "world": {
            "n_rows": N_ROWS,
            "n_labels": N_LABELS,
            "n_features": N_FEATURES,
            "prevalence": prevalence_range(decade),
            "signal": SIGNAL,
            "seed": seed,
        },
        "exponent": exponent,
        "learner": name,
        "parameters": parameters,
        "training_seed": TRAINING_SEED,
        "k": K,
        "measures": MEASURES,
    }


def prevalence_range(decade: int) -> tuple[float, float]:
    """The rarest label and the commonest."""
    return COMMONEST * 10.0**-decade, COMMONEST


def draw_world(decade: int, seed: int) -> SyntheticRows:
    """Training rows, then as many test rows, of one logistic truth."""
    return synthetic_rows(
        2 * N_ROWS,
        N_LABELS,
        n_features=N_FEATURES,
        prevalence=prevalence_range(decade),
        signal=SIGNAL,
        seed=seed,
    )


def measure_cell(decade: int, exponent: float, learner: str, seed: int) -> dict[str, Any]:
    """MAP@5 of the truth, of a learner, of its inversion and of its ceiling."""
    world = draw_world(decade, seed)
    X, Y = world.X[:N_ROWS], world.labels[:N_ROWS]
    X_test, Y_test = world.X[N_ROWS:], world.labels[N_ROWS:]
    weights = balance_ratios(Y.sum(axis=0), N_ROWS) ** exponent
    name, parameters = LEARNERS[learner]
    model = OneVsRest(
        name, weights=weights, parameters=parameters, seed=TRAINING_SEED, threads=1
    ).fit(X, Y)
    scores = model.predict_stored(X_test)
    inversion = build_calibrator("inversion", prior=Y.mean(axis=0), weights=weights)
    truth = DenseLabels(Y_test).positives(0, N_ROWS)
    rankings = {
        "inversion": inversion.fit(scores, Y_test).rank(scores, k=K),
        "ceiling": Ceiling().fit(scores, Y_test).rank(scores, k=K),
    }
    return {
        "spread": float(np.ptp(np.log(weights))),
        "truth": float(average_precision_at_k(world.marginals[N_ROWS:], Y_test, k=K)),
        "raw": float(average_precision_at_k(scores, Y_test, k=K)),
        **{name: score_ranking(ranking, truth, N_LABELS) for name, ranking in rankings.items()},
        "saturated_share": float((scores >= SATURATED).mean()),
        "sha256": hash_bytes(np.ascontiguousarray(scores).tobytes()),
    }
