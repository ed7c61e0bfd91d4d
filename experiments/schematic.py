"""Figure 0: the paper's schematic, computed by the library's own functions, not by hand.

Nothing in it is measured on data: (a) shifts of drawn margins with and without a cap, (b) the parts
of the loss of a synthetic pair, (c) one row of another that has a dead label.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.figures.schematic import PARTS, REPAIRS, Schematic
from oddslip.calibrators import Isotonic
from oddslip.datasets.synthetic import synthetic_pair
from oddslip.diagnosis import diagnose
from oddslip.shifts import log_odds, realized_shift, step_budget

ROUNDS, RATE, CAP = 60, 0.05, 1.5
_N_ROWS, _SPREAD, _FURTHEST = 4000, 1.2, 26.0
_N_SHOWN = 6  # labels of the row with a dead one


def make_schematic(seed: int = 42) -> Schematic:
    """The numbers of figure 0.

    Examples
    --------
    >>> schematic = make_schematic()
    >>> float(schematic.capped.max()) <= schematic.budget
    True
    """
    return Schematic(**_shift(seed), **_decompose(seed), **_take_over(seed))


def _shift(seed: int) -> dict[str, Any]:
    """(a) Realized over intended shift: every weight is a label of one panel."""
    intended = np.linspace(0, _FURTHEST, 209)
    margins = np.random.default_rng(seed).normal(-4.5, _SPREAD, (_N_ROWS, 1))
    prior = float((1 / (1 + np.exp(-margins))).mean())
    start, budget = float(log_odds([[prior]])[0, 0]), step_budget(ROUNDS, RATE, CAP)
    shifted = margins + intended
    capped = start + np.clip(shifted - start, -budget, budget)
    stored = (1 / (1 + np.exp(-shifted))).astype(np.float32)
    priors = np.full(intended.size, prior)
    free = realized_shift(stored, priors)
    shift = realized_shift(capped, priors, kind="margin")
    return {
        "intended": intended,
        "free": free.shift,
        "identified": free.identified,
        "capped": shift.shift,
        "budget": budget,
    }


def _decompose(seed: int) -> dict[str, Any]:
    """(b) Parts of the loss, and what each repair returns of it."""
    pair = synthetic_pair(6000, 40, noise=0.7, saturate=0.15, seed=seed)
    held_out = pair.calibration
    diagnosis = diagnose(
        pair.weighted[~held_out],
        pair.labels[~held_out],
        k=7,
        weights=pair.weights,
        unweighted=pair.unweighted[~held_out],
        calibration=(pair.weighted[held_out], pair.labels[held_out]),
        prior=pair.prior,
        n_replicates=0,
    ).decomposition
    assert diagnosis is not None
    values = diagnosis.to_dict()
    return {
        "parts": {name: values["shares"][name] for name in PARTS},
        "returned": {name: values["returned"][name] for name in REPAIRS},
    }


def _take_over(seed: int) -> dict[str, Any]:
    """(c) A row whose dead label, passed through, is shown first; and the same row by the prior."""
    pair = synthetic_pair(6000, 12, n_dead=1, signal=0.8, prevalence=(0.005, 0.15), seed=seed)
    held_out, dead = pair.calibration, int(pair.dead[0])
    fitted = {}
    for policy in ("identity", "prior"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a dead label rises is the point
            maps = Isotonic(dead=policy, prior=pair.prior)
            fitted[policy] = maps.fit(pair.weighted[held_out], pair.labels[held_out])
    rows = pair.weighted[~held_out]
    passed: NDArray[Any] = fitted["identity"].transform(rows)
    others = np.delete(passed, dead, axis=1)
    best = others.max(axis=1)
    # Of the rows in which the dead label is first, that whose best other label is strongest.
    at = int(np.where(passed[:, dead] > 2 * best, best, -1.0).argmax())
    order = np.argsort(-others[at], kind="stable")[: _N_SHOWN - 1]
    return {
        "calibrated": others[at][order],
        "dead_identity": float(passed[at, dead]),
        "dead_prior": float(fitted["prior"].transform(rows[at : at + 1])[0, dead]),
        "bound": float(best[at]),
    }
