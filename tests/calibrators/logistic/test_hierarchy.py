"""The hierarchical fit: its special cases, what its labels borrow, and what must not matter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from oddslip.calibrators import (
    Hierarchical,
    HierarchicalIsotonic,
    Inversion,
    LabelFree,
    Offset,
    Platt,
)
from oddslip.calibrators.logistic.hierarchy import (
    MIN_SLOPE,
    Hyper,
    fit_hierarchical,
    match_prevalence,
)
from oddslip.calibrators.logistic.moments import Cells
from oddslip.core.passes import run
from oddslip.datasets import synthetic_pair
from oddslip.shifts import realized_shift
from oddslip.sources import open_source

PAIR = synthetic_pair(3000, 12, prevalence=(0.02, 0.3), noise=0.5, seed=4)
MARGINS, LABELS = PAIR.weighted_margin.astype(np.float64), PAIR.labels
LOG_WEIGHTS = np.log(PAIR.weights)
NOTHING, MUCH = 1e-12, 1e8  # variances


def summarise(margins, labels):
    source = open_source(margins, labels, kind="margin")
    cells = run(source, Cells.read(source))
    run(source, cells.summarise())
    sums = cells.positives_about(0, np.zeros(margins.shape[1]))
    return cells.points, cells.weights, cells.n_positives, sums


SUMMARY = summarise(MARGINS, LABELS)


def fit_at(alpha=(0, 0, 0, 0), gamma=1.0, level=NOTHING, slope=NOTHING):
    """The fit under a prior that is given."""
    hyper = Hyper(np.array(alpha, float), gamma, np.diag([level, slope]))
    return fit_hierarchical(*SUMMARY, PAIR.prior, LOG_WEIGHTS, hyper=hyper)


def affine(calibrator):
    maps = calibrator.fit(MARGINS, LABELS).fitted_.maps
    return maps.a, maps.b


def assert_same(fit, slope, intercept, tolerance=1e-6):
    np.testing.assert_allclose(fit.slope, slope, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(fit.intercept, intercept, rtol=tolerance, atol=tolerance)


# --- special cases ------------------------------------------------------------------------------


def test_raw_scores_are_a_special_case():
    assert_same(fit_at(), 1.0, 0.0)


def test_the_inversion_is_a_special_case():
    assert_same(fit_at(alpha=(0, 0, 0, -1)), *affine(Inversion(PAIR.weights, kind="margin")))


def test_the_label_free_shift_is_a_special_case():
    expected = affine(LabelFree(prior=PAIR.prior, kind="margin"))
    assert_same(fit_at(alpha=(0, -1, 0, 0)), *expected, tolerance=1e-4)


def test_the_offset_is_a_special_case():
    assert_same(fit_at(level=MUCH), *affine(Offset(kind="margin")), tolerance=1e-4)


def test_platt_is_a_special_case():
    assert_same(fit_at(level=MUCH, slope=MUCH), *affine(Platt(kind="margin")), tolerance=1e-3)


def test_popularity_is_a_special_case():
    fit = fit_at(alpha=(0, 0, 1, 0), gamma=MIN_SLOPE)
    np.testing.assert_allclose(fit.slope, MIN_SLOPE, rtol=1e-5)
    np.testing.assert_allclose(fit.intercept, logit(PAIR.prior), atol=1e-6)
    order = np.argsort(-PAIR.prior)
    ranking = np.argsort(-(fit.intercept + fit.slope * MARGINS), axis=1)
    assert (ranking[:, 0] == order[0]).mean() > 0.9


# --- what is found ------------------------------------------------------------------------------


def draw(n_rows, intercept, slope, seed=0, center=-2.0):
    rng = np.random.default_rng(seed)
    margins = rng.normal(center, 1.5, (n_rows, len(intercept)))
    return margins, rng.random(margins.shape) < expit(intercept + slope * margins)


def test_the_prior_that_drew_the_labels_is_found():
    rng = np.random.default_rng(1)
    level, slope = rng.normal(-1.0, 0.4, 300), 0.6 + rng.normal(0, 0.1, 300)
    margins, labels = draw(2000, level + slope * 2, slope)  # levels at -2, where the cells are
    fit = fit_hierarchical(*summarise(margins, labels), np.full(300, labels.mean()))
    assert abs(fit.hyper.gamma - 0.6) < 0.05
    assert abs(np.sqrt(fit.hyper.covariance[1, 1]) - 0.1) < 0.03
    assert abs(np.median(fit.intercept - (level + slope * 2))) < 0.05


def test_shrinking_beats_platt_where_positives_are_few():
    rng = np.random.default_rng(2)
    slope = 0.5 + rng.normal(0, 0.05, 60)
    intercept = np.full(60, -2.5)
    margins, labels = draw(150, intercept, slope, seed=3)
    truth = intercept + slope * margins

    def error(calibrator):
        maps = calibrator.fit(margins, labels).fitted_.maps
        return np.mean((expit(maps.a * margins + maps.b) - expit(truth)) ** 2)

    assert error(Hierarchical(kind="margin")) < 0.5 * error(Platt(kind="margin"))


def test_a_few_labels_with_wild_scores_hardly_move_the_rest():
    rng = np.random.default_rng(5)
    slope = 0.7 + rng.normal(0, 0.05, 40)
    margins, labels = draw(400, rng.normal(-1, 0.3, 40), slope)
    wild = margins.copy(), labels.copy()
    wild[0][:, :3] = rng.normal(0, 300, (400, 3))  # scores that say nothing, far out
    wild[1][:, :3] = rng.random((400, 3)) < 0.1
    prior = np.clip(labels.mean(axis=0), 1e-3, 1)
    tame = fit_hierarchical(*summarise(margins, labels), prior)
    fit = fit_hierarchical(*summarise(*wild), prior)
    moved = (fit.intercept - tame.intercept) + (fit.slope - tame.slope) * margins.mean(axis=0)
    assert np.abs(moved[3:]).max() < 0.1
    assert np.abs(fit.slope - tame.slope)[3:].max() < 0.1


def test_a_label_whose_positives_these_rows_do_not_show_gets_just_its_prior():
    """Chance does not keep 60 positives away: that there is none says nothing of the label."""
    labels, prior = LABELS.copy(), LABELS.mean(axis=0)
    labels[:, 3] = False
    fitted = Hierarchical(kind="margin", prior=prior).fit(MARGINS, labels)
    repaired = fitted.transform(MARGINS)
    assert prior[3] * len(LABELS) > 60
    np.testing.assert_allclose(repaired[:, 3].mean(), prior[3], rtol=1e-6)
    order = np.argsort(MARGINS[:, 3])
    assert (np.diff(repaired[order, 3]) >= 0).all()
    assert fitted.fitted_.maps.a[3] == fitted.hyper_.gamma


def test_labels_that_are_not_heard_say_nothing_of_the_others():
    labels, prior = LABELS.copy(), LABELS.mean(axis=0)
    labels[:, 3] = False
    with_it = Hierarchical(kind="margin", prior=prior).fit(MARGINS, labels)
    others = np.arange(12) != 3
    alone = Hierarchical(kind="margin", prior=prior[others]).fit(
        MARGINS[:, others], labels[:, others]
    )
    np.testing.assert_allclose(with_it.hyper_.beta, alone.hyper_.beta, atol=0.02)


@pytest.mark.parametrize("has_prior", [True, False])
def test_only_a_given_prior_promises_positives(has_prior):
    labels = LABELS.copy()
    labels[:, 3] = False
    prior = np.where(np.arange(12) == 3, 19 / 3000, LABELS.mean(axis=0)) if has_prior else None
    repaired = Hierarchical(kind="margin", prior=prior).fit_transform(MARGINS, labels)
    assert repaired[:, 3].mean() < 12 / 3000


def test_a_dead_label_keeps_its_order_and_gets_about_its_prior():
    margins, labels = draw(500, np.full(30, -1.0), np.full(30, 0.8))
    labels[:, 0] = False
    prior = labels.mean(axis=0)
    prior[0] = 0.002
    fitted = Hierarchical(prior=prior, kind="margin").fit(margins, labels)
    values = fitted.fitted_.transform(np.sort(margins, axis=0), dtype=np.float64)[:, 0]
    assert (np.diff(values) > 0).all()
    assert 0.0005 < values.mean() < 0.004
    assert fitted.record_.action[:2] == ("borrowed", "calibrated")


def test_labels_that_can_be_separated_keep_a_modest_slope():
    margins, _ = draw(300, np.full(20, -1.0), np.full(20, 1.0))
    fit = fit_hierarchical(*summarise(margins, margins > -1.5), np.full(20, 0.3))
    assert np.isfinite(fit.slope).all()
    assert (fit.slope > 1).all()
    assert (fit.slope < 30).all()


def test_scores_that_say_nothing_become_popularity():
    rng = np.random.default_rng(6)
    prevalence = np.linspace(0.02, 0.4, 20)
    labels = rng.random((3000, 20)) < prevalence
    fitted = Hierarchical(kind="margin").fit(rng.normal(0, 2, labels.shape), labels)
    values = fitted.transform(rng.normal(0, 2, labels.shape))
    np.testing.assert_allclose(values.mean(axis=0), prevalence, rtol=0.3)
    assert fitted.hyper_.gamma < 0.05


@pytest.mark.parametrize("calibrator", [Hierarchical, HierarchicalIsotonic])
def test_negated_scores_still_rise_within_their_label(calibrator):
    maps = calibrator(kind="margin").fit(-MARGINS, LABELS).fitted_
    values = maps.transform(np.sort(-MARGINS, axis=0), dtype=np.float64)
    assert (np.diff(values, axis=0) >= 0).all()
    assert (values[-1] > values[0]).all()


# --- what must not matter -----------------------------------------------------------------------


def test_the_order_of_rows_does_not_matter():
    order = np.random.default_rng(0).permutation(len(MARGINS))
    one, other = (
        affine_of(Hierarchical(prior=PAIR.prior, weights=PAIR.weights, kind="margin"), rows)
        for rows in (slice(None), order)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def affine_of(calibrator, rows):
    maps = calibrator.fit(MARGINS[rows], LABELS[rows]).fitted_.maps
    return maps.a, maps.b


def test_the_order_of_labels_does_not_matter():
    order = np.random.default_rng(0).permutation(12)
    fit = fit_hierarchical(*SUMMARY, PAIR.prior, LOG_WEIGHTS)
    mixed = tuple(part[order] for part in SUMMARY)
    other = fit_hierarchical(*mixed, PAIR.prior[order], LOG_WEIGHTS[order])
    np.testing.assert_allclose(other.slope, fit.slope[order], rtol=1e-9)
    np.testing.assert_allclose(other.intercept, fit.intercept[order], rtol=1e-9, atol=1e-9)


def test_points_without_weight_do_not_matter():
    points, weights, *rest = SUMMARY
    wide = np.hstack([points, np.full((12, 3), 50.0)]), np.hstack([weights, np.zeros((12, 3))])
    one = fit_hierarchical(points, weights, *rest, PAIR.prior)
    other = fit_hierarchical(*wide, *rest, PAIR.prior)
    np.testing.assert_allclose(other.slope, one.slope, rtol=1e-9)


def test_a_start_near_the_end_saves_rounds_and_changes_little():
    far = fit_hierarchical(*SUMMARY, PAIR.prior, LOG_WEIGHTS)
    near = fit_hierarchical(*SUMMARY, PAIR.prior, LOG_WEIGHTS, start=far.hyper)
    assert near.n_rounds < far.n_rounds
    np.testing.assert_allclose(near.slope, far.slope, rtol=1e-2)


# --- edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("calibrator", [Hierarchical, HierarchicalIsotonic, LabelFree])
@pytest.mark.parametrize(
    ("margins", "labels"),
    [
        (np.zeros((5, 1)), [[0], [1], [0], [0], [0]]),
        (np.full((5, 1), 700.0), [[0], [0], [0], [0], [0]]),
        (np.full((5, 2), -700.0), [[1, 0]] * 5),
        ([[-700.0, 700.0], [700.0, -700.0], [0.0, 0.0]], [[1, 1], [0, 0], [0, 1]]),
        ([[1e90, -1e90], [0.0, 0.0]], [[1, 0], [0, 1]]),
        ([[3.0]], [[1]]),
        ([[3.0]], [[0]]),
    ],
    ids=["constant", "dead and far", "always true", "far apart", "absurd", "one true", "one false"],
)
def test_odd_panels_give_maps_that_rise(calibrator, margins, labels):
    fitted = calibrator(kind="margin").fit(np.asarray(margins, float), labels).fitted_
    values = fitted.transform(np.sort(np.asarray(margins, float), axis=0))
    assert np.isfinite(values).all()
    assert (np.diff(values, axis=0) >= 0).all()


def test_fifty_thousand_labels_are_one_fit():
    rng = np.random.default_rng(8)
    margins = rng.normal(-3, 1, (20, 50_000)).astype(np.float32)
    labels = rng.random(margins.shape) < expit(0.5 * margins - 1)
    fitted = Hierarchical(kind="margin").fit(margins, labels)
    assert abs(fitted.hyper_.gamma - 0.5) < 0.1


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_panel_breaks_it(seed):
    rng = np.random.default_rng(seed)
    n_rows, n_labels = int(rng.integers(1, 40)), int(rng.integers(1, 8))
    scale = rng.choice([0.0, 1e-3, 1.0, 30.0, 700.0], n_labels)
    margins = np.clip(rng.normal(0, 1, (n_rows, n_labels)) * scale, -700, 700)
    labels = rng.random(margins.shape) < rng.random(n_labels) ** 3
    prior = np.where(rng.random(n_labels) < 0.2, 0.0, rng.random(n_labels))
    for calibrator in (
        Hierarchical(kind="margin", prior=prior, weights=np.exp(rng.normal(0, 3, n_labels))),
        HierarchicalIsotonic(kind="margin"),
    ):
        fitted = calibrator.fit(margins, labels, threads=1).fitted_
        values = fitted.transform(np.sort(margins, axis=0))
        assert np.isfinite(values).all()
        assert (np.diff(values, axis=0) >= 0).all()


# --- the label-free shift -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["probability", "margin"])
def test_the_label_free_shift_is_the_realized_shift(kind):
    scores = PAIR.weighted if kind == "probability" else MARGINS
    fitted = LabelFree(prior=PAIR.prior, kind=kind).fit(scores)
    expected = realized_shift(scores, PAIR.prior, kind=kind)
    shift = -fitted.fitted_.maps.b
    np.testing.assert_allclose(
        shift[expected.identified], expected.shift[expected.identified], atol=1e-9
    )


def test_the_shift_of_a_summary_is_near_that_of_the_rows():
    shift = match_prevalence(SUMMARY[0], SUMMARY[1], PAIR.prior)
    expected = realized_shift(MARGINS, PAIR.prior, kind="margin").shift
    np.testing.assert_allclose(shift, expected, atol=1e-4)


def test_labels_do_not_matter_to_a_label_free_fit_with_a_prior():
    alone = LabelFree(prior=PAIR.prior).fit(PAIR.weighted)
    labelled = LabelFree(prior=PAIR.prior).fit(PAIR.weighted, LABELS)
    np.testing.assert_array_equal(alone.fitted_.maps.b, labelled.fitted_.maps.b)


def test_a_label_of_prior_zero_keeps_its_order_below_the_rarest():
    prior = np.append(0.0, PAIR.prior[1:])
    values = (
        LabelFree(prior=prior)
        .fit(PAIR.weighted)
        .fitted_.transform(np.sort(PAIR.weighted, axis=0), dtype=np.float64)
    )
    assert values[-1, 0] > values[0, 0] > 0
    assert values[:, 0].mean() <= values[:, 1:].mean(axis=0).min() * (1 + 1e-6)
