"""A prevalence that moved is found in the scores alone, and nothing else is taken for it."""

import warnings

import numpy as np
import pytest

import oddslip
from oddslip.errors import InvalidInput
from oddslip.repairs.fingerprint import probabilities_of, take_fingerprint
from oddslip.repairs.prior_shift import SURE, find_prior_shift
from oddslip.sources import open_source

N_LABELS = 12
BASE = np.geomspace(0.02, 0.2, N_LABELS)
MOVED = np.array([1, 6, 10])


def draw_world(n_rows, prevalence, seed, part=0.0):
    """True labels at these prevalences; scores given the label, the same unless parts move."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_rows, N_LABELS)) < prevalence
    margins = rng.normal(np.where(truth, 1.0, -1.0) + part, 1.2) + np.log(BASE / (1 - BASE))
    return 1 / (1 + np.exp(-margins)), truth


@pytest.fixture(scope="module")
def repair():
    return oddslip.Repair(k=3, rule="platt").fit(*draw_world(6000, BASE, 0)).fitted_


@pytest.fixture(scope="module")
def drifted():
    prevalence = BASE.copy()
    prevalence[MOVED] *= [5.0, 4.0, 0.2]
    return prevalence, *draw_world(6000, prevalence, 1)


def saerens(counts, probabilities, prior, rounds=3000):
    """The iteration as it is published, for one label."""
    now = prior
    for _ in range(rounds):
        true = now / prior * probabilities
        posterior = true / (true + (1 - now) / (1 - prior) * (1 - probabilities))
        now = (counts * posterior).sum() / counts.sum()
    return now


def test_the_prevalence_is_the_fixed_point_of_the_published_iteration(repair, drifted):
    now = take_fingerprint(open_source(drifted[1]))
    mapped = probabilities_of(repair.maps)
    shift = find_prior_shift(repair.fingerprint, now, mapped)
    for label in (0, 1, 6, 10):
        expected = saerens(now.counts[label], mapped[label], shift.before[label])
        assert shift.after[label] == pytest.approx(expected, rel=1e-6)


def test_prevalences_that_moved_are_found_and_the_others_left_alone(repair, drifted):
    prevalence, scores, _ = drifted
    shift = repair.prior_shift(scores)
    assert set(np.flatnonzero(shift.shift)) == set(MOVED)
    assert shift.after[MOVED] == pytest.approx(prevalence[MOVED], rel=0.2)
    assert shift.fits.all()
    assert shift.n_shifted == 3


def test_the_correction_helps_where_prevalences_alone_moved(repair, drifted):
    _, scores, truth = drifted

    def loss(mapped):
        mapped = np.clip(mapped, 1e-9, 1 - 1e-9)
        return -np.where(truth, np.log(mapped), np.log1p(-mapped)).mean()

    def hits(ranking):
        return np.take_along_axis(truth, ranking.astype(int), axis=1).mean()

    before, after = repair.transform(scores), repair.transform(scores, prior_shift="em")
    assert loss(after) < loss(before) - 0.01
    assert hits(repair.rank(scores, k=3, prior_shift="em")) > hits(repair.rank(scores, k=3)) + 0.01


def test_the_ranking_is_that_of_the_corrected_probabilities(repair, drifted):
    scores = drifted[1][:500]
    shift = repair.prior_shift(drifted[1])
    mapped = repair.transform(scores, prior_shift=shift)
    ranking = repair.rank(scores, k=N_LABELS, prior_shift=shift)
    assert (np.diff(np.take_along_axis(mapped, ranking.astype(int), axis=1)) <= 1e-12).all()


@pytest.mark.parametrize("rule", ["isotonic-0", "beta", "raw"])
def test_nothing_is_corrected_on_a_quiet_day_and_never_without_being_asked(rule):
    fitted = oddslip.Repair(k=3, rule=rule).fit(*draw_world(3000, BASE, 2)).fitted_
    quiet, _ = draw_world(3000, BASE, 3)
    assert fitted.prior_shift(quiet).n_shifted == 0
    assert np.array_equal(fitted.transform(quiet), fitted.transform(quiet, prior_shift="em"))


def test_scores_that_moved_within_a_class_are_no_prior_shift(repair):
    scores, _ = draw_world(6000, BASE, 4, part=-1.0)
    shift = repair.prior_shift(scores)
    assert not shift.fits.all()
    with pytest.warns(UserWarning, match="no change of prevalence explains"):
        mapped = repair.transform(scores, prior_shift="em")
    unexplained = ~shift.fits
    assert np.array_equal(mapped[:, unexplained], repair.transform(scores)[:, unexplained])


def test_a_dead_label_says_nothing_of_its_prevalence():
    scores, truth = draw_world(3000, BASE, 5)
    truth[:, 4] = False
    fitted = oddslip.Repair(k=3, rule="isotonic-0").fit(scores, truth).fitted_
    assert fitted.prior_shift(np.sqrt(scores)).shift[4] == 0


def test_labels_are_matched_by_name(repair):
    names = [f"label {j}" for j in range(N_LABELS)]
    scores, truth = draw_world(3000, BASE, 6)
    fitted = oddslip.Repair(k=3, rule="platt").fit(scores, truth, label_names=names).fitted_
    scores, _ = draw_world(3000, BASE * 3, 7)
    straight = fitted.prior_shift(oddslip.Panel(scores, label_names=names))
    turned = fitted.prior_shift(oddslip.Panel(scores[:, ::-1].copy(), label_names=names[::-1]))
    assert np.array_equal(straight.shift, turned.shift[::-1])
    assert turned.to_frame()["label"].tolist() == names[::-1]


def test_a_shift_that_is_none_is_refused(repair):
    scores, _ = draw_world(50, BASE, 8)
    for wrong in ("saerens", 1.0, repair.fingerprint):
        with pytest.raises(InvalidInput, match="prior_shift must be"):
            repair.transform(scores, prior_shift=wrong)


def test_a_shift_is_sure_in_few_labels_by_chance():
    """`SURE` is what chance exceeds in one of a hundred labels, rows of both sides included."""
    scores, truth = draw_world(4000, BASE, 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = oddslip.Repair(k=3, rule="platt").fit(scores, truth).fitted_
        n_sure = sum(
            fitted.prior_shift(draw_world(4000, BASE, seed)[0]).n_shifted for seed in range(10, 30)
        )
    assert n_sure <= 20 * N_LABELS * 0.02
    assert SURE > 6
