"""Candidates that cannot win after one repeat of the folds are tried in no other."""

import numpy as np
import pytest
from tests.selection.test_rules import rows_gaining, trials_with
from tests.support.trials import try_candidates

from oddslip import Repair
from oddslip.datasets import synthetic_pair
from oddslip.selection.candidates import HIERARCHICAL, RAW, Candidate
from oddslip.selection.folds import assign_folds
from oddslip.selection.rules import RULES, choose_by_fold
from oddslip.sources import open_source

PAIR = synthetic_pair(900, 12, prevalence=(0.004, 0.3), noise=0.5, seed=5)
AUTO = RULES["auto"]
OFFSET, PLATT, BETA = Candidate("offset"), Candidate("platt"), Candidate("beta")
CANDIDATES = AUTO.candidates_for(None)


def tried(screen, n_repeats=3):
    source = open_source(PAIR.weighted, PAIR.labels)
    folds = assign_folds(source, 5, n_repeats=n_repeats)
    return try_candidates(source, CANDIDATES, k=3, folds=folds, screen=screen)


def test_where_all_stay_nothing_changes():
    whole, screened = tried(None), tried(lambda trials: trials.candidates)
    np.testing.assert_allclose(screened.means, whole.means, rtol=0, atol=1e-14)
    np.testing.assert_allclose(screened.gains(), whole.gains(), rtol=0, atol=1e-14)
    np.testing.assert_allclose(screened.total.second, whole.total.second, rtol=1e-13)
    np.testing.assert_allclose(screened.by_fold.first, whole.by_fold.first, rtol=1e-13)
    assert screened.n_fits == whole.n_fits
    assert not screened.losers


def test_losers_have_the_values_of_the_last_repeat_and_others_those_of_all():
    some = (RAW, OFFSET, HIERARCHICAL)
    whole, screened = tried(None), tried(lambda _: some)
    once = try_candidates(
        open_source(PAIR.weighted, PAIR.labels),
        CANDIDATES,
        k=3,
        folds=assign_folds(open_source(PAIR.weighted), 5, n_repeats=3)[-1:],
    )
    assert screened.losers == set(CANDIDATES) - set(some)
    for place, candidate in enumerate(CANDIDATES):
        wanted = once if candidate in screened.losers else whole
        assert screened.means[place] == pytest.approx(wanted.means[place], abs=1e-14)
        assert screened.level(place) == pytest.approx(wanted.level(place), abs=1e-14)
        assert screened.gains()[1][place] == pytest.approx(wanted.gains()[1][place], abs=1e-14)
        assert screened.repeats_of(candidate) == wanted.n_repeats
        for other, another in enumerate(CANDIDATES):
            pair = {candidate, another}
            if not pair & screened.losers or pair <= screened.losers:
                assert screened.lead(place, other) == pytest.approx(
                    wanted.lead(place, other), abs=1e-9
                )


def test_what_is_fitted_in_which_repeat():
    trials = tried(lambda _: (RAW, HIERARCHICAL))
    for repeat, by_fold in enumerate(trials.fitted):
        for maps in by_fold:
            present = {each for each, one in zip(CANDIDATES, maps, strict=True) if one is not None}
            assert present == (set(CANDIDATES) if repeat == 2 else {RAW, HIERARCHICAL})
    assert trials.n_fits["hierarchical"] == 15
    assert trials.n_fits["platt"] == trials.n_fits["isotonic"] == 5
    assert trials.fits.fit(PLATT, None)[0].n_labels == 12


def test_one_repeat_screens_nothing():
    assert not tried(lambda _: (RAW,), n_repeats=1).losers


