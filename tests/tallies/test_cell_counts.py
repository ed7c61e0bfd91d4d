"""Counted cells against brute force, isotonic knots against scikit-learn, and the laws of both."""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.isotonic import IsotonicRegression
from tests.support.passes import plain

from oddslip.core.panel import Panel
from oddslip.errors import InvalidInput
from oddslip.kernels.keys import scores_of
from oddslip.sources import open_source
from oddslip.sources.open import open_rows
from oddslip.tallies.cell_counts import CellCounts, IntervalCounts, PositiveKeys, count_cells

count_cells = plain(count_cells)

DTYPES = [np.float32, np.float64]
few = settings(max_examples=40, deadline=None)


def draw_saturated(rng, shape):
    scores = rng.random(shape)
    scores[rng.random(shape) < 0.3] = 1.0
    return scores


def draw_signed_zeros(rng, shape):
    scores = rng.choice([-0.0, 0.0, 0.25, 0.5], shape)
    scores[rng.random(shape) < 0.3] = rng.random()
    return scores


def draw_large_margins(rng, shape):
    return rng.choice([-1e30, -3.0, 0.0, 1.0, 1e30], shape) * (1 + rng.random(shape))


# Each with its kind and the power of two that spreads its scores out. Scikit-learn merges float64
# scores closer than 1e-15, and interpolating between denormals overflows. Scaling is exact.
FAMILIES = {
    "spread": ("probability", 100, lambda rng, shape: rng.random(shape)),
    "crowded": (
        "probability",
        100,
        lambda rng, shape: 1 / (1 + np.exp(6 + 2 * rng.standard_normal(shape))),
    ),
    "near one": ("probability", 100, lambda rng, shape: 1 - 1e-5 * rng.random(shape) ** 8),
    "tied": ("probability", 100, lambda rng, shape: rng.integers(0, 9, shape) / 8),
    "saturated": ("probability", 100, draw_saturated),
    "constant": ("probability", 100, lambda rng, shape: np.full(shape, rng.random())),
    "signed zeros": ("probability", 100, draw_signed_zeros),
    "denormal": (
        "probability",
        1060,
        lambda rng, shape: rng.integers(0, 99, shape) * np.ldexp(1.0, -1074),
    ),
    "margins": ("margin", 100, lambda rng, shape: 4 * rng.standard_normal(shape) - 3),
    "small margins": ("margin", 100, lambda rng, shape: rng.standard_normal(shape) ** 15),
    "large margins": ("margin", 0, draw_large_margins),
    "zeros of both signs": ("margin", 100, lambda rng, shape: rng.choice([-0.0, 0.0, 1], shape)),
}


def make_panel(family, dtype, seed, n_rows=None):
    """Scores; labels true for one row, few, some, all and none; kind; how to scale the scores."""
    rng = np.random.default_rng(seed)
    n_rows = n_rows or int(rng.integers(1, 200))
    kind, power, draw = FAMILIES[family]
    scores = draw(rng, (n_rows, 5))
    if family == "denormal" and dtype == np.float32:
        scores, power = scores * np.ldexp(1.0, 1074 - 149), 140
    scores = scores.astype(dtype)
    better = scores > np.median(scores)
    labels = rng.random((n_rows, 5)) < np.where(better, 1.7, 0.3) * [0, 0.03, 0.3, 2, 0]
    labels[:, 3] = True
    labels[rng.integers(n_rows), :3] = True
    return scores, labels, kind, power


def split_knots(counts, power=0, **knobs):
    indptr, x, y = counts.isotonic_knots(**knobs)
    assert x.size == y.size == indptr[-1]
    assert indptr[0] == 0
    x = np.ldexp(x, power)
    return [(x[a:b], y[a:b]) for a, b in pairwise(indptr)]


def look_closer(x, rng):
    """Scores seen, between those seen, and outside."""
    low, high = x.min(), x.max()
    away = max(high - low, abs(high), 1e-3)
    between = low + (high - low) * rng.random(50)
    near = np.nextafter(x, np.inf)
    middle = np.convolve(np.sort(x), [0.5, 0.5], "valid")
    return np.concatenate([x, between, near, middle, [low - away, high + away]])


