"""Scenes with known marginals, each diagnosed once."""

from functools import cache

import numpy as np
import pytest

from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose

N_ROWS, N_LABELS, SEED, K = 4000, 40, 1, 7


def uneven(common, rare, n_common=12):
    """A share of ln w that the commonest labels realize, and one that all others do."""
    prior = synthetic_pair(N_ROWS, N_LABELS, seed=SEED).prior
    realized = np.full(N_LABELS, rare)
    realized[np.argsort(-prior)[:n_common]] = common
    return realized


def starved(light=3.0, n_dead=0, dead=20.0):
    """Heavy weights that were not realized, and light ones, the greater part, that were."""
    is_dead = np.arange(N_LABELS) >= N_LABELS - n_dead
    heavy = (np.arange(N_LABELS) % 5 < 2) & ~is_dead
    return {
        "weights": np.where(is_dead, dead, np.where(heavy, 50.0, light)),
        "realized": np.where(heavy, 0.0, 1.0),
        "n_dead": n_dead,
    }


PAIRS = {
    "no weights": {"weights": "none"},
    "common weight": {"weights": "common"},
    "realized": {},
    "capped": {"cap": 3.0},
    "saturated": {"saturate": 0.2, "noise": 0.5},
    "dead labels": starved(n_dead=6),
    "scarce": {"cap": 1.5},
    "drift": {"cap": 3.0},
    # What the inversion does, with and against the paper's association.
    "uneven": {"realized": uneven(0.0, 1.0)},
    "uneven and short": {"realized": uneven(0.0, 0.7)},
    "starved": starved(),
    "short, with dead labels": {"realized": 0.7, "n_dead": 6},
    "capped, few to calibrate": {"cap": 3.0},
    "capped, some to calibrate": {"cap": 3.0},
    "capped lower": {"cap": 2.5},
    "capped, few to evaluate": {"cap": 3.0},
}
CALIBRATED = {"scarce": 60, "capped, few to calibrate": 100, "capped, some to calibrate": 500}
EVALUATED = {"capped, few to evaluate": 200}


@cache
def pair_of(name):
    return synthetic_pair(N_ROWS, N_LABELS, seed=SEED, **PAIRS[name])


@cache
def arguments_of(name):
    """What a user would pass to `diagnose` in this scene."""
    pair = pair_of(name)
    rows, truth = pair.calibration, pair.labels[pair.calibration]
    evaluated = np.flatnonzero(~rows)[: EVALUATED.get(name)]
    if name in CALIBRATED:
        rows = np.flatnonzero(rows)[: CALIBRATED[name]]
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
    if name in ("capped", "capped, few to calibrate"):
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
