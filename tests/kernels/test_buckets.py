"""Buckets against searches, marks against the whole hull, and knots against scikit-learn's."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.isotonic import IsotonicRegression

from oddslip.kernels.buckets import (
    collect_cells,
    count_buckets,
    fold_probabilities,
    group_cells,
    join_hull,
    mark_buckets,
    sort_groups,
)

few = settings(max_examples=60, deadline=None)


def fold(scores):
    folded = np.empty(scores.size)
    fold_probabilities(np.ascontiguousarray(scores).reshape(-1), folded)
    return folded.reshape(scores.shape)


def ranges_of(scores, margin, n_buckets):
    """Buckets of columns 0, 2, 4, ...; the others are passed over."""
    n_labels = scores.shape[1]
    number_of = np.full(n_labels, -1, np.int32)
    number_of[::2] = np.arange((n_labels + 1) // 2)
    columns = scores[:, ::2].astype(float) if margin else fold(scores[:, ::2])
    low, high = np.quantile(columns, [0.1, 0.9], axis=0, method="nearest")
    scale = (n_buckets - 0.5) / np.maximum(high - low, 1e-9)
    starts = np.arange(low.size + 1) * 2 * (n_buckets + 2)
    return margin, number_of, low, high, scale, starts


def buckets_of(scores, ranges):
    """The bucket of every cell of the numbered columns, by NumPy."""
    margin, _, low, high, scale, starts = ranges
    columns = scores[:, ::2]
    if margin:
        return 1 + ((np.clip(columns.astype(float), low, high) - low) * scale).astype(int)
    steps = (np.clip(fold(columns), low, high) - low).astype(np.float32)
    places = 1 + (steps * scale.astype(np.float32)).astype(int)
    places[columns == 0] = 0
    return np.where(columns == 1, starts[1] // 2 - 1, places)


def world(dtype, margin, seed, n=9000, n_labels=21, tied=False):
    """More rows than a tile and more labels than a strip, neither a multiple."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-1, 2, (n, n_labels))
    truths = (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(np.uint8)
    if tied:
        scores = np.round(scores)
    if not margin:
        scores = 1 / (1 + np.exp(-scores))
        scores[rng.random(scores.shape) < 0.05] = 1
        scores[rng.random(scores.shape) < 0.05] = 0
    return scores.astype(dtype), truths


def count(scores, truths, ranges):
    counts = np.zeros(ranges[-1][-1], np.uint32)
    count_buckets(scores, truths, *ranges, counts)
    return counts


def mark(counts, starts, most=2**62):
    """Marks, numbers of marked buckets, and how many cells each label has in them."""
    marks, numbers = np.empty(counts.size // 2, np.uint8), np.zeros(counts.size // 2, np.int32)
    n_cells = np.empty(starts.size - 1, np.int64)
    mark_buckets(starts, counts, most, marks, numbers, n_cells)
    return marks, numbers, n_cells


def fit(scores, truths, ranges):
    """All steps: knots of every numbered column, and how many cells were gathered."""
    counts, starts = count(scores, truths, ranges), ranges[-1]
    n = starts.size - 1
    marks, numbers, n_cells = mark(counts, starts)
    assert_array_equal(numbers[marks == 1], np.arange(marks.sum()))
    cells, groups = np.empty(n_cells.sum(), scores.dtype), np.empty(n_cells.sum(), np.int32)
    assert collect_cells(scores, truths, *ranges, marks, numbers, cells, groups) == cells.size
    sizes = counts.reshape(-1, 2)[marks == 1].ravel()
    assert_array_equal(np.bincount(groups, minlength=sizes.size), sizes)
    ends, ordered = np.cumsum(sizes, dtype=np.int64), np.empty_like(cells)
    assert group_cells(groups, cells, ends - sizes, ends, ordered) == 0
    sort_groups(ends, ordered)
    assert_array_equal(ordered, cells[np.lexsort([cells, groups])])
    edges = np.concatenate([[0], np.cumsum(n_cells)])
    x, y, indptr = *np.empty((2, 2 * cells.size + 4 * n)), np.empty(n + 1, np.int64)
    join_hull(starts, counts, marks, edges, ordered, np.ones(n, np.uint8), indptr, x, y)
    return [(x[a:b], y[a:b]) for a, b in pairwise(indptr)], cells.size


def pooled(scores, truths):
    """The blocks of the isotonic fit, cell by cell: first score, last score, mean."""
    blocks = []
    for score in np.unique(scores):
        hits, n = truths[scores == score].sum(), (scores == score).sum()
        blocks.append([int(hits), int(n), score, score])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            hits, n, _, last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + hits, blocks[-1][1] + n, blocks[-1][2], last]
    knots = [(x, hits / n) for hits, n, *ends in blocks for x in dict.fromkeys(ends)]
    return tuple(np.array(knots).T)


def test_folded_probabilities_grow_with_the_probability(dtype):
    scores = np.sort(
        np.concatenate(
            [
                np.random.default_rng(0).random(999),
                np.geomspace(1e-30, 0.5, 99),
                1 - np.geomspace(1e-7, 0.5, 99),
                [0, 0.5, 1],
            ]
        )
    ).astype(dtype)
    assert (np.diff(fold(scores)) >= 0).all()
    assert fold(dtype([0]))[0] == 0
    assert fold(dtype([1]))[0] == 2 * fold(dtype([0.5]))[0]


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("n_buckets", [1, 7, 500])
def test_every_cell_is_counted_in_its_bucket(dtype, frozen, margin, n_buckets):
    scores, truths = frozen(*world(dtype, margin, 1))
    ranges = ranges_of(scores, margin, n_buckets)
    places = buckets_of(scores, ranges)
    codes = 2 * places + truths[:, ::2]
    assert places.min() >= 0
    assert places.max() <= n_buckets + 1
    expected = np.bincount((codes + ranges[-1][:-1]).ravel(), minlength=ranges[-1][-1])
    assert_array_equal(count(scores, truths, ranges), expected)


@pytest.mark.parametrize("margin", [False, True])
def test_scores_that_are_no_numbers_stay_within_the_buckets(dtype, margin):
    scores = np.full((3, 1), [[np.nan], [np.inf], [-np.inf]], dtype)
    ranges = (margin, np.zeros(1, np.int32), *np.array([[1.0], [9.0], [0.4]]), np.array([0, 12]))
    counts = np.zeros(14, np.uint32)
    count_buckets(scores, np.ones((3, 1), np.uint8), *ranges, counts[:12])
    assert counts[:12].sum() == 3
    assert counts[12:].sum() == 0


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n_buckets", [1, 30, 3000])
def test_the_knots_are_those_of_scikit_learn(dtype, frozen, margin, tied, n_buckets):
    scores, truths = frozen(*world(dtype, margin, 2, tied=tied))
    fits, _ = fit(scores, truths, ranges_of(scores, margin, n_buckets))
    for (x, y), label in zip(fits, range(0, 21, 2), strict=True):
        column = scores[:, label].astype(float)
        peer = IsotonicRegression(out_of_bounds="clip").fit(column, truths[:, label])
        assert_allclose(np.interp(column, x, y), peer.predict(column), rtol=0, atol=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 60), st.booleans())
