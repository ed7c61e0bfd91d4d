"""Fits on a summary of the other folds against fits on their rows, and how little is read."""

import numpy as np
import pytest
from tests.support.trials import try_candidates

from oddslip.calibrators import build_calibrator
from oddslip.core.passes import run
from oddslip.datasets import synthetic_pair
from oddslip.selection.candidates import RAW, WIDE, Candidate
from oddslip.selection.folds import assign_folds
from oddslip.sources import open_source

PAIR = synthetic_pair(1200, 12, prevalence=(0.004, 0.3), noise=0.5, n_dead=1, seed=5)
SCORES = {"probability": PAIR.weighted.astype(np.float64), "margin": PAIR.weighted_margin}
SMOOTH = ("label_free", "temperature", "offset", "hierarchical", "platt", "beta")
NEAR = 1e-6  # of a parameter, relative where it exceeds 1


def fit_by_folds(form, kind, scores=None):
    source = open_source(SCORES[kind] if scores is None else scores, PAIR.labels, kind=kind)
    return try_candidates(
        source, [RAW, Candidate(form)], k=3, prior=PAIR.prior, weights=PAIR.weights
    ).fits


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("form", SMOOTH)
def test_a_fit_on_the_summary_of_the_other_folds_is_that_on_their_rows(form, kind):
    fits = fit_by_folds(form, kind)
    source = open_source(SCORES[kind], kind=kind)
    (assignment,) = assign_folds(source, 5)
    folds = assignment.of_keys(source.row_keys())
    options = {"prior": PAIR.prior, "weights": PAIR.weights, "kind": kind}
    for fold in range(5):
        found, record = fits.fit(Candidate(form), fold)
        kept = folds != fold
        alone = build_calibrator(form, **options).fit(SCORES[kind][kept], PAIR.labels[kept])
        for name in ("a", "b", "c"):
            own, wanted = getattr(found, name), getattr(alone.fitted_.maps, name)
            np.testing.assert_allclose(own, wanted, rtol=NEAR, atol=NEAR)
        np.testing.assert_array_equal(found.code, alone.fitted_.maps.code)
        assert record.action == alone.record_.action


@pytest.mark.parametrize("form", SMOOTH)
def test_on_all_rows_the_fit_is_that_of_the_calibrator_alone(form):
    """The folds' summary stands in for one of all rows; what has an exact optimum finds that."""
    fits = fit_by_folds(form, "probability")
    options = {"prior": PAIR.prior, "weights": PAIR.weights}
    alone = build_calibrator(form, **options).fit(SCORES["probability"], PAIR.labels).fitted_
    found, _ = fits.fit(Candidate(form), None)
    for name in ("a", "b", "c"):
        near = 1e-7 if form == "hierarchical" else 1e-12
        own, wanted = getattr(found, name), getattr(alone.maps, name)
        np.testing.assert_allclose(own, wanted, rtol=near, atol=near)


@pytest.mark.parametrize("form", SMOOTH)
def test_fits_that_read_the_rows_together_are_those_made_alone(form):
    fits = fit_by_folds(form, "probability")
    together = run(fits.source, fits.fit_together([Candidate(each) for each in SMOOTH]))
    alone, record = fit_by_folds(form, "probability").fit(Candidate(form), None)
    found, told = together[SMOOTH.index(form)]
    assert told.action == record.action
    for name in ("a", "b", "c"):
        np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))


def test_halfway_is_the_mean_of_raw_and_hierarchical_log_odds():
    fits = fit_by_folds("hierarchical", "margin")
    whole, _ = fits.fit(Candidate("hierarchical"), 1)
    half, _ = fits.fit(Candidate("halfway"), 1)
    margins = PAIR.weighted_margin[:50]
    wanted = (margins + whole.evaluate(margins)) / 2
    np.testing.assert_allclose(half.evaluate(margins), wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_all_candidates_and_all_draws_of_the_folds_together_take_three_passes(n_repeats):
    source = open_source(PAIR.weighted, PAIR.labels)
    passes, blocks = [], source.blocks
    source.blocks = lambda: passes.append(1) or blocks()
    folds = assign_folds(source, 5, n_repeats=n_repeats)
    trials = try_candidates(source, WIDE, k=3, folds=folds, weights=PAIR.weights)
    assert {"platt", "beta", "offset", "hierarchical", "label_free"} <= set(trials.n_fits)
    assert len(passes) == 3


def test_draws_of_the_folds_that_are_too_large_to_be_held_together_change_nothing(monkeypatch):
    source = open_source(PAIR.weighted, PAIR.labels)
    folds = assign_folds(source, 5, n_repeats=3)
    options = {"k": 3, "folds": folds, "weights": PAIR.weights}
    at_once = try_candidates(source, WIDE, **options)
    monkeypatch.setattr("oddslip.selection.fold_counts.AT_ONCE", 1)
    one_by_one = try_candidates(source, WIDE, **options)
    np.testing.assert_array_equal(at_once.by_fold.first, one_by_one.by_fold.first)


def test_margins_of_hundreds_of_nats_neither_fail_nor_leave_gaps():
    margins = PAIR.weighted_margin.copy()
    margins[::17] = 700.0
    margins[5::17, ::2] = -700.0
    source = open_source(margins, PAIR.labels, kind="margin")
    trials = try_candidates(source, WIDE, k=3, prior=PAIR.prior, weights=PAIR.weights)
    assert np.isfinite(trials.means).all()
