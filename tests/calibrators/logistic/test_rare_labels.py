"""Fits where most labels have no positive: the others get what they get alone."""

import numpy as np
import pytest

from oddslip.calibrators.logistic.fits import fit_affine, fit_beta
from oddslip.sources import open_source


@pytest.mark.parametrize("fit", [fit_affine, fit_beta])
def test_labels_without_positives_change_no_bit_of_the_others(fit):
    rng = np.random.default_rng(0)
    scores = rng.random((400, 9))
    true = np.zeros(scores.shape, bool)
    true[:, [2, 5]] = rng.random((400, 2)) < scores[:, [2, 5]] ** 2
    true[:, 7] = True
    among, alone = (fit(open_source(scores[:, j], true[:, j])) for j in (range(9), [2, 5, 7]))
    for part in ("a", "b", "c", "status"):
        assert np.array_equal(getattr(among, part)[[2, 5, 7]], getattr(alone, part))
    assert (among.a[[0, 1, 3, 4, 6, 8]] == 1).all()
