"""Isotonic maps beside those of scikit-learn."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from oddslip.calibrators import Isotonic


def fit_both(scores, labels):
    """Values of our map and of scikit-learn's, on the rows fitted on."""
    ours = Isotonic().fit(scores[:, None], labels[:, None]).transform(scores[:, None])[:, 0]
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, labels).predict(scores)
    return ours, theirs


def test_scores_that_are_not_nearly_equal_have_the_values_of_scikit_learn():
    rng = np.random.default_rng(0)
    scores = rng.permutation(np.linspace(0.0, 1.0, 500))
    ours, theirs = fit_both(scores, rng.random(500) < scores)
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_scores_closer_than_1e_15_stay_apart_where_scikit_learn_merges_them():
    scores, labels = np.array([1e-16, 2e-16, 0.9]), np.array([0, 1, 1])
    ours, theirs = fit_both(scores, labels)
    assert ours == pytest.approx([0.0, 1.0, 1.0])
    assert theirs == pytest.approx([0.5, 0.5, 1.0])


def test_merged_or_not_no_pair_of_rows_is_reversed():
    rng = np.random.default_rng(1)
    scores = rng.integers(1, 40, 300) * 1e-16
    ours, theirs = fit_both(scores, rng.random(300) < 0.3)
    assert not np.array_equal(ours, theirs)
    order = np.argsort(scores, kind="stable")
    assert (np.diff(ours[order]) >= 0).all()
    assert (np.diff(theirs[order]) >= 0).all()
