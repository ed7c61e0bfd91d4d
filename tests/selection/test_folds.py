"""Folds: every row in one, drawn by the seed alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oddslip.errors import InvalidInput
from oddslip.selection.folds import draw_folds

few = settings(max_examples=40, deadline=None)


@few
@given(st.integers(2, 200), st.integers(2, 12), st.integers(0, 2**32))
def test_folds_cover_every_row_and_differ_by_at_most_one_row(n_rows, n_folds, seed):
    n_folds = min(n_folds, n_rows)
    sizes = np.bincount(draw_folds(n_rows, n_folds, seed=seed)[0], minlength=n_folds)
    assert sizes.sum() == n_rows
    assert sizes.size == n_folds
    assert sizes.max() - sizes.min() <= 1


def test_folds_are_pieces_of_the_seeded_permutation():
    rng = np.random.default_rng(7)
    for repeat in draw_folds(23, 5, seed=7, n_repeats=3):
        for fold, rows in enumerate(np.array_split(rng.permutation(23), 5)):
            np.testing.assert_array_equal(np.flatnonzero(repeat == fold), np.sort(rows))


def test_another_seed_draws_other_folds():
    assert (draw_folds(100, 5, seed=1) != draw_folds(100, 5, seed=2)).any()


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
def test_folds_that_can_not_be_drawn_are_refused(n_folds, seed, line):
    with pytest.raises(InvalidInput, match=line):
        draw_folds(10, n_folds, seed=seed)
