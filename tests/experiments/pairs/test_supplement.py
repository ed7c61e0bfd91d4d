"""What the supplement measures, against closed forms, NumPy and the ladder."""

import re

import numpy as np
import pytest

from experiments.pairs.arms import Arm
from experiments.pairs.cells import measure_arm, rung_values
from experiments.pairs.supplement import measures
from experiments.pairs.supplement.printed import our_numbers, printed_section, read_printed
from experiments.pairs.training import Bench

pytestmark = pytest.mark.usefixtures("few_replicates")
K = 7


@pytest.fixture(scope="module")
def pair(products, finished_study):
    """Data, and the scores of the boosters, that the finished study trained."""
    bench = Bench(products(9), finished_study[0] / "work")
    return bench.data, *(bench.scores(Arm("lightgbm", weight)) for weight in ("r", "1"))


def test_the_whole_of_ln_w_is_the_ladders_what_if_and_a_quarter_is_a_fourth_root(pair, cells):
    data, scores, twin = pair
    values = rung_values(cells["lightgbm-r"], "deployment")
    steps = measures.step_what_if(scores, twin, data, K)
    assert steps["map"]["1"] == pytest.approx(values["what-if"], abs=1e-12)
    assert steps["unweighted"] == pytest.approx(values["unweighted"], abs=1e-12)
    assert steps["weighted"] == pytest.approx(values["raw"], abs=1e-12)
    assert list(steps["map"]) == ["0.25", "0.5", "0.75", "1"]
    assert 0 < steps["overlap"] <= K


def test_a_budget_below_every_ln_w_shifts_all_labels_alike_and_a_wide_one_not_at_all(pair):
    data, scores, twin = pair
    steps = measures.step_what_if(scores, twin, data, K)
    assert np.log(scores.weights).min() > 0.03
    tight, wide = (Arm("lightgbm", "r", cap=cap) for cap in (0.01, 50.0))
    assert measures.cap_what_if(tight, scores, twin, data, K) == pytest.approx(steps["unweighted"])
    assert measures.cap_what_if(wide, scores, twin, data, K) == pytest.approx(steps["map"]["1"])
    assert measures.cap_what_if(Arm("mlp", "r"), scores, twin, data, K) is None


def test_the_direct_shift_stays_within_twice_the_budget_at_every_cap(cells):
    for cap in ("0.3", "5"):
        direct = cells[f"lightgbm-r-cap-{cap}"]["direct"]
        assert direct["bound"] == pytest.approx(2 * 60 * 0.05 * float(cap))
        assert direct["largest"] <= direct["bound"]
        assert direct["residual"]["largest_gap"] <= direct["bound"] + 1e-3  # float32 scores
    assert cells["lightgbm-r"]["direct"]["bound"] is None


def test_with_the_seed_of_the_protocol_the_largest_split_is_the_test_split(
    pair, cells, monkeypatch
):
    data, scores, _ = pair
    monkeypatch.setattr(measures, "SPLIT_SEEDS", (42, 42))
    split = measures.sweep_splits(scores, data, K)[-1]
    values = rung_values(cells["lightgbm-r"], "test-split")
    for name, rung in (("map", "isotonic"), ("pooled", "pooled"), ("raw", "raw")):
        assert split[name] == pytest.approx(values[rung], abs=1e-12)
    assert split["map_sd"] == 0
    dead = cells["lightgbm-r"]["test-split"]["calibration_positives"]["n_dead"]
    assert split["n_dead"] == dead


def test_dead_labels_are_counted_on_ten_splits(products):
    data = products(9)
    counts = measures.count_dead(data.test.Y.tocsr())
    Y = data.test.Y.toarray()
    for each in counts:
        n_rows = max(1, int(each["share"] * len(Y)))
        dead = [
            (Y[np.random.default_rng(seed).permutation(len(Y))[:n_rows]].sum(axis=0) == 0).sum()
            for seed in range(10)
        ]
        assert (each["mean"], each["min"], each["max"]) == (np.mean(dead), min(dead), max(dead))
        assert each["any"] == np.mean(np.array(dead) > 0)


def test_an_arm_trained_twice_has_the_same_bits(cells):
    for arm in ("lightgbm-1", "lightgbm-r", "mlp-1", "mlp-r"):
        again = cells[f"again-{arm}"]["again"]
        assert again["same"]
        assert again["sha256"] == cells[arm]["sha256"]
        assert again["first"] == again["again"]


def test_the_earlier_configuration_is_another_model(cells):
    earlier = cells["lightgbm-1-earlier"]
    assert earlier["sha256"] != cells["lightgbm-1"]["sha256"]
    assert Arm("lightgbm", "1", variant="earlier").parameters["num_iterations"] == 100


def test_labels_have_their_shifts_one_by_one(cells, products):
    table, data = cells["lightgbm-r"]["labels"], products(9)
    assert table["label"] == list(data.label_names)
    positives = np.asarray(data.train.Y.sum(axis=0)).ravel()
    assert table["n_positives"] == positives.tolist()
    n_rows = data.train.n_rows
    assert table["intended"] == pytest.approx(np.log((n_rows - positives) / positives))
    assert "labels" not in cells["lightgbm-r-cap-5"]


def test_every_printed_number_is_a_number_and_has_a_place():
    printed = read_printed()
    assert set(printed) == {"santander", "instacart"}
    for numbers in printed.values():
        for number in numbers.values():
            float(number["printed"])
            assert number["where"]


def test_our_numbers_have_the_names_of_the_printed_ones(cells):
    """All but what this study did not run, or no study of ours can: WGBoost, other caps, draws."""
    ours = {name for name, _ in our_numbers(cells)}
    apart = re.compile(
        r"WGBoost|an earlier run|lightgbm, ind_|cap (0\.7|1|2):|draw 3|(at|by) (twin|oracle)"
    )
    for study in ("santander", "instacart"):
        expected = {name for name in read_printed()[study] if not apart.search(name)}
        assert not expected - ours


def test_a_number_equal_as_printed_counts_as_equal(cells):
    lines = printed_section(cells, "santander")
    counts = re.search(r"(\d+) numbers .*; (\d+) have ours beside them, (\d+)", lines[2])
    n_printed, n_beside, n_same = map(int, counts.groups())
    assert n_printed == len(read_printed()["santander"])
    rows = lines[4].splitlines()[2:]
    assert len(rows) == n_beside
    assert sum(row.endswith("|  |") for row in rows) == n_same
    assert printed_section(cells, "tafeng") == []


def test_arms_are_measured_with_the_hashes_of_their_scores(pair):
    data, scores, twin = pair
    cell = measure_arm(data, Arm("lightgbm", "r"), scores, twin)
    assert cell["sha256"] == scores.hashes()
    assert len(cell["sha256"]["test"]) == 64
    stored = np.load(scores.test)
    assert cell["zero_share"] == (stored == 0).mean()
