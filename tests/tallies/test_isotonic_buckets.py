"""Knots found by buckets are to the bit those found by counting between positives."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from tests.support.passes import plain

from oddslip.calibrators import Isotonic
from oddslip.core.panel import Panel
from oddslip.errors import InvalidInput
from oddslip.sources import open_source
from oddslip.tallies import isotonic_buckets
from oddslip.tallies.cell_counts import count_cells
from oddslip.tallies.isotonic_buckets import (
    BucketCounts,
    MarkedCells,
    choose_buckets,
    fit_knots,
    sample_buckets,
)

count_cells, fit_knots = plain(count_cells), plain(fit_knots)

DTYPES = [np.float32, np.float64]
FAMILIES = {
    "spread": ("probability", lambda rng, shape: rng.random(shape)),
    "crowded": ("probability", lambda rng, shape: 1 / (1 + np.exp(6 + 2 * rng.normal(size=shape)))),
    "steep": ("probability", lambda rng, shape: 1 / (1 + np.exp(12 * rng.normal(size=shape)))),
    "tied": ("probability", lambda rng, shape: rng.integers(0, 9, shape) / 8),
    "denormal": ("probability", lambda rng, shape: rng.integers(0, 99, shape) * 5e-324),
    "signed zeros": ("probability", lambda rng, shape: rng.choice([-0.0, 0.0, 0.3, 1], shape)),
    "margins": ("margin", lambda rng, shape: 4 * rng.normal(size=shape) - 3),
    "far margins": ("margin", lambda rng, shape: rng.normal(size=shape) ** 15 * 1e25),
    "rounded margins": ("margin", lambda rng, shape: np.round(rng.normal(size=shape)) * -0.5),
}


def draw(family, dtype, seed=0, n_rows=3000, n_labels=7):
    """Scores and labels: the first label is never true, the last always, others in between."""
    rng = np.random.default_rng(seed)
    kind, make = FAMILIES[family]
    scores = make(rng, (n_rows, n_labels)).astype(dtype)
    order = scores.argsort(axis=0).argsort(axis=0) / n_rows
    labels = rng.random(scores.shape) < order * np.linspace(0, 1.5, n_labels)
    labels[:, -1] = True
    return scores, labels, kind


def all_in_buckets(scores, labels, kind, fine=1.0):
    """Buckets for every label that has a positive and two scores, chosen by a few rows."""
    return choose_buckets(
        scores[::7],
        labels[::7].view(np.uint8),
        kind,
        n_rows=int(len(scores) * fine),
        least_share=1e-9,
        least_distinct=0.0,
    )


def assert_same_fit(fit, source, **knobs):
    counts = count_cells(source)
    assert_array_equal(fit[0], counts.n_positives)
    for one, other in zip(fit[1], counts.isotonic_knots(**knobs), strict=True):
        assert_array_equal(one, other)
        assert one.tobytes() == other.tobytes()  # and the zeros have one sign


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("max_share", [0.25, 2.0])
def test_buckets_give_the_knots_of_counting(monkeypatch, family, dtype, max_share):
    monkeypatch.setattr(isotonic_buckets, "MAX_GATHERED", max_share)
    for seed in range(3):
        scores, labels, kind = draw(family, dtype, seed)
        source = open_source(scores, labels, kind=kind)
        buckets = all_in_buckets(scores, labels, kind, fine=0.1 + seed)
        assert_same_fit(fit_knots(source, buckets=buckets), source)


@pytest.mark.parametrize("dtype", DTYPES)
def test_labels_in_buckets_and_rare_ones_stand_side_by_side(dtype):
    scores, labels, kind = draw("spread", dtype, n_rows=20_000)
    labels[:, 3] &= np.arange(20_000) % 300 == 0
    source = open_source(scores, labels, kind=kind)
    buckets = sample_buckets(source)
    assert 3 not in buckets.labels
    assert 5 in buckets.labels
    assert_same_fit(fit_knots(source), source)
    assert_same_fit(fit_knots(source, minimum_positives=5000), source, minimum_positives=5000)


@given(
    st.lists(st.integers(1, 999), max_size=4), st.permutations(range(5)), st.sampled_from(DTYPES)
)
@settings(max_examples=25, deadline=None)
def test_rows_in_any_blocks_and_any_order_give_the_same_cells(cuts, order, dtype):
    scores, labels, kind = draw("steep", dtype, n_rows=1000)
    panel = Panel(scores, labels, kind=kind)
    edges = [0, *sorted(set(cuts)), 1000]
    blocks = [panel.rows(*edge) for edge in pairwise(edges)]
    blocks = [blocks[at] for at in order if at < len(blocks)]
    buckets = all_in_buckets(scores, labels, kind)

    def run(tally, parts):
        for part in parts:
            fresh = tally.empty_like()
            fresh.add(part)
            tally.merge(fresh)
        return tally.result()

    counts = run(BucketCounts(buckets), blocks)
    assert_array_equal(counts, run(BucketCounts(buckets), [panel]))
    marks, numbers = np.empty(counts.size // 2, np.uint8), np.zeros(counts.size // 2, np.int32)
    n_marked = np.empty(buckets.labels.size, np.int64)
    isotonic_buckets.mark_buckets(buckets.starts, counts, 1000, marks, numbers, n_marked)
    arguments = buckets, dtype, marks, numbers, counts.reshape(-1, 2)[marks == 1]
    one, other = run(MarkedCells(*arguments), blocks), run(MarkedCells(*arguments), [panel])
    assert_array_equal(one, other)
    assert one.size == n_marked.sum()


def test_sparse_labels_and_lists_fit_as_dense_ones_do():
    scores, labels, kind = draw("spread", np.float32, n_rows=9000)
    expected = fit_knots(open_source(scores, labels, kind=kind))
    lists = [np.flatnonzero(row) for row in labels]
    for form in (labels.astype(np.int8), sp.csr_array(labels.astype(np.int8)), lists):
        actual = fit_knots(open_source(scores, form, kind=kind))
        assert_array_equal(actual[0], expected[0])
        for one, other in zip(actual[1], expected[1], strict=True):
            assert_array_equal(one, other)


def test_threads_do_not_change_a_knot(monkeypatch):
    scores, labels, _ = draw("steep", np.float64, n_rows=30_000)
    monkeypatch.setattr("oddslip.sources.base.BLOCK_BYTES", 2**17)
    one = Isotonic().fit(scores, labels, threads=1).fitted_.maps
    three = Isotonic().fit(scores, labels, threads=3).fitted_.maps
    assert_array_equal(one.x, three.x)
    assert_array_equal(one.y, three.y)


def test_few_rows_rare_labels_and_tied_scores_are_not_worth_buckets():
    scores, labels, _ = draw("spread", np.float32, n_rows=isotonic_buckets.MIN_ROWS)
    assert sample_buckets(open_source(scores, labels)).labels.size
    assert sample_buckets(open_source(scores[1:], labels[1:])) is None
    assert not sample_buckets(open_source(np.round(scores, 1), labels)).labels.size
    rare = labels & (np.arange(len(labels)) % 200 == 0)[:, None]
    assert not sample_buckets(open_source(scores, rare)).labels.size


def test_a_cell_that_is_not_valid_is_named():
    scores, labels, _ = draw("spread", np.float64, n_rows=9000)
    scores[4321, 2] = np.nan
    with pytest.raises(InvalidInput, match="the first at row 4321, label '2'"):
        fit_knots(open_source(scores, labels))


@pytest.mark.parametrize("size", [0, 5, 10_000])
def test_cells_that_changed_between_the_passes_are_refused(size):
    scores, labels, kind = draw("spread", np.float64)
    buckets = all_in_buckets(scores, labels, kind)
    counts = BucketCounts(buckets)
    counts.add(Panel(scores, labels, kind=kind))
    marks = np.zeros(buckets.starts[-1] // 2, np.uint8)
    marks[counts.result().reshape(-1, 2).sum(axis=1).argmax()] = 1
    numbers, sizes = np.zeros(marks.size, np.int32), np.full((1, 2), size, np.uint32)
    tally = MarkedCells(buckets, np.float64, marks, numbers, sizes)
    tally.add(Panel(scores, labels, kind=kind))
    with pytest.raises(InvalidInput, match="Was its file changed meanwhile"):
        tally.result()
