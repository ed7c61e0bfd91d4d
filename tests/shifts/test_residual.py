"""What the inversion leaves: closed forms, and the bounds that a step budget sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from oddslip.core.panel import Panel
from oddslip.errors import InvalidInput
from oddslip.metrics import rank
from oddslip.shifts import inversion_bounds, invert_odds, residual, shift_odds
from oddslip.shifts.residual import ResidualTally

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def draw_margins(rng, n_rows=20, n_labels=6):
    return rng.normal(-1, 2, (n_rows, n_labels)), np.exp(rng.normal(0, 1.5, n_labels))


@few
@given(seed=seeds)
def test_the_residual_is_the_gap_less_ln_w_over_cells_inside_the_edge_in_both_arms(seed):
    rng = np.random.default_rng(seed)
    twin, weights = draw_margins(rng)
    arm = twin + rng.normal(0, 6, twin.shape)
    inside = (np.abs(arm) < np.log(1e6 - 1)) & (np.abs(twin) < np.log(1e6 - 1))
    expected = np.where(inside, arm - twin - np.log(weights), np.nan)
    spreads = [np.ptp(row[~np.isnan(row)]) for row in expected if (~np.isnan(row)).sum() > 1]
    result = residual(arm, twin, weights, kind="margin")
    assert_allclose(result.mean, np.nanmean(expected, axis=0), atol=1e-12)
    assert_allclose(result.spread, np.sort(spreads), atol=1e-12)
    assert_array_equal(result.n_cells, inside.sum(axis=0))
    gaps = np.where(inside, np.abs(arm - twin), np.nan)
    assert_allclose(result.largest_gap, np.nanmax(gaps, axis=0), atol=1e-12)


def test_a_fully_realized_shift_leaves_nothing():
    rng = np.random.default_rng(0)
    margins, weights = draw_margins(rng)
    twin = expit(margins)
    result = residual(shift_odds(twin, weights), twin, weights)
    assert_allclose(result.spread, 0, atol=1e-9)
    assert_allclose(result.mean, 0, atol=1e-9)


@few
@given(seed=seeds)
def test_a_residual_that_is_constant_within_rows_keeps_the_twins_order_whatever_its_level(seed):
    rng = np.random.default_rng(seed)
    twin, weights = draw_margins(rng)
    level = rng.normal(0, 3, (len(twin), 1))
    arm = twin + np.log(weights) + level
    assert_allclose(residual(arm, twin, weights, kind="margin").spread, 0, atol=1e-9)
    inverted = invert_odds(arm, weights, kind="margin")
    assert_array_equal(rank(inverted, k=6, kind="margin"), rank(twin, k=6, kind="margin"))


@few
@given(seed=seeds, budget=st.floats(0.01, 3))
def test_two_arms_within_the_budget_of_one_start_obey_every_bound(seed, budget):
    rng = np.random.default_rng(seed)
    start, weights = rng.normal(-2, 1, 6), np.exp(rng.normal(0, 3, 6))
    arm, twin = (start + rng.uniform(-budget, budget, (30, 6)) for _ in range(2))
    bounds = inversion_bounds(weights, budget)
    result = residual(arm, twin, weights, kind="margin")
    assert result.largest_gap.max() <= bounds.gap
    assert result.spread.min() >= bounds.least_spread - 1e-9
    assert result.spread.max() <= bounds.intended_range + bounds.spread + 1e-9


@few
@given(seed=seeds, budget=st.floats(0.01, 3))
def test_the_bounds_are_reached(seed, budget):
    """A pair that uses its whole budget: the bounds of the corollary are the best there are."""
    rng = np.random.default_rng(seed)
    weights = np.exp(rng.normal(0, 3, 6))
    bounds = inversion_bounds(weights, budget)
    middle = (np.log(weights).max() + np.log(weights).min()) / 2
    # Each label moves as far towards its ln w, taken from the middle, as the budget lets it.
    gap = np.clip(np.log(weights) - middle, -2 * budget, 2 * budget)
    result = residual(gap[None] / 2, -gap[None] / 2, weights, kind="margin")
    assert_allclose(result.spread, [bounds.least_spread], atol=1e-9)


def test_bounds_of_the_papers_smallest_cap():
    bounds = inversion_bounds([78.0, 8_248_932.0], 60 * 0.05 * 0.3)
    assert_allclose((bounds.gap, bounds.spread), (1.8, 3.6))
    assert not bounds.can_be_exact
    assert not bounds.can_keep_order
    assert_allclose(bounds.least_spread, np.log(8_248_932 / 78) - 3.6)


def test_a_common_weight_escapes_the_bound_and_no_cap_has_none():
    common = inversion_bounds([500.0, 500.0], 0.9)
    assert common.can_keep_order
    assert not common.can_be_exact
    free = inversion_bounds([1.0, 1e6], np.inf)
    assert free.can_be_exact
    assert free.least_spread == 0
    assert free.to_dict()["gap"] is None


def test_blocks_with_their_twin_tally_to_the_same_as_the_verb():
    rng = np.random.default_rng(3)
    twin, weights = draw_margins(rng, 50)
    arm = twin + rng.normal(0, 2, twin.shape)
    panel = Panel(arm, kind="margin")
    panel.twin = Panel(twin, kind="margin")
    tally, other = ResidualTally(weights), ResidualTally(weights)
    other.add(panel.rows(20, 50))
    tally.add(panel.rows(0, 20))
    tally.merge(other)
    tallied = tally.result()
    result = residual(arm, twin, weights, kind="margin")
    assert_array_equal(tallied.spread, result.spread)
    assert_allclose(tallied.mean, result.mean, atol=1e-12)


def test_a_row_with_one_known_cell_has_no_spread_and_a_label_without_one_no_mean():
    result = residual([[0.9, 1.0], [0.8, 1.0]], [[0.5, 0.5], [0.5, 0.5]], [2.0, 2.0])
    assert result.spread.size == 0
    assert result.median_spread is None
    assert np.isnan(result.mean[1])
    assert result.to_dict()["n_cells"] == 2


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: inversion_bounds([], 1.0), "at least one label"),
        (lambda: inversion_bounds([2.0], -1.0), "budget must be at least 0"),
        (lambda: inversion_bounds([2.0], float("nan")), "budget must be at least 0"),
        (lambda: residual([[0.5]], [[0.5, 0.5]], [1.0]), "same shape"),
        (lambda: ResidualTally(np.ones(1)).add(Panel([[0.5]])), "a twin must come"),
    ],
)
def test_refusals(call, says):
    with pytest.raises(InvalidInput, match=says):
        call()
