"""Decisions on rows that say little: dead labels, few rows, probabilities of exactly 0."""

import warnings

import numpy as np
import pandas as pd
import pytest
from tests.decisions.decision_worlds import draw_rows, fit_decision, fit_repair
from tests.serving.repair_worlds import draw_row_aware

import oddslip
from oddslip import Decision
from oddslip.calibrators import Isotonic
from oddslip.decisions.list_rule import SCALE, ListRule
from oddslip.decisions.risk import rows_needed
from oddslip.errors import InvalidInput
from oddslip.serving import load_runtime
from oddslip.serving.performance import MIN_ROWS


@pytest.fixture(scope="module")
def repair():
    return fit_repair()


def draw_dead(seed, n_rows=400):
    """The rows of the other tests, whose second label is never true."""
    scores, labels = draw_rows(seed, n_rows)
    labels[:, 1] = 0
    return scores, labels


@pytest.mark.parametrize("labelled", [True, False])
def test_a_label_that_was_never_true_is_not_shown_for_f1(labelled, tmp_path):
    repair = Isotonic().fit(*draw_dead(0, 1000)).fitted_
    scores, labels = draw_dead(1)
    decision = Decision(repair).fit(scores, labels if labelled else None)
    assert np.ptp(repair.transform(scores)[:, 1]) == 0  # its prior, in every row
    assert not (decision.lists(scores) == 1).any()
    assert "1 label without a positive" in str(decision.fitted_)
    decision.save(tmp_path / "d.oddslip")
    assert np.isinf(oddslip.load_decision(tmp_path / "d.oddslip").thresholds.used[1])
    labels[:40, 1] = 1
    decision = Decision(repair).fit(scores, labels)
    assert (decision.lists(scores) == 1).any()  # some rows of the fit hold it


def test_a_label_of_probability_zero_is_not_shown_for_f1():
    scores, labels = draw_dead(0, 1000)
    prior = np.full(6, 0.2)
    prior[1] = 0.0
    repair = Isotonic(prior=prior).fit(scores, labels).fitted_
    labels[:, 1] = np.arange(1000) % 2
    decision = Decision(repair, "common_threshold", goal="micro_f1").fit(scores)
    assert (decision.fitted_.rule.thresholds > 0).all()
    decision = Decision(repair, shrinkage=1e9).fit(*draw_rows(2))  # as good as the plug-in
    assert decision.fitted_.thresholds.plug_in[1] > 0
    assert not (decision.lists(scores) == 1).any()


