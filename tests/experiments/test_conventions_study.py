"""Conventions of the paper: what clipping changes, and what the page counts."""

import numpy as np
from scipy.sparse import csr_matrix

from experiments import conventions
from experiments.conventions import (
    PRINTED_DEAD,
    PRINTED_MAPS,
    measure_identity,
    measure_interval,
    write_page,
)
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


def test_an_interval_is_that_of_the_chosen_less_raw_by_the_papers_draws(
    monkeypatch, tmp_path, mulan_in_memory
):
    data = mulan_in_memory()
    random = np.random.default_rng(0)
    # A label far above the others by its scale alone, so that the rule does not keep raw.
    shift = np.array([0.0, 0.0, 0.0, 0.0, 4.0])
    truths = data.Y_train[data.calibration], data.Y_test
    scores = [
        1 / (1 + np.exp(-(2 * truth + random.normal(size=truth.shape) + shift))) for truth in truths
    ]
    arm = Arm(None, *scores, None, None, None)
    monkeypatch.setattr(conventions, "train_arm", lambda *arguments: arm)
    values = measure_interval(data, "lightgbm", "1", tmp_path)
    assert values["chosen"] != "raw"
    assert values["n_rows"] == data.Y_test.any(axis=1).sum()
    assert values["difference"] > 0
    low, high = values["intervals"]["paper"]
    assert low < values["difference"] < high
    assert values["intervals"]["study"] != [low, high]


def test_the_page_compares_ends_only_where_the_rule_changes_scores():
    cells = {
        "flags-lightgbm-1-interval": make_interval("raw", 0.0, 0.0),
        "birds-lightgbm-r-interval": make_interval("pooled", 0.0104, 0.0106),
        "yeast-lightgbm-r-interval": make_interval("pooled", 0.0104, 0.0104),
    }
    page = " ".join(write_page(cells).split())
    assert "keeps raw on 1," in page
    assert "Of the 4 ends of the others, 2 are the same at 3 digits" in page
    assert "largest gap is 0.001 as printed, 0.00020 unrounded" in page


def make_interval(chosen, ours, papers):
    intervals = {"study": [ours, ours], "paper": [papers, papers], "other": [papers, papers]}
    return {"chosen": chosen, "n_rows": 9, "difference": papers, "intervals": intervals}
