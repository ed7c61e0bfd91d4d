"""Metrics at K against obvious references and other people's libraries."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oddslip.metrics import (
    average_precision_at_k,
    hit_rate_at_k,
    label_propensities,
    ndcg_at_k,
    precision_at_k,
    psp_at_k,
    recall_at_k,
)
from oddslip.metrics.at_k import metric_values, rank_source
from oddslip.sources import open_source

sys.path.insert(0, str(Path(__file__).parent))
from references import all_orders, row_metrics, stable_order

COLUMNS = {"map": 0, "precision": 1, "recall": 2, "ndcg": 3, "hit_rate": 4}
VERBS = {
    "map": average_precision_at_k,
    "precision": precision_at_k,
    "recall": recall_at_k,
    "ndcg": ndcg_at_k,
    "hit_rate": hit_rate_at_k,
    "psp": psp_at_k,
}


def random_panel(seed, n_rows=200, n_labels=30, levels=None, rate=0.1):
    rng = np.random.default_rng(seed)
    scores = rng.random((n_rows, n_labels))
    if levels:
        scores = np.round(scores * levels) / levels
    labels = rng.random(scores.shape) < rate
    labels[labels.sum(1) == 0, 0] = True
    return scores, labels


@pytest.mark.parametrize("levels", [None, 4])
@pytest.mark.parametrize("denominator", ["min", "relevant", "hits"])
@pytest.mark.parametrize("k", [1, 3, 7, 30])
def test_each_metric_equals_the_obvious_loop(levels, denominator, k):
    scores, labels = random_panel(k, levels=levels)
    chances = label_propensities(labels.sum(0), len(labels))
    expected = [
        row_metrics(stable_order(s), set(np.flatnonzero(t)), k, 1 / chances, denominator)
        for s, t in zip(scores, labels, strict=True)
    ]
    for name, verb in VERBS.items():
        options = {"denominator": denominator} if name == "map" else {}
        found = verb(scores, labels, k=k, per_row=True, **options)
        np.testing.assert_allclose(found, [row[name] for row in expected], rtol=1e-12)


@settings(max_examples=120, deadline=None)
@given(
    levels=st.lists(st.integers(0, 2), min_size=2, max_size=6),
    true=st.integers(1, 62),
    k=st.integers(1, 6),
    denominator=st.sampled_from(["min", "relevant", "hits"]),
)
def test_tie_policies_equal_brute_force_over_all_orders(levels, true, k, denominator):
    n = len(levels)
    labels = np.array([[bool(true >> j & 1) for j in range(n)]])
    if not labels.any():
        labels[0, 0] = True
    k = min(k, n)
    scores = np.array([levels], float) / 2
    gains = 1.0 + np.arange(n) ** 2
    positives = set(np.flatnonzero(labels[0]))
    every = [row_metrics(o, positives, k, gains, denominator) for o in all_orders(levels)]
    rankings = rank_source(open_source(scores, labels), k)
    for ties, summary in (("expected", np.mean), ("best", np.max), ("worst", np.min)):
        values = metric_values(
            rankings, ties=ties, denominator=denominator, propensities_given=1 / gains
        )[0]
        for name, column in COLUMNS.items():
            wanted = summary([order[name] for order in every])
            assert values[column] == pytest.approx(wanted, abs=1e-12), (ties, name)
        wanted = summary([order["psp"] for order in every])
        assert values[5] / values[6] == pytest.approx(wanted, abs=1e-12), (ties, "psp")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 6))
def test_best_is_at_least_expected_at_least_worst_with_stable_in_between(seed, k, levels):
    scores, labels = random_panel(seed, 30, 12, levels, rate=0.3)
    rankings = rank_source(open_source(scores, labels), k)
    for denominator in ("min", "relevant", "hits"):
        best, expected, worst, stable = (
            metric_values(rankings, ties=ties, denominator=denominator)
            for ties in ("best", "expected", "worst", "stable")
        )
        slack = 1e-12
        assert (best + slack >= expected).all()
        assert (expected + slack >= worst).all()
        assert (best + slack >= stable).all()
        assert (stable + slack >= worst).all()


def test_expected_ndcg_is_that_of_scikit_learn():
    from sklearn.metrics import ndcg_score

    scores, labels = random_panel(3, levels=5)
    for k in (1, 5, 30):
        ours = ndcg_at_k(scores, labels, k=k, ties="expected")
        assert ours == pytest.approx(ndcg_score(labels, scores, k=k), abs=1e-12)


def test_map_over_relevant_labels_is_that_of_trec_eval():
    import pytrec_eval

    scores, labels = random_panel(4)
    truth = {str(i): {str(j): int(v) for j, v in enumerate(row)} for i, row in enumerate(labels)}
    run = {str(i): {str(j): float(v) for j, v in enumerate(row)} for i, row in enumerate(scores)}
    measures = {"map_cut.7", "P.7", "recall.7", "ndcg_cut.7"}
    rows = pytrec_eval.RelevanceEvaluator(truth, measures).evaluate(run).values()
    for name, verb, options in (
        ("map_cut_7", average_precision_at_k, {"denominator": "relevant"}),
        ("P_7", precision_at_k, {}),
        ("recall_7", recall_at_k, {}),
        ("ndcg_cut_7", ndcg_at_k, {}),
    ):
        theirs = np.mean([row[name] for row in rows])
        assert verb(scores, labels, k=7, **options) == pytest.approx(theirs, abs=1e-7), name


BY_RANX = """
import json, sys
import ranx
truth, run = json.load(sys.stdin)
print(ranx.evaluate(ranx.Qrels(truth), ranx.Run(run), "map@7"))
"""


def test_map_over_relevant_labels_is_that_of_ranx():
    scores, labels = random_panel(5, n_rows=50)
    truth = {str(i): {f"d{j}": 1 for j in np.flatnonzero(row)} for i, row in enumerate(labels)}
    run = {str(i): {f"d{j}": float(v) for j, v in enumerate(row)} for i, row in enumerate(scores)}
    theirs = subprocess.run(
        [sys.executable, "-c", BY_RANX],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},  # compiling takes two minutes
        input=json.dumps([truth, run]),
        capture_output=True,
        text=True,
        check=True,
    )
    ours = average_precision_at_k(scores, labels, k=7, denominator="relevant")
    assert ours == pytest.approx(float(theirs.stdout), abs=1e-12)


def test_psp_and_propensities_are_those_of_napkinxc():
    from napkinxc.metrics import Jain_et_al_inverse_propensity, psprecision_at_k

    scores, labels = random_panel(6, n_rows=400)
    inverse = np.asarray(Jain_et_al_inverse_propensity(sp.csr_matrix(labels.astype(np.float32))))
    chances = label_propensities(labels.sum(0), len(labels))
    np.testing.assert_allclose(1 / chances, inverse.ravel(), rtol=1e-5)
    top = [stable_order(row)[:7].tolist() for row in scores]
    truth = [np.flatnonzero(row).tolist() for row in labels]
    theirs = psprecision_at_k(truth, top, inverse.ravel(), k=7)
    ours = [psp_at_k(scores, labels, k=k, propensities=1 / inverse.ravel()) for k in range(1, 8)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_psp_of_a_hand_made_row():
    # Propensities 1/2, 1/4, 1: gains 2, 4, 1. The top 2 finds label 0 of {0, 1}: 2 of 2 + 4.
    found = psp_at_k([[0.9, 0.1, 0.5]], [[1, 1, 0]], k=2, propensities=[0.5, 0.25, 1.0])
    assert found == pytest.approx(2 / 6)


def test_rows_without_a_true_label_count_only_when_asked():
    scores, labels = [[0.9, 0.1], [0.9, 0.1]], [[1, 0], [0, 0]]
    assert precision_at_k(scores, labels, k=1) == 1.0
    assert precision_at_k(scores, labels, k=1, rows="all") == 0.5


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_a_monotone_map_shared_by_all_labels_never_changes_an_untied_ranking(seed):
    from oddslip import rank

    rng = np.random.default_rng(seed)
    margins = rng.normal(0, 3, (20, 15))
    knots = np.sort(rng.normal(0, 4, 5))
    mapped = np.interp(margins, np.linspace(-20, 20, 5), knots) + margins * 1e-3
    np.testing.assert_array_equal(
        rank(margins, k=9, kind="margin"), rank(mapped, k=9, kind="margin")
    )