def assert_fits_like_sklearn(knots, x, y, rng):
    oracle = IsotonicRegression(out_of_bounds="clip").fit(x, y.astype(np.float64))
    points = look_closer(x, rng)
    assert_allclose(np.interp(points, *knots), oracle.predict(points), rtol=0, atol=1e-12)


def assert_same_counts(one, other):
    for field in fields(CellCounts):
        assert_array_equal(getattr(one, field.name), getattr(other, field.name), field.name)


def tally_in_parts(panel, cuts, order, pooled=False):
    """The counts, with rows cut into blocks, each its own tally, merged in some order."""
    edges = [0, *sorted(cuts), panel.n_rows]
    blocks = [panel.rows(a, b) for a, b in pairwise(edges) if a < b]
    blocks = [blocks[i] for i in np.argsort(order[: len(blocks)])]

    def run(tally):
        for block in blocks:
            part = tally.empty_like()
            part.add(block)
            tally.merge(part)
        return tally.result()

    distinct = run(PositiveKeys(panel.n_labels, panel.scores.dtype, pooled=pooled))
    return run(IntervalCounts(distinct, panel.kind, pooled=pooled))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_knots_give_the_fit_of_scikit_learn(family, dtype):
    for seed in range(20):  # 480 panels over all families and types
        scores, labels, kind, power = make_panel(family, dtype, seed)
        rng = np.random.default_rng(seed)
        knots = split_knots(count_cells(open_source(scores, labels, kind=kind)), power)
        for label in range(4):
            x = np.ldexp(scores[:, label].astype(np.float64), power)
            assert_fits_like_sklearn(knots[label], x, labels[:, label], rng)
        assert knots[4][0].size == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["spread", "crowded", "saturated", "margins"])
def test_two_labels_of_very_different_prevalence_fit_side_by_side(family, dtype):
    rng = np.random.default_rng(5)
    kind, power, draw = FAMILIES[family]
    scores = draw(rng, (20_000, 2)).astype(dtype)
    labels = rng.random((20_000, 2)) < [0.5, 3e-4]
    labels[0] = True
    knots = split_knots(count_cells(open_source(scores, labels, kind=kind)), power)
    for label in range(2):
        x = np.ldexp(scores[:, label].astype(np.float64), power)
        assert_fits_like_sklearn(knots[label], x, labels[:, label], rng)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_pooled_fit_is_one_fit_over_all_cells(family, dtype):
    for seed in range(4):
        scores, labels, kind, power = make_panel(family, dtype, seed)
        (knots,) = split_knots(count_cells(open_source(scores, labels, kind=kind), True), power)
        x = np.ldexp(scores.ravel().astype(np.float64), power)
        assert_fits_like_sklearn(knots, x, labels.ravel(), np.random.default_rng(seed))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["crowded", "tied", "margins"])
