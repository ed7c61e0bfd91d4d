"""Label maps with a stage that sees the row."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from oddslip.core.panel import Panel
from oddslip.errors import InvalidInput
from oddslip.kernels.maps import EXCLUDED
from oddslip.repairs.maps import LabelMaps
from oddslip.repairs.row_aware import N_PARTNERS, PSEUDO_COUNT, add_stage, relate_labels
from oddslip.sources import open_source

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))
from map_worlds import SETTINGS
from repair_worlds import draw_row_aware

seeds = st.integers(0, 2**32)
NEUTRAL = {"slope": 0.0, "intercept": 0.0, "support": 0.0}


def plain_maps(maps):
    """The maps without their stage."""
    return LabelMaps.take(maps, np.arange(maps.n_labels))


@SETTINGS
@given(seeds)
def test_zero_coefficients_change_no_bit(seed):
    repair, scores = draw_row_aware(seed, **NEUTRAL)
    maps, base, panel = repair.maps, plain_maps(repair.maps), Panel(scores, kind=repair.maps.kind)
    np.testing.assert_array_equal(maps.values(panel), base.values(panel))
    np.testing.assert_array_equal(maps.transform_panel(panel), base.transform_panel(panel))
    np.testing.assert_array_equal(maps.rank_panel(panel, 5), base.rank_panel(panel, 5))


@SETTINGS
@given(seeds)
def test_values_follow_the_formula_cell_by_cell(seed):
    repair, scores = draw_row_aware(seed)
    maps, stage = repair.maps, repair.maps.stage
    panel, base = Panel(scores, kind=maps.kind), plain_maps(maps)
    chance, odds = base.transform_panel(panel, np.float64), base.values(panel)
    expected = np.empty_like(odds)
    for label in range(maps.n_labels):
        support = np.zeros(len(scores))
        for other, lift in zip(stage.partners[label], stage.lift[label], strict=True):
            if maps.code[other] != EXCLUDED:
                support += lift * (chance[:, other] - stage.prevalence[other])
        with np.errstate(over="ignore"):
            moved = (1 + stage.slope) * odds[:, label] + stage.intercept + stage.support * support
        expected[:, label] = np.maximum(moved, np.finfo(float).min)
    expected[:, maps.code == EXCLUDED] = -np.inf
    np.testing.assert_allclose(maps.values(panel), expected, rtol=1e-12, atol=1e-12)


@SETTINGS
@given(seeds)
def test_ranking_is_by_probabilities(seed):
    repair, scores = draw_row_aware(seed)
    probabilities = repair.transform(scores, dtype=np.float64)
    ranked = np.take_along_axis(probabilities, repair.rank(scores, k=12).astype(int), axis=1)
    assert (np.diff(ranked, axis=1) <= 0).all()


@SETTINGS
@given(seeds)
def test_listed_candidates_are_rows_whose_other_cells_are_absent(seed):
    repair, scores = draw_row_aware(seed)
    rng = np.random.default_rng(seed)
    there = rng.random(scores.shape) < 0.6
    cells = sparse.csr_matrix(there)
    cells.data = scores[there]
    source = open_source(cells, kind=repair.maps.kind)
    dense = np.where(there, scores, np.nan).astype(scores.dtype)
    np.testing.assert_array_equal(repair.rank(source, k=6), repair.rank(dense, k=6, nan="absent"))


@SETTINGS
@given(seeds)
def test_what_an_absent_cell_holds_does_not_matter(seed):
    repair, scores = draw_row_aware(seed)
    rng = np.random.default_rng(seed)
    mask = rng.random(scores.shape) < 0.3
    exclude = [np.flatnonzero(row).tolist() for row in mask]
    other = np.where(mask, scores.dtype.type(0.5), scores)
    for use in (
        lambda s: repair.transform(s, exclude=exclude),
        lambda s: repair.rank(s, k=4, exclude=exclude),
    ):
        np.testing.assert_array_equal(use(scores), use(other))


def test_an_excluded_label_is_last_and_supports_no_other():
    repair, scores = draw_row_aware(4)
    hidden = np.arange(12) == 3
    maps = repair.maps.without(hidden)
    changed = scores.copy()
    changed[:, 3] = 0.5
    panels = [Panel(each, kind=maps.kind) for each in (scores, changed)]
    values, others = map(maps.values, panels)
    assert np.isneginf(values[:, 3]).all()
    np.testing.assert_array_equal(values, others)


def test_the_order_of_columns_does_not_matter():
    repair, scores = draw_row_aware(6)
    order = np.random.default_rng(1).permutation(12)
    turned = repair.maps.take(order).values(Panel(scores[:, order], kind=repair.maps.kind))
    straight = repair.maps.values(Panel(scores, kind=repair.maps.kind))
    np.testing.assert_array_equal(turned, straight[:, order])


@pytest.mark.parametrize("n_labels", [3, 12, 60])
def test_partners_are_those_of_largest_lift_by_prevalence(n_labels):
    rng = np.random.default_rng(n_labels)
    truth = (rng.random((200, n_labels)) < rng.uniform(0.02, 0.4, n_labels)).astype(float)
    partners, lift, prevalence = relate_labels(sparse.csr_matrix(truth.T @ truth), 200)
    np.testing.assert_allclose(prevalence, truth.mean(axis=0))
    expected = np.outer(truth.sum(axis=0), truth.sum(axis=0)) / 200
    whole = np.log((truth.T @ truth + PSEUDO_COUNT) / (expected + PSEUDO_COUNT))
    weight = np.abs(whole) * np.sqrt(prevalence)
    np.fill_diagonal(weight, -1)
    assert partners.shape == (n_labels, min(N_PARTNERS, n_labels - 1))
    for label in range(n_labels):
        np.testing.assert_allclose(lift[label], whole[label, partners[label]], atol=1e-12)
        rest = np.setdiff1d(np.arange(n_labels), [label, *partners[label]])
        if rest.size:
            assert weight[label, partners[label]].min() >= weight[label, rest].max()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slope": -1.0}, "above -1"),
        ({"support": np.inf}, "finite"),
        ({"prevalence": np.full(12, 2.0)}, "between 0 and 1"),
        ({"prevalence": np.full(3, 0.5)}, "one prevalence per label"),
        ({"lift": np.zeros((2, 2))}, "partners and lifts"),
        ({"partners": np.full((12, 1), 12, np.int32), "lift": np.ones((12, 1))}, "below n_labels"),
    ],
)
def test_an_invalid_stage_is_refused(changes, message):
    maps = draw_row_aware(0)[0].maps
    with pytest.raises(InvalidInput, match=message):
        add_stage(plain_maps(maps), maps.stage._replace(**changes))


def test_a_stage_needs_log_odds():
    maps = draw_row_aware(0)[0].maps
    codes = np.full(12, EXCLUDED, np.int8)
    zeros = np.zeros(12)
    base = LabelMaps("probability", "probability", codes, *[zeros] * 3, *[zeros] * 2, [], [])
    with pytest.raises(InvalidInput, match="log_odds"):
        add_stage(base, maps.stage)
