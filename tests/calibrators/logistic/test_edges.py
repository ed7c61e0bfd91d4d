import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, logit

from oddslip.calibrators import Offset
from oddslip.calibrators.logistic.fits import Status, fit_affine, fit_beta
from oddslip.sources import open_source
from oddslip.sources.open import open_rows

sys.path.insert(0, str(Path(__file__).parent))
from oracles import (
    FITTED,
    OFFSET,
    PLATT,
    TEMPERATURE,
    best_beta,
    best_of,
    features_of,
    log_odds_of,
    make_panel,
)
from tests.support.passes import plain

fit_affine, fit_beta = plain(fit_affine), plain(fit_beta)

# --- labels that cannot be fitted --------------------------------------------------------------


def statuses_and_fits(columns, kind="margin"):
    scores = np.column_stack([np.asarray(column[0], float) for column in columns])
    labels = np.column_stack([column[1] for column in columns])
    source = open_source(scores, labels, kind=kind)
    return fit_affine(source, **PLATT), fit_beta(source), fit_affine(source, **OFFSET)


def test_a_label_of_one_class_keeps_its_score():
    z = [0.3, -1.0, 2.0, 0.1]
    platt, beta, offset = statuses_and_fits(
        [(z, [0, 0, 0, 0]), (z, [1, 1, 1, 1]), (z, [1, 0, 0, 1])]
    )
    for fit in (platt, beta, offset):
        assert list(fit.status[:2]) == [Status.NO_POSITIVE, Status.NO_NEGATIVE]
        assert (fit.a[:2] == 1).all()
    assert (platt.b[:2] == 0).all()
    assert (offset.b[:2] == 0).all()
    assert (beta.b[:2] == 1).all()
    assert (beta.c[:2] == 0).all()


def test_nothing_but_one_class_takes_one_pass():
    fit = fit_affine(open_source([[0.1, 0.2], [0.3, 0.4]], [[0, 1], [0, 1]]), **PLATT)
    assert fit.n_passes == 1
    assert list(fit.status) == [Status.NO_POSITIVE, Status.NO_NEGATIVE]


def test_a_separable_label_keeps_slope_one_and_gets_the_offset():
    parted = ([-2.0, -1.0, 0.5, 3.0], [0, 0, 1, 1])
    touching = ([-2.0, 0.5, 0.5, 3.0], [0, 0, 1, 1])
    constant = ([0.7] * 4, [0, 1, 0, 0])
    platt, beta, offset = statuses_and_fits([parted, touching, constant])
    assert (platt.status == Status.SEPARABLE).all()
    assert (beta.status == Status.SEPARABLE).all()
    assert (offset.status == FITTED).all()
    assert (platt.a == 1).all()
    assert (beta.a == 1).all()
    assert (beta.b == 1).all()
    np.testing.assert_allclose(platt.b, offset.b, atol=1e-10)
    np.testing.assert_allclose(beta.c, offset.b, atol=1e-10)
    np.testing.assert_allclose(offset.b[2], logit(1 / 4) - 0.7, atol=1e-12)


def test_a_label_whose_scores_fall_gets_its_prevalence():
    falling = ([-2.0, -1.0, 0.5, 3.0, 1.0], [1, 0, 1, 0, 0])
    parted_the_wrong_way = ([-2.0, -1.0, 0.5, 3.0, 1.0], [1, 1, 0, 0, 0])
    platt, beta, _ = statuses_and_fits([falling, parted_the_wrong_way])
    assert (platt.status == Status.NOT_INCREASING).all()
    assert (beta.status == Status.NOT_INCREASING).all()
    assert (platt.a == 0).all()
    assert (beta.a == 0).all()
    assert (beta.b == 0).all()
    np.testing.assert_allclose(platt.b, logit(0.4), atol=1e-12)
    np.testing.assert_allclose(beta.c, logit(0.4), atol=1e-12)


