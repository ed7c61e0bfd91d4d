"""Trials by sums: what rows that are kept would say, and the same in any order."""

import numpy as np
import pytest

from oddslip import InvalidInput, Panel, Repair
from oddslip.datasets import synthetic_pair
from oddslip.selection import folds as numbered_folds
from oddslip.selection import trials as numbered
from oddslip.selection.candidates import PAPER, RAW, WIDE
from oddslip.selection.cross import cross_choose
from oddslip.selection.folds import assign_folds
from oddslip.selection.keyed import try_keyed
from oddslip.selection.rules import read_rule
from oddslip.selection.trials import try_candidates
from oddslip.sources import open_source

PAIR = synthetic_pair(600, 8, seed=5)
N = 600
IDS = np.arange(N) + 10**12
PANEL = Panel(PAIR.weighted, PAIR.labels, row_ids=IDS)
ORDER = np.random.default_rng(0).permutation(N)
SHUFFLED = Panel(
    np.asarray(PAIR.weighted)[ORDER], np.asarray(PANEL.truths())[ORDER], row_ids=IDS[ORDER]
)


@pytest.fixture
def as_keyed(monkeypatch):
    """Rows in order, dealt to the folds that their keys decide."""

    def draw(n_rows, n_folds, *, seed, n_repeats):
        return np.stack(
            [
                each.of(PANEL)
                for each in assign_folds(
                    open_source(PANEL), n_folds, seed=seed, n_repeats=n_repeats
                )
            ]
        )

    monkeypatch.setattr(numbered, "draw_folds", draw)
    assert numbered_folds.draw_folds is not draw


@pytest.mark.parametrize(
    ("candidates", "metric", "n_repeats"),
    [(PAPER, "map", 1), (PAPER, "psp", 2), (WIDE, "ndcg", 2)],
    ids=["paper", "psp, twice", "wide, twice"],
)
def test_sums_say_what_rows_say(as_keyed, candidates, metric, n_repeats):
    candidates = tuple(each for each in candidates if not each.needs_weights)
    told = {"k": 3, "metric": metric, "n_repeats": n_repeats, "seed": 7}
    rows = try_candidates(open_source(PANEL), candidates, **told)
    sums = try_keyed(open_source(SHUFFLED), candidates, **told)
    assert sums.n_evaluated == rows.n_evaluated
    assert sums.n_fits == rows.n_fits
    assert np.allclose(sums.means, rows.means, atol=1e-12)
    for mine, theirs in zip(sums.gains(), rows.gains(), strict=True):
        assert np.allclose(mine, theirs, atol=1e-12)
    for place in range(len(candidates)):
        assert np.allclose(sums.level(place), rows.level(place), atol=1e-12)
        assert np.allclose(sums.lead(place, 1), rows.lead(place, 1), atol=1e-12)
    for rule in map(read_rule, ("auto", "paper")):
        if set(rule.candidates_for(None)) <= set(candidates):
            own = rule.candidates_for(None)
            assert rule.choose(sums.of(own)) == rule.choose(rows.of(own))


def test_what_is_chosen_without_a_fold_is_what_its_rows_outside_say(as_keyed):
    rule = read_rule("paper")
    rows = try_candidates(open_source(PANEL), PAPER, k=3, seed=7)
    sums = try_keyed(open_source(PANEL), PAPER, k=3, seed=7)
    places = cross_choose(rule, rows).places[0]
    assert [rule.choose(sums.without(0, fold)).place for fold in range(5)] == places.tolist()


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
        try_keyed(open_source(few), (RAW,), k=3)
