"""The direct shift is the median difference of the arms' margins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from oddslip.core.panel import Panel
from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.shifts import direct_shift, reorder_saturated

few = settings(max_examples=25, deadline=None)


def medians(weighted, unweighted):
    gap = weighted - unweighted
    edge = np.log((1 - 1e-6) / 1e-6)
    inside = (np.abs(weighted) < edge) & (np.abs(unweighted) < edge)
    return [np.median(g[m]) if m.any() else np.nan for g, m in zip(gap.T, inside.T, strict=True)]


@few
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 60),
    coarse=st.booleans(),
    kept_cells=st.sampled_from([0, 7, 10**6]),
)
def test_the_streamed_median_is_the_median(seed, n_rows, coarse, kept_cells):
    rng = np.random.default_rng(seed)
    unweighted = rng.normal(-2, 3, (n_rows, 4))
    weighted = unweighted + rng.normal(0, 2, (n_rows, 4)) + [0, 5, 14, 40]
    if coarse:
        unweighted, weighted = np.round(unweighted), np.round(weighted)
    shift = direct_shift(weighted, unweighted, kind="margin", kept_cells=kept_cells)
    assert_allclose(shift, medians(weighted, unweighted), rtol=0, atol=1e-14)


@pytest.mark.parametrize("kept_cells", [0, 10**6])
def test_only_cells_strictly_inside_a_millionth_of_0_and_1_in_both_arms_count(kept_cells):
    rows = [  # weighted, unweighted, whether the cell counts
        (0.75, 0.5, True),
        (1e-6, 0.5, False),
        (np.nextafter(1e-6, 1), 1e-6, False),
        (0.75, 1 - 1e-6, False),
        (1.0, 0.5, False),
        (2e-6, 1 - 2e-6, True),
        (0.9, 0.75, True),
    ]
    weighted, unweighted, counts = (np.array(column) for column in zip(*rows, strict=True))
    logits = [np.log(p) - np.log1p(-p) for p in (weighted[counts], unweighted[counts])]
    shift = direct_shift(weighted[:, None], unweighted[:, None], kept_cells=kept_cells)
    assert_allclose(shift, [np.median(logits[0] - logits[1])], rtol=1e-12)


@pytest.mark.parametrize("kept_cells", [0, 100, 10**6])
def test_a_median_between_two_far_groups_is_halfway(kept_cells):
    gap = np.repeat([0.0, 1.0], 50)[:, None]
    assert direct_shift(gap, np.zeros_like(gap), kind="margin", kept_cells=kept_cells) == [0.5]


@pytest.mark.parametrize("kept_cells", [50, 10**6])
def test_arms_of_different_types_kinds_and_blocks_are_read_side_by_side(kept_cells, monkeypatch):
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 1000)
    pair = synthetic_pair(500, 6, realized=0.7, seed=3)
    shift = direct_shift(
        pair.weighted, pair.unweighted_margin, unweighted_kind="margin", kept_cells=kept_cells
    )
    assert_allclose(shift, pair.shift, atol=1e-5)
    panels = Panel(pair.weighted), Panel(pair.unweighted_margin, kind="margin")
    assert_array_equal(direct_shift(*panels, kept_cells=kept_cells), shift)


@pytest.mark.parametrize("kept_cells", [0, 10**6])
def test_saturated_cells_of_either_arm_do_not_count(kept_cells):
    weighted = np.array([[1.0, 1.0, 0.5], [0.5, 1.0, 0.5]], np.float32)
    unweighted = np.array([[0.1, 0.1, 1.0], [0.2, 0.1, 0.2]], np.float32)
    shift = direct_shift(weighted, unweighted, kept_cells=kept_cells)
    assert_allclose(shift, [np.log(4), np.nan, np.log(4)], atol=1e-6)


def test_equal_arms_have_no_shift():
    p = expit(np.random.default_rng(0).normal(size=(30, 3)))
    assert_array_equal(direct_shift(p, p), np.zeros(3))


def test_arms_over_other_cells_are_refused():
    with pytest.raises(InvalidInput, match="same shape"):
        direct_shift([[0.1, 0.2]], [[0.1]])
    arms = (Panel([[0.1, 0.2]], label_names=list(names)) for names in ("ab", "bc"))
    with pytest.raises(InvalidInput, match="same label names, got 'a'"):
        direct_shift(*arms)


def test_arms_are_matched_by_the_names_of_labels():
    arms = Panel([[0.1, 0.2]], label_names=["a", "b"]), Panel([[0.2, 0.1]], label_names=["b", "a"])
    assert direct_shift(*arms).tolist() == [0.0, 0.0]


def test_an_order_at_random_moves_saturated_cells_alone_and_depends_on_its_seed_alone():
    rng = np.random.default_rng(5)
    scores = rng.random((200, 8)).astype(np.float32)
    scores[:, :5] = 1.0
    first, again = (reorder_saturated(scores, "random", k=8, seed=3) for _ in range(2))
    assert_array_equal(first, again)
    assert_array_equal(np.sort(first[:, :5], axis=1), np.tile(np.arange(5), (200, 1)))
    assert_array_equal(first[:, 5:], 5 + np.argsort(-scores[:, 5:], axis=1))
    counts = np.bincount(first[:, 0], minlength=8)[:5]
    assert counts.min() > 15  # 40 each would be even
    assert np.any(first != reorder_saturated(scores, "random", k=8, seed=4))
    with pytest.raises(InvalidInput, match="either order or labels"):
        reorder_saturated(scores, None, k=2)
