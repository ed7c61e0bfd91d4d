"""Blocks without rows, labels or positives: kernels leave them alone, and point at nothing in them.

A pointer to a cell that is not there does no harm until it is followed. Kernels that check every
index (`make sanitize`) refuse it.
"""

import numpy as np
import pytest

from oddslip.kernels import buckets, hits, isotonic, keys, logistic, logits, resampling, trees

SHAPES = [(0, 3), (3, 0), (0, 0)]


@pytest.fixture(params=SHAPES, ids=str)
def scores(request, dtype):
    return np.empty(request.param, dtype)


def test_keys_of_nothing_are_nothing_and_the_largest_is_0(scores):
    for kind in ("probability", "margin"):
        empty_keys = keys.keys_of(scores, kind)
        assert empty_keys.shape == scores.shape
        assert keys.largest_key(empty_keys) == 0


def test_odds_and_sums_of_nothing_are_nothing(scores):
    n = scores.shape[1]
    ones, sums = np.ones(n), np.zeros((logits.N_SUMS, n))
    logits.weigh_odds(scores, ones, np.empty(scores.shape))
    logits.shift_probabilities(scores, ones, ones, scores.copy())
    logits.sum_sigmoids(scores, ones, sums)
    logits.bin_probabilities(scores, np.zeros((n, logits.ODDS_BINS), np.uint32))
    logits.bin_margins(scores, np.zeros((n, logits.MARGIN_BINS), np.uint32))
    assert not sums.any()


def test_the_range_of_nothing_stays_open(scores):
    ranges = np.zeros((5, scores.shape[1]))
    indptr = np.zeros(len(scores) + 1, np.int64)
    logistic.range_rows(scores, indptr, np.empty(0, np.int32), ranges)
    assert not ranges.any()


def test_nothing_is_true_in_no_cells(scores):
    indptr = np.zeros(len(scores) + 1, np.int64)
    cells = np.empty(scores.shape, np.uint8)
    hits.count_positives(cells, indptr)
    assert not indptr.any()
    hits.fill_positives(cells, indptr, np.empty(0, np.int32))


def test_rows_without_a_positive_anywhere_are_scored():
    values = np.empty((2, len(hits.METRICS)))
    columns, joined = np.zeros((2, 1), np.int32), np.zeros((2, 1), np.uint8)
    nothing = np.zeros(3, np.int64), np.empty(0, np.int32), np.empty(0, np.int8)
    hits.score_rows(columns, joined, np.ones(2, np.int64), *nothing, np.ones(1), 0, 0, values)
    np.testing.assert_array_equal(values[:, 1], 0)


def test_no_row_is_drawn_where_there_is_none():
    around = np.zeros(4)  # a write beyond the empty array would be seen
    resampling.draw_poisson(np.zeros(0, np.uint64), 1, 0, around[:0].reshape(2, 0))
    assert not around.any()


@pytest.mark.parametrize("n_trees", [0, 2])
@pytest.mark.parametrize("n_labels", [0, 1])
def test_no_trees_and_no_labels_sum_to_nothing(n_trees, n_labels):
    layout = (
        np.zeros(3, np.int32),
        np.empty(0),
        np.empty(0, np.int32),
        np.empty(0, np.uint64),
        np.zeros((n_trees, 64)),
    )
    for n_rows in (0, 2):
        sums = np.full((n_rows, n_labels), 7.0)
        trees.sum_dense_rows(np.ones((n_rows, 1)), *layout, sums)
        assert not sums.any()
        sums[:] = 7
        rows = np.zeros(n_rows + 1, np.int64), np.empty(0, np.int32), np.empty(0)
        trees.sum_sparse_rows(*rows, *layout, sums)
        assert not sums.any()


def test_no_margins_have_no_gradients():
    for shape in SHAPES:
        around = np.zeros((2, 4), np.float32)
        margins, truths = np.empty(shape, np.float32), np.empty(shape, np.uint8)
        weights = np.ones(shape[1], np.float32)
        gradients, hessians = (array[:0].reshape(shape) for array in around)
        trees.fill_gradients(margins, truths, weights, gradients, hessians)
        assert not around.any()


def test_no_cells_are_counted_among_keys_or_in_buckets(scores):
    n = scores.shape[1]
    slots, largest = np.zeros(n, np.uint16), np.zeros(n, keys.UNSIGNED[scores.dtype])
    zeros, none = np.zeros(n + 1, np.int64), np.empty(0, np.uint32)
    steps = np.zeros(n, np.uint64)
    isotonic.place_cells(
        keys.keys_of(scores, "probability"),
        np.arange(n),
        zeros,
        none.astype(largest.dtype),
        0,
        0,
        zeros,
        none,
        steps,
        steps,
        slots,
        largest,
        largest.copy(),
    )
    counts, truths = np.zeros(4 * n, np.uint32), np.empty(scores.shape, np.uint8)
    ranges = False, np.arange(n, dtype=np.int32), *np.ones((3, n)), 4 * np.arange(n + 1)
    buckets.count_buckets(scores, truths, *ranges, counts)
    assert not slots.any()
    assert not counts.any()
    cells, groups = np.empty(0, scores.dtype), np.empty(0, np.int32)
    marks, numbers = np.zeros(2 * n, np.uint8), np.zeros(2 * n, np.int32)
    assert buckets.collect_cells(scores, truths, *ranges, marks, numbers, cells, groups) == 0


def test_no_groups_are_filled_or_sorted(scores):
    none, cells = np.empty(0, np.int64), np.empty(0, scores.dtype)
    assert buckets.group_cells(none.astype(np.int32), cells, none, none, cells) == 0
    buckets.sort_groups(none, cells)
    buckets.sort_groups(np.zeros(2, np.int64), cells)
