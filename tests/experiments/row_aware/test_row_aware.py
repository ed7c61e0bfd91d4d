"""Second stages that see the row: what they leave alone, what they learn, what the page tells."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.special import expit, logit

from experiments.row_aware import page, study
from experiments.row_aware.panels import Panel, Scored, split_groups
from experiments.row_aware.stages import (
    STAGES,
    Rows,
    Stage,
    fit_stage,
    learn_logistic,
    relate_labels,
)
from oddslip.errors import InvalidInput

OURS = [name for name in STAGES if name != study.PEER]


def make_rows(n_rows=400, n_labels=6, seed=0, noise=1.0):
    """Labels in pairs that agree; each score tells its own label alone, with noise."""
    rng = np.random.default_rng(seed)
    pairs = rng.random((n_rows, n_labels // 2)) < 0.3
    truth = np.repeat(pairs, 2, axis=1) ^ (rng.random((n_rows, n_labels)) < 0.05)
    margin = logit(0.3) + (truth - 0.3) / noise**2 + rng.normal(0, 1, truth.shape) / noise
    return Rows(margin, expit(margin)), truth


def fold_rows(n_rows):
    return (np.arange(n_rows) % 5).astype(np.int32)


def make_scored(seed=0):
    rows, truth = make_rows(300, seed=seed, noise=1.5)
    sides = rows.chance[:160], truth[:160], rows.chance[160:], truth[160:]
    return Scored(3, *sides, truth[:160].mean(axis=0), None, np.arange(160))


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_without_coefficients_ranks_as_the_repair_does(name):
    rows, truth = make_rows()
    rows.margin[:, 1] = rows.margin[:, 0]  # ties too
    stage = Stage(relate_labels(rows, truth), STAGES[name][0], lambda cells, odds: odds)
    np.testing.assert_array_equal(stage.rank(rows, 4), study.rank_margins(rows.margin, 4))


def test_features_that_say_nothing_get_no_coefficient():
    rng = np.random.default_rng(0)
    margin = rng.normal(0, 2, 200_000)
    truth = rng.random(margin.size) < expit(margin)
    predict = learn_logistic(rng.normal(size=(margin.size, 3)), margin, truth)
    np.testing.assert_allclose(predict(rng.normal(size=(9, 3)), np.zeros(9)), 0, atol=0.05)


def test_coefficients_are_those_of_an_independent_solver():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(1)
    cells = rng.normal(size=(4000, 2))
    truth = rng.random(4000) < expit(cells @ [1.0, -2.0] + 0.5)
    predict = learn_logistic(cells, np.zeros(4000), truth)
    scaled = (cells - cells.mean(axis=0)) / cells.std(axis=0)
    oracle = linear_model.LogisticRegression(C=0.1, tol=1e-10).fit(scaled, truth)
    np.testing.assert_allclose(
        predict(cells, np.zeros(4000)), oracle.decision_function(scaled), atol=1e-4
    )


def test_independent_labels_have_a_log_lift_near_zero():
    rng = np.random.default_rng(0)
    truth = rng.random((200_000, 5)) < [0.5, 0.3, 0.1, 0.05, 0.0]
    chance = np.broadcast_to(truth.mean(axis=0), truth.shape)
    relations = relate_labels(Rows(logit(chance.clip(1e-6)), chance), truth)
    assert np.abs(relations.lift).max() < 0.05
    assert not relations.lift[4].any()


def test_scores_that_leave_nothing_to_other_labels_get_no_response():
    rng = np.random.default_rng(0)
    chance = expit(rng.normal(-1, 1.5, (100_000, 4)))
    relations = relate_labels(Rows(logit(chance), chance), rng.random(chance.shape) < chance)
    assert np.abs(relations.response).max() < 0.1


@pytest.mark.parametrize("name", OURS)
def test_the_order_of_rows_changes_nothing(name):
    rows, truth = make_rows()
    folds, order = fold_rows(400), np.random.default_rng(3).permutation(400)
    unseen = make_rows(50, seed=9)[0]
    one = fit_stage(name, rows, truth, folds).rank(unseen, 3)
    other = fit_stage(name, rows.take(order), truth[order], folds[order])
    if name == "trees":  # floating-point sums of a booster depend on the order of its rows
        assert (other.rank(unseen, 3) == one).mean() > 0.95
    else:
        np.testing.assert_array_equal(other.rank(unseen, 3), one)
    places = np.random.default_rng(4).permutation(50)
    np.testing.assert_array_equal(other.rank(unseen.take(places), 3), other.rank(unseen, 3)[places])


@pytest.mark.parametrize("name", OURS)
def test_a_stage_learns_that_labels_occur_together(name):
    rows, truth = make_rows(1500, noise=1.5)
    unseen, answer = make_rows(1500, seed=1, noise=1.5)
    stage = fit_stage(name, rows, truth, fold_rows(1500))
    before, after = (
        study.row_precision(ranking, answer).mean()
        for ranking in (study.rank_margins(unseen.margin, 3), stage.rank(unseen, 3))
    )
    assert after > before + 0.02


def test_a_label_that_is_left_out_stays_out():
    rows, truth = make_rows()
    rows.margin[:, 2] = -np.inf
    for name in OURS:
        describe = STAGES[name][0]
        stage = Stage(relate_labels(rows, truth), describe, lambda cells, odds: 0 * cells[:, 0])
        assert not (stage.rank(rows, 5) == 2).any()


def test_no_row_is_described_by_its_own_labels(monkeypatch):
    rows, truth = make_rows(50)
    sizes = []

    def count(rows, truth):
        sizes.append(len(truth))
        return relate_labels(rows, truth)

    monkeypatch.setattr("experiments.row_aware.stages.relate_labels", count)
    fit_stage("shared", rows, truth, fold_rows(50))
    assert sizes == [40] * 5 + [50]


def test_test_labels_choose_nothing():
    scored = make_scored()
    cell = study.measure_panel(scored, ["shared"])
    other = study.measure_panel(scored._replace(test_truth=scored.test_truth[::-1]), ["shared"])
    assert cell["stages"] == other["stages"]
    assert cell["chosen"] == other["chosen"]
    assert cell["contenders"]["shared"] != other["contenders"]["shared"]


def test_rows_of_a_group_share_a_side_and_a_fold():
    rows, truth = make_rows(600)
    names = [f"patient {row // 3}" for row in range(600)]
    scored = split_groups(rows.chance, truth, names)
    assert len(scored.truth) == 180
    (folds,) = study.group_folds(scored.groups, 1)
    for group in np.unique(scored.groups):
        assert np.unique(folds.folds[scored.groups == group]).size == 1
        assert (scored.groups == group).sum() == 3


@pytest.mark.skipif(find_spec("mcgrad") is not None, reason="mcgrad is installed")
def test_a_missing_peer_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="needs mcgrad"):
        study.reproduce_row_aware(mcgrad=True, results=tmp_path)


def make_cell(auto, stage, evidence):
    """A cell of one stage: gains over raw, and its out-of-fold gain in standard errors."""

    def contender(gain):
        minus = {"difference": gain - auto, "standard_error": 0.001}
        return {"difference": gain, "standard_error": 0.001, "minus_auto": minus}

    names = dict.fromkeys(page.REPAIRS, auto) | {"shared": stage}
    return {
        "n_rows": 100,
        "n_labels": 5,
        "raw": 0.5,
        "chosen": "hierarchical",
        "stages": {"shared": {"out_of_fold": 0.01 * evidence, "standard_error": 0.01}},
        "contenders": {name: contender(gain) for name, gain in names.items()},
        "cpu": {"auto": 1.0, "shared": 2.0},
    }


def test_a_stage_is_used_only_where_its_gain_is_sure():
    cells = {"flags-a-1": make_cell(0.01, 0.05, 0.9), "flags-b-1": make_cell(0.01, 0.05, 1.1)}
    guarded = page.guard_stages(cells)
    gains = [cell["contenders"]["shared"]["difference"] for cell in guarded.values()]
    assert gains == [0.01, 0.05]
    assert cells["flags-a-1"]["contenders"]["shared"]["difference"] == 0.05


@pytest.mark.parametrize(
    ("gains", "expected"),
    [((0.004, 0.001), True), ((0.003, 0.0), False), ((0.04, -0.011), False)],
)
def test_a_place_takes_a_gain_and_no_harm(gains, expected):
    cells = {f"flags-{at}-1": make_cell(0.0, gain, 9) for at, gain in enumerate(gains)}
    assert page.earns_place(page.guard_stages(cells), "shared") == expected
    assert ("No stage earns a place" in page.write_page(cells)) != expected


def test_the_page_tells_the_numbers_of_its_cells():
    others = {"flags-a-1": make_cell(0.01, 0.05, 9), "birds-a-1": make_cell(-0.02, 0.01, 0)}
    lines = page.write_page(others | {"emotions-a-1": make_cell(0.02, 0.0, 9)}).splitlines()
    plain, guarded, *_ = [line for line in lines if line.startswith("| `auto` + shared parameters")]
    assert "| 2 | +0.0300 | 0 | +0.0100 | +0.0350 (" in plain  # both cells by the stage
    assert "| 2 | +0.0150 | 1 | -0.0200 | +0.0200 (" in guarded  # birds is left to `auto`
    assert guarded.endswith("| +0.0200 | 1 | 2.0 |")
    assert "| birds-a-1 | 100 | 5 | 0.5000 | -0.0200 | hierarchical | +0.0300 (+0.0) |" in "".join(
        lines
    )
    tuned = lines[lines.index("## Sets that constants were set on") :]
    assert any("| 1 | +0.0000 | 0 | +0.0000 | -0.0200 (" in line for line in tuned)


def test_finished_cells_are_read_without_data_and_the_peer_joins_them(tmp_path, monkeypatch):
    panels = [Panel("flags-a-1", {"data": "flags"}, make_scored)]
    monkeypatch.setattr(study, "list_panels", lambda *_: panels)
    monkeypatch.setattr(study, "find_version", lambda: "0")
    first = study.reproduce_row_aware(datasets=["flags"], results=tmp_path)
    learn = STAGES["shared"]
    monkeypatch.setitem(STAGES, study.PEER, learn)
    study.reproduce_row_aware(datasets=["flags"], mcgrad=True, results=tmp_path)
    monkeypatch.setattr(study, "list_panels", lambda *_: pytest.fail("was read"))
    (cell,) = study.reproduce_row_aware(results=tmp_path, finished=True).values()
    contenders = cell["contenders"]
    assert contenders[study.PEER] == contenders["shared"]
    assert json.loads(json.dumps(first))["flags-a-1"]["raw"] == cell["raw"]
