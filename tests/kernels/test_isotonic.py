"""Counting and pooling against searches and scikit-learn's isotonic regression."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from oddslip.kernels.isotonic import (
    GAPS,
    count_pairs,
    fill_buckets,
    group_keys,
    place_cells,
    pool_labels,
    split_counts,
)
from oddslip.kernels.keys import LIMITS, keys_of, scores_of


def world(dtype, kind, seed, n=700, n_labels=19, crowded=False):
    """Keys of a block, and each label's distinct keys of positives; label 3 has none."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(-1, 2, (n, n_labels))
    if crowded:
        margins = np.round(margins)
    scores = margins if kind == "margin" else 1 / (1 + np.exp(-margins))
    keys = keys_of(scores.astype(dtype), kind)
    true = rng.random(keys.shape) < 0.2
    true[:, 3] = False
    u = [np.unique(keys[true[:, j], j]) for j in range(n_labels)]
    indptr = np.concatenate([[0], np.cumsum([part.size for part in u])])
    return keys, true, indptr, np.concatenate(u)


def buckets_of(indptr, u, gap, shift):
    """Tables with a shift the test chooses: many keys in a bucket, or few."""
    low, high = gap
    squeezed = [key - min(max(key, low), high) + low for key in u.tolist()]
    sizes = [
        ((squeezed[b - 1] - squeezed[a]) >> shift) + 1 if b > a else 0
        for a, b in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
    ]
    bucket_indptr = np.concatenate([[0], np.cumsum(sizes)])
    shifts = np.full(indptr.size - 1, shift, np.uint64)
    buckets = np.empty(bucket_indptr[-1], np.uint32)
    steps = np.empty(shifts.size, np.uint64)
    fill_buckets(indptr, u, low, high, bucket_indptr, shifts, buckets, steps)
    return low, high, bucket_indptr, buckets, shifts, steps


@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("width", [np.uint16, np.uint32])
def test_every_cell_is_counted_where_a_search_finds_it(dtype, frozen, kind, crowded, coarse, width):
    keys, _, indptr, u = world(dtype, kind, 1, n=2500, crowded=crowded)
    wide = keys.dtype == np.uint64
    tables = buckets_of(
        indptr, u, GAPS[keys.dtype, kind], (52 if wide else 24) if coarse else (46 if wide else 17)
    )
    counts = np.zeros(2 * u.size + keys.shape[1], width)
    largest = np.zeros(u.size + keys.shape[1], keys.dtype)
    lowest = np.full(keys.shape[1], LIMITS[keys.dtype, kind], keys.dtype)
    low, high, *arrays = tables
    place_cells(
        *frozen(keys, np.arange(keys.shape[1]), indptr, u),
        low,
        high,
        *frozen(*arrays),
        counts,
        largest,
        lowest,
    )
    expected, expected_largest = np.zeros_like(counts), np.zeros_like(largest)
    for j in range(keys.shape[1]):
        label = u[indptr[j] : indptr[j + 1]]
        if not label.size:
            continue
        at = np.searchsorted(label, keys[:, j])
        equal = label[np.minimum(at, label.size - 1)] == keys[:, j]
        bins = 2 * indptr[j] + j + 2 * at + equal
        np.add.at(expected, bins, 1)
        np.maximum.at(expected_largest, (indptr[j] + j + at)[~equal], keys[~equal, j])
        assert lowest[j] == keys[:, j].min()
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(largest, expected_largest)


def test_cells_among_more_keys_than_a_cache_holds_are_counted_where_a_search_finds_them(frozen):
    rng = np.random.default_rng(5)
    u = np.unique(keys_of(rng.normal(0, 2, (1, 1_100_000)).astype(np.float32), "margin"))
    assert u.size > 2**20
    cells = rng.normal(0, 2, (300, 40)).astype(np.float32)
    keys = keys_of(cells, "margin")
    keys[::3] = rng.choice(u, keys[::3].shape)  # some meet a key
    indptr = np.array([0, u.size])
    low, high, *arrays = buckets_of(indptr, u, GAPS[u.dtype, "margin"], 8)
    counts, largest = np.zeros(2 * u.size + 1, np.uint32), np.zeros(u.size + 1, u.dtype)
    lowest = np.full(1, 2**32 - 1, u.dtype)
    place_cells(
        *frozen(keys, np.zeros(40, np.int64), indptr, u),
        low,
        high,
        *frozen(*arrays),
        counts,
        largest,
        lowest,
    )
    at = np.searchsorted(u, keys.reshape(-1))
    equal = u[np.minimum(at, u.size - 1)] == keys.reshape(-1)
    expected = np.bincount(2 * at + equal, minlength=len(counts))
    np.testing.assert_array_equal(counts, expected)
    assert lowest[0] == keys.min()


def test_a_block_without_positives_anywhere_is_passed_over(dtype, frozen):
    keys = frozen(keys_of(np.full((3, 2), 0.5, dtype), "probability"))
    counts, largest = np.zeros(2, np.uint16), np.zeros(2, keys.dtype)
    lowest = np.full(2, 9, keys.dtype)
    zeros = np.zeros(3, np.int64)
    none = np.empty(0, np.uint32)
    steps = np.zeros(2, np.uint64)
    place_cells(
        keys,
        np.arange(2),
        zeros,
        none.astype(keys.dtype),
        0,
        0,
        zeros,
        none,
        steps,
        steps,
        counts,
        largest,
        lowest,
    )
    assert not counts.any()
    assert not largest.any()