def test_pooled_counts_are_those_of_one_long_label(family, dtype):
    scores, labels, kind, _ = make_panel(family, dtype, 1, n_rows=3000)
    pooled = count_cells(open_source(scores, labels, kind=kind), pooled=True)
    long = count_cells(open_source(scores.reshape(-1, 1), labels.reshape(-1, 1), kind=kind))
    assert_same_counts(replace(pooled, n_rows=long.n_rows), long)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_counts_are_those_of_a_look_at_every_cell(family, dtype):
    kind, _, draw = FAMILIES[family]
    rng = np.random.default_rng(2)
    # More rows than a tile and more labels than a strip, neither a multiple; some labels dense.
    scores = draw(rng, (4500, 19)).astype(dtype)
    if family == "denormal" and dtype == np.float32:
        scores = (rng.integers(0, 99, scores.shape) * np.ldexp(1.0, -149)).astype(np.float32)
    labels = rng.random(scores.shape) < np.geomspace(1e-4, 0.9, 19)
    counts = count_cells(open_source(scores, labels, kind=kind))
    scores = scores + dtype(0.0)  # one zero
    for j in range(19):
        of_keys = slice(*counts.indptr[j : j + 2])
        of_intervals = slice(counts.indptr[j] + j, counts.indptr[j + 1] + j + 1)
        u, times = np.unique(scores[labels[:, j], j], return_counts=True)
        assert_array_equal(scores_of(counts.keys[of_keys], kind), u)
        assert_array_equal(counts.positives[of_keys], times)
        if not u.size:
            continue
        negatives = scores[~labels[:, j], j]
        assert_array_equal(counts.negatives_at[of_keys], [(negatives == k).sum() for k in u])
        between = negatives[~np.isin(negatives, u)]
        places = np.searchsorted(u, between)
        sizes = np.bincount(places, minlength=u.size + 1)
        assert_array_equal(counts.negatives_between[of_intervals], sizes)
        largest = np.full(u.size + 1, -np.inf)
        np.maximum.at(largest, places, between)
        keys = counts.largest_between[of_intervals]
        assert_array_equal(scores_of(keys, kind)[sizes > 0], largest[sizes > 0])
        assert not keys[sizes == 0].any()
        assert scores_of(counts.lowest[j : j + 1], kind) == scores[:, j].min()
    assert_array_equal(counts.n_positives, labels.sum(axis=0))
    assert_array_equal(counts.n_negatives, (~labels).sum(axis=0))


@few
@given(
    family=st.sampled_from(sorted(FAMILIES)),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 10**6),
    cuts=st.lists(st.floats(0, 1), max_size=5),
    order=st.permutations(range(6)),
    pooled=st.booleans(),
)
def test_any_split_in_any_order_merges_to_the_whole(family, dtype, seed, cuts, order, pooled):
    scores, labels, kind, _ = make_panel(family, dtype, seed)
    panel = Panel(scores, labels, kind=kind)
    cuts = [int(cut * panel.n_rows) for cut in cuts]
    whole = tally_in_parts(panel, [], order, pooled)
    assert_same_counts(tally_in_parts(panel, cuts, order, pooled), whole)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads, monkeypatch):
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 4096)
    scores, labels, _, _ = make_panel("crowded", np.float32, 3, n_rows=4000)
    cut = count_cells(open_rows(scores, labels, threads=threads))
    monkeypatch.undo()
    assert_same_counts(cut, count_cells(open_rows(scores, labels, threads=1)))


@few
@given(
    seed=st.integers(0, 10**6),
    family=st.sampled_from(sorted(FAMILIES)),
    dtype=st.sampled_from(DTYPES),
)
def test_fits_ascend_and_their_mean_is_the_prevalence(seed, family, dtype):
    scores, labels, kind, power = make_panel(family, dtype, seed)
    knots = split_knots(count_cells(open_source(scores, labels, kind=kind)), power)
    for label in range(4):
        x, y = knots[label]
        assert (np.diff(x) > 0).all()
        assert (np.diff(y) >= 0).all()
        assert y[0] >= 0
        assert y[-1] <= 1
        fitted = np.interp(np.ldexp(scores[:, label].astype(np.float64), power), x, y)
        assert_allclose(fitted.mean(), labels[:, label].mean(), rtol=0, atol=1e-12)


def test_no_knot_could_be_left_out():
    scores, labels, _, power = make_panel("spread", np.float64, 8, n_rows=500)
    for x, y in split_knots(count_cells(open_source(scores, labels)), power):
        assert not ((y[1:-1] == y[:-2]) & (y[1:-1] == y[2:])).any()
        assert (np.unique(y, return_counts=True)[1] <= 2).all()
        assert x.size == 0 or x[0] == x.min()


def test_labels_with_too_few_positives_get_no_knots():
    scores, labels, _, _ = make_panel("spread", np.float64, 9, n_rows=200)
    counts = count_cells(open_source(scores, labels))
    few_enough = int(counts.n_positives[1])
    has_knots = [x.size > 0 for x, _ in split_knots(counts, minimum_positives=few_enough)]
    assert has_knots == (counts.n_positives >= few_enough).tolist()
    assert 0 < sum(has_knots) < 4
    assert [x.size > 0 for x, _ in split_knots(counts, minimum_positives=0)][4] is False


