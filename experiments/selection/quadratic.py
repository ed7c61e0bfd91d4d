"""Quadratic scaling: per label, a logistic regression on the margin and its square.

The binary form of what the package ``probmetrics`` calls quadratic scaling, by log-loss and with a
ridge: a smooth map like Platt's with one more coefficient. It may decrease, so it can change the
order of rows within a label.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

MAX_MARGIN = 15.0
RIDGE = 1.0  # pull of slope and square towards those of raw scores, 1 and 0, in cells
N_STEPS = 50
TOLERANCE = 1e-8

Floats = NDArray[np.float64]


class Quadratic:
    """Maps of all labels: log-odds a + b m + c m^2 of a margin m.

    A label without a positive, or with nothing else, gets its prior.

    Parameters
    ----------
    prior : ndarray of shape (n_labels,), optional
        Of labels that are dead; else the smoothed prevalence.

    Examples
    --------
    >>> chance = np.full((4, 1), 0.5)
    >>> truth = np.array([[True], [False], [False], [False]])
    >>> expit(Quadratic().fit(chance, truth).margins(chance))[0].round(3)
    array([0.25])
    """

    def __init__(self, prior: Floats | None = None) -> None:
        self.prior = prior

    def fit(self, chance: Floats, truth: NDArray[np.bool_]) -> Quadratic:
        """Fit by Newton's method, all labels at once."""
        terms = _expand(chance)
        n_labels = chance.shape[1]
        start = np.tile([0.0, 1.0, 0.0], (n_labels, 1))
        penalty = np.array([1e-6, RIDGE, RIDGE])
        coefficients = start.copy()

        def loss(at: Floats) -> Floats:
            odds = np.einsum("rlt,lt->rl", terms, at)
            likelihood = np.logaddexp(0, odds).sum(axis=0) - np.where(truth, odds, 0).sum(axis=0)
            return np.asarray(likelihood + ((at - start) ** 2 @ penalty) / 2)

        for _ in range(N_STEPS):
            p = expit(np.einsum("rlt,lt->rl", terms, coefficients))
            slope = np.einsum("rlt,rl->lt", terms, p - truth) + penalty * (coefficients - start)
            curvature = np.einsum("rls,rlt,rl->lst", terms, terms, p * (1 - p)) + np.diag(penalty)
            step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
            before = loss(coefficients)
            for _ in range(N_STEPS):
                worse = loss(coefficients - step) > before + TOLERANCE
                if not worse.any():
                    break
                step[worse] /= 2
            coefficients = coefficients - step
            if np.abs(step).max() < TOLERANCE:
                break
        counts = truth.sum(axis=0)
        prior = (counts + 0.5) / (len(truth) + 1) if self.prior is None else self.prior
        dead = (counts == 0) | (counts == len(truth))
        coefficients[dead] = 0.0
        coefficients[dead, 0] = logit(np.clip(prior[dead], 1e-9, 1 - 1e-9))
        self.coefficients_ = coefficients
        return self

    def margins(self, chance: Floats) -> Floats:
        """Calibrated log-odds."""
        return np.asarray(np.einsum("rlt,lt->rl", _expand(chance), self.coefficients_))


def _expand(chance: Floats) -> Floats:
    margin = logit(chance.clip(1e-300, 1 - 2**-53)).clip(-MAX_MARGIN, MAX_MARGIN)
    return np.stack([np.ones_like(margin), margin, margin**2], axis=2)