def test_temperature_says_where_zero_separates_and_where_scores_are_inflated():
    scores = np.array([[-1.0, 1.0, 0.0], [-2.0, 2.0, 0.0], [3.0, 3.0, 0.0], [0.0, 9.0, 0.0]])
    labels = [[0, 0, 1], [0, 0, 0], [1, 1, 0], [0, 0, 0]]
    fit = fit_affine(open_source(scores, labels, kind="margin"), **TEMPERATURE)
    assert list(fit.status) == [Status.SEPARABLE, Status.NOT_INCREASING, Status.SEPARABLE]
    np.testing.assert_allclose(fit.a, [1, 0, 1])
    np.testing.assert_allclose(fit.b, [0, logit(0.25), 0])


def test_dead_labels_take_the_shared_temperature_and_say_so():
    scores, labels = make_panel(11)
    labels[:, 1] = False
    fit = fit_affine(open_source(scores, labels, kind="margin"), shared=True, **TEMPERATURE)
    assert fit.status[1] == Status.NO_POSITIVE
    assert (np.delete(fit.status, 1) == FITTED).all()
    assert np.unique(fit.a).size == 1


def test_one_positive_is_enough():
    scores, labels = make_panel(12, n_rows=300, n_labels=2)
    labels[:] = False
    labels[np.argsort(scores[:, 0])[-3], 0] = True
    labels[np.argsort(scores[:, 1])[150], 1] = True
    fit = fit_affine(open_source(scores, labels, kind="margin"), **PLATT)
    for j in range(2):
        x = np.column_stack([scores[:, j], np.ones(300)])
        theta, _ = best_of(x, labels[:, j])
        if theta[0] > 0:
            np.testing.assert_allclose([fit.a[j], fit.b[j]], theta, rtol=1e-7)
        else:
            assert fit.status[j] == Status.NOT_INCREASING
    assert fit.status[0] == FITTED


# --- saturated and extreme cells ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saturated_probabilities_fit_like_their_clipped_log_odds(dtype):
    rng = np.random.default_rng(13)
    scores = expit(rng.normal(0, 3, (500, 3))).astype(dtype)
    scores[rng.random((500, 3)) < 0.3] = 1.0
    scores[rng.random((500, 3)) < 0.2] = 0.0
    labels = rng.random((500, 3)) < 0.2 + 0.3 * (scores > 0.5)
    z = log_odds_of(scores, "probability")
    for model in (OFFSET, PLATT, TEMPERATURE):
        fit = fit_affine(open_source(scores, labels), **model)
        other = fit_affine(open_source(z, labels, kind="margin"), **model)
        np.testing.assert_allclose(fit.a, other.a, atol=1e-9)
        np.testing.assert_allclose(fit.b, other.b, atol=1e-9)
        assert (fit.status == other.status).all()
    assert (fit_beta(open_source(scores, labels)).status == FITTED).all()


@pytest.mark.parametrize("far", [30.0, 700.0, 1e6])
@pytest.mark.parametrize("n_true", [1, 300, 499, 500, 501, 999])
def test_the_offset_converges_between_far_groups_of_cells(far, n_true):
    """Half the cells at -far, half at +far: the root lies in one group, or between them."""
    z = np.repeat([-far, far], 500)[:, None]
    labels = (np.arange(1000) < n_true)[:, None]
    fit = fit_affine(open_source(z, labels, kind="margin"), **OFFSET)
    assert fit.status[0] == FITTED
    if n_true < 500:
        expected = -far + logit(n_true / 500)
    elif n_true > 500:
        expected = far + logit((n_true - 500) / 500)
    else:
        expected = 0.0
    if far < 1e6 or n_true != 500:
        np.testing.assert_allclose(fit.b[0], expected, rtol=1e-9, atol=1e-9)
    assert np.isfinite(fit.b[0])
    assert fit.n_passes <= 60


def test_the_offset_is_exact_where_saturated_cells_separate_the_classes():
    """The gradient is a difference of terms of 1e-12 beside terms of 1."""
    rng = np.random.default_rng(14)
    scores = np.repeat([1.0, 0.0], [300, 700])[:, None]
    labels = np.repeat([True, False], [300, 700])[:, None]
    order = rng.permutation(1000)
    fit = fit_affine(open_source(scores[order], labels[order]), **OFFSET)
    ends = logit(1 - 1e-12) + logit(1e-12)
    np.testing.assert_allclose(fit.b[0], 0.5 * (np.log(300 / 700) - ends), atol=1e-9)
    assert fit.n_passes <= 5


