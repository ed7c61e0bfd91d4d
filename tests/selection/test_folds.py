"""Folds: every row in one, drawn by the seed alone; sources of some rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oddslip.sources.base as sources
from oddslip.errors import InvalidInput
from oddslip.selection.folds import FoldSource, draw_folds
from oddslip.sources import open_source

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


@few
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
    part = FoldSource(whole, kept, whole.positives())
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
