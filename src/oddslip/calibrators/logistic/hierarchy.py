"""Logistic maps of all labels under one prior, which is estimated from all of them together.

The map of label j is logit p = a_j + g_j m, with m the log-odds of the score. Its prior mean is

    a = alpha_0 + alpha_1 c_j + alpha_2 logit pi_j + alpha_3 ln w_j,    g = gamma

with c_j the label-free shift, pi_j the prevalence in training and w_j the weight. A label departs
from that by a level u and a slope v, at the log-odds where the label-free map gives pi_j: by
u + v (m - c_j - logit pi_j). There level and slope are nearly independent; at m = 0, far from the
cells of a rare label, they would be strongly correlated. (u, v) has a normal distribution, or
Student's t if ``freedom`` is finite.

The fit uses a summary of the cells (weighted points, and the positives' number and sum) and
generalised EM: one Newton step of every label's map, then the hyper-parameters from the quadratic
around it (Laplace). A few labels with extreme scores hardly affect the rest: Student's distribution
reduces the weight of those that depart far, and leverage of those with extreme covariates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from oddslip.core.types import Bools, Floats
from oddslip.kernels.hierarchy import (
    MIN_SLOPE,
    N_STATE,
    largest_move,
    pool_labels,
    step_labels,
    sum_labels,
)
from oddslip.kernels.newton import descend_points, match_points
from oddslip.kernels.points import range_points

# The hyper-prior. Chosen on the scores of five MULAN sets (emotions, birds, medical, enron,
# corel5k), see docs/repair.md.
ALPHA_DEVIATION = 1.0  # of each alpha around 0
GAMMA_DEVIATION = 0.5  # of gamma around 1
DEVIATIONS = (0.2, 0.05)  # of a label's level and slope around their prior means
BELIEF = 5.0  # weight of these deviations, in labels
FREEDOM = 8.0  # degrees of freedom of Student's distribution of the labels
FAR_OUT = 3.0  # spreads from the median beyond which the weight of a covariate is reduced

ROUNDS = 40
TOLERANCE = 1e-4  # of hyper-parameters from one round to the next
MAP_ROUNDS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Hyper:
    """The prior that all labels share.

    Attributes
    ----------
    alpha : numpy.ndarray of shape (4,)
        Coefficients of the intercept: constant, label-free shift, log-odds of the prior,
        log-weight.
    gamma : float
        Mean slope.
    covariance : numpy.ndarray of shape (2, 2)
        Covariance of a label's level and slope around their means.
    freedom : float
        Degrees of freedom of the labels' distribution; infinite for a normal distribution.
    """

    alpha: Floats
    gamma: float
    covariance: Floats
    freedom: float = np.inf

    @property
    def beta(self) -> Floats:
        """Alpha and gamma in one array."""
        return np.append(self.alpha, self.gamma)

    def distance(self, other: Hyper) -> float:
        """The largest difference between any two parameters."""
        means = np.abs(self.beta - other.beta).max()
        return float(max(means, np.abs(self.covariance - other.covariance).max()))


def first_hyper() -> Hyper:
    """The initial prior: raw scores, with the deviations of the hyper-prior."""
    return Hyper(np.zeros(4), 1.0, np.diag(np.square(DEVIATIONS)), FREEDOM)


class HierarchicalFit(NamedTuple):
    """Intercept and slope of every label's log-odds, and the estimated prior."""

    intercept: Floats
    slope: Floats
    hyper: Hyper
    shift: Floats
    n_rounds: int