def counts_of(keys, true, indptr, u):
    """Positives and negatives at each key and between them, by searching."""
    n_labels = keys.shape[1]
    positives, at_keys = np.zeros((2, u.size), np.int64)
    between = np.zeros(u.size + n_labels, np.int64)
    largest = np.zeros(u.size + n_labels, keys.dtype)
    for j in range(n_labels):
        label = u[indptr[j] : indptr[j + 1]]
        place = np.searchsorted(label, keys[:, j])
        equal = np.isin(keys[:, j], label)
        np.add.at(positives, indptr[j] + place[true[:, j]], 1)
        np.add.at(at_keys, indptr[j] + place[equal & ~true[:, j]], 1)
        np.add.at(between, indptr[j] + j + place[~equal], 1)
        np.maximum.at(largest, indptr[j] + j + place[~equal], keys[~equal, j])
    return positives, at_keys, between, largest


@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize("crowded", [False, True])
def test_pooled_knots_are_scikit_learns_isotonic_regression(dtype, frozen, kind, crowded):
    keys, true, indptr, u = world(dtype, kind, 2, crowded=crowded)
    n_labels = keys.shape[1]
    counts = counts_of(keys, true, indptr, u)
    expected = np.diff(indptr) > 0
    knot_indptr = np.empty(n_labels + 1, np.int64)
    knots, values = np.empty(2 * (u.size + n_labels), keys.dtype), np.empty(2 * (u.size + n_labels))
    n_knots = pool_labels(
        *frozen(indptr, u, *counts, keys.min(axis=0), expected), knot_indptr, knots, values
    )
    assert n_knots == knot_indptr[-1]
    assert knot_indptr[3] == knot_indptr[4]  # the label without a positive
    for j in np.flatnonzero(expected):
        part = slice(knot_indptr[j], knot_indptr[j + 1])
        x = scores_of(knots[part], kind).astype(float)
        scores = scores_of(np.ascontiguousarray(keys[:, j]), kind).astype(float)
        fit = IsotonicRegression(out_of_bounds="clip").fit(scores, true[:, j])
        np.testing.assert_allclose(
            np.interp(scores, x, values[part]), fit.predict(scores), atol=1e-12
        )


def test_pairs_in_order_are_counted_one_by_one(dtype, frozen):
    keys, true, indptr, u = world(dtype, "probability", 3, n=80, crowded=True)
    positives, at_keys, between, _ = counts_of(keys, true, indptr, u)
    high, low = np.zeros((2, keys.shape[1]), np.int64)
    count_pairs(*frozen(indptr, positives, at_keys, between), high, low)
    for j in range(keys.shape[1]):
        ups, downs = keys[true[:, j], j], keys[~true[:, j], j]
        twice = 2 * (ups[:, None] > downs).sum() + (ups[:, None] == downs).sum()
        assert (int(high[j]) << 24) + int(low[j]) == twice


def test_means_too_large_for_one_product_are_still_compared_exactly(frozen):
    # 1/3 of huge counts, less one positive: the second mean is lower by 1 in 10**18, so both pool.
    third = 3 * 10**17
    for less, n_blocks in ((1, 1), (-1, 2)):
        positives = np.array([third, third - less])
        negatives = np.array([2 * third, 2 * third + less])
        u = np.array([5, 9], np.uint64)
        knots, values = np.empty(6, np.uint64), np.empty(6)
        indptr, knot_indptr = np.array([0, 2]), np.empty(2, np.int64)
        n_knots = pool_labels(
            *frozen(
                indptr,
                u,
                positives,
                negatives,
                np.zeros(3, np.int64),
                np.zeros(3, np.uint64),
                u[:1],
                np.ones(1, bool),
            ),
            knot_indptr,
            knots,
            values,
        )
        assert n_knots == 2
        assert len(set(values[:n_knots])) == 1 or n_blocks == 2


def test_keys_are_brought_together_label_by_label_in_order(dtype, frozen):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 7, 300).astype(np.int32)
    keys = keys_of(rng.random((1, 300)).astype(dtype), "probability")[0]
    places = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=7))])
    grouped = np.empty_like(keys)
    group_keys(*frozen(labels, keys), places, grouped)
    np.testing.assert_array_equal(grouped, keys[np.argsort(labels, kind="stable")])


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int64])
def test_counts_of_slots_are_added_to_keys_and_intervals_in_turn(dtype):
    indptr = np.array([0, 2, 2, 3])
    slots = np.array([1, 20, 3, 40, 5, 6, 7, 80, 9], dtype)  # of labels with 2, 0 and 1 keys
    at, between = np.ones(3, np.int64), np.zeros(6, np.int64)
    split_counts(indptr, slots, at, between)
    np.testing.assert_array_equal(at, [21, 41, 81])
    np.testing.assert_array_equal(between, [1, 3, 5, 6, 7, 9])
