"""A fingerprint counts what is there, in any blocks, and comes back from a file as it was."""

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import oddslip
from attacks.containers import put_together, take_apart
from oddslip.calibrators import Isotonic, Platt
from oddslip.core.panel import Panel
from oddslip.core.tally import TallyGroup
from oddslip.errors import UnreadableFile
from oddslip.repairs.fingerprint import (
    TopKTally,
    join_fingerprint,
    probabilities_of,
    take_fingerprint,
)
from oddslip.repairs.repair_file import N_BINS, UNIT
from oddslip.sources import open_source
from oddslip.tallies.logodds_histogram import LogOddsHistogram, n_bins

RNG = np.random.default_rng(0)
SCORES = RNG.random((300, 9)) ** 3
SCORES[:7, 2] = 1.0
LABELS = RNG.random(SCORES.shape) < SCORES * np.linspace(0.1, 0.9, 9)
LABELS[:, 5] = False


def same(first, second):
    return all(
        np.array_equal(getattr(first, field.name), getattr(second, field.name))
        if isinstance(getattr(first, field.name), np.ndarray)
        else getattr(first, field.name) == getattr(second, field.name)
        for field in fields(first)
    )


@pytest.fixture(scope="module")
def repair():
    return oddslip.Repair(k=3, rule="isotonic-0").fit(SCORES, LABELS)


@pytest.mark.parametrize("calibrator", [Isotonic(), Platt(), Isotonic(dead="exclude")])
def test_slots_ties_and_what_is_shown_are_those_of_the_repaired_ranking(calibrator):
    fitted = calibrator.fit(SCORES, LABELS).fitted_
    fingerprint = take_fingerprint(open_source(SCORES), fitted.maps, 3)
    ranking = fitted.rank(SCORES, k=3)
    assert_array_equal(fingerprint.slots, np.bincount(ranking.ravel(), minlength=9))
    mapped = fitted.transform(SCORES)
    means = np.take_along_axis(mapped, ranking.astype(int), axis=1).mean(axis=1)
    mean, error = fingerprint.shown
    assert mean == pytest.approx(means.mean(), abs=1e-9)
    assert error == pytest.approx(means.std(ddof=1) / np.sqrt(300), rel=1e-6)
    ordered = -np.sort(-fitted.maps.values(Panel(SCORES)), axis=1)
    assert fingerprint.n_tied == (ordered[:, 2] == ordered[:, 3]).sum()


def test_every_cell_is_counted_once_and_saturated_cells_apart():
    fingerprint = take_fingerprint(open_source(SCORES))
    assert_array_equal(fingerprint.counts.sum(axis=1), np.full(9, 300))
    assert_array_equal(fingerprint.saturated, (SCORES == 1).sum(axis=0))
    assert fingerprint.k is None
    assert fingerprint.slots.size == 0


def test_two_halves_merge_to_the_whole(repair):
    whole = take_fingerprint(open_source(SCORES), repair.fitted_.maps, 3)
    tallies = [
        TallyGroup([LogOddsHistogram(9, "probability"), TopKTally(9, 3, repair.fitted_.maps)])
        for _ in range(2)
    ]
    tallies[0].add(Panel(SCORES[:120]))
    tallies[1].add(Panel(SCORES[120:]))
    tallies[1].merge(tallies[0])
    assert same(join_fingerprint(*tallies[1].tallies), whole)


def test_the_file_knows_the_number_of_bins_without_the_kernels():
    assert {kind: n_bins(kind) for kind in N_BINS} == N_BINS


def test_labels_looked_at_in_parts_give_the_same(repair, monkeypatch):
    source = open_source(np.tile(SCORES, (1, 120)))
    whole = take_fingerprint(source, k=4)
    monkeypatch.setattr("oddslip.repairs.fingerprint.SPREAD_BYTES", 0)
    assert same(take_fingerprint(source, k=4), whole)


