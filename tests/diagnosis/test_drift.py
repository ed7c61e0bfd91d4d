"""Rows that calibrate and are evaluated, and prevalences that differ, are seen; chance is not."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import oddslip.diagnosis.drift as drift
from oddslip.diagnosis.drift import count_shared, find_drifted, hash_both
from oddslip.sources import open_source


def find_shared(one, two):
    hashes = hash_both(one, two, seed=1)
    return count_shared(*(each.run(hashes.empty_like()) for each in (one, two)))


def panel(rng, n_rows, n_labels=6, row_ids=None):
    scores = rng.random((n_rows, n_labels), dtype=np.float32)
    return scores, rng.random(scores.shape) < scores / 4


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_shared_rows_are_counted_wherever_they_stand(n_shared, seed):
    rng = np.random.default_rng(seed)
    scores, labels = panel(rng, 50)
    others, truth = panel(rng, 40)
    taken = rng.permutation(50)[:n_shared]
    mixed = rng.permutation(40 + n_shared)
    one = np.concatenate([others, scores[taken]])[mixed]
    two = np.concatenate([truth, labels[taken]])[mixed]
    found = find_shared(open_source(one, two), open_source(scores, labels))
    assert found == (n_shared, False)


def test_rows_that_many_rows_equal_are_no_sign_of_overlap():
    scores, labels = np.full((30, 4), 0.5, np.float32), np.zeros((30, 4), bool)
    labels[:, 0] = True
    found = find_shared(open_source(scores, labels), open_source(scores, labels))
    assert found.n_rows == 0


def test_row_ids_decide_where_both_panels_have_them():
    scores, labels = panel(np.random.default_rng(0), 5)
    one = open_source(scores, labels, row_ids=["a", "b", "c", "d", "e"])
    two = open_source(scores[::-1].copy(), labels[::-1], row_ids=["e", "x", "y", "z", "v"])
    assert find_shared(one, two) == (1, True)


def test_ids_that_are_numbers_agree_with_the_same_numbers_as_text():
    scores, labels = panel(np.random.default_rng(0), 3)
    one = open_source(scores, labels, row_ids=[7, 8, 9])
    two = open_source(scores, labels, row_ids=["9", "10", "7"])
    assert find_shared(one, two) == (2, True)


def test_scores_of_another_type_are_not_compared():
    scores, labels = panel(np.random.default_rng(0), 3)
    assert hash_both(*(open_source(scores.astype(t), labels) for t in "fd"), seed=1) is None


def test_shared_rows_of_large_panels_are_counted_in_a_sample_of_their_hashes(monkeypatch):
    scores, labels = panel(np.random.default_rng(0), 4000)
    monkeypatch.setattr(drift, "MAX_HASHES", 1000)
    one, two = (
        open_source(scores[part], labels[part]) for part in (slice(2000), slice(1000, 4000))
    )
    found = find_shared(one, two)
    assert 800 < found.n_rows < 1200


def test_two_draws_of_the_same_prevalence_do_not_drift():
    rng = np.random.default_rng(3)
    prevalence = np.geomspace(1e-3, 0.3, 2000)
    drawn = [rng.binomial(n, prevalence) for n in (3000, 7000)]
    assert find_drifted(*drawn, 3000, 7000).sum() <= 1


def test_a_doubled_prevalence_drifts_once_there_are_rows_enough_to_tell():
    few = find_drifted(np.array([5]), np.array([10]), 100, 100)
    many = find_drifted(np.array([500]), np.array([1000]), 10_000, 10_000)
    assert not few[0]
    assert many[0]


def test_a_label_without_calibration_positives_is_unseen_rather_than_drifted(scene):
    found = scene("dead labels").drift
    assert found.unseen[-6:].all()
    assert not (found.unseen & found.drifted).any()
