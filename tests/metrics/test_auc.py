"""Within-label AUC against scikit-learn, and the laws it keeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from oddslip.errors import InvalidInput
from oddslip.metrics.auc import auc_per_label, mean_auc


def make_panel(seed, n_rows=400, n_labels=6, levels=50, dtype=np.float32):
    rng = np.random.default_rng(seed)
    scores = (rng.integers(0, levels + 1, (n_rows, n_labels)) / levels).astype(dtype)
    labels = rng.random((n_rows, n_labels)) < 0.02 + 0.6 * scores**2
    return scores, labels


def by_sklearn(scores, labels):
    return [
        roc_auc_score(labels[:, j], scores[:, j].astype(np.float64))
        if 0 < labels[:, j].sum() < len(labels)
        else np.nan
        for j in range(scores.shape[1])
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [1, 7, 10**6])
def test_it_is_the_auc_of_scikit_learn(dtype, levels):
    scores, labels = make_panel(levels, levels=levels, dtype=dtype)
    assert_allclose(auc_per_label(scores, labels), by_sklearn(scores, labels), rtol=0, atol=1e-14)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64]))
def test_it_is_the_share_of_pairs_in_order(data, dtype):
    shape = (data.draw(st.integers(1, 30)), data.draw(st.integers(1, 4)))
    width = 8 * np.dtype(dtype).itemsize
    cell = st.one_of(
        st.sampled_from([-1.0, -0.0, 0.0, 2.0]),
        st.floats(allow_nan=False, allow_infinity=False, width=width),
    )
    scores = data.draw(arrays(dtype, shape, elements=cell))
    labels = data.draw(arrays(np.bool_, shape))
    found = auc_per_label(scores, labels, kind="margin")
    for j in range(shape[1]):
        positives, negatives = scores[labels[:, j], j, None], scores[~labels[:, j], j]
        won = (positives > negatives).sum() + (positives == negatives).sum() / 2
        pairs = positives.size * negatives.size
        assert_allclose(found[j], won / pairs if pairs else np.nan, rtol=0, atol=1e-15)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.floats(-20, 20), slope=st.floats(0.125, 8))
def test_a_strictly_increasing_map_leaves_it_unchanged(seed, shift, slope):
    scores, labels = make_panel(seed, n_rows=60, dtype=np.float64)
    before = auc_per_label(scores, labels)
    after = auc_per_label(slope * np.arctan(3 * scores) + shift, labels, kind="margin")
    assert_array_equal(after, before)


def test_reversed_scores_give_the_complement():
    scores, labels = make_panel(3, dtype=np.float64)
    areas = auc_per_label(scores, labels, kind="margin")
    assert_allclose(auc_per_label(-scores, labels, kind="margin"), 1 - areas, rtol=0, atol=1e-15)


def test_a_perfect_order_gives_one_and_constant_scores_give_one_half():
    labels = [[1, 0], [1, 1], [0, 1], [0, 0]]
    scores = [[0.9, 0.5], [0.8, 0.5], [0.3, 0.5], [0.2, 0.5]]
    assert_array_equal(auc_per_label(scores, labels), [1.0, 0.5])


def test_a_label_true_nowhere_or_everywhere_has_none():
    scores, labels = make_panel(4)
    labels[:, 0], labels[:, 1] = False, True
    assert_array_equal(np.isnan(auc_per_label(scores, labels)), [1, 1, 0, 0, 0, 0])


def test_the_mean_is_taken_over_labels_that_have_one():
    scores, labels = make_panel(5)
    labels[:, 2] = False
    expected = np.nanmean(by_sklearn(scores, labels))
    assert_allclose(mean_auc(scores, labels), expected, rtol=0, atol=1e-14)


def test_the_mean_over_no_label_is_nan():
    assert np.isnan(mean_auc([[0.5, 0.1]], [[1, 0]]))


def test_sparse_and_dense_labels_agree():
    scores, labels = make_panel(6)
    assert_array_equal(auc_per_label(scores, csr_array(labels)), auc_per_label(scores, labels))


def test_without_labels_it_is_refused():
    with pytest.raises(InvalidInput, match="labels are needed"):
        auc_per_label([[0.5, 0.1]])


def test_a_bad_cell_is_named():
    scores, labels = make_panel(7)
    scores[17, 2] = np.nan
    with pytest.raises(InvalidInput, match="row 17, label 'c'"):
        auc_per_label(scores, labels, label_names=list("abcdef"))
