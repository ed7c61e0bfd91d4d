"""Views of a source: some of its rows, or other labels, read like an array of just those."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oddslip.sources.base as sources
from oddslip.sources import open_source
from oddslip.sources.views import ColumnSource, LabelledSource, RowSubset


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_positives_of_some_rows_are_those_of_the_dense_labels(seed):
    rng = np.random.default_rng(seed)
    labels = rng.random((30, 6)) < 0.2
    rows = rng.permutation(30)[: rng.integers(1, 31)]
    taken = open_source(labels * 0.5, labels).positives().take(rows)
    dense = np.zeros((rows.size, 6), bool)
    dense[np.repeat(np.arange(rows.size), taken.counts), taken.indices] = True
    np.testing.assert_array_equal(dense, labels[rows])


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_fold_source_reads_like_an_array_of_its_rows(order, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 200)
    rng = np.random.default_rng(0)
    scores = np.asarray(rng.random((50, 4)), order=order)
    labels = rng.random((50, 4)) < 0.3
    kept = rng.random(50) < 0.4
    kept[10:30] = False
    ids = np.array([f"row {i}" for i in range(50)])
    whole = open_source(scores, labels, label_names=list("abcd"), row_ids=ids)
    part = RowSubset(whole, kept, whole.positives())
    wanted = open_source(scores[kept], labels[kept])
    blocks = list(part.blocks())
    assert len(blocks) > 2
    assert all(block.n_rows for block in blocks)
    assert [block.first_row for block in blocks] == np.cumsum(
        [0, *(block.n_rows for block in blocks[:-1])]
    ).tolist()
    assert (part.n_rows, part.label_names) == (kept.sum(), ("a", "b", "c", "d"))
    np.testing.assert_array_equal(part.row_ids(), ids[kept])
    np.testing.assert_array_equal(np.concatenate([b.row_ids for b in blocks]), ids[kept])
    np.testing.assert_array_equal(np.concatenate([b.scores for b in blocks]), scores[kept])
    for found in (part.positives(), sources.join_positives(b.positives() for b in blocks)):
        for one, other in zip(found, wanted.positives(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_labelled_source_keeps_the_row_ids_and_not_the_labels_of_the_whole(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 48)
    rng = np.random.default_rng(1)
    old, new = rng.random((2, 9, 2)) < 0.5
    ids = np.arange(9) * 10
    whole = open_source(rng.random((9, 2)), old, row_ids=ids)
    labelled = LabelledSource(whole, open_source(new * 0.5, new).positives())
    blocks = list(labelled.blocks())
    assert len(blocks) > 2
    np.testing.assert_array_equal(labelled.row_ids(), ids)
    np.testing.assert_array_equal(np.concatenate([b.row_ids for b in blocks]), ids)
    wanted = open_source(new * 0.5, new).positives()
    for found in (labelled.positives(), sources.join_positives(b.positives() for b in blocks)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    assert [b.positives().indices.tolist() for b in whole.blocks()] != [
        b.positives().indices.tolist() for b in blocks
    ]


@pytest.mark.parametrize("columns", [[0, 1, 2], [1, 2], [0, 3], [4]])
def test_some_labels_of_a_source_are_its_columns_and_their_truth(columns):
    rng = np.random.default_rng(5)
    scores, true = rng.random((7, 5)), rng.random((7, 5)) < 0.5
    part = ColumnSource(open_source(scores, true), np.array(columns))
    assert np.array_equal(np.concatenate([b.scores for b in part.blocks()]), scores[:, columns])
    wanted = open_source(scores[:, columns], true[:, columns]).positives()
    for found in (part.positives(), next(part.blocks()).positives()):
        assert np.array_equal(found.indptr, wanted.indptr)
        assert np.array_equal(found.indices, wanted.indices)
    assert part.label_names == tuple(str(j) for j in columns)
