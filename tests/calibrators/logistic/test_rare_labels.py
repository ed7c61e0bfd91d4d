"""Fits where most labels have no positive: the others get what they get alone."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.support.passes import plain

from oddslip.calibrators.logistic.fits import fit_affine, fit_beta
from oddslip.sources import open_source


@pytest.mark.parametrize("fit", [partial(fit_affine, slope=True, intercept=True), fit_beta])
def test_labels_without_positives_change_nothing_of_the_others(fit):
    rng = np.random.default_rng(0)
    scores = rng.random((400, 9))
    true = np.zeros(scores.shape, bool)
    true[:, [2, 5]] = rng.random((400, 2)) < scores[:, [2, 5]] ** 2
    true[:, 7] = True
    among, alone = (
        plain(fit)(open_source(scores[:, j], true[:, j])) for j in (range(9), [2, 5, 7])
    )
    for part in ("a", "b", "c", "status"):
        assert_allclose(getattr(among, part)[[2, 5, 7]], getattr(alone, part), rtol=1e-12)
    assert (among.a[[0, 1, 3, 4, 6, 8]] == 1).all()
