"""Six numbers of a training that has not been run: from label counts and booster parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from oddslip.core.weights import resolve_weights
from oddslip.shifts import step_budget
from oddslip.shifts.flood import flood, overshoot

# Named before anything was fitted.
FEATURES = {
    "spread": "standard deviation over labels of ln w, cut to the step budget, in nat",
    "overshoot": "first step of a leaf with one positive, as a share of the way from the prior to "
    "a stored 1.0; mean over labels, less the same at w = 1",
    "flood": "ln(1 + cells of a row that such leaves hold, each times its overshoot, over K), "
    "less the same at w = 1",
    "slots": "ln(labels / K)",
    "support": "median over labels of ln(positives / fewest rows of a leaf)",
    "reach": "ln(rounds x learning rate)",
}
# Which way each must push the retained share in a model that is held to it; 0: either way.
DIRECTIONS = {"spread": -1, "overshoot": -1, "flood": -1, "slots": 0, "support": 0, "reach": 0}


class Booster(NamedTuple):
    """Parameters of a booster, as `oddslip plan` is told them and a little more."""

    rounds: int
    learning_rate: float
    num_leaves: int = 31
    rows_in_leaf: int = 20
    l2: float = 0.0
    cap: float = 0.0  # 0 for none

    @classmethod
    def of(cls, parameters: Mapping[str, Any], cap: float | None = None) -> Booster:
        """From LightGBM's own names."""
        return cls(
            int(parameters["num_iterations"]),
            float(parameters["learning_rate"]),
            int(parameters["num_leaves"]),
            int(parameters["min_data_in_leaf"]),
            float(parameters.get("lambda_l2", 0.0)),
            float(cap or parameters.get("max_delta_step", 0.0)),
        )

    def settings(self) -> dict[str, Any]:
        """What decides the first step of a leaf."""
        return {
            "learning_rate": self.learning_rate,
            "rows_in_leaf": self.rows_in_leaf,
            "l2": self.l2,
            "max_delta_step": self.cap,
        }


def describe_training(
    counts: ArrayLike, n_rows: int, weights: Any, booster: Booster, k: int
) -> dict[str, float]:
    """The values of `FEATURES`. Labels of a single class have no model and do not count.

    Examples
    --------
    >>> booster = Booster(60, 0.05)
    >>> found = describe_training([300, 30, 3], 1000, "none", booster, k=2)
    >>> found["spread"], found["overshoot"], found["flood"]
    (0.0, 0.0, 0.0)
    """
    positives = np.asarray(counts, np.float64)
    weight = resolve_weights(weights, positives, n_rows)
    mixed = (positives > 0) & (positives < n_rows)
    if not mixed.any():
        return dict.fromkeys(FEATURES, 0.0)
    positives, weight = positives[mixed], weight[mixed]
    prior = positives / n_rows
    budget = step_budget(booster.rounds, booster.learning_rate, booster.cap)
    settings = booster.settings()
    over, before = (overshoot(prior, each, **settings) for each in (weight, np.ones_like(weight)))
    return {
        "spread": float(np.clip(np.log(weight), -budget, budget).std()),
        "overshoot": float((over - before).mean()),
        "flood": flood(positives, n_rows, weight, k=k, num_leaves=booster.num_leaves, **settings),
        "slots": math.log(positives.size / min(k, positives.size)),
        "support": float(np.median(np.log(positives / booster.rows_in_leaf))),
        "reach": math.log(booster.rounds * booster.learning_rate),
    }
