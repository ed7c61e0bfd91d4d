"""Saturated cells, tied rows, distinct scores, and another order of the saturated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.special import expit

from oddslip.core.panel import Panel
from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.shifts import SATURATED_MARGIN, SATURATED_MARGIN_FLOAT32, reorder_saturated, saturation
from oddslip.shifts.saturation import SaturationTally, count_distinct
from oddslip.sources import open_source

few = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def draw(seed, n_rows=30, n_labels=8, dtype=np.float32):
    """Coarse probabilities in which ones and ties are frequent."""
    rng = np.random.default_rng(seed)
    grid = np.array([0.0, 0.2, 0.5, 1 - 2.0**-24, 1.0])
    return rng.choice(grid, (n_rows, n_labels)).astype(dtype), rng


def test_a_float64_sigmoid_casts_to_one_from_17_33_on():
    steps = SATURATED_MARGIN + np.array([-1e-7, 1e-7])
    assert (expit(steps).astype(np.float32) == 1).tolist() == [False, True]
    assert round(SATURATED_MARGIN, 2) == 17.33


def test_a_float32_sigmoid_is_one_from_16_64_on():
    margins = np.linspace(16.6, 16.7, 100_001).astype(np.float32)
    one = np.float32(1)
    saturated = one / (one + np.exp(-margins)) == one
    first = margins[saturated.argmax()]
    assert saturated[saturated.argmax() :].all()
    assert first == pytest.approx(SATURATED_MARGIN_FLOAT32, abs=1e-5)
    assert round(SATURATED_MARGIN_FLOAT32, 2) == 16.64


def test_margins_report_both_thresholds():
    margins = np.array([[16.0, 16.63, 16.64, 17.32, 17.33, 40.0]])
    for dtype in (np.float32, np.float64):
        result = saturation(margins.astype(dtype), k=1, kind="margin")
        assert result.n_saturated.tolist() == [0, 0, 0, 0, 1, 1]
        assert result.n_saturated_float32.tolist() == [0, 0, 1, 1, 1, 1]
        assert (result.share, result.share_float32) == (2 / 6, 4 / 6)


@few
@given(seed=seeds, dtype=st.sampled_from([np.float32, np.float64]), k=st.integers(1, 8))
def test_counts_agree_with_counting(seed, dtype, k):
    p, _ = draw(seed, dtype=dtype)
    result = saturation(p, k=k)
    ones = p == 1
    assert_array_equal(result.n_saturated, ones.sum(axis=0))
    assert result.n_saturated_float32 is None
    assert result.share == result.share_float32 == ones.mean()
    assert result.mean_per_row == pytest.approx(ones.sum(axis=1).mean(), abs=1e-12)
    assert result.full_rows == (ones.sum(axis=1) >= k).sum()
    ordered = -np.sort(-p, axis=1)
    tied = ordered[:, k - 1] == ordered[:, k] if k < p.shape[1] else np.zeros(len(p), bool)
    assert result.tied_rows == tied.sum()
    assert_array_equal(result.n_distinct, [np.unique(column).size for column in p.T])
    assert result.mean_distinct == result.n_distinct.mean()


def test_float64_probabilities_saturate_where_float32_would_store_one():
    p = 1 - 2.0 ** -np.array([[24.0, 24.9, 25.0, 26.0, 50.0]])
    assert_array_equal(saturation(p, k=1).n_saturated, (p.astype(np.float32) == 1)[0])
    assert saturation(p, k=1).n_saturated.tolist() == [0, 0, 1, 1, 1]
    below = np.nextafter(1 - 2.0**-25, 0)
    assert np.float32(below) < 1
    assert saturation([[below]], k=1).n_saturated.tolist() == [0]


def test_the_synthetic_pair_saturates_as_told():
    pair = synthetic_pair(1000, 10, saturate=0.05, seed=6)
    stored = saturation(pair.weighted, k=3, distinct=False)
    margin = saturation(pair.weighted_margin, k=3, kind="margin", distinct=False)
    assert stored.share == margin.share == 0.05
    assert stored.n_distinct is None
    assert stored.tied_rows >= margin.tied_rows == 0


def test_distinct_scores_can_be_rounded_first_and_minus_zero_is_zero():
    p = np.array([[0.1, -0.0], [0.1 + 1e-14, 0.0], [0.2, 0.0]])
    assert saturation(p, k=1).n_distinct.tolist() == [3, 1]
    assert saturation(p, k=1, decimals=12).n_distinct.tolist() == [2, 1]


@pytest.mark.parametrize("decimals", [None, 1])
def test_distinct_scores_do_not_depend_on_the_tile(decimals):
    p, _ = draw(1, 60, 9)
    whole = count_distinct(open_source(p), decimals)
    for max_bytes in (1, 60 * 4 * 2, 60 * 8 * 5):
        assert_array_equal(count_distinct(open_source(p), decimals, max_bytes=max_bytes), whole)


def test_the_answer_does_not_depend_on_blocks_their_order_or_threads(monkeypatch):
    p, _ = draw(2, 200, 8)
    whole = saturation(p, k=3, threads=1).to_dict()
    panel = open_source(p).panel
    tally, other = SaturationTally(8, 3), SaturationTally(8, 3)
    tally.add(panel.rows(90, 200))
    other.add(panel.rows(0, 90))
    tally.merge(other)
    assert tally.result().per_label.tolist() == whole["n_saturated"]
    assert [tally.full_rows, tally.tied_rows] == [whole["full_rows"], whole["tied_rows"]]
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 8 * 4 * 7)
    assert saturation(np.asfortranarray(p), k=3, threads=3).to_dict() == whole


def test_the_table_has_a_row_per_label():
    frame = saturation(Panel([[1.0, 0.5]], label_names=["a", "b"]), k=1).to_frame()
    assert frame.columns.tolist() == ["label", "n_saturated", "n_distinct"]
    assert frame["label"].tolist() == ["a", "b"]


@few
@given(seed=seeds, k=st.integers(1, 8), dtype=st.sampled_from([np.float32, np.float64]))
def test_saturated_cells_follow_the_twin_and_all_others_stay(seed, k, dtype):
    p, rng = draw(seed)
    twin = rng.choice([0.0, 0.1, 0.4, 0.9], p.shape).astype(dtype)
    ranking = reorder_saturated(p, twin, k=k)
    for row, cells, order in zip(ranking, p, twin, strict=True):
        ones = sorted(np.flatnonzero(cells == 1), key=lambda j, o=order: (-o[j], j))
        rest = sorted(np.flatnonzero(cells < 1), key=lambda j, c=cells: (-c[j], j))
        assert row.tolist() == [*ones, *rest][:k]


@few
@given(seed=seeds, k=st.integers(1, 8))
def test_the_oracle_puts_saturated_positives_first(seed, k):
    p, rng = draw(seed)
    truth = rng.random(p.shape) < 0.3
    ranking = reorder_saturated(p, None, k=k, labels=truth)
    expected = np.lexsort((np.tile(np.arange(8), (len(p), 1)), ~(truth & (p == 1)), -p), axis=1)
    assert_array_equal(ranking, expected[:, :k])


def test_the_twin_may_be_of_another_kind_and_cut_into_other_blocks(monkeypatch):
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 200)
    pair = synthetic_pair(300, 9, saturate=0.3, seed=1)
    ranking = reorder_saturated(pair.weighted, pair.weighted_margin, k=5, order_kind="margin")
    # The arm's own margins put its saturated cells in their own order.
    assert_array_equal(ranking, np.argsort(-pair.weighted_margin, axis=1, kind="stable")[:, :5])


def test_saturated_margins_are_reordered_too():
    margins = [[30.0, 20.0, 5.0, 4.0]]
    twin = [[0.0, 1.0, 9.0, 8.0]]
    assert reorder_saturated(margins, twin, k=4, kind="margin").tolist() == [[1, 0, 2, 3]]


def test_either_an_order_or_labels_must_be_given():
    for order, labels in ((None, None), ([[0.5]], [[1]])):
        with pytest.raises(InvalidInput, match="either order or labels"):
            reorder_saturated([[1.0]], order, k=1, labels=labels)
    with pytest.raises(InvalidInput, match="same shape"):
        reorder_saturated([[1.0]], [[0.5, 0.5]], k=1)
