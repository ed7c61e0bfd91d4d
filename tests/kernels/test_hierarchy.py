"""Rounds of the hierarchical fit against obvious matrix algebra, label by label."""

import sys
from pathlib import Path

import numpy as np
import pytest

from oddslip.kernels import hierarchy

sys.path.insert(0, str(Path(__file__).parent))
import newton_oracle as oracle

COVARIANCE = np.array([[0.09, 0.01], [0.01, 0.04]])
PRECISION = np.linalg.inv(COVARIANCE)
BETA = np.array([0.2, -0.5, 0.3, 0.1, 0.9])


class World:
    """Labels in the middle of a fit."""

    def __init__(self, n_labels=40, n_points=24, seed=0):
        rng = np.random.default_rng(seed)
        self.points = rng.normal(-2, 2, (n_labels, n_points))
        self.weights = rng.integers(0, 9, self.points.shape).astype(float)
        self.weights[:, -3:] = 0
        center = rng.normal(-2, 1, n_labels)
        covariates = rng.normal(0, 1, (3, n_labels))
        self.design = np.stack([np.ones(n_labels), *covariates, center], axis=1)
        self.totals = np.stack([rng.uniform(0, 9, n_labels), rng.normal(0, 9, n_labels)])
        self.state = np.zeros((n_labels, hierarchy.N_STATE))
        self.state[:, 0] = rng.normal(-1, 1, n_labels)
        self.state[:, 1] = rng.uniform(0.1, 2, n_labels)
        self.state[:, 7], self.state[:, 8] = rng.uniform(0.1, 1, (2, n_labels))
        self.state[:, 9] = np.abs(self.points - center[:, None]).max(axis=1)
        self.sum()

    def sum(self):
        hierarchy.sum_labels(self.points, self.weights, self.design, self.totals, self.state)

    def labels(self):
        """Design (2, 5), parameters, gradient, curvature, trust, leverage and reach of each."""
        for design, row in zip(self.design, self.state, strict=True):
            both = np.stack([design, np.eye(5)[4]])
            curvature = np.array([[row[4], row[5]], [row[5], row[6]]])
            yield both, row[:2], row[2:4], curvature, *row[7:]


@pytest.mark.parametrize("n_points", [24, 21])  # whole strips of points, and a rest
def test_sums_are_gradient_and_curvature_about_the_center(n_points):
    world = World(n_points=n_points)
    features = (world.points - world.design[:, 4:])[None]
    theta = np.ascontiguousarray(world.state[:, :2].T)
    sums = oracle.sum_points(features, world.weights, theta)
    gradient, curvature = oracle.derivatives(sums, world.totals)
    np.testing.assert_allclose(world.state[:, 2:4].T, gradient, rtol=1e-12, atol=1e-11)
    upper = curvature[[0, 0, 1], [0, 1, 1]]
    np.testing.assert_allclose(world.state[:, 4:7].T, upper, rtol=1e-12, atol=1e-11)


def test_the_pooled_least_squares_are_those_of_all_labels():
    world = World()
    matrix, right = np.zeros((5, 5)), np.zeros(5)
    for design, theta, gradient, curvature, trust, leverage, _ in world.labels():
        # The precision of an observation of the prior mean: of the label and of the spread.
        shrunk = np.eye(2) - curvature @ np.linalg.inv(curvature + trust * PRECISION)
        matrix += leverage * design.T @ shrunk @ curvature @ design
        right += leverage * design.T @ shrunk @ (curvature @ theta - gradient)
    pooled, pull = hierarchy.pool_labels(world.design, world.state, PRECISION)
    np.testing.assert_allclose(pooled, matrix, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(pull, right, rtol=1e-10, atol=1e-10)


def test_the_largest_move_is_that_of_logits_with_weight():
    world = World()
    moves = []
    for design, theta, _, _, _, leverage, reach in world.labels():
        level, slope = np.abs(design @ BETA)
        moves.append(leverage * (level + slope * min(reach, (40 + abs(theta[0])) / theta[1])))
    assert hierarchy.largest_move(world.design, world.state, BETA) == pytest.approx(max(moves))


@pytest.mark.parametrize("freedom", [8.0, np.inf])
def test_a_step_goes_towards_the_most_probable_map_and_sets_the_trust(freedom):
    world = World()
    world.state[:, 7] = 1.0 if np.isinf(freedom) else world.state[:, 7]
    world.state[:3, 3] = 1e4  # these slopes would fall below the least
    steps, squares, trusts = [], np.zeros((2, 2)), []
    for design, theta, gradient, curvature, trust, leverage, reach in world.labels():
        mean, bend = design @ BETA, curvature + trust * PRECISION
        slope = gradient + trust * PRECISION @ (theta - mean)
        step = -np.linalg.solve(bend, slope)
        if theta[1] + step[1] < hierarchy.MIN_SLOPE:
            step[1] = hierarchy.MIN_SLOPE - theta[1]
            step[0] = -(slope[0] + bend[0, 1] * step[1]) / bend[0, 0]
        moved = abs(step[0]) + abs(step[1]) * min(reach, (40 + abs(theta[0])) / theta[1])
        step *= np.log1p(moved) / moved
        far = theta + step - mean
        second = np.outer(far, far) + np.linalg.inv(bend)
        if np.isfinite(freedom):
            trust = (freedom + 2) / (freedom + (PRECISION * second).sum())
        squares += leverage * trust * second
        steps.append(step)
        trusts.append(trust)
    expected = world.state[:, :2] + steps
    total, largest = hierarchy.step_labels(world.design, world.state, BETA, PRECISION, freedom)
    np.testing.assert_allclose(world.state[:, :2], expected, rtol=1e-10)
    np.testing.assert_allclose(world.state[:, 7], trusts, rtol=1e-10)
    np.testing.assert_allclose(total, squares, rtol=1e-10)
    assert largest == pytest.approx(np.abs(steps).max())
    assert (world.state[:, 1] >= hierarchy.MIN_SLOPE).all()
