"""scikit-learn's own estimator checks on `RepairedClassifier`, and which cannot apply.

Its checks make one column of two classes. `OnCells` turns that into the 0/1 cells of two labels,
the class and its opposite, and leaves everything else to `RepairedClassifier`.
"""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import estimator_checks
from threadpoolctl import threadpool_limits

from oddslip import RepairedClassifier

ZERO = "a weight of zero is refused: drop the row"
COLUMN = "wants predictions of one column, here are two labels"
CAN_NOT_APPLY = {
    "check_all_zero_sample_weights_error": ZERO,
    "check_sample_weight_equivalence_on_dense_data": ZERO,
    "check_sample_weight_equivalence_on_sparse_data": ZERO,
    "check_classifiers_one_label_sample_weights": ZERO,
    "check_estimator_sparse_array": COLUMN,
    "check_estimator_sparse_matrix": COLUMN,
    "check_classifiers_train": COLUMN,
    "check_classifiers_classes": "wants its class names back; cells are 0 or 1",
    "check_fit2d_1feature": "one fold of its ten rows has no positive, which LogisticRegression refuses",
    "check_array_api_input": "only where scipy's array API is switched on",
}


def as_cells(y):
    cells = np.asarray(y)
    if y is None or (cells.ndim == 2 and cells.shape[1] > 1) or len(np.unique(cells)) > 2:
        return y
    truth = cells.ravel() == cells.max()
    return np.column_stack([truth, ~truth]).astype(int)


class OnCells(RepairedClassifier):
    def fit(self, X, y, *, sample_weight=None):
        return super().fit(X, as_cells(y), sample_weight=sample_weight)

    def score(self, X, y, sample_weight=None):
        return super().score(X, as_cells(y), sample_weight)


def every_check():
    make = getattr(estimator_checks, "estimator_checks_generator", None)
    if make is None:  # before scikit-learn 1.6
        return []
    model = OnCells(MultiOutputClassifier(LogisticRegression()), rule="raw", cv=2)
    return list(make(model))


CHECKS = every_check()


def name_of(check):
    return getattr(check, "func", check).__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(model, check, id=f"{number}-{name_of(check)}")
        for number, (model, check) in enumerate(CHECKS)
        if name_of(check) not in CAN_NOT_APPLY
    ],
)
def test_a_check_of_scikit_learn_passes(model, check):
    with threadpool_limits(1):  # models this small only wait for a second thread
        check(model)


def test_most_checks_apply():
    applied = [check for _, check in CHECKS if name_of(check) not in CAN_NOT_APPLY]
    assert not CHECKS or len(applied) >= 50
