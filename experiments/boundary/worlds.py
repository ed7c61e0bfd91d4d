"""Generated worlds: rows, labels and a booster drawn together, trained at four weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.store import WEIGHTS
from oddslip.datasets.synthetic import synthetic_rows
from oddslip.learners import OneVsRest
from oddslip.metrics import average_precision_at_k

K = 7
N_TEST = 1000
MAX_TREES = 1_500  # of all labels of an arm together, unless told; rounds give way
MAX_PREVALENCE = 0.5  # no label is true more often
DESIGN_SEED, TRAINING_SEED = 0, 42
FIXED = {"max_bin": 31}  # for speed: trees of few rows cost what their bins cost
# What is drawn, each evenly on a logarithmic scale unless it says otherwise.
RANGES: dict[str, tuple[float, float]] = {
    "n_labels": (10, 1000),
    "n_rows": (300, 2000),
    "n_features": (4, 16),
    "true_labels": (1, 10),  # mean of a row
    "decades": (0.5, 3.0),  # that the prevalences span; evenly
    "signal": (0.5, 3.0),
    "num_leaves": (4, 63),
    "min_data_in_leaf": (5, 100),
    "num_iterations": (20, 200),
    "learning_rate": (0.02, 0.2),
    "max_delta_step": (0.1, 5.0),  # in one world of four; no cap in the others
    "lambda_l2": (0.0, 1.0),  # 1 in one world of four, 0 in the others
}
WHOLE = ("n_labels", "n_rows", "n_features", "num_leaves", "min_data_in_leaf", "num_iterations")
BOOSTER = ("num_leaves", "min_data_in_leaf", "num_iterations", "learning_rate", "lambda_l2")


def draw_design(n_worlds: int, most_trees: int = MAX_TREES) -> list[dict[str, Any]]:
    """The first worlds of one Sobol sequence: a longer design begins with a shorter one."""
    from scipy.stats.qmc import Sobol

    power = max(1, math.ceil(math.log2(max(2, n_worlds))))
    points = Sobol(len(RANGES), scramble=True, rng=DESIGN_SEED).random_base2(power)
    return [_world(point, seed, most_trees) for seed, point in enumerate(points[:n_worlds])]


def _world(point: NDArray[np.float64], seed: int, most_trees: int) -> dict[str, Any]:
    place = dict(zip(RANGES, point.tolist(), strict=True))
    world: dict[str, Any] = {}
    for name, (low, high) in RANGES.items():
        if name in ("decades", "signal"):
            world[name] = low + place[name] * (high - low)
        elif name == "max_delta_step":
            at = place[name] * 4  # the last quarter has a cap
            world[name] = low * (high / low) ** (at - 3) if at >= 3 else 0.0
        elif name == "lambda_l2":
            world[name] = 1.0 if place[name] >= 0.75 else 0.0
        else:
            world[name] = low * (high / low) ** place[name]
        world[name] = round(world[name]) if name in WHOLE else round(float(world[name]), 4)
    most_rounds = max(1, most_trees // world["n_labels"])
    world["num_iterations"] = min(world["num_iterations"], most_rounds)
    return world | {"seed": seed}


def commonest(world: dict[str, Any]) -> float:
    """Prevalence of the commonest label, so that rows have as many true labels as drawn."""
    nat = world["decades"] * math.log(10)
    mean = world["true_labels"] / world["n_labels"]
    return float(min(MAX_PREVALENCE, mean * nat / -math.expm1(-nat)))


def train_world(world: dict[str, Any]) -> dict[str, Any]:
    """Positives of each label among the training rows; MAP@7 and saturation at each weight."""
    high, n_rows = commonest(world), world["n_rows"]
    rows = synthetic_rows(
        n_rows + N_TEST,
        world["n_labels"],
        n_features=world["n_features"],
        prevalence=(high * 10 ** -world["decades"], high),
        signal=world["signal"],
        seed=world["seed"],
    )
    X, Y, truth = rows.X[:n_rows], rows.labels[:n_rows], rows.labels[n_rows:]
    arms = {}
    for weight, label_weights in WEIGHTS.items():
        model = OneVsRest(
            "lightgbm",
            weights=label_weights,
            max_delta_step=world["max_delta_step"],
            parameters={name: world[name] for name in BOOSTER} | FIXED,
            seed=TRAINING_SEED,
            threads=1,
        ).fit(X, Y)
        scores = model.predict_stored(rows.X[n_rows:])
        arms[weight] = {
            "map": float(average_precision_at_k(scores, truth, k=K)),
            "saturated_share": float((scores.astype(np.float32) == 1).mean()),
        }
    return {"counts": Y.sum(axis=0).tolist(), "arms": arms}
