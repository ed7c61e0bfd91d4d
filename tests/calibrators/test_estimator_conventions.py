"""scikit-learn's own estimator checks, those that apply.

Its checks that fit an estimator give one target column, or targets of another width than X. A
panel's labels have the width of its scores, so those cannot apply; tests/contracts has ours.
"""

import numpy as np
import pytest
import sklearn
from sklearn.utils import estimator_checks as checks

from oddslip.calibrators import (
    Beta,
    Ceiling,
    Hierarchical,
    HierarchicalIsotonic,
    Inversion,
    Isotonic,
    LabelFree,
    Offset,
    Platt,
    PooledIsotonic,
    Popularity,
    Raw,
    Temperature,
)

ESTIMATORS = [
    Beta(),
    Ceiling(),
    Hierarchical(),
    HierarchicalIsotonic(),
    Inversion(np.ones(3)),
    Isotonic(tau=2),
    LabelFree(),
    Offset(),
    Platt(),
    PooledIsotonic(),
    Popularity(),
    Raw(),
    Temperature(shared=True),
]
# scikit-learn 1.6 named or added most of these; an older one brings those that it has.
NAMES = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_set_params",
    "check_valid_tag_types",
]
CHECKS = [getattr(checks, name) for name in NAMES if hasattr(checks, name)]


def test_every_check_is_there_from_scikit_learn_1_6_on():
    missing = [name for name in NAMES if not hasattr(checks, name)]
    release = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
    assert not missing or release < (1, 6)
    assert len(CHECKS) >= 3


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_scikit_learn_check(check, estimator):
    check(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_the_constructor_has_defaults(estimator):
    if type(estimator) is not Inversion:  # which cannot guess the weights
        checks.check_parameters_default_constructible(type(estimator).__name__, estimator)
