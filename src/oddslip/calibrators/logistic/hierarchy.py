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

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from oddslip.calibrators.logistic.newton import descend, find_roots, solve
from oddslip.core.types import Bools, Floats, Ints

Indices = Ints

# The hyper-prior. Chosen on the scores of five MULAN sets (emotions, birds, medical, enron,
# corel5k), see docs/repair.md.
ALPHA_DEVIATION = 1.0  # of each alpha around 0
GAMMA_DEVIATION = 0.5  # of gamma around 1
DEVIATIONS = (0.2, 0.05)  # of a label's level and slope around their prior means
BELIEF = 5.0  # weight of these deviations, in labels
FREEDOM = 8.0  # degrees of freedom of Student's distribution of the labels
FAR_OUT = 3.0  # spreads from the median beyond which the weight of a covariate is reduced

MIN_SLOPE = 1e-3  # maps must increase, to keep the order of rows within a label
ROUNDS = 40
TOLERANCE = 1e-4  # of hyper-parameters from one round to the next
MAP_ROUNDS = 200
SETTLED = 40.0  # logits beyond it have no weight
CHUNK = 1 << 15  # points per block, to stay in cache


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
    labels = Labels.of(points, weights, n_positives, positive_sums, prior, log_weights)
    excluded = np.zeros(prior.size, np.bool_) if unobservable is None else unobservable
    labels.leverage[excluded] = 0.0
    estimate = hyper or start or first_hyper()
    theta, trust = labels.means(estimate), np.ones(prior.size)
    n_rounds, change = 0, np.inf
    while change > TOLERANCE and n_rounds < ROUNDS:
        n_rounds += 1
        before = estimate
        gradient, curvature = labels.sums(theta)
        if hyper is None:
            estimate = _estimate_means(labels, theta, trust, gradient, curvature, estimate)
        precision = _precision(estimate, trust)
        step = _newton_step(labels, theta, gradient, curvature, estimate, precision)
        theta = theta + step
        departure = theta - labels.means(estimate)
        second = departure[:, None] * departure[None] + _inverse(curvature + precision)
        trust = _trust(second, estimate)
        if hyper is None:
            estimate = _estimate_spread(labels, second, trust, estimate)
            change = before.distance(estimate)
        else:
            change = float(np.abs(step).max())
    theta = _finish(labels, theta, trust, estimate)
    intercept, slope = theta[0] - theta[1] * labels.center, theta[1]
    if excluded.any():
        slope[excluded] = estimate.gamma
        intercept[excluded] = -match_prevalence(
            estimate.gamma * points[excluded], weights[excluded], prior[excluded]
        )
    return HierarchicalFit(intercept, slope, estimate, labels.shift, n_rounds)


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The cells of all labels, relative to each label's center, and its covariates.

    ``design`` has shape (labels, 2, 5): level and slope as linear functions of alpha and gamma.
    """

    points: Floats  # relative to the center
    weights: Floats
    n_positives: Floats
    positive_sums: Floats  # relative to the center
    center: Floats
    shift: Floats
    design: Floats
    leverage: Floats
    reach: Floats  # largest distance of a point from the center
    parts: tuple[slice, ...] = field(repr=False)

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
        n_labels = prior.size
        at_once = max(1, CHUNK // max(1, points.shape[1]))
        parts = tuple(slice(i, i + at_once) for i in range(0, n_labels, at_once))
        rarity = np.log(prior) - np.log1p(-prior)
        shift = match_prevalence(points, weights, prior)
        center = shift + rarity
        from_center = points - center[:, None]
        extra = np.zeros(n_labels) if log_weights is None else log_weights
        design = np.zeros((n_labels, 2, 5))
        design[:, 0, :4] = np.stack([np.ones(n_labels), shift, rarity, extra], axis=1)
        design[:, 0, 4], design[:, 1, 4] = center, 1.0
        return cls(
            points=from_center,
            weights=weights,
            n_positives=n_positives,
            positive_sums=positive_sums - n_positives * center,
            center=center,
            shift=shift,
            design=design,
            leverage=_leverage([shift, rarity, extra]),
            reach=np.abs(np.where(weights > 0, from_center, 0)).max(axis=1),
            parts=parts,
        )

    def means(self, hyper: Hyper) -> Floats:
        """Prior means of level and slope of each label, (2, labels)."""
        return np.ascontiguousarray((self.design @ hyper.beta).T)

    def moved(self, step: Floats, theta: Floats) -> Floats:
        """How far a step from here moves the logits of each label that have weight."""
        count = np.minimum(self.reach, (SETTLED + np.abs(theta[0])) / theta[1])
        return np.asarray(np.abs(step[0]) + np.abs(step[1]) * count)

    def sums(self, theta: Floats, live: Indices | None = None) -> tuple[Floats, Floats]:
        """Gradient and curvature of the loss of some labels; default: all."""
        n = theta.shape[1]
        which: Iterator[slice | Indices] = iter(self.parts)
        at = iter(self.parts)
        if live is not None:
            size = self.parts[0].stop - self.parts[0].start
            at = iter([slice(i, i + size) for i in range(0, n, size)])
            which = iter([live[i : i + size] for i in range(0, n, size)])
        gradient, curvature = np.empty((2, n)), np.empty((2, 2, n))
        for place, chosen in zip(at, which, strict=True):
            x, weights = self.points[chosen], self.weights[chosen]
            logit = theta[0, place, None] + theta[1, place, None] * x
            e = np.exp(-np.abs(logit))
            low = e / (1 + e)
            p = weights * np.where(logit >= 0, 1 - low, low)
            gradient[0, place] = p.sum(axis=1) - self.n_positives[chosen]
            gradient[1, place] = (p * x).sum(axis=1) - self.positive_sums[chosen]
            q = weights * (low * (1 - low))
            qx = q * x
            curvature[0, 0, place] = q.sum(axis=1)
            curvature[0, 1, place] = curvature[1, 0, place] = qx.sum(axis=1)
            curvature[1, 1, place] = (qx * x).sum(axis=1)
        return gradient, curvature


def match_prevalence(points: Floats, weights: Floats, prior: Floats) -> Floats:
    """Label-free shifts b per label: the mean of sigmoid(m - b) equals the prior."""
    prior_logit = np.log(prior) - np.log1p(-prior)
    n_rows = weights.sum(axis=1)
    present = weights > 0
    low = prior_logit - np.where(present, points, -np.inf).max(axis=1)
    high = prior_logit - np.where(present, points, np.inf).min(axis=1)

    def excess(theta: Floats, live: Indices) -> tuple[Floats, Floats]:
        logit = points[live] + theta[0][:, None]
        e = np.exp(-np.abs(logit))
        q = e / (1 + e)
        p = np.where(logit >= 0, 1 - q, q)
        # Match the smaller of a prior and its complement: near 1 a mean has lost digits.
        rare = prior[live] <= 0.5
        up = (weights[live] * p).sum(axis=1) - prior[live] * n_rows[live]
        down = (1 - prior[live]) * n_rows[live] - (weights[live] * (1 - p)).sum(axis=1)
        slope = (weights[live] * q * (1 - q)).sum(axis=1)
        return np.where(rare, up, down)[None], slope[None, None]

    first = np.clip(prior_logit - (points * weights).sum(axis=1) / n_rows, low, high)
    roots, _ = solve(find_roots(first[None], low, high, rounds=MAP_ROUNDS), excess)
    return np.asarray(-roots[0])


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


def _precision(hyper: Hyper, trust: Floats) -> Floats:
    """Precision of each label's departure, (2, 2, labels)."""
    return np.asarray(np.linalg.inv(hyper.covariance)[:, :, None] * trust)


