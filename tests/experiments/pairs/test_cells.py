"""Cells hold what the public verbs say of an arm, without a number per label."""

import numpy as np
import pytest

import oddslip
from experiments.pairs.arms import Arm
from experiments.pairs.cells import describe_data, measure_arm, rung_values, summarise
from experiments.pairs.training import ArmScores, Bench
from oddslip.metrics import mean_auc
from oddslip.shifts import saturation

pytestmark = pytest.mark.usefixtures("few_replicates")


def test_both_protocols_are_those_of_diagnose(products, tmp_path):
    data, arm = products(), Arm("lightgbm", "r", cap=2)
    bench = Bench(data, tmp_path)
    own, twin = bench.scores(arm), bench.scores(arm.twin)
    cell = measure_arm(data, arm, own, twin)
    truth, held_out = data.test.Y.toarray(), data.validation.Y.toarray()
    scores, plain = np.load(own.test), np.load(twin.test)
    order = np.random.default_rng(42).permutation(len(truth))
    calibrates = np.isin(np.arange(len(truth)), order[: int(0.3 * len(truth))])
    split = (scores[calibrates], truth[calibrates])
    for protocol, rows, calibration in (
        ("test-split", ~calibrates, split),
        ("deployment", np.full(len(truth), True), (np.load(own.validation), held_out)),
    ):
        found = oddslip.diagnose(
            scores[rows],
            truth[rows],
            k=7,
            weights=own.weights,
            unweighted=plain[rows],
            calibration=calibration,
            prior=data.prevalence,
            rounds=60,
            learning_rate=0.05,
            max_delta_step=2,
            n_replicates=0,
        )
        wanted = {name: rung["map"].value for name, rung in found.ladder.rungs.items()}
        assert rung_values(cell, protocol) == pytest.approx(wanted, abs=1e-12)
        assert cell[protocol]["decomposition"] == found.decomposition.to_dict()
        assert cell[protocol]["shifts"] == found.shifts.to_dict()
        assert cell[protocol]["shifts"]["budget"] == pytest.approx(6)
    assert cell["auc"] == pytest.approx(mean_auc(np.load(own.test), truth))


def test_a_cell_holds_nothing_per_label_but_the_table_of_figure_s1(finished_study):
    def lists(value):
        if isinstance(value, dict):
            for name, item in value.items():
                if name not in ("labels", "shown"):  # what is shown is counted in ten bins
                    yield from lists(item)
        elif isinstance(value, list):
            yield value

    assert all(
        len(found) < 9
        for key, cell in finished_study[1].items()
        if not key.startswith("data")
        for found in lists(cell)
    )


def test_every_cell_says_what_each_stage_took(finished_study):
    for key, cell in finished_study[1].items():
        wanted = {"read"} if key.startswith("data") else {"diagnose"}
        if not key.startswith(("data", "splits", "choices", "again")):
            wanted |= {"prepare", "train", "score"}
        assert set(cell["stages"]) == wanted
        for told in cell["stages"].values():
            assert told["seconds"] >= 0
            assert told["peak_memory_mb"] > 10


@pytest.fixture
def saturated(products, tmp_path):
    """A pair made by hand: half of the weighted cells are at 1.0, the twin knows the truth."""
    data = products()
    rng = np.random.default_rng(5)
    files = {}
    for name, period in (("validation", data.validation), ("test", data.test)):
        truth = period.Y.toarray()
        twin = (0.1 + 0.5 * truth + 0.2 * rng.random(truth.shape)).astype(np.float32)
        weighted = np.where(rng.random(truth.shape) < 0.5, np.float32(1), np.float32(0.5))
        for kind, cells in (("weighted", weighted), ("twin", twin)):
            files[kind, name] = tmp_path / f"{kind}-{name}.npy"
            np.save(files[kind, name], cells)
    weights = {"weighted": np.full(9, 3.0), "twin": np.ones(9)}
    made = {
        kind: ArmScores(
            validation=files[kind, "validation"],
            test=files[kind, "test"],
            weights=weights[kind],
            prior=data.prevalence,
            stages={},
        )
        for kind in weights
    }
    return data, made["weighted"], made["twin"]


def test_reordered_ties_return_a_share_of_the_loss(saturated):
    data, own, twin = saturated
    cell = measure_arm(data, Arm("mlp", "r"), own, twin)
    told, values = cell["reordered"], rung_values(cell, "deployment")
    assert told["loss"] == pytest.approx(values["unweighted"] - values["raw"])
    for by in ("by_twin", "by_oracle"):
        assert told[by]["share"] == pytest.approx((told[by]["map"] - values["raw"]) / told["loss"])
    # This twin ranks every true label first, as the oracle does.
    assert told["by_twin"]["map"] == pytest.approx(told["by_oracle"]["map"])
    assert 0 < told["by_twin"]["share"] < 1
    stored = saturation(own.test, k=7)
    assert cell["saturated_share"] == stored.share
    assert cell["saturated_per_row"] == pytest.approx(stored.n_saturated.sum() / data.test.n_rows)


def test_an_arm_without_a_weight_has_no_twin_and_no_loss(finished_study):
    cell = finished_study[1]["lightgbm-1"]
    assert "reordered" not in cell
    assert cell["test-split"]["decomposition"] is None
    assert "inversion" not in rung_values(cell, "test-split")


def test_dead_labels_and_positives_of_alive_ones_are_counted(finished_study, products):
    data, cell = products(), finished_study[1]["lightgbm-r"]
    counts = np.asarray(data.validation.Y.sum(axis=0)).ravel()
    told = cell["deployment"]["calibration_positives"]
    assert told["n_dead"] == (counts == 0).sum() >= 1
    assert told["min_alive"] == counts[counts > 0].min()
    assert told["median_alive"] == np.median(counts[counts > 0])


def test_the_data_are_described_with_their_weights(products):
    data = products()
    told = describe_data(data)
    ratios = (data.train.n_rows - data.positives) / data.positives
    assert told["largest_weight"] == pytest.approx(ratios.max())
    assert told["smallest_weight"] == pytest.approx(ratios.min())
    assert told["papers_data"] is False
    assert told["rows"] == {"train": 400, "validation": 250, "test": 350}


def test_quantiles_of_nothing_are_nothing():
    assert summarise(np.empty(0)) is None
    assert summarise(np.arange(11.0)) == pytest.approx(
        {"0": 0, "0.05": 0.5, "0.25": 2.5, "0.5": 5, "0.75": 7.5, "0.95": 9.5, "1": 10}
    )
