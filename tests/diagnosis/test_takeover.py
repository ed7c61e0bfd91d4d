"""Slots that dead labels take under the identity policy, counted by hand."""

import numpy as np

from oddslip.diagnosis.drift import find_takeover


def test_slots_are_counted_per_dead_label_and_rows_by_what_they_lose():
    dead = np.array([False, False, True, True])
    prior = np.array([[0, 1], [0, 2], [1, 0]], np.int32)
    identity = np.array([[2, 3], [2, 0], [1, 0]], np.int32)
    found = find_takeover(identity, prior, dead)
    assert found.n_dead == 2
    assert found.n_rows == 1
    assert found.slots.tolist() == [0, 0, 2, 1]


def test_without_dead_labels_nothing_is_taken():
    ranking = np.array([[1, 0]], np.int32)
    found = find_takeover(ranking, ranking, np.zeros(2, bool))
    assert (found.n_rows, found.slots.sum()) == (0, 0)


def test_the_prior_and_the_exclude_policy_take_no_slot_from_calibrated_labels(scene):
    found = scene("dead labels")
    assert found.takeover.n_rows > 0.5 * found.n_rows
    assert found.ladder.value("isotonic, identity") < found.ladder.value("isotonic")
