"""The order of rows changes no choice, and no row has a say in its own."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.trials import try_candidates

from oddslip import InvalidInput, Panel, Repair
from oddslip.datasets import synthetic_pair
from oddslip.selection.candidates import PAPER, RAW, WIDE
from oddslip.selection.folds import assign_folds
from oddslip.selection.rules import choose_by_fold, read_rule
from oddslip.sources import open_source

PAIR = synthetic_pair(600, 8, seed=5)
N = 600
IDS = np.arange(N) + 10**12
PANEL = Panel(PAIR.weighted, PAIR.labels, row_ids=IDS)
ORDER = np.random.default_rng(0).permutation(N)
SHUFFLED = Panel(
    np.asarray(PAIR.weighted)[ORDER], np.asarray(PANEL.truths())[ORDER], row_ids=IDS[ORDER]
)


@pytest.mark.parametrize("metric", ["map", "psp"])
def test_the_order_of_rows_changes_no_trial(metric):
    candidates = tuple(each for each in WIDE if not each.needs_weights)
    folds = assign_folds(open_source(PANEL), 5, seed=7, n_repeats=2)
    options = {"k": 3, "metric": metric, "folds": folds}
    one, other = (
        try_candidates(open_source(panel), candidates, **options) for panel in (PANEL, SHUFFLED)
    )
    assert one.n_evaluated == other.n_evaluated
    np.testing.assert_allclose(one.means, other.means, atol=1e-12)
    np.testing.assert_allclose(one.gains(), other.gains(), atol=1e-12)
    rule = read_rule("auto")
    assert rule.choose(one) == rule.choose(other)
    for repeat in (0, 1):
        assert choose_by_fold(rule, one, repeat) == choose_by_fold(rule, other, repeat)


def test_no_row_has_a_say_in_the_choice_without_its_fold():
    """Other labels of a fold's rows change what is chosen of all rows, not what is without it."""
    rule, source = read_rule("paper"), open_source(PANEL)
    folds = assign_folds(source, 5)
    trials = try_candidates(source, PAPER, k=3, folds=folds)
    places = choose_by_fold(rule, trials)
    assert places == [rule.choose(trials.without_fold(0, fold)).place for fold in range(5)]
    sums = trials.by_fold
    changed = replace(
        trials,
        total=trials.total._replace(first=trials.total.first + 9.0 * np.eye(7)[4]),
        by_fold=sums._replace(first=sums.first + 9.0 * np.eye(5)[2][:, None] * np.eye(7)[4]),
    )
    assert rule.choose(changed).place == 4 != rule.choose(trials).place
    assert choose_by_fold(rule, changed)[2] == places[2]


def test_rows_that_are_all_in_one_fold_take_the_choice_of_all():
    labels = np.zeros((30, 3), bool)
    labels[7, 1] = True
    source = open_source(np.random.default_rng(0).random((30, 3)), labels)
    rule = read_rule("paper")
    trials = try_candidates(source, PAPER, k=3)
    assert set(choose_by_fold(rule, trials)) == {rule.choose(trials).place}


@pytest.mark.parametrize("rule", ["auto", "paper", "isotonic"])
def test_the_order_of_rows_changes_neither_choice_nor_maps(rule):
    one, other = (Repair(k=3, rule=rule, keyed=True).fit(panel) for panel in (PANEL, SHUFFLED))
    assert (one.chosen_, one.why_) == (other.chosen_, other.why_)
    assert np.allclose(one.table_.means, other.table_.means, atol=1e-12)
    for name in ("a", "b", "c", "x", "y"):
        mine, theirs = (getattr(each.fitted_.maps, name) for each in (one, other))
        assert np.allclose(mine, theirs, atol=1e-12)


def test_the_table_has_intervals_by_the_normal_law():
    table = Repair(k=3, rule="paper", keyed=True).fit(PANEL).table_
    for line in table.lines:
        reach = 1.959963984540054 * line.standard_error
        assert line.difference.high - line.difference.value == pytest.approx(reach)
    assert table["raw"].difference.value == 0.0
    assert table.to_frame().shape[0] == len(PAPER)


def test_a_fold_without_rows_is_refused():
    few = Panel(np.asarray(PAIR.weighted)[:3], PANEL.truths()[:3], row_ids=IDS[:3])
    with pytest.raises(InvalidInput, match="n_folds must be at most n_rows=3"):
        try_candidates(open_source(few), (RAW,), k=3)