def _inverse(matrices: Floats) -> Floats:
    """Inverses of positive definite matrices, (2, 2, labels), scaled to avoid overflow."""
    scale = 1 / np.sqrt(np.stack([matrices[0, 0], matrices[1, 1]]))
    between = matrices[0, 1] * scale[0] * scale[1]
    rest = np.maximum(1 - between**2, 1e-14)
    inverse = np.empty_like(matrices)
    inverse[0, 0], inverse[1, 1] = scale[0] ** 2 / rest, scale[1] ** 2 / rest
    inverse[0, 1] = inverse[1, 0] = -between * scale[0] * scale[1] / rest
    return inverse


def _times(matrices: Floats, others: Floats) -> Floats:
    """Products of matrices, (2, 2, labels), with matrices or vectors."""
    if others.ndim == 2:
        return np.asarray((matrices * others).sum(axis=1))
    return np.asarray((matrices[:, :, None] * others[None]).sum(axis=1))


def _estimate_means(
    labels: Labels,
    theta: Floats,
    trust: Floats,
    gradient: Floats,
    curvature: Floats,
    hyper: Hyper,
) -> Hyper:
    """Alpha and gamma from the quadratic around every label's map, given the labels' spread."""
    posterior = _inverse(curvature + _precision(hyper, trust))
    # Each label is an observation of its theta at the minimum of the quadratic, with precision
    # `curvature`. The spread of the prior reduces its weight.
    shrunk = np.eye(2)[:, :, None] - _times(curvature, posterior)
    weight = _times(shrunk, curvature)
    pull = _times(shrunk, _times(curvature, theta) - gradient)
    weighted = np.einsum("ijn,njb->nib", labels.leverage * weight, labels.design)
    n_labels, _, size = labels.design.shape
    flat = labels.design.reshape(2 * n_labels, size)
    belief = 1 / np.append(np.full(4, ALPHA_DEVIATION), GAMMA_DEVIATION) ** 2
    matrix = flat.T @ weighted.reshape(2 * n_labels, size) + np.diag(belief)
    right = flat.T @ (labels.leverage * pull).T.reshape(-1) + belief * np.append(np.zeros(4), 1.0)
    step = np.linalg.solve((matrix + matrix.T) / 2, right) - hyper.beta
    # The quadratic is only accurate nearby, see `_newton_step`.
    moved = (labels.design @ step).T
    step *= _share(float((labels.leverage * labels.moved(moved, theta)).max()))
    beta = hyper.beta + step
    return replace(hyper, alpha=beta[:4], gamma=max(float(beta[4]), MIN_SLOPE))