@few
def test_the_knots_are_to_the_bit_those_of_pooling_cell_by_cell(seed, n, n_buckets, margin):
    rng = np.random.default_rng(seed)
    scores = rng.choice(np.linspace(0, 1, int(rng.integers(2, 60))), (n, 3))
    truths = (rng.random((n, 3)) < rng.choice([0.1, 0.5, 0.9, scores.mean()])).astype(np.uint8)
    fits, _ = fit(scores, truths, ranges_of(scores, margin, n_buckets))
    for (x, y), label in zip(fits, (0, 2), strict=True):
        expected = pooled(scores[:, label], truths[:, label])
        assert_array_equal(x, expected[0])
        assert_array_equal(y, expected[1])


def test_fine_buckets_leave_most_cells_alone(dtype):
    scores, truths = world(dtype, False, 3, n=60_000, n_labels=1)
    _, n_gathered = fit(scores, truths, ranges_of(scores, False, 8000))
    assert n_gathered < 0.3 * scores.size


def test_a_label_of_which_too_much_would_be_gathered_has_no_marks(dtype):
    scores, truths = world(dtype, False, 5, n_labels=5)
    ranges = ranges_of(scores, False, 40)
    counts, starts = count(scores, truths, ranges), ranges[-1]
    _, _, n_cells = mark(counts, starts)
    least = n_cells.argmin()
    marks, numbers, few = mark(counts, starts, most=n_cells[least])
    assert_array_equal(few, np.where(np.arange(3) == least, n_cells, -1))
    per_label = marks.reshape(3, -1)
    assert_array_equal(per_label.any(axis=1), np.arange(3) == least)
    assert_array_equal(numbers[marks == 1], np.arange(marks.sum()))


def test_no_more_cells_are_gathered_than_there_is_room_for(dtype):
    scores, truths = world(dtype, False, 4)
    ranges = ranges_of(scores, False, 5)
    marks = np.ones(ranges[-1][-1] // 2, np.uint8)
    numbers = np.arange(marks.size, dtype=np.int32)
    cells, groups = np.empty(11, dtype), np.zeros(11, np.int32)
    room = cells[:10], groups[:10]
    assert collect_cells(scores, truths, *ranges, marks, numbers, *room) == 10
    assert groups[10] == 0


def test_cells_beyond_what_a_group_was_counted_to_hold_are_left_out(dtype):
    groups, cells = np.array([1, 0, 1, 1], np.int32), np.array([4, 3, 2, 1], dtype)
    grouped, places = np.zeros(5, dtype), np.array([0, 2])
    assert group_cells(groups, cells, places, np.array([2, 4]), grouped) == 1
    assert_array_equal(grouped, [3, 0, 4, 2, 0])
    assert_array_equal(places, [1, 4])


@pytest.mark.parametrize("most", [3, 40, 3000])
def test_groups_of_any_size_are_sorted_each_for_itself(dtype, most):
    rng = np.random.default_rng(most)
    ends = np.cumsum(rng.integers(0, most, 30))
    for cells in (rng.normal(size=ends[-1]), rng.integers(0, 4, ends[-1]) - 1.5):
        cells = cells.astype(dtype)
        expected = np.concatenate([np.sort(group) for group in np.split(cells, ends)])
        sort_groups(ends, cells)
        assert_array_equal(cells, expected)
