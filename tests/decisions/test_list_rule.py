"""List lengths against all prefixes of random rows."""

import numpy as np
import pytest
from tests.decisions import decision_oracle as brute_force

from oddslip.core.tally import merge_states
from oddslip.decisions.list_rule import SCALE, ListRule, units_of
from oddslip.decisions.lists import ListTotals
from oddslip.errors import InvalidInput


@pytest.mark.parametrize("form", ["precision", "recall", "f1", "cost"])
def test_lengths_are_those_of_brute_force(form):
    rng = np.random.default_rng(5)
    for _ in range(200):
        n_rows, n_labels = rng.integers(1, 8, 2)
        cells = -np.sort(-np.rint(rng.beta(0.6, 1.4, (n_rows, n_labels)) * SCALE) / SCALE, axis=1)
        totals = units_of(cells).sum(axis=1)
        for row in range(n_rows):  # empty slots are the last
            cells[row, rng.integers(1, n_labels + 1) :] = np.nan
        totals = units_of(cells).sum(axis=1)
        level, k_max = rng.uniform(0.05, 0.95), int(rng.integers(1, n_labels + 1))
        rule = ListRule(form, np.array([level]), k_max, costs=(1.0, 3.0))
        lengths = rule.lengths(cells[:, :k_max], totals, np.zeros(n_rows, np.int64))
        for row, length in zip(cells, lengths, strict=True):
            assert length == brute_force.best_length(row, form, level, (1.0, 3.0), k_max)


def test_sums_of_lists_may_outgrow_64_bits():
    def half():
        totals = ListTotals(None, None, None, labelled=True)
        totals.expected_true, totals.n_rows = 2**63 + 5, 7
        return totals

    whole = half()
    whole.restore(merge_states([half().state(), half().state()]))
    assert (whole.expected_true, whole.n_rows) == (2**64 + 10, 14)


def test_a_fixed_length_leaves_empty_slots_empty():
    rule = ListRule("length", np.array([2.0]), 3)
    cells = np.array([[0.4, 0.3, 0.1], [0.4, np.nan, np.nan]])
    assert rule.lengths(cells, np.zeros(2), np.zeros(2, np.int64)).tolist() == [2, 1]


def test_groups_are_matched_by_name():
    rule = ListRule("length", np.array([1.0, 3.0]), 3, groups=("b", "a"))
    assert rule.read_groups(["a", "b", "a"], 3).tolist() == [1, 0, 1]
    with pytest.raises(InvalidInput, match="'c' at row 1"):
        rule.read_groups(["a", "c"], 2)
    with pytest.raises(InvalidInput, match="groups are needed"):
        rule.read_groups(None, 2)
    with pytest.raises(InvalidInput, match="fitted without"):
        ListRule("length", np.array([1.0]), 3).read_groups(["a"], 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"form": "best"}, "form must be one of"),
        ({"levels": np.array([1.0, 2.0])}, "levels must be 1 numbers"),
        ({"k_max": 0}, "k_max must be"),
        ({"thresholds": np.ones(2)}, "thresholds must go with"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(arguments, message):
    whole = {"form": "length", "levels": np.array([1.0]), "k_max": 3} | arguments
    with pytest.raises(InvalidInput, match=message):
        ListRule(**whole)
