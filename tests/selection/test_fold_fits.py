"""Shrunk maps: between the isotonic and the offset map, by the number of positives."""

import numpy as np
import pytest
from scipy.special import expit, logit

from oddslip.calibrators import Isotonic, Offset
from oddslip.core.panel import Panel
from oddslip.datasets import synthetic_pair
from oddslip.selection import Repair

PAIR = synthetic_pair(1500, 12, prevalence=(0.002, 0.3), noise=0.3, n_dead=1, seed=2)
KINDS = {"probability": PAIR.weighted.astype(np.float64), "margin": PAIR.weighted_margin}
CAL, EVAL = PAIR.calibration, ~PAIR.calibration


def values_of(calibrator, kind):
    scores = KINDS[kind]
    fitted = calibrator.fit(scores[CAL], PAIR.labels[CAL]).fitted_
    return fitted.transform(scores[EVAL], dtype=np.float64)


def shrunk(strength, kind):
    return Repair(k=3, rule=f"shrunk-{strength}", prior=PAIR.prior, kind=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strength", [1, 5, 20, 300])
def test_a_label_with_n_positives_is_n_parts_isotonic(kind, strength):
    stairs = values_of(Isotonic(prior=PAIR.prior, kind=kind), kind)
    smooth = values_of(Offset(prior=PAIR.prior, kind=kind), kind)
    n = PAIR.labels[CAL].sum(axis=0)
    share = n / (n + strength)
    found = values_of(shrunk(strength, kind), kind)
    # Between knots a quarter of a nat apart the offset map is a chord.
    np.testing.assert_allclose(found, share * stairs + (1 - share) * smooth, rtol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_no_strength_is_isotonic(kind):
    stairs = values_of(Isotonic(prior=PAIR.prior, kind=kind), kind)
    np.testing.assert_allclose(values_of(shrunk(0, kind), kind), stairs, rtol=0, atol=1e-12)


def test_a_dead_label_gets_its_prior_all_the_same():
    found = values_of(shrunk(5, "probability"), "probability")
    assert (found[:, PAIR.dead[0]] == PAIR.prior[PAIR.dead[0]]).all()


def test_cells_that_an_isotonic_map_ties_at_zero_keep_their_order():
    rng = np.random.default_rng(0)
    scores = rng.random((200, 2))
    labels = np.zeros((200, 2), bool)
    labels[np.argmax(scores, axis=0), [0, 1]] = True
    repair = Repair(k=1, rule="shrunk-5").fit(scores, labels)
    panel = Panel(np.sort(rng.random((50, 2)) * 0.5, axis=0))
    assert (np.diff(repair.fitted_.maps.values(panel), axis=0) > 0).all()
    assert (Isotonic().fit(scores, labels).fitted_.maps.values(panel) == 0).all()


def test_a_label_true_in_every_row_is_shrunk_to_its_prior():
    rng = np.random.default_rng(1)
    scores, labels = rng.random((40, 2)), np.ones((40, 2), bool)
    labels[:20, 1] = False
    repair = Repair(k=1, rule="shrunk-40", prior=[0.6, 0.5]).fit(scores, labels)
    np.testing.assert_allclose(repair.transform(scores)[:, 0], 0.5 * 1.0 + 0.5 * 0.6)


def test_the_offset_part_is_the_odds_times_a_constant():
    rng = np.random.default_rng(1)
    scores = rng.random((400, 1))
    labels = rng.random((400, 1)) < expit(logit(scores) - 1.5)
    huge = Repair(k=1, rule="shrunk-99999999").fit(scores, labels).transform(scores)
    shift = logit(huge) - logit(scores)
    np.testing.assert_allclose(shift, shift.mean(), rtol=0, atol=0.02)
    assert shift.mean() == pytest.approx(-1.5, abs=0.5)