def test_margins_of_seven_hundred_beside_common_ones_fit():
    scores, labels = make_panel(15, n_rows=800, n_labels=3)
    scores[:4] = [[700.0], [-700.0], [700.0], [-700.0]]
    labels[:4] = [[1], [0], [1], [0]]
    source = open_source(scores, labels, kind="margin")
    platt, beta = fit_affine(source, **PLATT), fit_beta(source)
    assert (platt.status == FITTED).all()
    assert (beta.status == FITTED).all()
    u = features_of(scores, "margin")
    for j in range(3):
        x = np.column_stack([scores[:, j], np.ones(800)])
        theta, _ = best_of(x[4:], labels[4:, j])  # those cells are predicted without a doubt
        np.testing.assert_allclose([platt.a[j], platt.b[j]], theta, atol=1e-6)
        theta, _ = best_beta(u[4:, j], labels[4:, j])
        np.testing.assert_allclose([beta.a[j], beta.b[j], beta.c[j]], theta, atol=1e-6)


def test_scores_far_from_zero_with_little_spread_fit():
    scores, labels = make_panel(16)
    fit = fit_affine(open_source(scores, labels, kind="margin"), **PLATT)
    moved = open_source(1000 + scores / 1024, labels, kind="margin")
    other = fit_affine(moved, **PLATT)
    np.testing.assert_allclose(other.a, fit.a * 1024, rtol=1e-7)
    np.testing.assert_allclose(other.b + 1000 * other.a, fit.b, atol=1e-7)


def test_scores_of_two_values_reproduce_both_frequencies():
    z = np.repeat([-1.0, 2.0], [60, 40])[:, None]
    labels = np.r_[np.arange(60) < 6, np.arange(40) < 30][:, None]
    source = open_source(z, labels, kind="margin")
    platt, beta = fit_affine(source, **PLATT), fit_beta(source)
    expected = logit([0.1, 0.75])
    values = np.array([-1.0, 2.0])
    np.testing.assert_allclose(platt.a[0] * values + platt.b[0], expected, atol=1e-9)
    u = features_of(values, "margin")
    np.testing.assert_allclose(
        beta.a[0] * u[:, 0] + beta.b[0] * u[:, 1] + beta.c[0], expected, atol=1e-8
    )


# --- laws ---------------------------------------------------------------------------------------


