"""Rankings already made are scored by the paper's definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.store import row_precisions, score_ranking
from oddslip.core.labels import DenseLabels
from oddslip.core.provenance import digest_of


def slow_precision(row, truth):
    """Sum over ranks of (hit) x (hits so far) / rank, divided by min(K, true labels)."""
    hits, total = 0, 0.0
    for rank, label in enumerate(row, start=1):
        if truth[label]:
            hits += 1
            total += hits / rank
    return total / min(len(row), truth.sum())


@given(seed=st.integers(0, 10**6), n_rows=st.integers(1, 20), n_labels=st.integers(2, 12))
@settings(deadline=None, max_examples=50)
def test_precisions_are_those_of_the_definition(seed, n_rows, n_labels):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, n_labels + 1))
    truth = rng.random((n_rows, n_labels)) < 0.3
    truth[0, 0] = True
    ranking = np.argsort(rng.random((n_rows, n_labels)), axis=1)[:, :k].astype(np.int32)
    positives = DenseLabels(truth).positives(0, n_rows)
    expected = [slow_precision(r, t) for r, t in zip(ranking, truth, strict=True) if t.any()]
    assert row_precisions(ranking, positives, n_labels) == pytest.approx(expected)
    assert score_ranking(ranking, positives, n_labels) == pytest.approx(np.mean(expected))


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.none(), min_size=1))
@settings(deadline=None, max_examples=50)
def test_a_digest_sees_every_change_and_no_order(configuration):
    digest = digest_of(configuration)
    assert digest == digest_of(dict(reversed(configuration.items())))
    key = next(iter(configuration))
    assert digest != digest_of(configuration | {key: "other"})
