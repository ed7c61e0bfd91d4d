"""`Decision` on rows of every kind: exact, the same in blocks, saved and served alike."""

import warnings

import numpy as np
import pytest
from tests.decisions.decision_worlds import DECISIONS, draw_rows, fit_decision, fit_repair

import oddslip
from oddslip import Decision
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.serving import load_runtime
from oddslip.sources import base

EACH = pytest.mark.parametrize(
    "arguments", DECISIONS, ids=lambda each: "-".join(map(str, each.values()))
)


@pytest.fixture(scope="module")
def repair():
    return fit_repair()


@EACH
def test_blocks_and_threads_change_nothing(repair, arguments, monkeypatch):
    whole = fit_decision(repair, arguments, threads=1)
    scores, _ = draw_rows(2)
    monkeypatch.setattr(base, "BLOCK_BYTES", 6 * 8 * 7)
    parts = fit_decision(repair, arguments, threads=2)
    mine, theirs = whole.fitted_.to_dict(), parts.fitted_.to_dict()
    assert mine == theirs
    assert np.array_equal(whole.lists(scores), parts.lists(scores, threads=2))


@EACH
def test_a_saved_decision_lists_alike_here_and_in_the_runtime(repair, arguments, tmp_path):
    decision = fit_decision(repair, arguments)
    scores, _ = draw_rows(3, 60)
    expected = decision.lists(scores)
    decision.save(tmp_path / "d.oddslip")
    loaded = oddslip.load_decision(tmp_path / "d.oddslip")
    assert loaded.to_dict() == decision.fitted_.to_dict()
    assert np.array_equal(loaded.lists(scores), expected)
    runtime = load_runtime(tmp_path / "d.oddslip")
    assert np.array_equal(runtime.lists(scores), expected)
    assert np.array_equal(runtime.lists(scores[0]), expected[0])
    assert np.array_equal(
        oddslip.load_repair(tmp_path / "d.oddslip").rank(scores, k=2), repair.rank(scores, k=2)
    )


@EACH
def test_candidates_and_exclusions_are_never_shown_and_count_for_nothing(
    repair, arguments, tmp_path
):
    rng = np.random.default_rng(7)
    scores, labels = draw_rows(4)
    absent = rng.random(scores.shape) < 0.3
    exclude = [np.flatnonzero(row).tolist() for row in absent]
    holes = np.where(absent, np.nan, scores)
    by_nan = Decision(repair, **arguments).fit(holes, labels, nan="absent")
    by_list = Decision(repair, **arguments).fit(scores, labels, exclude=exclude)
    assert by_nan.fitted_.to_dict() == by_list.fitted_.to_dict()
    lists = by_list.lists(scores, exclude=exclude)
    assert np.array_equal(lists, by_nan.lists(holes, nan="absent"))
    for row, columns in enumerate(lists):
        assert not absent[row, columns[columns >= 0]].any()
    by_list.save(tmp_path / "d.oddslip")
    runtime = load_runtime(tmp_path / "d.oddslip")
    assert np.array_equal(runtime.lists(scores, exclude=exclude), lists)
    assert np.array_equal(runtime.lists(holes, nan="absent"), lists)
    some = [4, 1, 2]
    others = [[0, 3, 5]] * 20
    assert np.array_equal(
        runtime.lists(scores[:20][:, some], candidates=some),
        by_list.lists(scores[:20], exclude=others),
    )


@EACH
def test_lists_are_matched_by_the_names_of_labels(arguments):
    import pandas as pd

    names = list("abcdef")
    scores, labels = draw_rows(0, 1000)
    repair = oddslip.calibrators.Platt().fit(scores, labels, label_names=names).fitted_
    frame = pd.DataFrame(draw_rows(1)[0], columns=names)
    truth = pd.DataFrame(draw_rows(1)[1], columns=names)
    straight = Decision(repair, **arguments).fit(frame, truth)
    back = Decision(repair, **arguments).fit(frame[names[::-1]], truth)
    assert straight.fitted_.to_dict() == back.fitted_.to_dict()
    new = pd.DataFrame(draw_rows(2, 50)[0], columns=names)
    lists = straight.lists(new, names=True)
    assert lists.equals(straight.lists(new[names[::-1]], names=True))


@EACH
def test_the_summary_is_what_the_lists_reach(repair, arguments):
    decision = fit_decision(repair, arguments)
    scores, labels = draw_rows(1)
    lists = decision.lists(scores)
    sizes = (lists >= 0).sum(axis=1)
    hits = np.array([labels[row, each[each >= 0]].sum() for row, each in enumerate(lists)])
    true = labels.sum(axis=1)
    summary = decision.fitted_.evaluate(scores, labels)
    assert summary.items() <= decision.fitted_.summary.items()
    assert summary["mean_length"] == pytest.approx(sizes.mean())
    assert summary["precision"] == pytest.approx(hits.sum() / sizes.sum())
    assert summary["recall"] == pytest.approx(hits.sum() / true.sum())
    missed = (1 - hits / np.maximum(true, 1))[true > 0].mean()
    assert summary["missed_share"] == pytest.approx(missed, abs=1e-8)
    wrong = np.where(sizes > 0, 1 - hits / np.maximum(sizes, 1), 0).mean()
    assert summary["wrong_share"] == pytest.approx(wrong, abs=1e-8)
    assert str(decision.fitted_)


