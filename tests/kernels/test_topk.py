"""The K highest keys of each row against NumPy's stable sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oddslip.kernels.topk import rank_keys, rank_lists

LENGTHS = [1, 2, 7, 24, 127, 128, 511, 512, 513, 640, 1000, 1023, 1024, 1030, 2049, 4000]


def reference(scores, k):
    return np.argsort(-scores.astype(np.float64), axis=1, kind="stable")[:, :k]


def keys_view(scores):
    return scores.view(np.uint32 if scores.dtype == np.float32 else np.uint64)


def ranked(scores, k):
    return rank_keys(keys_view(scores), k)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_labels", LENGTHS)
@pytest.mark.parametrize("shape", ["spread", "few values", "saturated", "sorted", "zeros"])
def test_columns_and_tie_counts_equal_a_stable_sort(dtype, n_labels, shape):
    rng = np.random.default_rng(n_labels)
    scores = rng.random((40, n_labels)).astype(dtype)
    if shape == "few values":
        scores = np.round(scores * 3).astype(dtype) / 3
    elif shape == "saturated":
        scores[rng.random(scores.shape) < 0.2] = 1
    elif shape == "sorted":
        scores.sort(axis=1)
    elif shape == "zeros":
        scores[scores < 0.99] = 0
    for k in {1, 2, 7, 8, 9, 30, 100, 101, 500, n_labels}:
        if k > n_labels:
            continue
        columns, best, at_kth = ranked(scores, k)
        expected = reference(scores, k)
        np.testing.assert_array_equal(columns, expected)
        values = np.take_along_axis(scores, expected, axis=1)
        np.testing.assert_array_equal(best.view(dtype), values)
        np.testing.assert_array_equal(at_kth, (scores == values[:, -1:]).sum(axis=1))


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    n_labels=st.sampled_from([3, 129, 512, 700]),
    k=st.integers(1, 16),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_any_row_with_few_distinct_scores_ranks_as_a_stable_sort(data, n_labels, k, dtype):
    levels = data.draw(hnp.arrays(np.int8, (2, n_labels), elements=st.integers(0, 5)))
    scores = (levels / 5).astype(dtype)
    k = min(k, n_labels)
    np.testing.assert_array_equal(ranked(scores, k)[0], reference(scores, k))


def test_a_tie_with_one_cell_far_to_the_left_is_found():
    scores = np.zeros((1, 4000), np.float32)
    scores[0, 3990:] = 0.5
    scores[0, 3] = 0.5
    assert ranked(scores, 3)[0].tolist() == [[3, 3990, 3991]]


def test_only_the_rows_asked_for_are_ranked():
    scores = np.random.default_rng(0).random((10, 600), dtype=np.float32)
    rows = np.array([7, 2])
    columns, _, _ = rank_keys(scores.view(np.uint32), 5, rows)
    np.testing.assert_array_equal(columns, reference(scores[rows], 5))


def present_cells(scores, present, k):
    """Columns and scores of the k best cells that are there, and how many equal the last."""
    columns, best, at_kth = [], [], []
    for row, there in zip(scores, present, strict=True):
        order = [j for j in np.argsort(-row, kind="stable") if there[j]][:k]
        empty = k - len(order)
        columns.append([*order, *[-1] * empty])
        best.append([*row[order], *[0] * empty])
        at_kth.append((row[there] == row[order[-1]]).sum() if order else 0)
    return np.array(columns), np.array(best), np.array(at_kth)


@pytest.fixture(params=[0.0, 0.5, 0.97], ids=["all there", "half there", "few there"])
def scarce(request, dtype):
    """Scores with heavy ties, and which of the cells are there."""
    rng = np.random.default_rng(5)
    scores = (np.round(rng.random((6, 240)) * 5) / 5).astype(dtype)
    return scores, rng.random(scores.shape) >= request.param


def test_for_every_k_rows_with_absent_cells_rank_as_a_stable_sort_without_them(scarce):
    scores, present = scarce
    indptr = np.concatenate([[0], np.cumsum((~present).sum(axis=1))])
    absent = indptr, np.nonzero(~present)[1].astype(np.int32)
    for k in range(1, scores.shape[1] + 1):
        columns, best, at_kth = rank_keys(keys_view(scores), k, None, absent)
        expected = present_cells(scores, present, k)
        np.testing.assert_array_equal(columns, expected[0])
        np.testing.assert_array_equal(best.view(scores.dtype), expected[1])
        np.testing.assert_array_equal(at_kth, expected[2])


def test_for_every_k_rows_that_list_their_cells_in_any_order_rank_as_a_stable_sort(scarce):
    scores, present = scarce
    rng = np.random.default_rng(6)
    label_lists = [rng.permutation(np.flatnonzero(there)).astype(np.int32) for there in present]
    indptr = np.concatenate([[0], np.cumsum([len(labels) for labels in label_lists])])
    cells = np.concatenate([row[labels] for row, labels in zip(scores, label_lists, strict=True)])
    for k in range(1, scores.shape[1] + 1):
        columns, best, at_kth = rank_lists(indptr, np.concatenate(label_lists), keys_view(cells), k)
        expected = present_cells(scores, present, k)
        np.testing.assert_array_equal(columns, expected[0])
        np.testing.assert_array_equal(best.view(scores.dtype), expected[1])
        np.testing.assert_array_equal(at_kth, expected[2])
