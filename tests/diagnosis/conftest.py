"""Scenes with known marginals, each diagnosed once."""

from functools import cache, partial

import numpy as np
import pytest

from experiments.verdict_simulation import (
    N_LABELS,
    SCENES,
    Scene,
    draw_pair,
    starve,
    tell_capped,
    tell_pair,
)
from oddslip.diagnosis import diagnose

SEED = 1


def uneven(common, rare, n_common=12):
    """A share of ln w that the commonest labels realize, and one that all others do."""
    prior = draw_pair(SEED).prior
    realized = np.full(N_LABELS, rare)
    realized[np.argsort(-prior)[:n_common]] = common
    return realized


def tell_few(pair, n_calibration=None, n_evaluated=None, tell=tell_pair):
    told = tell(pair)
    if n_calibration:
        told["calibration"] = tuple(part[:n_calibration] for part in told["calibration"])
    for name in ("scores", "labels", "unweighted"):
        told[name] = told[name][:n_evaluated]
    return told


# What the inversion does, with and against the paper's association, besides the scenes of the study.
MORE = {
    scene.name: scene
    for scene in (
        Scene("uneven", "", (), world={"realized": uneven(0.0, 1.0)}),
        Scene("uneven and short", "", (), world={"realized": uneven(0.0, 0.7)}),
        Scene("starved", "", (), world=starve()),
        Scene("short, with dead labels", "", (), world={"realized": 0.7, "n_dead": 6}),
        Scene(
            "capped, few to calibrate",
            "",
            (),
            partial(tell_few, n_calibration=100, tell=tell_capped),
            {"cap": 3.0},
        ),
        Scene(
            "capped, some to calibrate", "", (), partial(tell_few, n_calibration=500), {"cap": 3.0}
        ),
        Scene("capped lower", "", (), world={"cap": 2.5}),
        Scene("capped, few to evaluate", "", (), partial(tell_few, n_evaluated=200), {"cap": 3.0}),
    )
}
PAIRED = dict(list(SCENES.items())[:8])  # those with a twin
KNOWN = PAIRED | MORE


@cache
def pair_of(name):
    return draw_pair(SEED, **KNOWN[name].world)


@cache
def arguments_of(name):
    """What a user would pass to `diagnose` in this scene."""
    return KNOWN[name].draw(SEED) | {"n_replicates": 300}


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
    return tuple(KNOWN)
