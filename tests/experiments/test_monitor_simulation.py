"""The study of months: what it draws is what it says, and its table counts it."""

import numpy as np
import pytest

from experiments.app import main
from experiments.monitor_simulation import (
    FAULTS,
    FIRST_SEED,
    MONTH_ROWS,
    QUIET,
    check_months,
    draw_world,
    format_page,
    tabulate,
    try_months,
)
from oddslip.errors import InvalidInput


@pytest.fixture(scope="module")
def world():
    return draw_world(5, 2)


def test_there_are_twelve_faults():
    assert len(FAULTS) == 12


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_scores_or_labels_and_nothing_in_the_world(world, name):
    before = world.month(0)
    month = FAULTS[name].make(world, 0)
    assert month.scores.shape == month.labels.shape == (MONTH_ROWS, 40)
    assert ((month.scores >= 0) & (month.scores <= 1)).all()
    changed = not np.array_equal(month.scores, before.scores)
    assert changed or not np.array_equal(month.labels, before.labels)
    if not FAULTS[name].unlabelled:
        ordered = np.sort(month.scores, axis=0)
        assert np.array_equal(ordered, np.sort(before.scores, axis=0))
    after = world.month(0)
    assert np.array_equal(before.scores, after.scores)
    assert np.array_equal(before.labels, after.labels)


def test_moved_priors_move_nothing_but_prevalences(world):
    month, quiet = FAULTS["prior drift in 5 labels"].make(world, 1), world.month(1)
    moved = np.flatnonzero((month.labels != quiet.labels).any(axis=0))
    assert moved.size == 5
    for label in moved:
        assert month.labels[:, label].mean() == pytest.approx(
            3 * quiet.labels[:, label].mean(), rel=0.15
        )
        for value in (False, True):
            codes = [
                each.scores[each.labels[:, label] == value, label].mean() for each in (month, quiet)
            ]
            assert codes[0] == pytest.approx(codes[1], rel=0.1)


def test_the_table_counts_what_was_found(tmp_path, capsys):
    names = ("changed taste", QUIET)
    outcomes = try_months(names, n_draws=1, first_seed=3, n_quiet=2, n_replicates=100)
    lines = list(tabulate(outcomes))
    assert lines[2].startswith("| changed taste | cannot be | nothing | 1 of 1 | ")
    assert "OS508 1" in lines[2]
    assert lines[3] == ("| quiet | 0 of 2 false alarms | nothing | 0 of 2 false alarms | nothing |")
    page = format_page(lines, n_draws=1, first_seed=3)
    assert all(name in page for name in FAULTS)
    words = ["monitor-simulation", "--month", "unit change", "--draws", "1", "--first-seed", "3"]
    assert main([*words, "--page", str(tmp_path / "months.md")]) == 0
    assert "| unit change | 1 of 1 | OS501 1" in capsys.readouterr().out
    assert "| unit change | 1 of 1 |" in (tmp_path / "months.md").read_text()


def test_the_months_of_the_page_are_not_those_that_thresholds_were_set_on():
    assert FIRST_SEED == 1000


def test_an_unknown_month_is_refused():
    with pytest.raises(InvalidInput, match="month must be one of"):
        check_months(("december",))