def test_a_row_in_which_nothing_is_expected_has_an_empty_list_for_recall():
    rule = ListRule("recall", np.array([0.8]), 2)
    cells, totals = np.array([[0.0, 0.0], [0.5, 0.0]]), np.array([0, SCALE // 2])
    assert rule.lengths(cells, totals, np.zeros(2, np.int64)).tolist() == [0, 1]


def test_labels_that_are_hidden_by_their_true_labels_are_named():
    rng = np.random.default_rng(0)
    scores = rng.random((800, 2))
    repair = Isotonic().fit(scores, rng.random(scores.shape) < scores).fitted_
    new = rng.random((800, 2))
    truth = rng.random(new.shape) < new * [1.0, 0.5]  # the second is half as likely by now
    decide = Decision(repair, goal="precision", target=0.8, shrinkage=0)
    with pytest.warns(UserWarning, match="cannot reach"):
        decide.fit(new, truth)
    table = decide.fitted_.thresholds
    assert np.isfinite(table.plug_in[1])
    assert not (decide.lists(new) == 1).any()
    assert decide.fitted_.summary["unmet"] == ["1"]


def test_reached_is_a_mean_over_labels_that_are_shown(repair):
    rng = np.random.default_rng(3)
    scores, labels = rng.random((600, 3)), rng.random((600, 3)) < [0.5, 0.02, 0.5]
    labels[:, 0] = scores[:, 0] > 0.5
    labels[:, 2] = scores[:, 2] > 0.4
    repair = Isotonic().fit(scores[:300], labels[:300]).fitted_
    decide = Decision(repair, goal="precision", target=0.9, shrinkage=0)
    with pytest.warns(UserWarning, match="cannot reach"):
        decide.fit(scores[300:], labels[300:])
    lists, truth = decide.lists(scores[300:]), labels[300:]
    shown = [(lists == label).any(axis=1) for label in (0, 2)]
    mean = np.mean([truth[rows, label].mean() for rows, label in zip(shown, (0, 2), strict=True)])
    assert mean >= 0.9
    assert decide.fitted_.summary["reached"]["used"]["observed"] == pytest.approx(mean)


@pytest.mark.parametrize("rule", ["common_threshold", "row", "length"])
@pytest.mark.parametrize("goal", ["missed", "wrong"])
def test_too_few_rows_give_no_guarantee_and_say_so(repair, rule, goal):
    scores, labels = draw_rows(1)
    labels[:, 0] = 1
    needed = rows_needed(0.1)
    few = Decision(repair, rule, goal=goal, target=0.1)
    with pytest.warns(UserWarning, match="cannot guarantee"):
        few.fit(scores[: needed - 1], labels[: needed - 1])
    assert not few.fitted_.summary["guarantee"][0]["holds"]
    assert "No guarantee" in str(few.fitted_)
    assert "Guarantee:" not in str(few.fitted_)
    lists = few.lists(scores)
    assert (lists >= 0).all() if goal == "missed" else (lists < 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enough = Decision(repair, rule, goal=goal, target=0.1).fit(scores[:needed], labels[:needed])
    assert enough.fitted_.summary["guarantee"][0]["bound"] <= 0.1


def test_groups_with_one_row_each_have_no_guarantee(repair):
    decide = Decision(repair, "row", goal="missed", target=0.1)
    with pytest.warns(UserWarning, match="of group '0' cannot guarantee"):
        decide.fit(*draw_rows(1, 60), groups=np.arange(60))
    assert len(decide.fitted_.summary["unmet"]) == 60
    assert str(decide.fitted_).count("uarantee") == 1


def test_groups_of_a_series_are_matched_by_the_ids_of_rows(tmp_path):
    names, ids = list("abcdef"), [f"row {at}" for at in range(400)]
    repair = Isotonic().fit(*draw_rows(0, 1000), label_names=names).fitted_
    scores, labels = (pd.DataFrame(each, ids, names) for each in draw_rows(1))
    groups = pd.Series(np.where(np.arange(400) < 200, "old", "new"), ids)
    straight, back = (
        Decision(repair, "row", goal="missed", target=0.2).fit(scores, labels, groups=each)
        for each in (groups, groups[::-1])
    )
    assert np.array_equal(straight.fitted_.rule.levels, back.fitted_.rule.levels)
    straight.save(tmp_path / "d.oddslip")
    for served in (straight, load_runtime(tmp_path / "d.oddslip")):
        lists = served.lists(scores, groups=groups)
        assert np.array_equal(lists, served.lists(scores, groups=groups[::-1]))
    with pytest.raises(InvalidInput, match="scores and groups"):
        straight.lists(scores, groups=groups.rename(lambda name: f"other {name}"))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ({"rule": "row", "goal": "cost", "target": "a"}, {}, "target must be a cost"),
        ({"rule": "row", "goal": "cost", "target": np.nan}, {}, "target must be a cost"),
        ({"rule": "length", "n_replicates": -1}, {}, "n_replicates must be at least 0"),
        ({"rule": "length", "n_replicates": 1.5}, {}, "n_replicates must be a whole number"),
        ({"rule": "row", "goal": "missed", "target": 0.1}, {"groups": [[1, 2], [1]]}, "per row"),
    ],
)
def test_what_is_no_number_or_no_group_is_refused(repair, arguments, options, message):
    with pytest.raises(InvalidInput, match=message):
        Decision(repair, **arguments).fit(*draw_rows(1), **options)


def test_lengths_need_a_row_with_a_true_label(repair):
    scores, labels = draw_rows(1)
    with pytest.raises(InvalidInput, match="at least one row must have a true label"):
        Decision(repair, "length").fit(scores, np.zeros_like(labels))


def test_lists_of_length_zero_are_not_exported(repair, tmp_path):
    decision = fit_decision(repair, {"rule": "length", "goal": "wrong", "target": 0.05}).fitted_
    assert decision.rule.levels[0] == 0
    for write in (decision.to_onnx, lambda path: decision.to_sql(path, dialect="duckdb")):
        with pytest.raises(InvalidInput, match="lists of at least one label"):
            write(tmp_path / "d.file")


@pytest.mark.parametrize("n_rows", [1, 2, 3, MIN_ROWS - 1])
def test_a_handful_of_rows_never_breaks_a_guarantee_surely(repair, n_rows):
    decision = fit_decision(repair, {"rule": "length", "goal": "missed", "target": 0.3})
    scores, labels = draw_rows(5, 2000)
    lists = decision.lists(scores)
    misses = np.array([not labels[row, each[each >= 0]].any() for row, each in enumerate(lists)])
    rows = np.flatnonzero(misses & labels.any(axis=1))[:n_rows]  # all that is true is missed
    assert rows.size == n_rows
    result = oddslip.check(decision, scores[rows], labels[rows], k=3, fail_on="OS512")
    assert "OS512" not in result.looked_for
    assert result.finding("OS512") is None


@pytest.mark.parametrize("seed", range(6))
def test_labels_that_are_not_shown_still_support_others(seed, tmp_path):
    from dataclasses import replace

    repair, scores = draw_row_aware(seed)
    scores = scores.astype(np.float64)
    rng = np.random.default_rng(seed)
    labels = rng.random(scores.shape) < 0.2
    decision = Decision(repair, k_max=4).fit(scores, labels).fitted_
    rule = replace(decision.rule, thresholds=rng.uniform(0.05, 0.3, scores.shape[1]))
    decision = replace(decision, rule=rule)
    cells = repair.transform(scores)
    lists = decision.lists(scores)
    ranking = repair.rank(scores, k=scores.shape[1])
    for row, ranked, shown in zip(cells, ranking, lists, strict=True):
        order = [at for at in ranked if row[at] >= rule.thresholds[at]]
        assert shown[shown >= 0].tolist() == order[:4]
    decision.save(tmp_path / "d.oddslip")
    assert np.array_equal(load_runtime(tmp_path / "d.oddslip").lists(scores), lists)
    absent = rng.random(scores.shape) < 0.5
    holes = np.where(absent, np.nan, scores)
    rows, columns = np.nonzero(~absent)
    listed = {"row": rows, "label": columns, "score": scores[~absent]}
    pd.DataFrame(listed).to_parquet(tmp_path / "long.parquet")
    lists = decision.lists(holes, nan="absent")
    assert np.array_equal(decision.lists(tmp_path / "long.parquet", nan="absent"), lists)
