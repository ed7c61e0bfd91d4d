"""Counts without a fold equal counts of the other rows; one pass is enough for all folds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.passes import plain

import oddslip.sources.base as sources
from oddslip.core.passes import run
from oddslip.core.tally import TallyGroup
from oddslip.core.threads import tallies_of_threads
from oddslip.errors import InvalidInput
from oddslip.selection import fold_counts as counting
from oddslip.selection.fold_counts import (
    FoldCounter,
    FoldTally,
    PositiveTally,
    find_distinct,
    find_starting,
    make_buckets,
)
from oddslip.selection.folds import assign_folds
from oddslip.sources import open_source
from oddslip.tallies.cell_counts import count_cells

count_cells = plain(count_cells)


def collect(source, folds):
    return source.run(PositiveTally(source.n_labels, source.dtype, folds)).result()


def draw_panel(seed, dtype, kind="probability"):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random((60, 5)), 2)  # tied
    scores[rng.random(scores.shape) < 0.1] = 1.0
    scores[rng.random(scores.shape) < 0.05] = -0.0
    labels = rng.random(scores.shape) < scores * [0.05, 0.2, 0.5, 1, 0]
    scores = scores if kind == "probability" else 8 * scores - 5
    return scores.astype(dtype), labels


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), block=st.sampled_from([100, 900, 10**6]))
def test_a_fit_without_a_fold_equals_a_fit_on_the_other_rows(pooled, kind, dtype, seed, block):
    scores, labels = draw_panel(seed, dtype, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "BLOCK_BYTES", block)
        source = open_source(scores, labels, kind=kind)
        folds = assign_folds(source, 4, seed=seed)
        numbers = folds[0].of_keys(source.row_keys())
        positives = collect(source, folds)
        counts = run(source, FoldCounter(source, positives, [False, True]).count(folds))[0].counts[
            pooled
        ]
        for fold in (0, 1, 2, 3, None):
            kept = numbers != fold if fold is not None else slice(None)
            alone = count_cells(open_source(scores[kept], labels[kept], kind=kind), pooled=pooled)
            found = counts.without(fold)
            np.testing.assert_array_equal(found.n_positives, alone.n_positives)
            assert (found.n_rows, found.n_cells) == (alone.n_rows, alone.n_cells)
            for one, other in zip(found.isotonic_knots(), alone.isotonic_knots(), strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("bits", [1, 6, 12, 19])
@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_pooled_fit_needs_the_positives_alone_at_which_it_may_turn(bits, kind, dtype, seed):
    scores, labels = draw_panel(seed, dtype, kind)
    source = open_source(scores, labels, kind=kind)
    folds = assign_folds(source, 4, seed=seed)
    numbers = folds[0].of_keys(source.row_keys())
    positives = collect(source, folds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MIN_CELLS", 0)
        patch.setattr(counting, "BUCKET_BITS", bits)
        buckets = [source.run(each) for each in make_buckets(source, folds)]
    starting = find_starting(buckets, positives)
    counter = FoldCounter(source, positives, [True], starting=starting)
    counts = run(source, counter.count(folds))[0].counts[True]
    for fold in (0, 1, 2, 3, None):
        kept = numbers != fold if fold is not None else slice(None)
        alone = count_cells(open_source(scores[kept], labels[kept], kind=kind), pooled=True)
        np.testing.assert_array_equal(counts.without(fold).n_positives, alone.n_positives)
        for one, other in zip(counts.knots(fold), alone.isotonic_knots(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_most_positives_of_many_cells_are_where_no_pooled_fit_turns():
    rng = np.random.default_rng(0)
    scores = rng.random((20_000, 20), dtype=np.float32)
    source = open_source(scores, rng.random(scores.shape, dtype=np.float32) < scores / 4)
    folds = assign_folds(source, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MIN_CELLS", 0)
        buckets = [source.run(each) for each in make_buckets(source, folds)]
    assert find_starting(buckets, collect(source, folds)).mean() < 0.25


@pytest.mark.parametrize("at_once", [1, 7, 10**6])
def test_knots_of_some_labels_at_a_time_are_those_of_all(monkeypatch, at_once):
    scores, labels = draw_panel(5, np.float32)
    source = open_source(scores, labels)
    folds = assign_folds(source, 4)
    counter = FoldCounter(source, collect(source, folds), [False])
    counts = run(source, counter.count(folds))[0].counts[False]
    monkeypatch.setattr(counting, "KEYS_AT_ONCE", at_once)
    for one, other in zip(counts.knots(2), counts.without(2).isotonic_knots(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_as_many_threads_as_there_are_folds_share_one_state():
    source = open_source(*draw_panel(1, np.float32))
    folds = assign_folds(source, 4)
    counter = FoldCounter(source, collect(source, folds), [False, True])
    tally = FoldTally(folds[0], counter._empty)
    n_states = [
        len({id(each.tallies[0]) for each in tallies_of_threads(TallyGroup([tally]), threads)})
        for threads in (1, 2, 4, 5, 8, 9)
    ]
    assert n_states == [1, 1, 1, 2, 2, 3]


def test_a_fold_takes_nine_bytes_for_a_positive_of_single_precision():
    """Two counts of 16 bits, the largest key between, and how often the key is a positive's."""
    rng = np.random.default_rng(0)
    source = open_source(rng.random((4_000, 5), dtype=np.float32), rng.random((4_000, 5)) < 0.3)
    folds = assign_folds(source, 5)
    source.threads = 2
    counter = FoldCounter(source, collect(source, folds), [False])
    counts = run(source, counter.count(folds))[0].counts[False]
    n_keys = counts.tallies[0].distinct.keys.size
    per_label = 2 + 4 + 4  # one slot and one interval more than keys, and the lowest key
    assert counts.nbytes == 5 * (9 * n_keys + per_label * 5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_distinct_keys_are_those_numpy_finds(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 60))
    labels, keys = rng.integers(0, 5, n).astype(np.int32), rng.integers(0, 9, n).astype(np.uint32)
    distinct, places = find_distinct(labels, keys, 5)
    np.testing.assert_array_equal(distinct.keys[places], keys)
    np.testing.assert_array_equal(np.searchsorted(distinct.indptr, places, "right") - 1, labels)
    for label in range(5):
        own = distinct.keys[distinct.indptr[label] : distinct.indptr[label + 1]]
        np.testing.assert_array_equal(own, np.unique(keys[labels == label]))


def test_a_cell_that_is_not_valid_is_named_by_its_own_row():
    scores, labels = draw_panel(0, np.float64)
    scores[41, 3] = np.nan
    source = open_source(scores, labels)
    folds = assign_folds(source, 2)
    with pytest.raises(InvalidInput, match="row 41, label '3'"):
        collect(source, folds)
