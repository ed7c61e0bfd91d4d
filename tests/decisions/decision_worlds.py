"""Rows with scores of weighted models, repairs and decisions of every kind."""

import numpy as np
from scipy.special import expit

from oddslip import Decision
from oddslip.calibrators import Isotonic

DECISIONS = [
    {"rule": "threshold", "goal": "f1"},
    {"rule": "threshold", "goal": "micro_f1", "k_max": 2},
    {"rule": "threshold", "goal": "precision", "target": 0.6},
    {"rule": "threshold", "goal": "recall", "target": 0.8},
    {"rule": "threshold", "goal": "cost", "costs": (1.0, 3.0)},
    {"rule": "common_threshold", "goal": "f1"},
    {"rule": "common_threshold", "goal": "micro_f1"},
    {"rule": "common_threshold", "goal": "precision", "target": 0.5},
    {"rule": "common_threshold", "goal": "missed", "target": 0.2},
    {"rule": "common_threshold", "goal": "wrong", "target": 0.6},
    {"rule": "row", "goal": "f1"},
    {"rule": "row", "goal": "precision", "target": 0.4, "k_max": 3},
    {"rule": "row", "goal": "recall", "target": 0.7},
    {"rule": "row", "goal": "cost", "target": 0.8, "costs": (1.0, 2.0)},
    {"rule": "row", "goal": "missed", "target": 0.3},
    {"rule": "row", "goal": "wrong", "target": 0.5},
    {"rule": "length", "goal": "f1", "n_replicates": 20},
    {"rule": "length", "goal": "missed", "target": 0.3},
]


def draw_rows(seed, n_rows=400, n_labels=6, drift=0.0):
    """Weighted scores and true labels; drift moves the log-odds of the truth and the scores."""
    rng = np.random.default_rng(seed)
    base = np.linspace(-2.5, 0.0, n_labels)
    margins = base + rng.normal(0, 1.5, (n_rows, n_labels)) + drift
    labels = rng.random(margins.shape) < expit(margins - 2 * drift)
    weights = np.linspace(3.0, 0.5, n_labels)
    return expit(margins + weights), labels.astype(np.int64)


def fit_repair(seed=0, n_rows=1000, **options):
    return Isotonic().fit(*draw_rows(seed, n_rows, **options)).fitted_


def fit_decision(repair, arguments, seed=1, **options):
    return Decision(repair, **arguments).fit(*draw_rows(seed), **options)