@pytest.mark.parametrize("seed", range(6))
def test_the_choice_is_that_of_all_repeats_of_all_candidates(seed):
    pair = synthetic_pair(400 + 100 * seed, 8, noise=0.3 * seed, seed=seed)
    source = open_source(pair.weighted, pair.labels)
    folds = assign_folds(source, 5, n_repeats=3)
    whole, screened = (
        try_candidates(source, CANDIDATES, k=3, folds=folds, screen=screen)
        for screen in (None, AUTO.contenders)
    )
    assert AUTO.choose(screened).place == AUTO.choose(whole).place
    assert choose_by_fold(AUTO, screened) == choose_by_fold(AUTO, whole)


def contenders(values, candidates, rule=AUTO):
    return rule.contenders(trials_with(np.column_stack(values), candidates))


def test_raw_and_what_the_rule_names_always_stay():
    values = [np.full(400, 0.5), 0.5 + rows_gaining(-0.1, 0.01), 0.5 + rows_gaining(-0.1, 0.01)]
    assert contenders(values, (RAW, HIERARCHICAL, OFFSET)) == (RAW, HIERARCHICAL)


@pytest.mark.parametrize(("errors", "stays"), [(1.9, False), (2.1, True), (9.0, True)])
def test_what_is_far_from_sure_leaves(errors, stays):
    values = [np.zeros(400), rows_gaining(0.01 * errors, 0.01)]
    assert (OFFSET in contenders(values, (RAW, OFFSET))) == stays


@pytest.mark.parametrize(("lead", "stays"), [(0.9, False), (1.1, True)])
def test_what_is_far_from_beating_a_sure_favourite_leaves(lead, stays):
    favourite = rows_gaining(0.05, 0.005)
    ahead = favourite + rows_gaining(0.001 * lead, 0.001, seed=3)
    values = [np.zeros(400), favourite, ahead]
    assert (OFFSET in contenders(values, (RAW, HIERARCHICAL, OFFSET))) == stays


@pytest.mark.parametrize("n_rows", [7, 198, 400])
def test_a_lead_in_one_row_is_one_standard_error_whatever_the_rounding(n_rows):
    rng = np.random.default_rng(n_rows)
    sure = 0.05 + 0.01 * rng.standard_normal(n_rows)
    for lead in rng.random(50):
        ahead = sure.copy()
        ahead[rng.integers(n_rows)] += lead
        values = [np.zeros(n_rows), sure, ahead]
        assert OFFSET not in contenders(values, (RAW, HIERARCHICAL, OFFSET))


@pytest.mark.parametrize(("behind", "stays"), [(0.9, True), (1.1, False)])
def test_what_is_far_below_another_that_is_sure_leaves(behind, stays):
    best = rows_gaining(0.05, 0.005)
    values = [np.zeros(400), best, best - rows_gaining(0.001 * behind, 0.001, seed=3)]
    assert (PLATT in contenders(values, (RAW, OFFSET, PLATT))) == stays
    assert OFFSET in contenders(values, (RAW, OFFSET, PLATT))


def test_what_no_rule_takes_leaves_and_what_can_be_folded_is_screened_apart():
    best = rows_gaining(0.05, 0.005)
    values = [np.zeros(400), best, best + rows_gaining(0.01, 0.001, seed=3), best]
    candidates = (RAW, OFFSET, BETA, Candidate("pooled"))
    trials = trials_with(np.column_stack(values), candidates)
    assert AUTO.contenders(trials) == (RAW, BETA)
    assert AUTO.foldable_contenders(trials) == (RAW, BETA, OFFSET)


def test_the_table_says_who_was_tried_in_one_repeat():
    table = Repair(k=3).fit(PAIR.weighted, PAIR.labels).table_
    lines = table.to_dict()["candidates"]
    assert {line["n_repeats"] for line in lines} == {1, 3}
    assert table["raw"].n_repeats == table["hierarchical"].n_repeats == 3
    for line in table.lines:
        assert (f"{line.candidate} *" in str(table)) == (line.n_repeats == 1)
    assert table.note in str(table)
    assert not Repair(k=3, rule="paper").fit(PAIR.weighted, PAIR.labels).table_.note
