"""Positives and metrics of rows against plain loops."""

import math

import numpy as np
import pytest

from oddslip.kernels.hits import (
    BEST,
    BY_HITS,
    BY_MIN,
    BY_RELEVANT,
    EXPECTED,
    METRICS,
    STABLE,
    WORST,
    count_positives,
    fill_positives,
    place_positives,
    score_rows,
)
from oddslip.kernels.keys import keys_of
from oddslip.kernels.topk import rank_keys


@pytest.mark.parametrize("n_labels", [1, 7, 8, 9, 64, 500, 2041, 5000])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_positives_are_the_true_cells_in_order(frozen, n_labels, share):
    cells = frozen(
        (np.random.default_rng(n_labels).random((20, n_labels)) < share).astype(np.uint8)
    )
    indptr = np.zeros(21, np.int64)
    count_positives(cells, indptr)
    np.testing.assert_array_equal(indptr[1:], np.cumsum(cells.sum(axis=1)))
    indices = np.empty(indptr[-1], np.int32)
    fill_positives(cells, frozen(indptr), indices)
    np.testing.assert_array_equal(indices, np.nonzero(cells)[1])


def world(dtype, frozen, seed=0, n=60, n_labels=12, k=5):
    rng = np.random.default_rng(seed)
    scores = (np.round(rng.random((n, n_labels)) * 4) / 4).astype(dtype)
    true = rng.random(scores.shape) < 0.3
    true[:, 0] |= ~true.any(axis=1)
    keys = frozen(keys_of(scores, "probability"))
    columns, best, at_kth = rank_keys(keys, k)
    joined = np.zeros(best.shape, np.uint8)
    joined[:, 1:] = best[:, 1:] == best[:, :-1]
    indptr = np.concatenate([[0], np.cumsum(true.sum(axis=1))])
    indices = np.nonzero(true)[1].astype(np.int32)
    sides = np.empty(indices.size, np.int8)
    kth = np.ascontiguousarray(best[:, -1])
    place_positives(*frozen(keys, np.arange(n), indptr, indices, kth), sides)
    return scores, true, frozen(columns, joined, at_kth, indptr, indices, sides)


def test_each_positive_is_above_at_or_below_the_last_place(dtype, frozen):
    scores, true, (columns, _, _, _, _, sides) = world(dtype, frozen)
    last = np.take_along_axis(scores, columns[:, -1:].astype(int), axis=1)
    np.testing.assert_array_equal(sides, np.sign(scores - last)[true])


def plain_metrics(ranking, true, gain, k, denominator):
    hits = [bool(true[j]) for j in ranking]
    m = int(true.sum())
    gained = sum(sum(hits[: p + 1]) / (p + 1) for p in range(k) if hits[p])
    by = {BY_MIN: min(k, m), BY_RELEVANT: m, BY_HITS: sum(hits)}[denominator]
    ideal = sum(1 / math.log2(p + 2) for p in range(min(k, m)))
    return [
        gained / by if by else 0.0,
        sum(hits) / k,
        sum(hits) / m,
        sum(1 / math.log2(p + 2) for p in range(k) if hits[p]) / ideal,
        float(any(hits)),
        sum(gain[j] for j in ranking if true[j]),
        sum(sorted(gain[true], reverse=True)[:k]),
    ]


@pytest.mark.parametrize("denominator", [BY_MIN, BY_RELEVANT, BY_HITS])
@pytest.mark.parametrize(("n_labels", "k"), [(12, 5), (600, 150)])
def test_metrics_of_the_ranking_shown_are_those_of_a_plain_loop(
    dtype, frozen, denominator, n_labels, k
):
    scores, true, arguments = world(dtype, frozen, n_labels=n_labels, k=k)
    gain = frozen(np.linspace(1, 3, true.shape[1]))
    values = np.empty((len(true), len(METRICS)))
    score_rows(*arguments, gain, STABLE, denominator, values)
    ranking = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    expected = [
        plain_metrics(r, t, gain, k, denominator) for r, t in zip(ranking, true, strict=True)
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-13)


@pytest.mark.parametrize("denominator", [BY_MIN, BY_RELEVANT, BY_HITS])
def test_expected_metrics_lie_between_worst_and_best_ones(dtype, frozen, denominator):
    _, true, arguments = world(dtype, frozen, seed=1)
    gain = np.linspace(1, 3, true.shape[1])
    worst, expected, best = np.empty((3, len(true), len(METRICS)))
    for policy, values in ((WORST, worst), (EXPECTED, expected), (BEST, best)):
        score_rows(*arguments, gain, policy, denominator, values)
    assert (worst <= expected + 1e-12).all()
    assert (expected <= best + 1e-12).all()
    assert (worst[:, 0] < best[:, 0]).any()


def test_no_rows_are_no_work():
    around = np.zeros((2, len(METRICS)))
    none, values = np.empty(0, np.int32), around[:0]
    ranking = np.empty((0, 3), np.int32), np.empty((0, 3), np.uint8), np.empty(0, np.int64)
    truth = np.zeros(1, np.int64), none, none.astype(np.int8)
    score_rows(*ranking, *truth, np.ones(4), STABLE, BY_MIN, values)
    assert not around.any()
