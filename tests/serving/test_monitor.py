"""The comparison with calibration rows is silent on quiet days and finds what changed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import oddslip
from experiments.monitor_simulation import CALIBRATION_ROWS, draw_world
from oddslip.core.proportions import odds_apart, rate_chances, smallest_chance
from oddslip.repairs.fingerprint import take_fingerprint
from oddslip.repairs.prior_shift import count_above, cut_places
from oddslip.serving.monitor import FAMILY, compare_with_calibration
from oddslip.shifts import realized_shift
from oddslip.sources import open_source


@pytest.fixture(scope="module")
def world():
    return draw_world(7, 2)


def compare_rows(world, scores):
    now = take_fingerprint(open_source(scores), world.repair.maps, 7)
    return compare_with_calibration(
        world.repair.fingerprint, now, world.repair.maps, world.repair.record.prior
    )


def fires(comparison):
    per_label = (
        comparison.scores_moved,
        comparison.shifted,
        comparison.slots_moved,
        comparison.saturated,
        comparison.coarser,
    )
    return any(each.any() for each in per_label) or comparison.ties or comparison.precision_moved


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.integers(1, 200), st.data())
def test_the_chance_of_two_counts_is_that_of_the_exact_conditional_test(n, m, data):
    one, two = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    first, second = (one, two) if one + two <= 0.5 * (n + m) else (n - one, m - two)
    expected = stats.binomtest(second, first + second, m / (n + m)) if first + second else None
    both = 1.0
    if expected is not None:
        tails = (stats.binom.cdf, lambda k, t, p: stats.binom.sf(k - 1, t, p))
        both = min(1.0, 2 * min(tail(second, first + second, m / (n + m)) for tail in tails))
    assert rate_chances(one, n, two, m) == pytest.approx(both, rel=1e-9)


def test_the_smallest_chance_is_found_among_many():
    rng = np.random.default_rng(0)
    for share in (0.002, 0.3, 0.9):
        one, two = rng.binomial(4000, share, 900), rng.binomial(500, share, 900)
        expected = rate_chances(one, 4000, two, 500).min()
        assert smallest_chance(one, 4000, two, 500) == expected


def test_odds_are_apart_by_what_was_added():
    assert odds_apart(5000, 10_000, 7311, 10_000) == pytest.approx(1.0, abs=1e-3)


def test_cuts_count_what_lies_above_them_and_see_a_heap_at_either_end():
    counts = np.array([[50, 0, 10, 10, 10, 0, 20], [0, 0, 0, 100, 0, 0, 0]])
    places = cut_places(counts)
    above = count_above(counts, places)
    for label, row in enumerate(counts):
        assert above[label].tolist() == [row[at:].sum() for at in places[label]]
    assert {50, 20} <= set(above[0])
    assert set(above[1]) == {0, 100}


def test_days_drawn_from_the_calibration_rows_are_quiet(world):
    """The level is what `FAMILY` of the quiet days reach in any comparison, all together."""
    rng = np.random.default_rng(1)
    calibrated = world.pair.weighted[:CALIBRATION_ROWS]
    n_days = 30
    n_loud = sum(
        fires(compare_rows(world, calibrated[rng.integers(0, CALIBRATION_ROWS, size)]))
        for size in rng.choice([150, 1000, 4000], n_days)
    )
    assert n_loud <= stats.binom.ppf(0.999, n_days, FAMILY)


@pytest.mark.parametrize("n_rows", [1, 30, 3000])
def test_a_quiet_day_of_any_size_is_quiet(world, n_rows):
    assert not fires(compare_rows(world, world.month(0).scores[:n_rows]))


def test_a_label_that_moved_is_named_and_no_other(world):
    scores = world.month(0).scores
    odds = scores[:, 5] / (1 - scores[:, 5]) * np.exp(1.0)
    scores[:, 5] = odds / (1 + odds)
    comparison = compare_rows(world, scores)
    assert np.flatnonzero(comparison.scores_moved).tolist() == [5]
    assert np.flatnonzero(comparison.shifted).tolist() == [5]
    assert (comparison.shift_now - comparison.shift_before)[5] == pytest.approx(1.0, abs=0.15)


def test_label_free_shifts_are_the_realized_ones(world):
    scores = world.month(1).scores
    comparison = compare_rows(world, scores)
    exact = realized_shift(scores, np.clip(world.repair.record.prior, 1e-9, 1)).shift
    assert comparison.shift_now == pytest.approx(exact, abs=0.05)


def test_the_same_day_gives_the_same_level(world):
    scores = world.month(0).scores[:500]
    assert compare_rows(world, scores).level == compare_rows(world, scores).level


def test_margins_are_compared_like_probabilities():
    rng = np.random.default_rng(3)
    margins = rng.normal(-2, 1.5, (3000, 8))
    labels = rng.random(margins.shape) < 1 / (1 + np.exp(-margins))
    fitted = oddslip.Repair(k=3, rule="platt", kind="margin").fit(margins, labels).fitted_

    def compare(cells):
        now = take_fingerprint(open_source(cells, kind="margin"), fitted.maps, 3)
        return compare_with_calibration(fitted.fingerprint, now, fitted.maps, fitted.record.prior)

    assert not fires(compare(rng.normal(-2, 1.5, (2000, 8))))
    assert compare(rng.normal(-2, 1.5, (2000, 8)) + 0.7).shifted.all()
