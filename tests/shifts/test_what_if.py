"""What-if rankings, overlap and flips."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.special import expit, logit

from oddslip.errors import InvalidInput
from oddslip.shifts import flips, overlap, what_if
from oddslip.shifts.what_if import WhatIfTally
from oddslip.sources import open_source

few = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def rank(scores, k):
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def draw(seed, n_rows=40, n_labels=9):
    rng = np.random.default_rng(seed)
    return rng.normal(-1, 3, (n_rows, n_labels)), np.exp(rng.normal(0, 2, n_labels)), rng


@few
@given(seed=seeds, dtype=st.sampled_from([np.float32, np.float64]), k=st.integers(1, 9))
def test_the_what_if_ranks_by_log_odds_plus_ln_w(seed, dtype, k):
    margins, w, _ = draw(seed)
    p = expit(margins).astype(dtype)
    expected = rank(logit(p.astype(np.float64)) + np.log(w), k)
    assert_array_equal(what_if(p, w, k=k).ranking, expected)
    m = margins.astype(dtype)
    assert_array_equal(what_if(m, w, k=k, kind="margin").ranking, rank(m + np.log(w), k))


@few
@given(seed=seeds, k=st.integers(1, 9))
def test_overlap_and_share_changed_compare_sets_with_the_unweighted_top_k(seed, k):
    margins, w, _ = draw(seed)
    result = what_if(margins, w, k=k, kind="margin")
    plain, shifted = rank(margins, k), rank(margins + np.log(w), k)
    shared = [len(set(a) & set(b)) for a, b in zip(plain, shifted, strict=True)]
    assert result.mean_overlap == pytest.approx(np.mean(shared), abs=1e-12)
    assert result.share_changed == np.mean([count < k for count in shared])
    assert_array_equal(overlap(plain, shifted), shared)


def test_wide_rows_are_ranked_alike():
    margins, w, _ = draw(3, 50, 900)
    assert_array_equal(
        what_if(margins, w, k=7, kind="margin").ranking, rank(margins + np.log(w), 7)
    )


def test_saturated_and_zero_cells_rank_by_weight_at_the_clip():
    result = what_if(np.array([[1.0, 1.0, 0.0, 0.0]], np.float32), [1.0, 2.0, 3.0, 4.0], k=4)
    assert result.ranking.tolist() == [[1, 0, 3, 2]]


def test_common_weights_keep_cells_apart_that_the_clip_would_tie():
    p = np.array([[1e-20, 2e-20, 1 - 1e-15, 1.0]])
    result = what_if(p, [7.0] * 4, k=4)
    assert result.ranking.tolist() == [[3, 2, 1, 0]]
    assert (result.mean_overlap, result.share_changed) == (4.0, 0.0)


def test_the_answer_does_not_depend_on_blocks_their_order_or_threads(monkeypatch):
    margins, w, _ = draw(5, 301, 11)
    p = expit(margins).astype(np.float32)
    whole = what_if(p, w, k=4, threads=1)
    panel = open_source(p).panel
    tally, other = WhatIfTally(w, 4), WhatIfTally(w, 4)
    tally.add(panel.rows(200, 301))
    other.add(panel.rows(13, 200))
    other.add(panel.rows(0, 13))
    tally.merge(other)
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 4 * 11 * 17)
    for cut in (tally.result(), what_if(p, w, k=4, threads=3)):
        assert_array_equal(cut.ranking, whole.ranking)
        assert cut.mean_overlap == whole.mean_overlap
        assert cut.share_changed == whole.share_changed


def test_with_labels_the_hits_of_both_rankings_are_counted():
    margins, w, rng = draw(8)
    truth = rng.random(margins.shape) < 0.2
    result = what_if(margins, w, truth, k=3, kind="margin")
    for hits, scores in ((result.hits, margins + np.log(w)), (result.unweighted_hits, margins)):
        assert hits == np.take_along_axis(truth, rank(scores, 3), 1).sum(axis=1).mean()
    assert what_if(margins, w, k=3, kind="margin").hits is None


def test_the_result_turns_into_plain_values():
    values = what_if([[0.1, 0.9]], [1.0, 1.0], k=1).to_dict()
    assert values["ranking"] == [[1]]
    assert values["share_changed"] == 0.0


@few
@given(seed=seeds)
def test_a_pair_flips_exactly_if_its_order_is_reversed(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-4, 5, (2, 200)).astype(float)
    wa, wb = 2.0 ** rng.integers(-3, 4, (2, 200))
    before, after = a - b, (a + np.log(wa)) - (b + np.log(wb))
    assert_array_equal(flips(a, b, wa, wb), np.sign(before) * np.sign(after) < 0)
    assert_array_equal(flips(a, b, wa, wb), flips(b, a, wb, wa))


def test_rankings_that_can_not_be_compared_are_refused():
    with pytest.raises(InvalidInput, match="one shape"):
        overlap([[0, 1]], [[0, 1, 2]])
    with pytest.raises(InvalidInput, match="whole numbers"):
        overlap([[0.0, 1.0]], [[0.0, 1.0]])
    with pytest.raises(InvalidInput, match="twice, got one at row 1"):
        overlap([[0, 1], [2, 2]], [[0, 1], [2, 3]])


def test_k_beyond_the_labels_and_invalid_cells_are_refused():
    with pytest.raises(InvalidInput, match="k must be between"):
        what_if([[0.1, 0.2]], [1, 1], k=3)
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        what_if([[0.1, 1.2]], [1, 2], k=1)
