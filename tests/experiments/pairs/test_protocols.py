"""Which rows calibrate and which are evaluated, and that the two never meet in deployment."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from experiments.pairs import protocols as pair_protocols
from experiments.pairs.arms import Arm
from experiments.pairs.cells import measure_arm, rung_values
from experiments.pairs.protocols import compare_repaired, open_rows, rank_repaired
from experiments.pairs.training import Bench
from oddslip.diagnosis.rungs import Rungs

pytestmark = pytest.mark.usefixtures("few_replicates")


@pytest.fixture
def study(products, tmp_path):
    data = products()
    bench = Bench(data, tmp_path)
    return data, bench.scores(Arm("lightgbm", "r")), bench.scores(Arm("lightgbm", "1"))


def scramble(data):
    """The same data, the truth of the test period dealt to other rows and labels.

    Rows with a true label change places among themselves, so that the same rows are ranked.
    """
    rng = np.random.default_rng(3)
    order = np.arange(data.test.n_rows)
    counted = np.flatnonzero(np.diff(data.test.Y.indptr))
    order[counted] = rng.permutation(counted)
    Y = data.test.Y[order][:, rng.permutation(data.n_labels)]
    return replace(data, test=replace(data.test, Y=Y.tocsr()))


def test_labels_of_the_test_period_reach_no_calibrator_in_deployment(study, monkeypatch):
    data, own, twin = study
    fits = []

    def spy(make, case, maps, *rest):
        fits.append(maps)
        return make(case, maps, *rest)

    make = Rungs.of_case
    monkeypatch.setattr(Rungs, "of_case", partial(spy, make))
    for each in (data, scramble(data)):
        measure_arm(each, Arm("lightgbm", "r"), own, twin)
    assert pair_protocols.PROTOCOLS == ("test-split", "deployment")
    split, deployed = fits[0::2], fits[1::2]
    assert len(deployed) == 2

    def same_maps(pair, rung):
        one, other = (each[rung][0] for each in pair)
        return all(
            np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
            for name in ("code", "a", "b", "c", "x", "y")
        )

    fitted = set(deployed[0]) - {"ceiling"}
    assert {"isotonic", "pooled", "platt", "beta", "offset"} <= fitted
    assert [rung for rung in sorted(fitted) if not same_maps(deployed, rung)] == []
    # The oracle, and the split of the test rows, do look at them: the scrambling is seen.
    assert not same_maps(deployed, "ceiling")
    assert not same_maps(split, "isotonic")


def test_the_compared_repairs_are_blind_to_the_test_period_in_deployment(study):
    data, own, _ = study
    first, second = (
        rank_repaired(open_rows(own, each, "deployment"), own.prior, 7)
        for each in (data, scramble(data))
    )
    np.testing.assert_array_equal(first, second)


def test_the_split_shares_no_row_and_leaves_none_out(study):
    data, own, _ = study
    rows = open_rows(own, data, "test-split")
    assert rows.calibration.n_rows == int(0.3 * data.test.n_rows)
    assert not np.any(rows.calibration.mask & rows.evaluated.mask)
    assert np.all(rows.calibration.mask | rows.evaluated.mask)


@pytest.mark.parametrize("protocol", ["test-split", "deployment"])
def test_the_gap_to_the_twin_is_that_of_the_two_ladders(study, protocol):
    data, own, twin = study
    gap = compare_repaired(own, twin, data, protocol, 7)
    weighted = rung_values(measure_arm(data, Arm("lightgbm", "r"), own, twin), protocol)
    plain = rung_values(measure_arm(data, Arm("lightgbm", "1"), twin, None), protocol)
    assert gap["value"] == pytest.approx(weighted["isotonic"] - plain["isotonic"], abs=1e-12)
    assert gap["low"] <= gap["value"] <= gap["high"]