# One parameter for each statistic of the labels.
def fit_hierarchical(
    points: Floats,
    weights: Floats,
    n_positives: Floats,
    positive_sums: Floats,
    prior: Floats,
    log_weights: Floats | None = None,
    *,
    unobservable: Bools | None = None,
    hyper: Hyper | None = None,
    start: Hyper | None = None,
) -> HierarchicalFit:
    """Fit the maps of all labels and, unless given, the prior they share.

    Parameters
    ----------
    points, weights : ndarrays of shape (n_labels, n_points)
        Log-odds of each label's cells, and the number of cells of each point (0: none).
    n_positives, positive_sums : ndarrays of shape (n_labels,)
        Positives of each label, and the sum of their log-odds.
    prior : ndarray of shape (n_labels,)
        Prevalence in training, strictly between 0 and 1, see `possible_prior`.
    log_weights : ndarray of shape (n_labels,), optional
        ln w_j of the training weights.
    unobservable : ndarray of bool, shape (n_labels,), optional
        Labels that have positives, but not in these rows. They do not affect the others, and get
        the common slope and a mean probability of ``prior``.
    hyper : Hyper, optional
        A fixed prior.
    start : Hyper, optional
        Initial prior instead of raw scores: a fit on nearly the same rows needs fewer rounds.

    Returns
    -------
    HierarchicalFit

    Examples
    --------
    >>> points, weights = np.array([[-1.0, 1.0]]), np.array([[50.0, 50.0]])
    >>> fit = fit_hierarchical(points, weights, np.array([20.0]), np.array([10.0]), np.array([0.2]))
    >>> (fit.slope > 0.5).item()
    True
    """
    excluded = np.zeros(prior.size, np.bool_) if unobservable is None else unobservable
    labels = Labels.of(points, weights, n_positives, positive_sums, prior, log_weights)
    labels.leverage[excluded] = 0.0
    estimate = hyper or start or first_hyper()
    labels.set_means(estimate)
    n_rounds, change = 0, np.inf
    while change > TOLERANCE and n_rounds < ROUNDS:
        n_rounds += 1
        before = estimate
        precision = np.asarray(np.linalg.inv(estimate.covariance), np.float64)
        sum_labels(points, weights, labels.design, labels.totals, labels.state)
        if hyper is None:
            estimate = _estimate_means(labels, precision, estimate)
        squares, change = step_labels(
            labels.design, labels.state, estimate.beta, precision, estimate.freedom
        )
        if hyper is None:
            estimate = _estimate_spread(labels, squares, estimate)
            change = before.distance(estimate)
    theta = _finish(labels, points, weights, estimate)
    intercept, slope = theta[0] - theta[1] * labels.center, theta[1]
    if excluded.any():
        slope[excluded] = estimate.gamma
        intercept[excluded] = -match_prevalence(
            estimate.gamma * points[excluded], weights[excluded], prior[excluded]
        )
    return HierarchicalFit(intercept, slope, estimate, labels.shift, n_rounds)


class Labels(NamedTuple):
    """Covariates and state of all labels, see `oddslip.kernels.hierarchy`.

    ``totals`` has shape (2, labels): the positives, and the sum of their log-odds from the center.
    """

    design: Floats
    totals: Floats
    state: Floats

    @classmethod
    def of(
        cls,
        points: Floats,
        weights: Floats,
        n_positives: Floats,
        positive_sums: Floats,
        prior: Floats,
        log_weights: Floats | None,
    ) -> Labels:
        """From a summary of the cells."""
        rarity = np.log(prior) - np.log1p(-prior)
        shift = match_prevalence(points, weights, prior)
        center = shift + rarity
        extra = np.zeros(prior.size) if log_weights is None else log_weights
        design = np.stack([np.ones(prior.size), shift, rarity, extra, center], axis=1)
        totals = np.stack([n_positives, positive_sums - n_positives * center])
        labels = cls(design, totals, np.ones((prior.size, N_STATE)))
        labels.leverage[:] = _leverage([shift, rarity, extra])
        labels.reach[:] = np.abs(range_points(points, weights) - center).max(axis=0)
        return labels

    @property
    def shift(self) -> Floats:
        """Label-free shifts."""
        return self.design[:, 1]

    @property
    def center(self) -> Floats:
        """Log-odds at which the label-free map gives the prior."""
        return self.design[:, 4]

    @property
    def theta(self) -> Floats:
        """Level at the center and slope, (2, labels)."""
        return self.state[:, :2].T

    @property
    def trust(self) -> Floats:
        """Weights of the labels' departures, small for those far away."""
        return self.state[:, 7]

    @property
    def leverage(self) -> Floats:
        """Weights of the labels, small for those with a covariate far from the others'."""
        return self.state[:, 8]

    @property
    def reach(self) -> Floats:
        """Largest distance of a point from the center."""
        return self.state[:, 9]

    def means(self, hyper: Hyper) -> Floats:
        """Prior means of level and slope of each label, (2, labels)."""
        return np.stack([self.design @ hyper.beta, np.full(len(self.design), hyper.gamma)])

    def set_means(self, hyper: Hyper) -> None:
        """Start from the prior means."""
        self.state[:, :2] = self.means(hyper).T