@st.composite
def panels(draw):
    """Small panels with ties, saturation, far margins and rare labels."""
    n_rows = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([1e-3, 0.5, 3.0, 50.0]))
    z = rng.normal(draw(st.sampled_from([-3.0, 0.0, 5.0])), spread, (n_rows, 4))
    if draw(st.booleans()):
        z = np.round(z / spread * 2) * spread / 2  # ties
    if draw(st.booleans()):
        z[rng.random(z.shape) < 0.2] = draw(st.sampled_from([-700.0, 40.0, 700.0]))
    kind = draw(st.sampled_from(["margin", "probability"]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    labels = rng.random(z.shape) < draw(st.sampled_from([0.05, 0.3, 0.7]))
    return (z if kind == "margin" else expit(z)).astype(dtype), labels, kind


@settings(deadline=None, max_examples=60)
@given(panels(), st.sampled_from([OFFSET, PLATT, TEMPERATURE]))
def test_the_gradient_of_a_fitted_label_vanishes(panel, model):
    scores, labels, kind = panel
    fit = fit_affine(open_rows(scores, labels, kind=kind, threads=1), **model)
    z = log_odds_of(scores, kind)
    assert np.isfinite([fit.a, fit.b]).all()
    assert (fit.a >= 0).all()
    assert (fit.status != Status.NOT_CONVERGED).all()
    fitted = fit.status == FITTED
    residual = expit(fit.a * z + fit.b) - labels
    size = np.abs(z).max(axis=0) + 1
    if model["intercept"]:
        assert (np.abs(residual.sum(axis=0))[fitted] < 1e-7).all()
    if model["slope"]:
        slack = np.abs((residual * z).sum(axis=0))
        assert (slack[fitted] < 1e-7 * size[fitted]).all()


@settings(deadline=None, max_examples=60)
@given(panels())
def test_a_beta_fit_can_not_be_improved_within_its_bounds(panel):
    scores, labels, kind = panel
    fit = fit_beta(open_rows(scores, labels, kind=kind, threads=1))
    assert np.isfinite([fit.a, fit.b, fit.c]).all()
    assert (np.minimum(fit.a, fit.b) >= 0).all()
    assert (fit.status != Status.NOT_CONVERGED).all()
    u = features_of(scores, kind)
    residual = expit(fit.a * u[..., 0] + fit.b * u[..., 1] + fit.c) - labels
    for j in np.flatnonzero(np.isin(fit.status, (FITTED, Status.NOT_INCREASING))):
        assert abs(residual[:, j].sum()) < 1e-7
        for k, coefficient in enumerate((fit.a[j], fit.b[j])):
            slack = residual[:, j] @ u[:, j, k]
            size = 1e-7 * (np.abs(u[:, j, k]).max() + 1)
            assert slack > -size
            if coefficient > 0:
                assert slack < size


@settings(deadline=None, max_examples=40)
@given(panels())
def test_the_offset_makes_the_mean_probability_the_prevalence(panel):
    scores, labels, kind = panel
    fit = fit_affine(open_rows(scores, labels, kind=kind, threads=1), **OFFSET)
    mean = expit(log_odds_of(scores, kind) + fit.b).mean(axis=0)
    both = fit.status == FITTED
    np.testing.assert_allclose(mean[both], labels.mean(axis=0)[both], atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(-50, 50))
def test_moving_all_margins_moves_the_offset_back(seed, shift):
    scores, labels = make_panel(seed, n_rows=60)
    labels[0], labels[1] = True, False
    fit = fit_affine(open_rows(scores, labels, kind="margin", threads=1), **OFFSET)
    moved = fit_affine(open_rows(scores + shift, labels, kind="margin", threads=1), **OFFSET)
    np.testing.assert_allclose(moved.b, fit.b - shift, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_stretching_margins_shrinks_platts_slope(seed, stretch):
    scores, labels = make_panel(seed, n_rows=60)
    labels[0], labels[1] = True, False
    fit = fit_affine(open_rows(scores, labels, kind="margin", threads=1), **PLATT)
    other = fit_affine(open_rows(scores * stretch, labels, kind="margin", threads=1), **PLATT)
    assert (fit.status == other.status).all()
    fitted = fit.status == FITTED
    np.testing.assert_allclose(other.a[fitted] * stretch, fit.a[fitted], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.b[fitted], fit.b[fitted], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("far", [[1e14], [-1e14], [1e20], [-1e20], [1e50], [1e20, -1e20]])
def test_cells_far_out_leave_the_offset_of_the_others_and_the_ranks_right(far):
    rng = np.random.default_rng(0)
    margins = rng.normal(size=(400, 4))
    labels = rng.random(margins.shape) < expit(margins + np.arange(-2, 2))
    margins[: len(far)] = np.array(far)[:, None]
    labels[: len(far)] = margins[: len(far)] > 0  # as they say, so that they cost nothing
    repair = Offset(kind="margin").fit(margins, labels).fitted_
    offsets = [offset_of(margins[len(far) :, j], labels[len(far) :, j]) for j in range(4)]
    np.testing.assert_allclose(repair.maps.b, offsets, atol=1e-8)
    ranks = np.argsort(-(margins + offsets), axis=1, kind="stable")[len(far) :, :2]
    np.testing.assert_array_equal(repair.rank(margins, k=2)[len(far) :], ranks)


def offset_of(margins, labels):
    return brentq(lambda b: expit(margins + b).sum() - labels.sum(), -50, 50, xtol=1e-12)


def test_margins_that_are_all_far_out_keep_the_share_of_rows_above_zero():
    rng = np.random.default_rng(0)
    margins = 1e20 * rng.normal(size=(400, 4))
    labels = rng.random(margins.shape) < [0.1, 0.3, 0.5, 0.7]
    repair = Offset(kind="margin").fit(margins, labels).fitted_
    above = (margins + repair.maps.b > 0).sum(axis=0)
    np.testing.assert_allclose(above, labels.sum(axis=0), atol=1)
    ranks = np.argsort(-(margins + repair.maps.b), axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(repair.rank(margins, k=2), ranks)
