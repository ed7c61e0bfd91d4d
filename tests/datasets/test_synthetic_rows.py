"""Rows to train on have the marginals they say they have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit

from oddslip.datasets.synthetic import synthetic_rows
from oddslip.errors import InvalidInput


@settings(deadline=None, max_examples=20)
@given(
    low=st.floats(1e-4, 0.5),
    ratio=st.floats(1, 100),
    signal=st.floats(0, 4),
    seed=st.integers(0, 2**32),
)
def test_the_mean_marginal_of_a_label_is_its_prevalence(low, ratio, signal, seed):
    rows = synthetic_rows(
        20_000, 3, n_features=3, prevalence=(low, min(low * ratio, 0.9)), signal=signal, seed=seed
    )
    error = rows.marginals.std(axis=0) / np.sqrt(rows.n_rows)
    assert np.all(np.abs(rows.marginals.mean(axis=0) - rows.prevalence) <= 6 * error + 1e-6)


def test_labels_are_drawn_from_the_marginals():
    rows = synthetic_rows(50_000, 4, seed=2)
    bins = np.digitize(rows.marginals, [0.01, 0.05, 0.2, 0.5])
    for at in range(5):
        cells = bins == at
        chance, labels = rows.marginals[cells], rows.labels[cells]
        error = np.sqrt((chance * (1 - chance)).sum()) / cells.sum()
        assert abs(labels.mean() - chance.mean()) < 5 * error


def test_the_log_odds_are_linear_in_the_features_with_the_spread_asked_for():
    rows = synthetic_rows(30_000, 5, signal=1.5, seed=1)
    margin = logit(rows.marginals)
    design = np.column_stack([np.ones(rows.n_rows), rows.X])
    fitted = design @ np.linalg.lstsq(design, margin, rcond=None)[0]
    np.testing.assert_allclose(fitted, margin, atol=1e-3)
    np.testing.assert_allclose(margin.std(axis=0), 1.5, rtol=0.03)


def test_more_rows_begin_with_the_same_rows():
    few, many = synthetic_rows(100, 7, seed=5), synthetic_rows(1_000, 7, seed=5)
    np.testing.assert_array_equal(few.X, many.X[:100])
    np.testing.assert_allclose(few.marginals, many.marginals[:100], rtol=1e-5)
    np.testing.assert_array_equal(few.prevalence, many.prevalence)
    np.testing.assert_array_equal(few.labels, many.labels[:100])


def test_the_seed_decides():
    first, again, other = (synthetic_rows(200, 4, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.labels, again.labels)
    assert (first.X != other.X).any()


def test_prevalences_span_what_was_asked_for():
    rows = synthetic_rows(10, 30, prevalence=(0.001, 0.3))
    assert sorted(rows.prevalence) == pytest.approx(np.geomspace(0.001, 0.3, 30))


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_rows": 0},
        {"n_labels": 0},
        {"n_features": 0},
        {"n_rows": 2.5},
        {"n_rows": True},
        {"seed": -1},
        {"prevalence": (0.0, 0.5)},
        {"prevalence": (0.5, 0.2)},
        {"prevalence": (0.5, 1.0)},
        {"prevalence": 0.2},
        {"prevalence": ("a", "b")},
        {"signal": -1},
        {"signal": 21},
        {"signal": float("nan")},
        {"signal": "loud"},
    ],
    ids=str,
)
def test_invalid_arguments_are_rejected(arguments):
    with pytest.raises(InvalidInput, match=next(iter(arguments))):
        synthetic_rows(**arguments)
