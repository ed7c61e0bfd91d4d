"""Conventions of the paper: what clipping changes, and what the page counts."""

import numpy as np
from scipy.sparse import csr_matrix

from experiments import conventions
from experiments.conventions import PRINTED_DEAD, PRINTED_MAPS, measure_identity, write_page
from experiments.mulan.arms import Arm
from experiments.pairs.supplement.measures import count_dead


class Rows:
    """Three labels; the last, dead in the calibration rows, has raw scores of exactly 1.0."""

    Y_train = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0]], bool)
    calibration = np.arange(4)
    calibration_positives = Y_train.sum(axis=0)
    Y_test = np.array([[1, 0, 0], [0, 1, 0]], bool)
    k = 1


def test_a_clipped_value_of_one_lies_below_a_dead_label_at_one(monkeypatch, tmp_path):
    scores = np.array([[0.9, 0.2, 1.0], [0.8, 0.9, 1.0], [0.1, 0.8, 1.0], [0.2, 0.1, 1.0]])
    test = np.array([[0.9, 0.1, 1.0], [0.1, 0.9, 1.0]])
    arm = Arm(None, scores, test, None, None, None)
    monkeypatch.setattr(conventions, "train_arm", lambda *told: arm)
    values = measure_identity(Rows, "lightgbm", "r", tmp_path)
    assert values == {"n_dead": 1, "plain": 1.0, "clipped": 0.0}


def test_the_page_counts_the_printed_digits_that_are_reached():
    cells = {
        key: {"n_dead": 1, "plain": value + 0.02, "clipped": value + 0.0004}
        for key, value in PRINTED_MAPS.items()
    }
    counts = count_dead(csr_matrix(np.eye(27, dtype=bool)), conventions.SHARES)
    cells["genbase-dead"] = {"n_labels": 27, "n_rows": 27, "counts": counts}
    page = write_page(cells)
    assert "in 0 of 4 cells without the clip, in 4 with it" in " ".join(page.split())
    assert f"| genbase | 27 | 26.0 (26 to 26) / {PRINTED_DEAD['genbase'][0]:.1f} |" in page
