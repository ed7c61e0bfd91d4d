"""A choice made without the rows it is judged on."""

import numpy as np
import pytest

from oddslip.datasets import synthetic_pair
from oddslip.selection.candidates import PAPER, RAW, Candidate
from oddslip.selection.cross import cross_choose
from oddslip.selection.rules import RULES, Rule
from oddslip.selection.trials import try_candidates
from oddslip.sources import open_source

PAIR = synthetic_pair(900, 12, prevalence=(0.004, 0.3), noise=0.5, saturate=0.03, seed=5)
SOURCE = open_source(PAIR.weighted, PAIR.labels)
TRIALS = try_candidates(SOURCE, PAPER, k=3, n_repeats=2, prior=PAIR.prior, keep_rankings=True)


def test_no_row_has_a_say_in_its_own_choice():
    """Other values of a fold's rows change neither their own choice nor how it is made."""
    inside = TRIALS.folds[0] == 2
    changed = TRIALS.among(np.ones(TRIALS.rows.size, bool))
    changed.values[inside] = np.random.default_rng(0).random(changed.values[inside].shape)
    changed.values[inside, 4] = 9.0
    before, after = (cross_choose(RULES["paper"], each) for each in (TRIALS, changed))
    assert after.places[0, 2] == before.places[0, 2]
    assert after.choice.place == 4 != before.choice.place


def test_a_row_counts_what_the_choice_without_its_fold_gave_it():
    crossed = cross_choose(RULES["paper"], TRIALS)
    for at in (0, 17, 300):
        folds = TRIALS.folds[:, at]
        wanted = [TRIALS.repeated[r, at, crossed.places[r, fold]] for r, fold in enumerate(folds)]
        assert crossed.values[at] == pytest.approx(np.mean(wanted), abs=1e-15)
        for repeat, fold in enumerate(folds):
            place = crossed.places[repeat, fold]
            np.testing.assert_array_equal(
                crossed.rankings[repeat, at], TRIALS.rankings[repeat, place, at]
            )


def test_the_choice_is_the_rules_own():
    assert cross_choose(RULES["paper"], TRIALS).choice == RULES["paper"].choose(TRIALS)


def test_with_raw_alone_the_values_are_raws():
    crossed, at = cross_choose(Rule("mine", PAPER, fixed=RAW), TRIALS), PAPER.index(RAW)
    np.testing.assert_array_equal(crossed.values, TRIALS.repeated[:, :, at].mean(axis=0))
    assert (crossed.places == at).all()


def test_rows_that_are_all_in_one_fold_take_the_choice_of_all():
    labels = np.zeros((30, 3), bool)
    labels[7, 1] = True
    source = open_source(np.random.default_rng(0).random((30, 3)), labels)
    crossed = cross_choose(RULES["paper"], try_candidates(source, PAPER, k=3))
    assert (crossed.places == crossed.choice.place).all()


def test_rankings_and_folds_of_rows_are_those_the_values_come_from():
    trials = try_candidates(SOURCE, [RAW, Candidate("offset")], k=3, keep_rankings=True)
    top = np.argsort(-PAIR.weighted[trials.rows], axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(trials.rankings[0, 0], top)
    pieces = np.array_split(np.random.default_rng(42).permutation(PAIR.n_rows), 5)
    for fold, rows in enumerate(pieces):
        assert (trials.folds[0, np.isin(trials.rows, rows)] == fold).all()
    assert trials.repeated.shape == (1, trials.rows.size, 2)
