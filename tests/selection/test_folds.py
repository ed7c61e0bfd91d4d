"""Folds: every row in one, by its key and the seed alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oddslip.errors import InvalidInput
from oddslip.selection.folds import assign_folds
from oddslip.sources import open_source

few = settings(max_examples=40, deadline=None)


def fold_numbers(n_rows, n_folds, *, seed=42, n_repeats=1):
    source = open_source(np.full((n_rows, 1), 0.5))
    folds = assign_folds(source, n_folds, seed=seed, n_repeats=n_repeats)
    return [each.of_keys(source.row_keys()) for each in folds]


@few
@given(st.integers(2, 200), st.integers(2, 12), st.integers(0, 2**32))
def test_folds_cover_every_row_and_differ_by_at_most_one_row(n_rows, n_folds, seed):
    n_folds = min(n_folds, n_rows)
    sizes = np.bincount(fold_numbers(n_rows, n_folds, seed=seed)[0], minlength=n_folds)
    assert sizes.sum() == n_rows
    assert sizes.size == n_folds
    assert sizes.max() - sizes.min() <= 1


def test_another_seed_and_another_repeat_draw_other_folds():
    first, second = fold_numbers(100, 5, seed=1, n_repeats=2)
    assert (first != second).any()
    assert (first != fold_numbers(100, 5, seed=2)[0]).any()


@pytest.mark.parametrize(
    ("n_folds", "seed", "line"),
    [
        (1, 0, "n_folds must be a whole number, at least 2"),
        (2.5, 0, "n_folds must be a whole number"),
        (True, 0, "n_folds must be a whole number"),
        (11, 0, "at most n_rows=10"),
        (5, -1, "seed must be a whole number"),
        (5, None, "seed must be a whole number"),
    ],
)
def test_folds_that_cannot_be_drawn_are_refused(n_folds, seed, line):
    with pytest.raises(InvalidInput, match=line):
        fold_numbers(10, n_folds, seed=seed)
