"""Knots of mixtures against NumPy's interpolation, label by label."""

import numpy as np
import pytest
from scipy.special import expit, logit

from oddslip.kernels.maps import AFFINE, CLIP
from oddslip.kernels.mixture import mix_knots

GRID = np.linspace(-30.0, 30.0, 41)
SCORES = {True: GRID, False: expit(GRID[np.abs(GRID) < -np.log(CLIP)])}  # by whether margins
SLOPES, LEVELS = np.array([0.5, 1.0, 4.0, 90.0, 0.3]), np.array([0.2, -1.0, -9.0, 20.0, 0.0])
SHARES = np.array([0.5, 0.1, 0.9, 0.3, 0.0])  # the last label has no isotonic map
N_KNOTS = (7, 1, 30, 12, 0)


@pytest.fixture(params=["margin", "probability"])
def margin(request):
    return request.param == "margin"


def isotonic_maps(margin):
    rng = np.random.default_rng(0)
    draw = (lambda n: rng.normal(0, 9, n)) if margin else rng.random
    x = np.concatenate([np.sort(draw(n)) for n in N_KNOTS])
    y = np.concatenate([np.sort(rng.random(n)) for n in N_KNOTS])
    return np.concatenate([[0], np.cumsum(N_KNOTS)]), x, y


def mix(margin, share=SHARES):
    code, zeros = np.full(SLOPES.size, AFFINE, np.int8), np.zeros(SLOPES.size)
    maps = isotonic_maps(margin)
    mixed = mix_knots(*maps, code, SLOPES, LEVELS, zeros, share, GRID, SCORES[margin], margin, True)
    for label in range(SLOPES.size):
        yield (
            label,
            *(
                [each[indptr[label] : indptr[label + 1]] for each in (x, y)]
                for indptr, x, y in (maps, mixed)
            ),
        )


def test_a_mixture_is_the_weighted_mean_of_both_maps_at_its_knots(margin):
    for label, (x, y), (at, value) in mix(margin):
        log_odds = at if margin else logit(np.clip(at, CLIP, 1 - CLIP))
        smooth = expit(SLOPES[label] * log_odds + LEVELS[label])
        isotonic = np.interp(at, x, y) if x.size else smooth
        share = SHARES[label]
        expected = share * isotonic + (1 - share) * smooth
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-13)


def test_a_mixture_has_the_isotonic_knots_those_of_the_grid_and_the_ends(margin):
    for label, (x, _), (at, value) in mix(margin):
        steep = SLOPES[label] > 1
        grid = (GRID - LEVELS[label]) / SLOPES[label] if steep else GRID
        if not margin:
            grid = expit(grid[np.abs(grid) < -np.log(CLIP)])
        ends = [0.0] if margin else [0.0, 1.0]
        expected = np.unique(np.concatenate([x, grid, ends]))
        np.testing.assert_allclose(at, expected, rtol=1e-14)
        assert (np.diff(at) > 0).all()
        assert (np.diff(value) >= 0).all()


def test_knots_at_one_score_leave_one_with_the_value_above_the_jump():
    indptr, x, y = np.array([0, 2]), np.array([0.5, 0.5]), np.array([0.1, 0.7])
    one = np.ones(1)
    code = np.array([AFFINE], np.int8)
    maps = code, one, 0 * one, 0 * one
    _, at, value = mix_knots(indptr, x, y, *maps, one, GRID, SCORES[False], False, True)
    assert (at == 0.5).sum() == 1
    assert value[at == 0.5] == pytest.approx(0.7)


def test_margins_at_the_ends_of_floats_have_no_part_between():
    largest = np.finfo(float).max
    indptr, x, y = np.array([0, 2]), np.array([-largest, largest]), np.array([0.2, 0.6])
    one, code = np.ones(1), np.array([AFFINE], np.int8)
    maps = code, one, 0 * one, 0 * one
    _, at, value = mix_knots(indptr, x, y, *maps, one, GRID, SCORES[True], True, True)
    assert np.isfinite(value).all()
    assert (at[0], at[-1]) == (-largest, largest)
    assert (np.diff(value) >= 0).all()
