"""Counts without a fold equal counts of the other rows; one pass is enough for all folds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oddslip.sources.base as sources
from oddslip.counting import count_cells
from oddslip.errors import InvalidInput
from oddslip.selection.folds import Dealt, FoldCounter, PositiveCellTally, draw_folds, find_distinct
from oddslip.sources import open_source


def collect(source):
    return source.run(PositiveCellTally(source.dtype)).result()


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
    folds = draw_folds(60, 4, seed=seed)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "BLOCK_BYTES", block)
        source = open_source(scores, labels, kind=kind)
        cells = collect(source)
        dealt = Dealt.numbered(folds, 4, cells.positives)
        counts = FoldCounter(source, cells, [False, True]).count(dealt, 4).counts[pooled]
        for fold in (0, 1, 2, 3, None):
            kept = folds != fold if fold is not None else slice(None)
            alone = count_cells(open_source(scores[kept], labels[kept], kind=kind), pooled=pooled)
            found = counts.without(fold)
            np.testing.assert_array_equal(found.n_positives, alone.n_positives)
            assert (found.n_rows, found.n_cells) == (alone.n_rows, alone.n_cells)
            for one, other in zip(found.isotonic_knots(), alone.isotonic_knots(), strict=True):
                np.testing.assert_array_equal(one, other)


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
    with pytest.raises(InvalidInput, match="row 41, label '3'"):
        collect(open_source(scores, labels))
