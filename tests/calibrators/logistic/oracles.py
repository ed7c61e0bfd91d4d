"""Panels to fit and slow, obvious fits of them by scipy."""

from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from oddslip.calibrators.logistic.fits import Status

OFFSET = {"slope": False, "intercept": True}
PLATT = {"slope": True, "intercept": True}
TEMPERATURE = {"slope": True, "intercept": False}
FITTED = int(Status.FITTED)


def make_panel(seed=0, n_rows=400, n_labels=5, dtype=np.float64, kind="margin", a=0.6, b=-1.0):
    """Margins and labels that a logistic model made, as scores of the kind."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1, 2, (n_rows, n_labels))
    labels = rng.random((n_rows, n_labels)) < expit(a * z + b)
    scores = (z if kind == "margin" else expit(z)).astype(dtype)
    return scores, labels


def log_odds_of(scores, kind):
    scores = np.asarray(scores, np.float64)
    return scores if kind == "margin" else logit(np.clip(scores, 1e-12, 1 - 1e-12))


def features_of(scores, kind):
    """ln s and -ln(1 - s)."""
    scores = np.asarray(scores, np.float64)
    if kind == "margin":
        return np.stack([log_expit(scores), -log_expit(-scores)], axis=-1)
    s = np.clip(scores, 1e-12, 1 - 1e-12)
    return np.stack([np.log(s), -np.log1p(-s)], axis=-1)


def loss_of(logits, y):
    return -np.sum(np.where(y, log_expit(logits), log_expit(-logits)))


def best_of(x, y, fixed=0.0):
    """Unconstrained optimum of a logistic loss with these columns, by scipy."""

    def loss(theta):
        return loss_of(x @ theta + fixed, y)

    def gradient(theta):
        return x.T @ (expit(x @ theta + fixed) - y)

    def curvature(theta):
        p = expit(x @ theta + fixed)
        return x.T @ (x * (p * (1 - p))[:, None])

    theta = minimize(
        loss,
        np.zeros(x.shape[1]),
        jac=gradient,
        hess=curvature,
        method="trust-exact",
        options={"gtol": 1e-10, "maxiter": 500},
    ).x
    for _ in range(3):  # the last digits
        theta = theta - np.linalg.solve(curvature(theta), gradient(theta))
    return theta, loss(theta)


def best_beta(u, y):
    """Best of the optima on every face a = 0 or free, b = 0 or free that is feasible."""
    best = None
    for used in product([False, True], repeat=2):
        x = np.column_stack([u[:, list(used)], np.ones(len(y))])
        theta, loss = best_of(x, y)
        if (theta[:-1] >= 0).all() and (best is None or loss < best[1]):
            full = np.zeros(3)
            full[[*np.flatnonzero(used), 2]] = theta
            best = full, loss
    return best
