"""Fits on points against Newton's method in NumPy, on ordinary and on nasty labels."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit

from oddslip.kernels import newton, points

sys.path.insert(0, str(Path(__file__).parent))
import newton_oracle as oracle

ROUNDS = 200
SEPARABLE, FLAT, FITTED, LOST = range(4)
FORMS = [("affine", True), ("affine", False), ("beta", True)]


class World:
    """Points of labels of many kinds, with positives among them."""

    def __init__(self, seed, form="affine", intercept=True, n_labels=1500, n_points=40):
        rng = np.random.default_rng(seed)
        size = (n_labels, n_points)
        z = rng.normal(size=size) * 10 ** rng.uniform(-2, 1, (n_labels, 1))
        z += rng.normal(0, 3, (n_labels, 1))
        weights = rng.integers(0, 20, size).astype(float)
        weights[:, 0] += 1
        kind = rng.integers(0, 8, n_labels)
        z[kind == 1] = z[kind == 1, :1]  # constant scores
        z[kind == 2] *= 1e4  # huge margins
        z[kind == 3] *= 100  # saturated
        weights[kind == 4, 5:] = 0
        z[kind == 6] = 3 * np.sign(z[kind == 6])  # two values
        slopes, levels = rng.uniform(-0.3, 2, (n_labels, 1)), rng.normal(0, 2, (n_labels, 1))
        logits = levels + slopes * (z - z.mean(axis=1, keepdims=True))
        positives = rng.binomial(weights.astype(int), expit(np.clip(logits, -30, 30)))
        positives[kind == 7] = np.arange(n_points) == 0  # one positive
        negatives = weights - positives
        lowest = np.where(positives > 0, z, np.inf).min(axis=1)
        highest = np.where(negatives > 0, z, -np.inf).max(axis=1)
        separable = highest <= lowest if intercept else (highest <= 0) & (lowest >= 0)
        n, n_positives = weights.sum(axis=1), positives.sum(axis=1)
        self.fits = np.flatnonzero((n_positives > 0) & (n_positives < n) & ~separable)
        self.points, self.weights = z, weights
        plain = z[None] if form == "affine" else oracle.beta_features(z)
        center = (plain * weights).sum(axis=2) / n if intercept else np.zeros((1, n_labels))
        scale = np.abs(plain - center[:, :, None]).max(axis=2)
        scale[scale < 1e-290] = 1
        self.features = (plain - center[:, :, None]) / scale[:, :, None]
        self.frame = np.stack([center, 1 / scale], axis=1).reshape(-1, n_labels)
        sums = (self.features * positives).sum(axis=2)
        self.totals = np.concatenate([n_positives[None].astype(float), sums])
        prior = logit(np.clip(n_positives / n, 1e-9, 1 - 1e-9)) if intercept else np.zeros(n_labels)
        self.start = np.concatenate([prior[None], np.zeros((len(plain), n_labels))])
        self.free = np.array([intercept, *[True] * len(plain)])

    def of_fits(self, table):
        return np.ascontiguousarray(table[:, self.fits])

    def evaluate(self, theta, live):
        at = self.fits[live]
        sums = oracle.sum_points(self.features[:, at], self.weights[at], theta)
        return oracle.derivatives(sums, self.totals[:, at])

    def expected(self):
        return oracle.descend(self.evaluate, self.of_fits(self.start), self.free, rounds=ROUNDS)

    def fit(self, start=None):
        theta = self.of_fits(self.start) if start is None else start
        frame, totals = self.of_fits(self.frame), self.of_fits(self.totals)
        converged = newton.descend_points(
            self.points, self.weights, self.fits, frame, totals, theta, self.free[0], ROUNDS
        )
        return theta, converged


def statuses(theta, converged):
    steep = (theta[1:] > newton.STEEPEST).any(axis=0)
    flat = (theta[1:] <= 1e-10).all(axis=0)
    return np.select([steep, flat, converged], [SEPARABLE, FLAT, FITTED], LOST)


def relative(theta, expected):
    return np.abs(theta - expected).max(axis=0) / np.maximum(1, np.abs(expected).max(axis=0))


@pytest.mark.parametrize(("form", "intercept"), FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_fits_on_points_agree_with_numpy(form, intercept, seed):
    world = World(seed, form, intercept)
    expected, converged = world.expected()
    theta, done = world.fit()
    status = statuses(expected, converged)
    np.testing.assert_array_equal(statuses(theta, done), status)
    assert {FLAT, FITTED} <= set(status.tolist())
    _, curvature = world.evaluate(expected, np.arange(world.fits.size))
    # Where the curvature is nearly singular, many parameters fit equally well.
    free = np.ix_(np.flatnonzero(world.free), np.flatnonzero(world.free))
    regular = np.linalg.cond(np.moveaxis(curvature[free], 2, 0)) < 1e7
    assert (regular & (status == FITTED)).sum() > 200
    assert relative(theta, expected)[regular & (status == FITTED)].max() < 1e-9


@pytest.mark.parametrize(("form", "intercept"), FORMS)
def test_steps_with_sums_of_the_caller_lead_to_the_same_fits(form, intercept):
    world = World(7, form, intercept)
    theta, done = world.fit()
    state = newton.first_state(world.of_fits(world.start))
    live, ready_at_end = np.arange(world.fits.size), np.zeros(world.fits.size, bool)
    for _ in range(ROUNDS):
        trial = newton.next_trials(state, live, len(theta))
        ready = newton.advance_fits(state, live, trial, *world.evaluate(trial, live), intercept)
        ready_at_end[live[ready]] = True
        live = live[~ready]
        if not live.size:
            break
    np.testing.assert_array_equal(ready_at_end, done)
    by_caller = state[:, : len(theta)].T
    difference = relative(by_caller, theta)
    assert np.mean(difference < 1e-9) > (0.9 if form == "beta" else 0.999)


def test_a_fit_that_starts_far_away_goes_on_from_the_fallback():
    world = World(1)
    fallback = world.of_fits(world.start)
    far = np.stack([np.full(world.fits.size, 30.0), np.full(world.fits.size, 3.0)])
    state = newton.first_state(far)
    live = np.arange(world.fits.size)
    gradient, curvature = world.evaluate(far, live)
    ready = newton.advance_fits(state, live, far, gradient, curvature, True, fallback)
    steps = oracle.bounded_steps(far, gradient, curvature, world.free)
    astray = (steps.decrement > oracle.ASTRAY) | np.isinf(steps.reach)
    assert astray.sum() > 100
    assert not ready[astray].any()
    again = newton.next_trials(state, live, 2)
    np.testing.assert_array_equal(again[:, astray], fallback[:, astray])


@pytest.mark.parametrize(("form", "intercept"), FORMS)
def test_a_fit_that_starts_at_its_result_stays_there(form, intercept):
    world = World(2, form, intercept)
    theta, done = world.fit()
    again, still = world.fit(start=theta.copy())
    fitted = statuses(theta, done) == FITTED
    assert still[fitted].all()
    assert np.mean(relative(again, theta)[fitted] < 1e-9) > (0.9 if form == "beta" else 0.999)


def test_a_penalised_fit_minimises_loss_and_penalty():
    world = World(3, n_labels=200)
    frame, totals = world.of_fits(world.frame), world.of_fits(world.totals)
    n = world.fits.size
    rng = np.random.default_rng(0)
    mean, tilt = rng.normal(0, 1, (2, n)), rng.uniform(0, 0.1, n)
    penalty = np.concatenate([mean, np.tile([[2.0], [0.3], [1.5]], n), tilt[None]])
    theta = np.zeros((2, n))
    converged = newton.descend_points(
        world.points, world.weights, world.fits, frame, totals, theta, True, ROUNDS, penalty
    )
    tilted = theta + np.stack([np.zeros(n), tilt])
    gradient, _ = world.evaluate(tilted, np.arange(n))
    gradient += np.einsum("ik,kn->in", [[2.0, 0.3], [0.3, 1.5]], theta - mean)
    gradient[1] = np.where(theta[1] > 0, gradient[1], np.minimum(gradient[1], 0))
    assert converged.all()
    scale = np.maximum(1, world.weights[world.fits].sum(axis=1))
    assert (np.abs(gradient) / scale).max() < 1e-9


@pytest.mark.parametrize("form", ["affine", "beta"])
def test_levels_match_the_number_of_positives(form):
    world = World(4, form)
    theta = np.concatenate([np.zeros((1, world.fits.size)), 1 / world.of_fits(world.frame)[1::2]])
    reach = 800 + np.abs(theta[1:]).sum(axis=0)
    low, high = -reach, reach
    expected, has_root = oracle.find_roots(world.evaluate, theta, low, high, rounds=ROUNDS)
    converged = newton.find_levels(
        world.points,
        world.weights,
        world.fits,
        world.of_fits(world.frame),
        world.of_fits(world.totals)[0],
        theta,
        np.stack([low, high]),
        ROUNDS,
    )
    np.testing.assert_array_equal(converged, has_root)
    assert relative(theta[:1], expected[:1]).max() < 1e-9


def test_roots_with_sums_of_the_caller_are_those_of_numpy():
    world = World(5)
    theta = np.concatenate([np.zeros((1, world.fits.size)), 1 / world.of_fits(world.frame)[1::2]])
    reach = 800 + theta[1]
    expected, has_root = oracle.find_roots(world.evaluate, theta, -reach, reach, rounds=ROUNDS)
    roots = np.stack([theta[0], -reach, reach, np.full(reach.size, np.inf)], axis=1)
    live, done = np.arange(reach.size), np.zeros(reach.size, bool)
    for _ in range(ROUNDS):
        theta[0] = roots[:, 0]
        gradient, curvature = world.evaluate(np.ascontiguousarray(theta[:, live]), live)
        ready = newton.advance_roots(roots, live, gradient[0], curvature[0, 0].copy())
        done[live[ready]] = True
        live = live[~ready]
        if not live.size:
            break
    np.testing.assert_array_equal(done, has_root)
    assert relative(roots[:, :1].T, expected[:1]).max() < 1e-9


@pytest.mark.parametrize("prior", [1e-9, 0.01, 0.5, 0.99, 1 - 1e-9])
def test_the_label_free_shift_gives_the_prior_as_mean_probability(prior):
    world = World(6, n_labels=60)
    shifts = newton.match_points(world.points, world.weights, np.full(60, prior), ROUNDS)
    for z, weights, shift in zip(world.points, world.weights, shifts, strict=True):
        z, weights = z[weights > 0], weights[weights > 0]

        def excess(b, z=z, weights=weights):
            if prior <= 0.5:
                return (weights * expit(z - b)).sum() - prior * weights.sum()
            return (1 - prior) * weights.sum() - (weights * expit(b - z)).sum()

        rarity = np.log(prior) - np.log1p(-prior)
        low, high = z.min() - rarity, z.max() - rarity
        expected = brentq(excess, low, high, xtol=1e-13) if excess(low) * excess(high) < 0 else low
        assert shift == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_points_have_the_moments_of_their_bins():
    rng = np.random.default_rng(0)
    low, width = np.array([-2.0, 1.0, 0.0, 5.0]), np.array([0.5, 2.0, 1e-12, 1.0])
    moments = np.zeros((4, 12, 4))
    for label, n in ((0, 500), (1, 30), (2, 100)):
        bins = rng.integers(0, 12 if label < 2 else 1, n)
        u = rng.uniform(-0.5, 0.5, n) if label < 2 else np.full(n, 0.25)
        for power in range(4):
            np.add.at(moments[label, :, power], bins, u**power)
    places, weights = points.place_points([moments], low, width, 2.0**-20)
    lowest, highest = points.range_points(places, weights)[:, :3]
    assert (lowest >= low[:3]).all()
    assert (highest <= (low + 12 * width)[:3]).all()
    for label in range(3):
        used = weights[label] > 0
        assert np.all(np.diff(used.astype(int)) <= 0)  # packed
        at = (places[label, used] - low[label]) / width[label]
        bins = np.clip(np.floor(at), 0, 11).astype(int)
        for power in range(4):
            total = np.bincount(bins, weights[label, used] * (at - bins - 0.5) ** power, 12)
            # Weights are rounded to 2**-20 of a row, which moves a bin's moments by as much.
            np.testing.assert_allclose(total, moments[label, :, power], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(weights.sum(axis=1)[:3], moments[:3, :, 0].sum(axis=1))
    assert (places[3, 0], weights[3, 0], weights[3, 1:].any()) == (0.0, 2.0**-20, False)


def test_parts_have_the_points_of_their_sum():
    parts = np.random.default_rng(0).poisson(2.0, (4, 3, 12, 4)).astype(float)
    low, width = np.zeros(3), np.ones(3)
    whole = points.place_points([parts.sum(axis=0)], low, width, 2.0**-20)
    summed = points.place_points(list(parts), low, width, 2.0**-20)
    np.testing.assert_array_equal(summed, whole)


@pytest.mark.parametrize(("form", "intercept"), [("affine", True), ("beta", True)])
def test_sums_over_points_are_those_of_numpy(form, intercept):
    world = World(8, form, intercept, n_labels=300)
    theta = np.random.default_rng(0).normal(0, 1, world.of_fits(world.start).shape)
    sums = points.sum_points(
        world.points, world.weights, world.fits, world.of_fits(world.frame), theta
    )
    expected = oracle.sum_points(world.features[:, world.fits], world.weights[world.fits], theta)
    np.testing.assert_allclose(sums, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("beta", [False, True])
def test_means_of_features_are_those_of_numpy(beta):
    world = World(9, n_labels=100)
    plain = oracle.beta_features(world.points) if beta else world.points[None]
    expected = (plain * world.weights).sum(axis=2) / world.weights.sum(axis=1)
    means = points.mean_features(world.points, world.weights, beta)
    np.testing.assert_allclose(means, expected, rtol=1e-11, atol=1e-11)


def test_kernels_read_columns_of_wider_arrays():
    world = World(10, n_labels=50)
    wide = np.full((50, 60), np.nan)
    wide[:, :40] = world.points
    heavy = np.full((50, 60), np.nan)
    heavy[:, :40] = world.weights
    prior = np.full(50, 0.1)
    expected = newton.match_points(world.points, world.weights, prior, ROUNDS)
    part = newton.match_points(wide[:, :40], heavy[:, :40], prior, ROUNDS)
    np.testing.assert_array_equal(part, expected)


def test_a_separable_label_ends_steep_or_gains_nothing():
    z = np.tile(np.linspace(-3, 3, 16), (1, 1))
    weights, true = np.ones((1, 16)), z > 0
    theta = np.zeros((2, 1))
    totals = np.array([[8.0], [z[true].sum() / 3]])
    newton.descend_points(
        z, weights, np.array([0]), np.array([[0.0], [1 / 3]]), totals, theta, True, ROUNDS
    )
    loss = -log_expit(np.where(true, 1, -1) * (theta[0] + theta[1] * z / 3)).sum()
    assert loss < 1e-6
