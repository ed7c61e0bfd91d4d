"""Wasserstein gradient boosting (arXiv 2405.09536) of one binary label.

A row has ``n_particles`` log-odds. They approximate the row's own posterior: the Bernoulli
likelihood of its one label, times a normal prior. A tree with one output per particle moves all
of them at once, along the smoothed Wasserstein gradient over a diagonal Newton weight. The score
of a row is the mean probability of its particles.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from oddslip.core.types import Floats


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the method's public classification experiment, with fewer rounds.

    The experiment has 4,000 rounds, and trees that split by Friedman's criterion.
    """

    n_particles: int = 10
    bandwidth: float = 0.1
    prior_deviation: float = 10.0
    learning_rate: float = 0.4
    n_rounds: int = 100
    max_depth: int = 3
    n_start_steps: int = 5000
    start_rate: float = 0.1
    start_seed: int = 0
    tree_seed: int = 1

    def to_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


def log_posterior(theta: Floats, y: Floats | float, deviation: float) -> Floats:
    """Log density of log-odds ``theta`` given one label ``y``, up to a constant."""
    likelihood = y * theta - np.logaddexp(0.0, theta)
    return np.asarray(likelihood - theta**2 / (2 * deviation**2))


def gradient(theta: Floats, y: Floats | float, deviation: float) -> Floats:
    """Derivative of `log_posterior`; linear in ``y``."""
    return np.asarray(y - expit(theta) - theta / deviation**2)


def curvature(theta: Floats, deviation: float) -> Floats:
    """Second derivative of `log_posterior`; the same for both labels."""
    probability = expit(theta)
    return np.asarray(-probability * (1 - probability) - 1 / deviation**2)


def residuals(theta: Floats, y: Floats, settings: Settings) -> Floats:
    """Steps of all particles: smoothed Wasserstein gradient over a diagonal Newton weight.

    Parameters
    ----------
    theta : array of shape (n_rows, n_particles)
        Log-odds.
    y : array of shape (n_rows,)
        Labels; a share between 0 and 1 gives the mean step of rows that have the same particles.
    settings : Settings

    Returns
    -------
    array of shape (n_rows, n_particles)

    Examples
    --------
    >>> alone = residuals(np.zeros((1, 1)), np.ones(1), Settings(prior_deviation=1.0))
    >>> float(alone[0, 0])  # gradient 1/2 over curvature 1/4 + 1
    0.4
    """
    h, deviation = settings.bandwidth, settings.prior_deviation
    # Axis 1 is the particle that acts, axis 2 the one that moves.
    gap = theta[:, :, None] - theta[:, None, :]
    kernel = np.exp(-(gap**2) / h)
    push = (-2 / h) * gap * kernel  # derivative of the kernel in its first argument
    pull = kernel * gradient(theta, y[:, None], deviation)[:, :, None]
    step = (pull + push).mean(axis=1)
    weight = (push**2 - kernel**2 * curvature(theta, deviation)[:, :, None]).mean(axis=1)
    return np.asarray(step / weight)


def start_particles(prevalence: float, settings: Settings) -> Floats:
    """Particles that all rows start from: those of the mean label, by many small steps."""
    rng = np.random.default_rng(settings.start_seed)
    theta = rng.normal(size=(1, settings.n_particles))
    share = np.array([prevalence])
    for _ in range(settings.n_start_steps):
        theta = theta + settings.start_rate * residuals(theta, share, settings)
    return np.asarray(theta[0])


def score_label(
    X: Any, y: Floats, others: tuple[Any, ...], settings: Settings | None = None
) -> list[Floats]:
    """Train on one label and score other rows; nothing of the model is kept.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Features of the training rows.
    y : array of shape (n_rows,)
        0 or 1.
    others : tuple
        Features of the rows to score.
    settings : Settings, optional

    Returns
    -------
    list of arrays
        Probabilities, one array for each of ``others``.

    Examples
    --------
    >>> X = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> low, high = score_label(X, X[:, 0], (X[:1], X[-1:]), Settings(n_rounds=50))
    >>> float(low[0]) < 0.2 < 0.8 < float(high[0])
    True
    """
    from sklearn.tree import DecisionTreeRegressor

    settings = settings or Settings()
    start = start_particles(float(y.mean()), settings)
    theta = np.tile(start, (len(y), 1))
    scored = [np.tile(start, (rows.shape[0], 1)) for rows in others]
    for _ in range(settings.n_rounds):
        tree = DecisionTreeRegressor(
            max_depth=settings.max_depth, random_state=settings.tree_seed
        ).fit(X, residuals(theta, y, settings))
        for table, rows in zip((theta, *scored), (X, *others), strict=True):
            table += settings.learning_rate * tree.predict(rows).reshape(table.shape)
    return [np.asarray(expit(table).mean(axis=1)) for table in scored]