def test_the_number_of_scores_does_not_grow_with_the_rows():
    scores = np.random.default_rng(1).choice([0.1, 0.3, 0.5, 0.9], (4000, 1))
    few, many = (take_fingerprint(open_source(scores[:n])).distinct for n in (200, 4000))
    assert few == pytest.approx(4, rel=0.1)
    assert many == pytest.approx(4, rel=0.02)


def test_the_probability_of_a_bin_is_that_of_the_scores_in_it(repair):
    maps = repair.fitted_.maps
    by_bin = probabilities_of(maps)
    counts = take_fingerprint(open_source(SCORES)).counts
    mean = (counts * by_bin).sum(axis=1) / 300
    assert mean == pytest.approx(repair.transform(SCORES).mean(axis=0), abs=0.01)


def test_a_repair_keeps_its_fingerprint_and_a_calibrator_the_part_that_needs_no_k(repair, tmp_path):
    path = tmp_path / "repair.oddslip"
    repair.save(path)
    fingerprint = oddslip.load_repair(path).fingerprint
    assert same(fingerprint, repair.fitted_.fingerprint)
    assert fingerprint.k == 3
    assert fingerprint.expected.metric == "map"
    assert fingerprint.expected.value == pytest.approx(repair.table_.means[0], abs=0.2)
    Platt().fit(SCORES, LABELS).save(path)
    assert oddslip.load_repair(path).fingerprint.k is None


def test_the_means_out_of_fold_are_kept():
    fitted = oddslip.Repair(k=3, rule="paper").fit(SCORES, LABELS)
    place = fitted.table_.candidates.index(fitted.chosen_)
    assert fitted.fitted_.fingerprint.expected.value == fitted.table_.means[place]


def test_a_fingerprint_of_some_labels_is_that_of_their_columns(repair):
    order = np.array([3, 0, 8])
    assert_array_equal(
        repair.fitted_.fingerprint.take(order).counts,
        take_fingerprint(open_source(SCORES[:, order])).counts,
    )


# What is changed in the header or in an array of a saved repair, under a checksum that agrees.
BROKEN = {
    "no rows": lambda header, arrays: header.update(n_rows=0),
    "rows that are text": lambda header, arrays: header.update(n_rows="300"),
    "too many slots per row": lambda header, arrays: header.update(k=10),
    "fewer slots than rows show": lambda header, arrays: header.update(k=2),
    "more tied rows than rows": lambda header, arrays: header.update(n_tied=301),
    "a mean above one": lambda header, arrays: header.update(shown_sum=int(301 / UNIT)),
    "an unknown part": lambda header, arrays: header.pop("k"),
    "a mean that is text": lambda header, arrays: header.update(expected=["map", "1", 0]),
    "a mean of two": lambda header, arrays: header.update(expected=["map", 2, 0]),
    "bins beyond the last": lambda header, arrays: arrays["bin_first"].__setitem__(0, 10**6),
    "bins before the first": lambda header, arrays: arrays["bin_first"].__setitem__(0, -1),
    "a bin more": lambda header, arrays: arrays["bin_size"].__setitem__(0, 2**62),
    "a cell more": lambda header, arrays: arrays["bin_counts"].__setitem__(0, 2**32 - 1),
    "saturated cells below none": lambda header, arrays: arrays["saturated"].__setitem__(0, -1),
    "slots of more rows": lambda header, arrays: arrays["slots"].__setitem__(0, 400),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_fingerprint_that_does_not_add_up_is_refused(repair, tmp_path, broken):
    path = tmp_path / "repair.oddslip"
    repair.save(path)
    header, bodies = take_apart(path.read_bytes())
    arrays = {
        entry["name"]: np.frombuffer(bodies[entry["name"]], entry["dtype"]).copy()
        for entry in header["members"]
    }
    BROKEN[broken](header["meta"]["fingerprint"], arrays)
    bodies = {name: array.tobytes() for name, array in arrays.items()}
    path.write_bytes(put_together(header, bodies))
    with pytest.raises(UnreadableFile, match="does not add up"):
        oddslip.load_repair(path)
