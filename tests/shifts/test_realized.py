"""The realized shift matches the prior of every label."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.special import expit

from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.shifts import log_odds, realized_shift, shift_odds
from oddslip.shifts.realized import Search, SigmoidTally
from oddslip.sources import open_source
from oddslip.tallies.logodds_histogram import LogOddsHistogram

few = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def solve(margins, prior):
    """Root by bracketing, one label at a time."""
    roots = []
    for column, share in zip(np.asarray(margins, float).T, prior, strict=True):
        aim = np.log(share) - np.log1p(-share)
        ends = column.min() - aim - 1, column.max() - aim + 1
        roots.append(
            brentq(lambda b, c=column, s=share: expit(c - b).mean() - s, *ends, xtol=1e-13)
        )
    return np.array(roots)


@few
@given(
    seed=seeds,
    n_rows=st.integers(1, 400),
    spread=st.floats(0, 4),
    shift=st.floats(-8, 8),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_the_shift_is_the_root_of_prevalence_matching(seed, n_rows, spread, shift, dtype):
    rng = np.random.default_rng(seed)
    margins = rng.normal(shift, spread, (n_rows, 5))
    prior = rng.uniform(0.001, 0.999, 5)
    p = expit(margins).astype(dtype)
    assert_allclose(realized_shift(p, prior).shift, solve(log_odds(p), prior), rtol=0, atol=1e-9)
    m = margins.astype(dtype)
    result = realized_shift(m, prior, kind="margin")
    assert_allclose(result.shift, solve(m, prior), rtol=0, atol=1e-9)


@few
@example(seed=2421, scale=300.0)  # a cubic without a root nearby
@given(seed=seeds, scale=st.sampled_from([30.0, 300.0, 3000.0]))
def test_margins_far_beyond_the_histogram_are_matched_too(seed, scale):
    rng = np.random.default_rng(seed)
    margins = rng.normal(-scale / 2, scale, (60, 3))
    prior = rng.uniform(0.05, 0.95, 3)
    shift = realized_shift(margins, prior, kind="margin").shift
    # Between two far cells the mean is flat; ask for the prior, and for the root where it is not.
    assert_allclose(expit(margins - shift).mean(axis=0), prior, rtol=0, atol=1e-11)
    slope = (expit(margins - shift) * expit(shift - margins)).mean(axis=0)
    gap = np.abs(shift - solve(margins, prior))
    assert (gap[slope > 1e-4] <= 1e-9).all()


def test_two_far_groups_with_the_root_between_them_are_matched():
    margins = np.repeat([[-20.0], [20.0]], 50, axis=0)
    for share in (0.2, 0.5, 0.5 + 1e-7, 0.8):
        shift = realized_shift(margins, [share], kind="margin").shift
        assert_allclose(expit(margins - shift).mean(), share, rtol=0, atol=1e-15)


@pytest.mark.parametrize("share", [1e-7, 1 - 1e-7])
def test_priors_close_to_zero_and_one_lose_no_digits(share):
    rng = np.random.default_rng(0)
    margins = rng.normal(0, 1, 3000)
    result = realized_shift(margins[:, None], [share], kind="margin").shift[0]
    # A root without cancellation: match the mean of the smaller side on the log scale.
    sign = 1 if share < 0.5 else -1
    aim = np.log(1e-7) if share < 0.5 else np.log1p(-share)

    def miss(b):
        return np.log(expit(sign * (margins - b)).mean()) - aim

    assert result == pytest.approx(brentq(miss, -40, 40, xtol=1e-13), abs=1e-9)


@few
@given(seed=seeds, shift=st.floats(-5, 5))
def test_a_shift_common_to_all_cells_of_a_label_is_found_again(seed, shift):
    rng = np.random.default_rng(seed)
    margins = rng.normal(-2, 2, (200, 4))
    prior = expit(margins).mean(axis=0)
    result = realized_shift(margins + shift, prior, kind="margin")
    assert_allclose(result.shift, shift, rtol=0, atol=1e-9)
    weights = np.full(4, np.exp(shift))
    p = shift_odds(expit(margins), weights)
    assert_allclose(realized_shift(p, prior).shift, shift, rtol=0, atol=1e-9)
    if abs(shift) > 0.01:
        assert_allclose(result.ratio(weights), 1.0, rtol=1e-6)


def test_the_synthetic_pair_realizes_what_it_says():
    pair = synthetic_pair(4000, 12, realized=0.5, dtype=np.float64, seed=2)
    result = realized_shift(pair.weighted, pair.marginals.mean(axis=0))
    assert result.identified.all()
    assert_allclose(result.shift, pair.shift, rtol=0, atol=1e-8)
    assert_allclose(result.ratio(pair.weights), 0.5, atol=1e-8)


def test_usual_panels_take_two_passes():
    pair = synthetic_pair(3000, 30, seed=4)
    assert realized_shift(pair.weighted, np.clip(pair.prior, 1e-4, None)).n_passes == 2


def test_a_label_with_a_saturated_cell_is_not_identified():
    p = np.full((10, 4), 0.3, np.float32)
    p[3, 1] = 1.0
    p[:, 2] = 1.0
    p[5, 3] = np.nextafter(np.float32(1), np.float32(0))
    result = realized_shift(p, [0.1] * 4)
    assert result.n_saturated.tolist() == [0, 1, 10, 0]
    assert result.identified.tolist() == [True, False, False, True]
    assert np.isnan(result.shift).tolist() == [False, False, True, False]


def test_margins_and_float64_count_the_cells_that_float32_would_saturate():
    margins = np.array([[17.32, 17.33, -3.0]] * 2 + [[0.0, 0.0, 0.0]])
    prior = [0.2] * 3
    assert realized_shift(margins, prior, kind="margin").n_saturated.tolist() == [0, 2, 0]
    assert realized_shift(expit(margins), prior).n_saturated.tolist() == [0, 2, 0]


def test_a_prior_of_zero_or_one_asks_for_an_infinite_shift():
    result = realized_shift([[0.2, 0.2, 0.2]], [0.0, 1.0, 0.2])
    assert result.shift[:2].tolist() == [np.inf, -np.inf]
    assert result.shift[2] == pytest.approx(0, abs=1e-12)
    assert result.identified.tolist() == [False, False, True]


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_zeros_and_some_saturated_cells_count_as_the_clip(end):
    # Half the cells are at the end, so at one of the priors only the clip makes the shift finite.
    p = np.array([[end] * 2, [0.5] * 2], np.float32)
    expected = solve(log_odds(p), [0.3, 0.7])
    assert_allclose(realized_shift(p, [0.3, 0.7]).shift, expected, atol=1e-9)


def test_the_answer_does_not_depend_on_blocks_or_threads(monkeypatch):
    pair = synthetic_pair(2000, 7, seed=1)
    prior = np.clip(pair.prior, 1e-3, None)
    for scores, kind in ((pair.weighted, "probability"), (pair.weighted_margin, "margin")):
        whole = realized_shift(scores, prior, kind=kind, threads=1)
        with monkeypatch.context() as patch:
            patch.setattr("oddslip.sources.base.BLOCK_BYTES", 7 * 4 * 31)
            cut = realized_shift(np.asfortranarray(scores), prior, kind=kind, threads=3)
        assert_allclose(cut.shift, whole.shift, rtol=0, atol=1e-12)
        assert_array_equal(cut.n_saturated, whole.n_saturated)


@pytest.mark.parametrize("kind", ["probability", "margin"])
def test_two_halves_merge_to_the_whole(kind):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, (50, 3))
    panel = open_source(p, kind=kind).panel
    for make in (
        lambda: LogOddsHistogram(3, kind),
        lambda: SigmoidTally(np.array([0.0, 1.0, -2.0])),
    ):
        whole, tally, other = make(), make(), make().empty_like()
        whole.add(panel)
        tally.add(panel.rows(30, 50))
        other.add(panel.rows(0, 30))
        tally.merge(other)
        for a, b in zip(tally.result(), whole.result(), strict=True):
            assert_allclose(a, b, rtol=1e-13)
        if isinstance(whole, LogOddsHistogram):
            assert_array_equal(tally.counts, whole.counts)
            assert whole.counts.sum(axis=1).tolist() == [50] * 3


def test_every_cell_lies_in_the_bin_it_was_counted_in():
    rng = np.random.default_rng(1)
    margins = np.concatenate([rng.uniform(-29, 29, 500), [0.0, 27.7, -27.7, 40.0, -40.0]])
    for dtype in (np.float32, np.float64):
        for kind, cells in (("probability", expit(margins)), ("margin", margins)):
            cells = cells.astype(dtype)
            for cell in cells:
                tally = LogOddsHistogram(1, kind)
                tally.add(open_source(np.array([[cell]]), kind=kind).panel)
                centres, below, above = tally.result()
                centre = centres[tally.counts[0].argmax()]
                margin = float(log_odds(np.array([[cell]]), kind=kind)[0, 0])
                assert -below[0] <= margin - centre <= above[0]


def test_a_prior_that_is_no_share_is_refused():
    with pytest.raises(InvalidInput, match=r"between 0 and 1, got 1.5 at label '1'"):
        realized_shift([[0.1, 0.2]], [0.5, 1.5])
    with pytest.raises(InvalidInput, match="one number per label"):
        realized_shift([[0.1, 0.2]], [0.5])
    with pytest.raises(InvalidInput, match="NaN"):
        realized_shift([[0.1, np.nan]], [0.5, 0.5])


def test_the_result_turns_into_a_table_with_a_line_for_each_label():
    import pandas as pd

    result = realized_shift(pd.DataFrame({"a": [0.5], "b": [0.5]}), [0.5, 0.2])
    assert result.to_dict()["label_names"] == ["a", "b"]
    assert result.to_frame()["label"].tolist() == ["a", "b"]
    assert_array_equal(result.to_frame()["shift"], result.shift)


def test_a_weight_of_one_has_no_ratio():
    result = realized_shift([[0.5, 0.5]], [0.2, 0.2])
    assert np.isnan(result.ratio([1.0, 4.0])).tolist() == [True, False]
    assert result.ratio([1.0, 4.0])[1] == pytest.approx(1.0)


def test_a_flat_place_is_left_without_a_warning():
    one = np.ones(1)
    search = Search.around(0.2 * one, 0.0 * one, -50.0 * one, 50.0 * one)
    sums = np.array([0.5, 0.5, 1e-200, 1e-200, 0.0])[:, None]  # hardly any slope: no Newton step
    search.advance(sums, 1)
    assert -50.0 < search.shift[0] < 50.0
    assert not search.converged(1e-9)
