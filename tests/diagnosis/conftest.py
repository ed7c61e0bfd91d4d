"""Eight scenes with known marginals, each diagnosed once."""

from functools import cache

import numpy as np
import pytest

from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose

N_ROWS, N_LABELS, SEED, K = 4000, 40, 1, 7
PAIRS = {
    "no weights": {"weights": "none"},
    "common weight": {"weights": "common"},
    "realized": {},
    "capped": {"cap": 3.0},
    "saturated": {"saturate": 0.2, "noise": 0.5},
    "dead labels": {"realized": 0.7, "n_dead": 6},
    "scarce": {"cap": 1.5},
    "drift": {"cap": 3.0},
}


@cache
def pair_of(name):
    return synthetic_pair(N_ROWS, N_LABELS, seed=SEED, **PAIRS[name])


@cache
def arguments_of(name):
    """What a user would pass to `diagnose` in this scene."""
    pair = pair_of(name)
    rows, truth = pair.calibration, pair.labels[pair.calibration]
    evaluated = ~rows
    if name == "scarce":
        rows = np.flatnonzero(rows)[:60]
        truth = pair.labels[rows]
    if name == "drift":  # every second of the commonest labels was rare when calibration ran
        thinned = np.argsort(-pair.prior)[:20:2]
        truth = truth.copy()
        kept = np.random.default_rng(0).random((len(truth), thinned.size)) < 0.15
        truth[:, thinned] &= kept
    told = {
        "scores": pair.weighted[evaluated],
        "labels": pair.labels[evaluated],
        "weights": pair.weights,
        "unweighted": pair.unweighted[evaluated],
        "calibration": (pair.weighted[rows], truth),
        "prior": pair.prior,
        "label_names": pair.label_names,
        "k": K,
        "n_replicates": 300,
    }
    if name == "capped":
        told |= {"rounds": 60, "learning_rate": 0.05, "max_delta_step": 1.0}
    return told


@cache
def diagnosis_of(name):
    return diagnose(**arguments_of(name))


@pytest.fixture(scope="session")
def pair():
    return pair_of


@pytest.fixture(scope="session")
def arguments():
    return lambda name: dict(arguments_of(name))


@pytest.fixture(scope="session")
def scene():
    return diagnosis_of


@pytest.fixture(scope="session")
def scenes():
    return tuple(PAIRS)