@pytest.mark.parametrize("factor", [2**25, 2**33])
def test_counts_of_any_size_give_the_same_fit_and_auc(factor):
    for seed in range(20):
        scores, labels, _, _ = make_panel("tied", np.float32, seed)
        counts = count_cells(open_source(scores, labels))
        many = replace(
            counts,
            positives=counts.positives * factor,
            negatives_at=counts.negatives_at * factor,
            negatives_between=counts.negatives_between * factor,
            n_cells=counts.n_cells * factor,
        )
        for one, other in zip(counts.isotonic_knots(), many.isotonic_knots(), strict=True):
            assert_array_equal(one, other)
        assert_array_equal(counts.auc(), many.auc())


def test_means_that_differ_by_less_than_a_rounding_are_told_apart():
    n = 10**9
    counts = CellCounts(
        indptr=np.array([0, 2]),
        keys=np.array([0.25, 0.5]).view(np.uint64),
        positives=np.array([n - 1, n]),
        negatives_at=np.array([n * n - (n - 1), n * n + n + 1 - n]),  # (n-1)/n^2 < n/(n^2+n+1)
        negatives_between=np.array([0, 0, 0]),
        largest_between=np.zeros(3, np.uint64),
        lowest=np.array([0.25]).view(np.uint64),
        n_rows=0,
        n_cells=0,
        kind="probability",
    )
    (knots,) = split_knots(counts)
    assert knots[0].size == 2
    swapped = replace(
        counts,
        positives=counts.positives[::-1].copy(),
        negatives_at=counts.negatives_at[::-1].copy(),
    )
    (knots,) = split_knots(swapped)
    assert knots[1][0] == knots[1][1]


@pytest.mark.parametrize("bits", [16, 32])
def test_more_cells_than_a_slot_can_count_are_moved_to_wider_numbers(bits):
    scores, labels, _, _ = make_panel("tied", np.float32, 10, n_rows=120)
    panel, full = Panel(scores, labels), 2**bits - 1
    distinct = open_source(scores, labels).run(PositiveKeys(5, np.float32)).result()
    almost_full = [IntervalCounts(distinct, "probability") for _ in range(2)]
    for tally in almost_full:
        tally._widen(full - 1)
        tally._recent[:] = full - 1
        tally.add(panel)
    whole = count_cells(open_source(scores, labels))
    one, other = almost_full
    assert_array_equal(one.result().negatives_between, whole.negatives_between + full - 1)
    one.merge(other)
    assert_array_equal(one.result().negatives_between, 2 * (whole.negatives_between + full - 1))
    fresh = one.empty_like()
    fresh._widen(full)
    fresh._recent[:] = full
    fresh.merge(one)
    expected = 2 * (whole.negatives_between + full - 1) + full
    assert_array_equal(fresh.result().negatives_between, expected)


def test_scores_are_left_as_they_were_and_may_lie_in_any_order():
    scores, labels, _, _ = make_panel("signed zeros", np.float32, 11, n_rows=150)
    scores.setflags(write=False)
    before = scores.tobytes()
    counts = count_cells(open_source(scores, labels))
    assert scores.tobytes() == before
    assert_same_counts(count_cells(open_source(np.asfortranarray(scores), labels)), counts)


@pytest.mark.parametrize("positive", [True, False])
def test_a_bad_cell_is_refused_whether_positive_or_not(positive):
    scores, labels, _, _ = make_panel("spread", np.float64, 12, n_rows=30)
    scores[7, 2], labels[7, 2] = 1.5, positive
    with pytest.raises(InvalidInput, match=r"got 1\.5 at row 7, label '2'"):
        count_cells(open_source(scores, labels))


def test_a_panel_without_any_positive_has_no_knots_and_no_auc():
    counts = count_cells(open_source(np.full((3, 2), 0.5), np.zeros((3, 2))))
    assert counts.isotonic_knots()[0].tolist() == [0, 0, 0]
    assert np.isnan(counts.auc()).all()
