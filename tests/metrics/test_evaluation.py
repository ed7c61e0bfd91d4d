"""Evaluation, its bootstrap, and that blocks, order and threads do not matter."""

import inspect
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oddslip
import oddslip.sources.base as sources
from oddslip.datasets import synthetic_pair
from oddslip.metrics.ranking import RankingTally


@pytest.fixture(scope="module")
def pair():
    return synthetic_pair(600, 40, saturate=0.05, seed=1)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 600), max_size=6), st.randoms(use_true_random=False))
def test_the_merge_of_any_split_in_any_order_equals_the_whole(cuts, random):
    pair = synthetic_pair(600, 40, saturate=0.05, seed=1)
    panel = oddslip.Panel(pair.weighted, pair.labels)
    whole = RankingTally(7, 40)
    whole.add(panel)
    edges = sorted({0, 600, *cuts})
    blocks = [panel.rows(a, b) for a, b in pairwise(edges)]
    random.shuffle(blocks)
    parts = [whole.empty_like() for _ in range(3)]
    for block in blocks:
        random.choice(parts).add(block)
    random.shuffle(parts)
    for part in parts[1:]:
        parts[0].merge(part)
    wanted, found = whole.result(), parts[0].result()
    for name in type(wanted).__slots__:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_threads_change_no_bit_and_block_size_no_digit(pair, monkeypatch):
    whole = oddslip.evaluate(pair.weighted, pair.labels, k=7, threads=1)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1000)
    parts = [
        oddslip.evaluate(pair.weighted, pair.labels, k=7, threads=threads) for threads in (1, 2, 5)
    ]
    assert all(part.to_dict() == parts[0].to_dict() for part in parts)
    assert np.array_equal(parts[0].per_row(), whole.per_row())
    for name, estimate in whole.metrics.items():
        part = parts[0][name]
        assert (part.value, part.low, part.high) == pytest.approx(
            (estimate.value, estimate.low, estimate.high), rel=0, abs=1e-12
        )


def test_every_form_of_scores_and_labels_gives_the_same_evaluation(pair):
    import pandas as pd
    import polars as pl
    import scipy.sparse as sp

    wanted = oddslip.evaluate(pair.weighted, pair.labels, k=7).to_dict()
    frame = pd.DataFrame(pair.weighted, columns=pair.label_names)
    truth = pd.DataFrame(pair.labels, columns=pair.label_names)
    lists = [np.flatnonzero(row).tolist() for row in pair.labels]
    for scores, labels in (
        (np.asfortranarray(pair.weighted), pair.labels.astype(np.int8)),
        (pair.weighted, sp.csc_array(pair.labels)),
        (pair.weighted, lists),
        (pair.weighted, pair.labels.astype(float)),
        (frame, truth[list(reversed(pair.label_names))]),
        (pl.from_pandas(frame), pl.from_pandas(truth)),
        (oddslip.Panel(pair.weighted, pair.labels), None),
    ):
        assert oddslip.evaluate(scores, labels, k=7).to_dict() == wanted


def test_margins_and_the_probabilities_they_give_rank_alike(pair):
    margins = pair.unweighted_margin
    by_margin = oddslip.evaluate(margins, pair.labels, k=7, kind="margin")
    by_probability = oddslip.evaluate(1 / (1 + np.exp(-margins)), pair.labels, k=7)
    assert by_margin.to_dict() == by_probability.to_dict()


def test_negative_zero_ties_with_zero():
    scores = np.array([[-0.0, 0.0, 0.5]], np.float32)
    assert oddslip.rank(scores, k=3).tolist() == [[2, 0, 1]]
    assert np.signbit(scores[0, 0])  # the caller's array is left alone


def test_inputs_are_never_changed(pair):
    scores, labels = pair.weighted.copy(), pair.labels.copy()
    oddslip.evaluate(scores, labels, k=7)
    np.testing.assert_array_equal(scores, pair.weighted)
    np.testing.assert_array_equal(labels, pair.labels)


def test_rows_decided_by_ties_are_counted():
    scores = [[1.0, 1.0, 1.0, 0.2], [1.0, 1.0, 0.5, 0.2], [0.9, 0.8, 0.8, 0.1]]
    labels = [[0, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    found = oddslip.evaluate(scores, labels, k=2)
    # Row 0 shows two of three ties; row 1 exactly two; row 2 shows one of two.
    assert found.n_tied == 2
    assert found.map_worst < found.map_best


def test_bootstrap_interval_agrees_with_scipy(pair):
    from scipy.stats import bootstrap

    seed = "rng" if "rng" in inspect.signature(bootstrap).parameters else "random_state"  # < 1.15
    found = oddslip.evaluate(pair.unweighted, pair.labels, k=7)
    theirs = bootstrap(
        (found.per_row("map"),), np.mean, n_resamples=2000, method="percentile", **{seed: 1}
    ).confidence_interval
    width = theirs.high - theirs.low
    assert found["map"].low == pytest.approx(theirs.low, abs=0.1 * width)
    assert found["map"].high == pytest.approx(theirs.high, abs=0.1 * width)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another(pair):
    first, again, other = (
        oddslip.evaluate(pair.weighted, pair.labels, k=7, seed=seed)["map"] for seed in (1, 1, 2)
    )
    assert first == again
    assert first.low != other.low


def test_paired_differences_are_tighter_than_the_two_intervals(pair):
    a = oddslip.evaluate(pair.weighted, pair.labels, k=7)
    b = oddslip.evaluate(pair.unweighted, pair.labels, k=7)
    difference = a.compare(b)["map"]
    assert difference.value == pytest.approx(a["map"].value - b["map"].value)
    assert difference.low < difference.value < difference.high
    apart = (a["map"].high - a["map"].low) + (b["map"].high - b["map"].low)
    assert difference.high - difference.low < apart
    nothing = a.compare(a)["map"]
    assert (nothing.low, nothing.value, nothing.high) == (0, 0, 0)


def test_evaluations_of_other_rows_are_not_compared(pair):
    a = oddslip.evaluate(pair.weighted, pair.labels, k=7)
    b = oddslip.evaluate(pair.weighted[:-1], pair.labels[:-1], k=7)
    with pytest.raises(oddslip.InvalidInput, match="same rows with the same k"):
        a.compare(b)


def test_results_come_as_dict_frame_and_notebook_table(pair):
    found = oddslip.evaluate(pair.weighted, pair.labels, k=7)
    frame = found.to_frame()
    assert frame["metric"].tolist()[0] == "MAP@7"
    assert frame["value"].tolist()[0] == found.to_dict()["metrics"]["map"]["value"]
    assert "MAP@7" in found._repr_html_()


def test_a_weighted_realized_shift_costs_map_on_the_embedded_data(pair):
    difference = oddslip.evaluate(pair.weighted, pair.labels, k=7).compare(
        oddslip.evaluate(pair.unweighted, pair.labels, k=7)
    )
    assert difference["map"].high < 0


@pytest.mark.parametrize("result", ["evaluation", "comparison"])
def test_a_metric_that_does_not_exist_is_refused_with_those_that_do(result):
    scores, labels = [[0.9, 0.2], [0.4, 0.6]], [[1, 0], [0, 1]]
    found = oddslip.evaluate(scores, labels, k=1, n_replicates=10)
    if result == "comparison":
        found = found.compare(found)
    with pytest.raises(KeyError, match=r"metric must be one of map, .*psp.*, got 'MAP'\."):
        found["MAP"]