def _estimate_spread(labels: Labels, second: Floats, trust: Floats, hyper: Hyper) -> Hyper:
    """The covariance of the labels' departures, of expected squares ``second``."""
    prior_squares = BELIEF * np.diag(np.square(DEVIATIONS))
    squares = (labels.leverage * trust * second).sum(axis=2)
    return replace(hyper, covariance=(prior_squares + squares) / (BELIEF + labels.leverage.sum()))


def _trust(second: Floats, hyper: Hyper) -> Floats:
    """Weight of each label's departure: small if it is far, under Student's distribution."""
    if np.isinf(hyper.freedom):
        return np.ones(second.shape[2])
    distance = (np.linalg.inv(hyper.covariance)[:, :, None] * second).sum(axis=(0, 1))
    return np.asarray((hyper.freedom + 2) / (hyper.freedom + np.maximum(distance, 0)))


def _newton_step(
    labels: Labels,
    theta: Floats,
    gradient: Floats,
    curvature: Floats,
    hyper: Hyper,
    precision: Floats,
) -> Floats:
    """A step towards each label's most probable map, with slopes of at least `MIN_SLOPE`."""
    slope = gradient + _times(precision, theta - labels.means(hyper))
    bend = curvature + precision
    step = -_times(_inverse(bend), slope)
    sinking = theta[1] + step[1] < MIN_SLOPE
    step[1] = np.where(sinking, MIN_SLOPE - theta[1], step[1])
    step[0] = np.where(sinking, -(slope[0] + bend[0, 1] * step[1]) / bend[0, 0], step[0])
    return np.asarray(step * _share(labels.moved(step, theta)))


def _share(moved: Any) -> Any:
    """The share to take of a step that moves logits by this much.

    A logit moved by r changes its curvature by at most e^r, so with ln(1 + r) / r the loss never
    rises.
    """
    return np.log1p(moved) / np.maximum(moved, np.finfo(float).tiny)


def _finish(labels: Labels, theta: Floats, trust: Floats, hyper: Hyper) -> Floats:
    """Each label's most probable level and slope under this prior."""
    scale = np.maximum(labels.reach, 1e-3)
    units = np.stack([np.ones_like(scale), 1 / scale])  # of the solver: points within [-1, 1]
    least = np.array([[0.0], [MIN_SLOPE]])
    mean, precision = labels.means(hyper), _precision(hyper, trust)

    def evaluate(theta: Floats, live: Indices) -> tuple[Floats, Floats]:
        plain = theta * units[:, live] + least
        gradient, curvature = labels.sums(plain, live)
        inside = precision[:, :, live]
        gradient += _times(inside, plain - mean[:, live])
        curvature += inside
        unit = units[:, live]
        return gradient * unit, curvature * unit[:, None] * unit[None]

    first = np.maximum((theta - least) / units, [[-np.inf], [0.0]])
    solution, _ = solve(descend(first, np.ones(2, bool), rounds=MAP_ROUNDS), evaluate)
    return np.asarray(solution * units + least)
