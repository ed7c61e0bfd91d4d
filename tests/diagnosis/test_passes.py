"""How often the scores are read: few passes, whatever is asked for."""

from collections import Counter

import numpy as np
import pytest

from oddslip.core.row_ids import SAMPLES, hash_with_salt
from oddslip.datasets import synthetic_pair
from oddslip.diagnosis import diagnose, measurements, rungs
from oddslip.selection import Repair
from oddslip.selection.candidates import WIDE
from oddslip.shifts import direct_shift
from oddslip.sources import open_source

PAIR = synthetic_pair(1500, 20, noise=0.3, cap=2.0, seed=1)
CAL, REST = PAIR.calibration, ~PAIR.calibration


def counted(passes, name, *panel):
    source = open_source(*panel)
    blocks = source.blocks

    def count():
        passes[name] += 1
        return blocks()

    source.blocks = count
    return source


@pytest.mark.parametrize("rule", ["auto", *(each.name for each in WIDE)])
def test_repair_reads_its_rows_at_most_six_times(rule):
    """Positives; folds; ranks, twice; an exact step, if the chosen has one; a fingerprint."""
    passes = Counter()
    source = counted(passes, "rows", PAIR.weighted[CAL], PAIR.labels[CAL])
    Repair(k=5, rule=rule, prior=PAIR.prior, weights=PAIR.weights).fit(source)
    assert passes["rows"] <= 6


def test_diagnose_reads_each_of_its_panels_at_most_ten_times():
    """Labels are read alone once; model and twin are held together on rows that are kept.

    Three passes try the row-aware stage, which large panels do without.
    """
    passes = Counter()
    diagnose(
        counted(passes, "rows", PAIR.weighted[REST], PAIR.labels[REST]),
        k=5,
        weights=PAIR.weights,
        prior=PAIR.prior,
        n_replicates=0,
        unweighted=counted(passes, "twin", PAIR.unweighted[REST]),
        calibration=counted(passes, "calibration", PAIR.weighted[CAL], PAIR.labels[CAL]),
    )
    assert passes["calibration"] <= 10
    assert passes["rows"] <= 5
    assert passes["twin"] == 1


def test_diagnose_of_a_large_panel_reads_its_rows_at_most_seven_times(monkeypatch):
    monkeypatch.setattr(rungs, "MAX_STAGE_CELLS", 0)
    passes = Counter()
    diagnose(
        counted(passes, "rows", PAIR.weighted, PAIR.labels),
        k=5,
        weights=PAIR.weights,
        unweighted=counted(passes, "twin", PAIR.unweighted),
        n_replicates=0,
    )
    assert passes["rows"] <= 7
    assert passes["twin"] == 1


def test_model_and_twin_are_compared_on_the_rows_with_the_smallest_salted_keys(monkeypatch):
    monkeypatch.setattr(measurements, "SAMPLED_CELLS", 20 * 300)
    found = diagnose(
        PAIR.weighted, PAIR.labels, k=5, unweighted=PAIR.unweighted, seed=3, n_replicates=0
    )
    hashes = hash_with_salt(open_source(PAIR.weighted).row_keys(), SAMPLES, 3)
    rows = np.argsort(hashes)[:300]
    assert (found.shifts.n_direct_rows, found.likeness.n_rows) == (300, 300)
    wanted = direct_shift(PAIR.weighted[rows], PAIR.unweighted[rows])
    np.testing.assert_array_equal(found.shifts.direct, wanted)