def match_prevalence(points: Floats, weights: Floats, prior: Floats) -> Floats:
    """Label-free shifts b per label: the mean of sigmoid(m - b) equals the prior."""
    return np.asarray(match_points(points, weights, prior, MAP_ROUNDS))


def _leverage(covariates: list[Floats]) -> Floats:
    """Weights of labels, below 1 for those with a covariate far from the others'."""
    weight = np.ones(covariates[0].size)
    for values in covariates:
        middle = np.median(values)
        distance = np.abs(values - middle)
        # At least half a nat, since nearly equal labels are not far apart.
        spread = max(1.4826 * float(np.median(distance)), 0.5)
        weight = np.minimum(
            weight, (FAR_OUT * spread / np.maximum(distance, FAR_OUT * spread)) ** 2
        )
    return weight


def _estimate_means(labels: Labels, precision: Floats, hyper: Hyper) -> Hyper:
    """Alpha and gamma from the quadratic around every label's map, given the labels' spread."""
    matrix, right = pool_labels(labels.design, labels.state, precision)
    belief = 1 / np.append(np.full(4, ALPHA_DEVIATION), GAMMA_DEVIATION) ** 2
    right += belief * np.append(np.zeros(4), 1.0)
    step = np.linalg.solve((matrix + matrix.T) / 2 + np.diag(belief), right) - hyper.beta
    # The quadratic is only accurate nearby. A logit moved by r changes its curvature by at most
    # e^r, so with this share of the step the loss never rises.
    move = largest_move(labels.design, labels.state, step)
    beta = hyper.beta + step * np.log1p(move) / max(move, np.finfo(float).tiny)
    return replace(hyper, alpha=beta[:4], gamma=max(float(beta[4]), MIN_SLOPE))


def _estimate_spread(labels: Labels, squares: Floats, hyper: Hyper) -> Hyper:
    """The covariance of the labels' departures, given their sum of expected squares."""
    squares = squares + BELIEF * np.diag(np.square(DEVIATIONS))
    return replace(hyper, covariance=squares / (BELIEF + labels.leverage.sum()))


def _finish(labels: Labels, points: Floats, weights: Floats, hyper: Hyper) -> Floats:
    """Each label's most probable level and slope under this prior."""
    # In units of the solver points lie within [-1, 1], and slopes start from the least allowed.
    scale = np.maximum(labels.reach, 1e-3)
    tilt = MIN_SLOPE * scale
    level, slope = labels.means(hyper)
    inverse = np.linalg.inv(hyper.covariance)
    precision = [inverse[0, 0], inverse[0, 1] / scale, inverse[1, 1] / scale**2]
    precision = [each * labels.trust for each in precision]
    penalty = np.stack([level, slope * scale - tilt, *precision, tilt])
    theta = np.stack([labels.theta[0], np.maximum(labels.theta[1] * scale - tilt, 0.0)])
    frame = np.stack([labels.center, 1 / scale])
    totals = np.stack([labels.totals[0], labels.totals[1] / scale])
    fits = np.arange(scale.size)
    descend_points(points, weights, fits, frame, totals, theta, True, MAP_ROUNDS, penalty)
    return np.stack([theta[0], (theta[1] + tilt) / scale])
