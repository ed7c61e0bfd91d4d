"""Maps of whole blocks against NumPy's interpolation and SciPy's functions."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, logit

from oddslip.kernels.maps import (
    AFFINE,
    BETA,
    CLIP,
    CONSTANT,
    EXCLUDED,
    IDENTITY,
    KNOTS,
    LOWEST,
    fill_knots,
    map_cells,
)

SHAPES = [(1, 1), (3, 15), (257, 16), (300, 37)]


def lay(xs, ys):
    """Knots as the kernel reads them: score, value, slope to the next one, value of the next."""
    knots = np.zeros((sum(map(len, xs)), 4))
    at = 0
    for x, y in zip(xs, ys, strict=True):
        part = knots[at : at + len(x)]
        part[:, 0], part[:, 1], part[:, 3] = x, y, np.append(y[1:], y[-1])
        part[:-1, 2] = np.diff(y) / np.diff(x)
        at += len(x)
    return knots


def apply(
    frozen, scores, code, a, b, c, knots=None, *, margin, odds, out=None, to_probability=False
):
    n = scores.shape[1]
    knots = np.zeros((0, 4)) if knots is None else knots
    stop = (np.arange(n) + 1) * (len(knots) // n)
    arrays = frozen(
        np.full(n, code, np.int8),
        np.broadcast_to(a, n).astype(float),
        np.broadcast_to(b, n).astype(float),
        np.broadcast_to(c, n).astype(float),
        stop - len(knots) // n,
        stop,
        knots[:, 0],
        knots,
    )
    mapped = np.empty(scores.shape, scores.dtype if out is None else out)
    low, high = (-np.finfo(scores.dtype).max, np.finfo(scores.dtype).max) if margin else (0, 1)
    wrong = map_cells(frozen(scores), *arrays, margin, odds, low, high, to_probability, mapped)
    assert wrong == 0
    return mapped


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("out", [np.float32, np.float64])
def test_knots_are_interpolated_as_numpy_does(dtype, frozen, shape, out):
    rng = np.random.default_rng(shape[1])
    scores = rng.random(shape).astype(dtype)
    xs = [np.sort(rng.random(9)) for _ in range(shape[1])]
    ys = [np.sort(rng.random(9)) for _ in range(shape[1])]
    mapped = apply(frozen, scores, KNOTS, 0, 0, 0, lay(xs, ys), margin=False, odds=False, out=out)
    expected = [np.interp(s, x, y) for s, x, y in zip(scores.T.astype(float), xs, ys, strict=True)]
    np.testing.assert_allclose(mapped, np.stack(expected).T, rtol=4 * np.finfo(out).eps, atol=1e-15)


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("to_probability", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_affine_and_beta_maps_are_their_formulas(dtype, frozen, margin, to_probability, shape):
    z = np.random.default_rng(0).normal(0, 4, shape)
    scores = (z if margin else expit(z)).astype(dtype)
    s = scores.astype(float)
    if margin:
        log_s, log_rest = log_expit(s), log_expit(-s)
    else:
        s = np.clip(s, CLIP, 1 - CLIP)
        log_s, log_rest = np.log(s), np.log1p(-s)
    odds = s if margin else logit(s)
    a, b, c = 0.7, 1.3, -0.4
    for code, expected in ((AFFINE, a * odds + b), (BETA, a * log_s - b * log_rest + c)):
        mapped = apply(
            frozen,
            scores,
            code,
            a,
            b,
            c,
            margin=margin,
            odds=True,
            out=np.float64,
            to_probability=to_probability,
        )
        expected = expit(expected) if to_probability else expected
        np.testing.assert_allclose(mapped, expected, rtol=1e-13, atol=1e-13)


def test_constants_the_excluded_and_those_left_alone(dtype, frozen):
    scores = np.array([[-0.0, 0.25, 1.0]], dtype)
    options = {"margin": False, "odds": False}
    assert (apply(frozen, scores, CONSTANT, 0.3, 0, 0, **options) == dtype(0.3)).all()
    assert (apply(frozen, scores, EXCLUDED, 0, 0, 0, **options) == -np.inf).all()
    assert (apply(frozen, scores, EXCLUDED, 0, 0, 0, **options, to_probability=True) == 0).all()
    same = apply(frozen, scores, IDENTITY, 0, 0, 0, **options)
    np.testing.assert_array_equal(same, scores)
    assert not np.signbit(same).any()


def test_a_value_that_is_not_excluded_stays_above_minus_infinity(frozen):
    scores = np.array([[-np.finfo(float).max]])
    mapped = apply(frozen, scores, AFFINE, 9, 0, 0, margin=True, odds=True)
    assert mapped[0, 0] == LOWEST


def test_cells_out_of_bounds_are_counted(dtype, frozen):
    scores = np.full((300, 20), 0.5, dtype)
    scores[[0, 5, 299], [0, 19, 3]] = [np.nan, 1.5, -0.1]
    zeros, none = np.zeros(20), np.zeros(20, np.int64)
    code = np.full(20, IDENTITY, np.int8)
    wrong = map_cells(
        frozen(scores),
        code,
        zeros,
        zeros,
        zeros,
        none,
        none,
        zeros[:0],
        np.zeros((0, 4)),
        False,
        False,
        0.0,
        1.0,
        False,
        np.empty_like(scores),
    )
    assert wrong == 3


def test_knots_are_filled_with_the_slope_to_the_next_of_their_label():
    xs, ys = [[0.1, 0.4, 0.9], [0.5], [0.2, 0.3]], [[0.0, 0.3, 0.4], [0.6], [0.1, 0.8]]
    is_last = np.array([False, False, True, True, False, True])
    knots = np.empty((6, 4))
    fill_knots(np.concatenate(xs), np.concatenate(ys), is_last, knots)
    np.testing.assert_array_equal(knots, lay(xs, ys))


def test_a_knot_at_the_score_of_the_next_has_no_slope():
    knots = np.empty((3, 4))
    x, y = np.array([0.1, 0.5, 0.5]), np.array([0.2, 0.3, 0.7])
    fill_knots(x, y, np.array([False, False, True]), knots)
    np.testing.assert_array_equal(knots[1], [0.5, 0.3, 0.0, 0.3])
