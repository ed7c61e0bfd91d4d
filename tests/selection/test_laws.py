"""Laws of the default rule on panels that were not made to please it."""

import numpy as np
import pytest
from tests.support.trials import try_candidates

import oddslip
from oddslip.datasets import synthetic_pair
from oddslip.selection import Repair
from oddslip.selection.candidates import RAW, WIDE
from oddslip.sources import open_source

PAIR = synthetic_pair(900, 10, prevalence=(0.01, 0.3), noise=0.4, n_dead=1, seed=11)
OPTIONS = {"k": 3, "prior": PAIR.prior, "weights": PAIR.weights}


def fit(scores=PAIR.weighted, labels=PAIR.labels, **options):
    return Repair(**(OPTIONS | options)).fit(scores, labels)


def test_the_order_of_labels_does_not_matter():
    order = np.random.default_rng(0).permutation(PAIR.n_labels)
    turned = fit(
        PAIR.weighted[:, order],
        PAIR.labels[:, order],
        prior=PAIR.prior[order],
        weights=PAIR.weights[order],
    )
    straight = fit()
    assert turned.chosen_ == straight.chosen_
    np.testing.assert_allclose(
        turned.transform(PAIR.weighted[:, order]),
        straight.transform(PAIR.weighted)[:, order],
        rtol=1e-4,
        atol=1e-7,
    )


def test_the_same_seed_chooses_the_same_for_the_same_reason():
    one, same = fit(seed=5), fit(seed=5)
    assert (one.chosen_, one.why_) == (same.chosen_, same.why_)
    np.testing.assert_array_equal(one.transform(PAIR.weighted), same.transform(PAIR.weighted))


def test_a_dead_label_keeps_its_order_where_hierarchical_is_taken():
    repair = fit()
    assert repair.chosen_ == "hierarchical"
    dead = PAIR.dead[0]
    by_score = np.argsort(PAIR.weighted[:, dead], kind="stable")
    assert (np.diff(repair.transform(PAIR.weighted)[by_score, dead]) >= 0).all()


@pytest.mark.parametrize("k", [1, 10])
def test_one_slot_and_all_slots_are_enough(k):
    assert fit(k=k).rank(PAIR.weighted).shape == (PAIR.n_rows, k)


def test_one_label_alone_leaves_nothing_to_rank_and_raw_is_kept():
    repair = fit(PAIR.weighted[:, :1], PAIR.labels[:, :1], k=1, prior=None, weights=None)
    assert repair.chosen_ == "raw"


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_constant_scores_neither_fail_nor_leave_gaps(value):
    repair = fit(np.full((PAIR.n_rows, PAIR.n_labels), value))
    assert np.isfinite(repair.transform(PAIR.weighted)).all()


def test_labels_that_nobody_has_and_labels_that_everybody_has_neither_fail_nor_leave_gaps():
    labels = PAIR.labels.copy()
    labels[:, 0], labels[:, 1] = False, True
    repair = fit(labels=labels)
    assert np.isfinite(repair.transform(PAIR.weighted)).all()


@pytest.mark.parametrize("seed", range(8))
def test_scores_that_say_nothing_are_left_alone(seed):
    """Scores that say nothing, labels of one prevalence: there is nothing to gain."""
    rng = np.random.default_rng(seed)
    scores, labels = rng.random((400, 12)), rng.random((400, 12)) < 0.1
    assert Repair(k=3).fit(scores, labels).chosen_ == "raw"


def test_labels_whose_positives_these_rows_do_not_show_decide_no_choice():
    """Each slot of theirs would count as a miss; the maps that give them least would win."""
    labels = PAIR.labels.copy()
    common = np.argsort(-PAIR.prior)[:3]
    labels[:, common] = False
    others = np.setdiff1d(np.arange(PAIR.n_labels), common)
    candidates = [each for each in WIDE if not each.needs_weights]
    source = open_source(PAIR.weighted, labels)
    trials = try_candidates(source, candidates, k=3, prior=PAIR.prior)
    alone = Repair(k=3, rule="raw").fit(PAIR.weighted[:, others], labels[:, others])
    assert trials.level(candidates.index(RAW))[0] == pytest.approx(alone.table_.means[0])
    maps = trials.fitted[0][0][candidates.index(RAW)]  # what would be deployed ranks them too
    panel = next(source.blocks())
    np.testing.assert_array_equal(maps.rank_panel(panel, 3), oddslip.rank(PAIR.weighted, k=3))