def test_a_threshold_needs_no_labels(repair):
    decision = Decision(repair, goal="f1").fit(draw_rows(1)[0])
    table = decision.fitted_.thresholds
    assert np.array_equal(table.used, table.plug_in)
    assert np.isnan(table.fitted).all()
    assert decision.fitted_.to_frame().shape == (6, 5)


def test_labels_that_cannot_reach_the_target_are_named():
    rng = np.random.default_rng(3)
    scores, labels = rng.random((600, 3)), rng.random((600, 3)) < [0.5, 0.02, 0.5]
    labels[:, 0] = scores[:, 0] > 0.5
    labels[:, 2] = scores[:, 2] > 0.4
    repair = oddslip.calibrators.Isotonic().fit(scores[:300], labels[:300]).fitted_
    decide = Decision(repair, goal="precision", target=0.9, shrinkage=0)
    with pytest.warns(UserWarning, match=r"1 labels cannot reach precision 0.9: 1\."):
        decide.fit(scores[300:])
    assert decide.fitted_.summary["unmet"] == ["1"]
    assert not (decide.lists(scores) == 1).any()


def test_rows_of_the_calibration_are_noticed(repair):
    with pytest.warns(UserWarning, match="those that the repair was fitted on"):
        Decision(repair).fit(*draw_rows(0, 1000))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "best"}, "rule must be one of"),
        ({"goal": "map"}, "goal 'map' needs rule \"length\""),
        ({"goal": "mop"}, "goal must be one of"),
        ({"goal": "precision"}, "target must be between 0 and 1"),
        ({"goal": "f1", "target": 0.3}, "target must be left out"),
        ({"costs": (1, 0)}, "costs must be two positive numbers"),
        ({"k_max": 7}, "k_max must be at most 6"),
        ({"shrinkage": -1}, "shrinkage must be at least 0"),
        ({"rule": "length", "goal": "missed", "target": 0.1}, "labels are needed"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(repair, arguments, message):
    with pytest.raises(InvalidInput, match=message):
        Decision(repair, **arguments).fit(draw_rows(1)[0])


def test_what_is_no_repair_or_not_fitted_is_refused(repair, tmp_path):
    with pytest.raises(InvalidInput, match="repair must be a fitted repair"):
        Decision(None).fit(draw_rows(1)[0])
    with pytest.raises(InvalidInput, match="not fitted"):
        Decision(repair).lists(draw_rows(1)[0])
    repair.save(tmp_path / "r.oddslip")
    with pytest.raises(InvalidInput, match="without a decision"):
        oddslip.load_decision(tmp_path / "r.oddslip")
    with pytest.raises(InvalidInput, match="lists need a decision"):
        load_runtime(tmp_path / "r.oddslip").lists(draw_rows(1)[0])


def test_a_file_with_a_decision_that_does_not_add_up_is_refused(repair, tmp_path):
    from dataclasses import replace

    decision = fit_decision(repair, DECISIONS[0]).fitted_
    rule = replace(decision.rule, thresholds=decision.rule.thresholds[:3])
    replace(decision, rule=rule).save(tmp_path / "d.oddslip")
    with pytest.raises(UnreadableFile, match="one threshold per label"):
        oddslip.load_decision(tmp_path / "d.oddslip")


def test_groups_have_levels_of_their_own(repair, tmp_path):
    scores, labels = draw_rows(1, 2000)
    groups = np.where(np.arange(2000) % 3 == 0, "new", "old")
    labels[groups == "new"] = draw_rows(9, 2000)[1][groups == "new"]  # scores say nothing
    decide = Decision(repair, "common_threshold", goal="missed", target=0.2)
    decide.fit(scores, labels, groups=groups)
    new, old = decide.fitted_.rule.levels
    assert new < old
    decide.save(tmp_path / "d.oddslip")
    lists = decide.lists(scores, groups=groups)
    assert np.array_equal(load_runtime(tmp_path / "d.oddslip").lists(scores, groups=groups), lists)
    assert np.array_equal(
        load_runtime(tmp_path / "d.oddslip").lists(scores[0], groups="new"), lists[0]
    )
    with pytest.raises(InvalidInput, match="groups are needed"):
        decide.lists(scores)


def test_no_warning_where_there_is_nothing_to_warn_of(repair):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_decision(repair, {"rule": "length", "goal": "wrong", "target": 0.4})


def test_lengths_are_drawn_raw_beside_repaired(repair):
    scores, labels = draw_rows(2, 400)
    decide = Decision(repair, "length", goal="f1").fit(scores, labels)
    k = int(decide.fitted_.rule.levels[0])
    raw, repaired = decide.raw_table_, decide.table_
    evaluation = oddslip.evaluate(scores, labels, k=k)
    for metric in ("precision", "recall"):
        assert raw.metrics[metric][k - 1].value == pytest.approx(evaluation[metric].value)
    texts = [text.get_text() for text in decide.plot().legends[0].get_texts()]
    assert texts == ["raw", "repaired", f"length chosen: {k}"]
    precision = decide.plot().axes[0].lines[1].get_ydata()
    assert list(precision) == [each.value for each in repaired.metrics["precision"]]
    with pytest.raises(InvalidInput, match="compares lengths"):
        Decision(repair).fit(scores, labels).plot()
