"""Laws of Wasserstein gradient boosting on one binary label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from experiments.wgboost.learner import (
    Settings,
    curvature,
    gradient,
    log_posterior,
    residuals,
    score_label,
    start_particles,
)

LOGITS = st.floats(-15, 15)
LABELS = st.sampled_from([0.0, 1.0])
DEVIATIONS = st.floats(0.5, 20)


def closed_form(y, deviation):
    """Mean and deviation of a row's posterior by quadrature: of the probability, and of theta."""

    def density(theta):
        return expit(theta if y else -theta) * norm.pdf(theta, scale=deviation)

    def integrate(value):
        edges = (-8 * deviation, 8 * deviation)
        return quad(lambda theta: value(theta) * density(theta), *edges, limit=200)[0]

    mass = integrate(lambda _: 1.0)
    mean = integrate(lambda theta: theta) / mass
    spread = integrate(lambda theta: (theta - mean) ** 2) / mass
    return integrate(expit) / mass, np.sqrt(spread)


@given(LOGITS, LABELS, DEVIATIONS)
def test_derivatives_agree_with_finite_differences(theta, y, deviation):
    at, step = np.array([theta]), 1e-5
    slope = (log_posterior(at + step, y, deviation) - log_posterior(at - step, y, deviation)) / (
        2 * step
    )
    np.testing.assert_allclose(gradient(at, y, deviation), slope, atol=1e-6)
    bend = (gradient(at + step, y, deviation) - gradient(at - step, y, deviation)) / (2 * step)
    np.testing.assert_allclose(curvature(at, deviation), bend, atol=1e-6)


@given(st.lists(LOGITS, min_size=2, max_size=5), LABELS)
def test_residuals_agree_with_the_formulas_written_as_loops(particles, y):
    settings = Settings()
    h, s = settings.bandwidth, settings.prior_deviation
    expected = []
    for moved in particles:
        step = weight = 0.0
        for acting in particles:
            kernel = np.exp(-((acting - moved) ** 2) / h)
            push = -(2 / h) * (acting - moved) * kernel
            g = y - expit(acting) - acting / s**2
            bend = -expit(acting) * expit(-acting) - 1 / s**2
            step += kernel * g + push
            weight += -(kernel**2) * bend + push**2
        expected.append(step / weight)
    actual = residuals(np.array([particles]), np.array([y]), settings)
    np.testing.assert_allclose(actual[0], expected, rtol=1e-9, atol=1e-12)


def test_steps_are_linear_in_the_label():
    theta = np.random.default_rng(0).normal(size=(1, 10))
    steps = [residuals(theta, np.array([y]), Settings()) for y in (0.0, 0.25, 1.0)]
    np.testing.assert_allclose(steps[1], 0.75 * steps[0] + 0.25 * steps[2])


@pytest.mark.parametrize("deviation", [2.0, 5.0, 10.0])
def test_a_label_that_is_never_true_gets_the_floor_of_its_prior(deviation):
    """The posterior of one negative observation, however many rows there are."""
    settings = Settings(n_particles=20, prior_deviation=deviation, n_rounds=20)
    X = np.random.default_rng(0).normal(size=(300, 3))
    (scores,) = score_label(X, np.zeros(300), (X[:5],), settings)
    floor, _ = closed_form(0, deviation)
    assert np.ptp(scores) < 1e-12
    assert scores[0] == pytest.approx(floor, abs=0.03)


def test_the_floor_of_the_public_settings_is_about_a_tenth():
    """0.0785 by the closed form; ten particles are a coarse picture of it."""
    assert closed_form(0, 10.0)[0] == pytest.approx(0.0785, abs=5e-4)
    (scores,) = score_label(np.zeros((50, 1)), np.zeros(50), (np.zeros((1, 1)),))
    assert 0.08 <= scores[0] <= 0.12


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5])
def test_particles_keep_apart(share):
    theta = np.sort(start_particles(share, Settings()))
    assert np.diff(theta).min() > 0.1  # the kernel's width is about 0.3


@pytest.mark.parametrize("deviation", [2.0, 10.0])
def test_particles_of_a_wide_kernel_spread_like_the_posterior(deviation):
    theta = start_particles(0.0, Settings(bandwidth=20.0, prior_deviation=deviation))
    floor, spread = closed_form(0, deviation)
    assert expit(theta).mean() == pytest.approx(floor, abs=0.002)
    assert theta.std() == pytest.approx(spread, rel=0.15)


def test_a_row_learns_the_label_of_its_leaf():
    X = np.repeat([[0.0], [1.0]], 200, axis=0)
    (scores,) = score_label(X, X[:, 0], (X,), Settings(n_rounds=100))
    low, high = (closed_form(y, 10.0)[0] for y in (0, 1))
    assert scores[0] == pytest.approx(low, abs=0.04)
    assert scores[-1] == pytest.approx(high, abs=0.04)


def test_inputs_are_left_alone_and_runs_repeat():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 4)), (rng.random(80) < 0.3).astype(float)
    copies = X.copy(), y.copy()
    first, second = (score_label(X, y, (X,), Settings(n_rounds=5))[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(y, copies[1])
