"""Odds, sums of sigmoids and histograms against NumPy and SciPy."""

import numpy as np
import pytest
from scipy.special import expit, logit

from oddslip.kernels import logits
from oddslip.kernels.keys import keys_of

WIDTHS = [1, 5, 16, 255, 1025]


def probabilities(dtype, n_labels, n=40):
    rng = np.random.default_rng(n_labels)
    scores = expit(rng.normal(-2, 3, (n, n_labels))).astype(dtype)
    scores[0, 0], scores[1, 0] = 0, 1
    return scores


def clipped(scores):
    p = scores.astype(float)
    return np.maximum(p, logits.CLIP), np.maximum(1 - p, logits.CLIP)


@pytest.mark.parametrize("n_labels", WIDTHS)
def test_weighted_odds_are_clipped_odds_times_the_weight(dtype, frozen, n_labels):
    scores, weights = probabilities(dtype, n_labels), np.linspace(0.5, 30, n_labels)
    odds = np.empty(scores.shape)
    logits.weigh_odds(*frozen(scores, weights), odds)
    x, y = clipped(scores)
    np.testing.assert_array_equal(odds, weights * (x / y))


@pytest.mark.parametrize("n_labels", WIDTHS)
def test_shifted_probabilities_have_their_odds_shifted(dtype, frozen, n_labels):
    scores, up = probabilities(dtype, n_labels), np.linspace(0.5, 30, n_labels)
    shifted = np.empty_like(scores)
    logits.shift_probabilities(*frozen(scores, up, np.ones(n_labels)), shifted)
    with np.errstate(divide="ignore"):
        expected = expit(logit(scores.astype(float)) + np.log(up))
    np.testing.assert_allclose(shifted, expected.astype(dtype), rtol=20 * np.finfo(dtype).eps)


def plain_sums(z, n=1.0):
    q = expit(z)
    v = q * (1 - q)
    parts = q, expit(-z), v, v * (1 - 2 * q), v * (1 - 6 * v)
    return np.stack([(n * part).sum(axis=0) for part in parts])


@pytest.mark.parametrize("n_labels", WIDTHS)
def test_sums_of_sigmoids_and_of_three_derivatives_are_added(dtype, frozen, n_labels):
    scores, factors = probabilities(dtype, n_labels), np.linspace(0.2, 9, n_labels)
    x, y = clipped(scores)
    sums = np.ones((logits.N_SUMS, n_labels))
    logits.sum_sigmoids(*frozen(scores, factors), sums)
    expected = 1 + plain_sums(np.log(x) - np.log(y * factors))
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-13)
    of_odds = np.ones((logits.N_SUMS, n_labels))
    logits.sum_odds_sigmoids(frozen(x / (y * factors)), of_odds)
    np.testing.assert_allclose(of_odds, expected, rtol=1e-12, atol=1e-13)


def test_binned_sums_stand_at_the_centres(frozen):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, (6, 50)).astype(np.uint32)
    centres, shifts = np.linspace(-30, 30, 50), rng.normal(size=6)
    sums = np.zeros((logits.N_SUMS, 6))
    logits.sum_binned_sigmoids(*frozen(counts, centres, shifts), sums)
    for j in range(6):
        expected = plain_sums((centres - shifts[j])[:, None], counts[j][:, None])[:, 0]
        np.testing.assert_allclose(sums[:, j], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_labels", WIDTHS)
def test_odds_are_counted_by_their_leading_bits(dtype, frozen, n_labels):
    scores = probabilities(dtype, n_labels)
    counts = np.zeros((n_labels, logits.ODDS_BINS), np.uint32)
    logits.bin_probabilities(frozen(scores), counts)
    clip = dtype(logits.CLIP)
    odds = (np.maximum(scores, clip) / np.maximum(1 - scores, clip)).astype(np.float32)
    bins = (odds.view(np.uint32) >> logits.ODDS_SHIFT) - logits.ODDS_FIRST
    expected = np.stack([np.bincount(b, minlength=logits.ODDS_BINS) for b in bins.T])
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("n_labels", WIDTHS)
def test_margins_are_counted_in_bins_of_equal_width(dtype, frozen, n_labels):
    margins = np.random.default_rng(1).normal(0, 20, (40, n_labels)).astype(dtype)
    margins[0, 0], margins[1, 0] = 1e30, -1e30
    counts = np.zeros((n_labels, logits.MARGIN_BINS), np.uint32)
    logits.bin_margins(frozen(margins), counts)
    at = (margins.astype(float) + logits.REACH) * logits.PER_NAT
    bins = np.clip(at, 0, logits.MARGIN_BINS - 1).astype(int)
    expected = np.stack([np.bincount(b, minlength=logits.MARGIN_BINS) for b in bins.T])
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("n_labels", WIDTHS)
def test_keys_that_reach_a_threshold_are_counted_both_ways(dtype, frozen, n_labels):
    keys = keys_of(probabilities(dtype, n_labels), "probability")
    threshold = keys.dtype.type(np.sort(keys.ravel())[keys.size // 2])
    per_label, per_row = np.ones(n_labels, np.int64), np.full(len(keys), 7)
    logits.count_reaching(frozen(keys), threshold, per_label, per_row)
    np.testing.assert_array_equal(per_label, 1 + (keys >= threshold).sum(axis=0))
    np.testing.assert_array_equal(per_row, (keys >= threshold).sum(axis=1))
