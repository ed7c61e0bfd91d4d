"""`check` finds faults of a served ranker, passes quiet days, and rejects invalid arguments."""

import json
from dataclasses import replace

import numpy as np
import pytest

import oddslip
from experiments.monitor_simulation import FAULTS, QUIET, draw_world
from oddslip.calibrators import Platt
from oddslip.diagnosis import CODES
from oddslip.errors import InvalidInput, UnreadableFile

FEW = {"n_replicates": 200}
pytestmark = pytest.mark.filterwarnings("ignore:labels of .* are matched by position:UserWarning")
# Code: a month in which it is found, with labels or without.
MONTHS = {
    "OS201": "shuffled rows",
    "OS404": "a dead label alive",
    "OS406": "prior drift in 5 labels",
    "OS501": "swapped label columns",
    "OS502": "unit change",
    "OS503": "stale calibration",
    "OS504": "saturation after a retrain",
    "OS505": "rounded scores",
    "OS507": "unit change",
    "OS508": "changed taste",
    "OS509": "lost feature",
}


@pytest.fixture(scope="module")
def world():
    return draw_world(11, len(FAULTS) + 1)


@pytest.fixture(scope="module")
def month(world):
    """A month by its name, and what a check with labels says of it."""
    results = {}

    def find(name):
        if name not in results:
            number = [*FAULTS, QUIET].index(name)
            rows = world.month(number) if name == QUIET else FAULTS[name].make(world, number)
            names = world.pair.label_names
            result = oddslip.check(world.repair, *rows, label_names=names, **FEW)
            results[name] = rows, result
        return results[name]

    return find


@pytest.mark.parametrize(("code", "name"), MONTHS.items())
def test_a_fault_is_found_by_its_code_and_a_quiet_month_has_none(month, code, name):
    assert month(name)[1].finding(code) is not None
    assert not month(name)[1].passed
    assert month(QUIET)[1].finding(code) is None
    assert month(QUIET)[1].passed


def test_ties_that_decide_more_rows_are_found():
    rng = np.random.default_rng(0)
    scores = rng.random((2000, 6))
    labels = rng.random(scores.shape) < scores
    repair = oddslip.Repair(k=2, rule="raw").fit(scores, labels)
    assert oddslip.check(repair, rng.random((1000, 6))).finding("OS506") is None
    finding = oddslip.check(repair, np.round(rng.random((1000, 6)), 1)).finding("OS506")
    assert finding.evidence["share_before"] == 0 < finding.evidence["share_now"]


def test_raw_scores_that_lose_by_their_weights_are_not_safe_to_ship(world):
    scores, labels = world.month(0)
    result = oddslip.check(None, scores, labels, k=7, **FEW)
    assert "OS510" in result.failed
    assert "Not safe to ship at K = 7" in str(result)


def test_raw_scores_of_an_unweighted_model_are_safe_to_ship(world):
    rows = slice(4000, 7000)
    result = oddslip.check(None, world.pair.unweighted[rows], world.pair.labels[rows], k=7, **FEW)
    assert result.passed
    assert result.finding("OS510") is None


def test_raw_scores_without_labels_are_searched_for_saturation_and_ties(world):
    scores, _ = FAULTS["saturation after a retrain"].make(world, 1)
    result = oddslip.check(None, scores, k=7)
    assert "OS202" in result.failed
    assert oddslip.check(None, np.round(scores, 1), k=7).finding("OS203") is not None
    assert oddslip.check(None, world.month(1).scores, k=7).passed


def test_a_repair_of_an_older_version_is_checked_as_far_as_it_goes(world):
    old = replace(world.repair, fingerprint=None)
    result = oddslip.check(old, *world.month(0), k=7, **FEW)
    assert [each.code for each in result.findings] == ["OS511"]
    assert result.passed
    assert result.metrics["map"].value > 0.3
    assert result.measures["expected_precision"]["before"] is None


def test_every_code_of_a_check_is_tested_here():
    assert {code for code in CODES if "OS5" < code < "OS6"} <= {
        *(*MONTHS, "OS506", "OS510", "OS511"),
        "OS512",  # tests/decisions/test_guarantee.py
    }


def test_every_finding_says_what_it_saw_and_what_to_do(month):
    for name in set(MONTHS.values()):
        for finding in month(name)[1].findings:
            assert finding.sentence.endswith(".")
            assert finding.advice.endswith(".")
            assert finding.evidence
            json.dumps(finding.to_dict(), allow_nan=False)


# ----------------------------------------------------------------------------- what makes it fail


def test_only_what_is_named_fails(world, month):
    (scores, _), _ = month("stale calibration")
    options = {"label_names": world.pair.label_names}
    codes = {each.code for each in oddslip.check(world.repair, scores, **options).findings}
    assert {"OS501", "OS503"} <= codes
    assert oddslip.check(world.repair, scores, fail_on="OS504", **options).passed
    assert oddslip.check(world.repair, scores, fail_on="none", **options).passed
    result = oddslip.check(world.repair, scores, fail_on=["os503", "OS504"], **options)
    assert result.failed == ("OS503",)


def test_a_sure_drop_fails_even_where_nothing_was_named(world, month):
    (scores, labels), _ = month("changed taste")
    result = oddslip.check(world.repair, scores, labels, fail_on="none", **FEW)
    assert result.failed == ("OS508",)
    assert oddslip.check(world.repair, scores, labels, fail_on="none", max_drop=0.9, **FEW).passed


def test_a_drop_is_paired_where_the_baseline_ranks_the_same_rows(world):
    scores, labels = world.month(0)
    better = world.repair.transform(scores)
    result = oddslip.check(None, scores, labels, k=7, baseline=better, fail_on="none", **FEW)
    assert result.failed == ("OS508",)
    expected = oddslip.evaluate(scores, labels, k=7, n_replicates=0)
    expected = (
        expected["map"].value - oddslip.evaluate(better, labels, k=7, n_replicates=0)["map"].value
    )
    assert result.changes["map"].value == pytest.approx(expected, abs=1e-3)
    same = oddslip.check(world.repair, scores, labels, baseline=world.repair, **FEW)
    assert same.changes["map"].value == 0
    assert (same.changes["map"].low, same.changes["map"].high) == (0, 0)


def test_metrics_are_those_of_evaluate(world, month):
    (scores, labels), result = month(QUIET)
    expected = oddslip.evaluate(scores, labels, k=7, n_replicates=0)
    for name, estimate in oddslip.check(None, scores, labels, k=7, **FEW).metrics.items():
        assert estimate.value == pytest.approx(expected[name].value, abs=1e-12)
    mapped = world.repair.transform(scores, dtype=np.float64)
    repaired = oddslip.evaluate(mapped, labels, k=7, n_replicates=0)
    assert result.metrics["map"].value == pytest.approx(repaired["map"].value, abs=1e-6)


@pytest.mark.parametrize("what", ["diagnosis", "evaluation", "check"])
def test_an_earlier_result_or_its_json_is_a_baseline(world, month, tmp_path, what):
    (scores, labels), earlier = month(QUIET)
    if what == "diagnosis":
        options = {"calibration": (world.pair.weighted[:4000], world.pair.labels[:4000])}
        earlier = oddslip.diagnose(scores, labels, k=7, n_replicates=200, **options)
        before = earlier.ladder.value("chosen")
    elif what == "evaluation":
        earlier = oddslip.evaluate(world.repair.transform(scores), labels, k=7, n_replicates=200)
        before = earlier["map"].value
    else:
        before = earlier.metrics["map"].value
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps(earlier.to_dict()))
    now = world.month(3)
    for baseline in (earlier, earlier.to_dict(), path):
        result = oddslip.check(world.repair, *now, baseline=baseline, **FEW)
        change = result.changes["map"]
        assert result.metrics["map"].value - change.value == pytest.approx(before, abs=1e-9)
        assert change.low < change.value < change.high
        assert set(result.changes) == set(result.metrics)


def test_two_sample_intervals_hold_the_errors_of_both_sides(world):
    first, second = world.month(2), world.month(3)
    one = oddslip.check(world.repair, *first, n_replicates=1000)
    two = oddslip.check(world.repair, *second, baseline=one, n_replicates=1000)
    errors = [
        oddslip.evaluate(world.repair.transform(rows.scores), rows.labels, k=7).per_row("map")
        for rows in (first, second)
    ]
    error = np.sqrt(sum(each.var() / each.size for each in errors))
    width = two.changes["map"].high - two.changes["map"].low
    assert width == pytest.approx(2 * 2.5758 * error, rel=0.1)


# ----------------------------------------------------------------------------------- what it gives


def test_the_result_is_plain_and_whole(world, month):
    result = month("lost feature")[1]
    document = result.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["schema"] == "oddslip.check/1"
    frame = result.to_frame()
    assert {"saturated_share", "expected_precision", "MAP@7"} <= set(frame["what"])
    labels = result.to_frame("labels")
    assert labels["label"].tolist() == list(world.pair.label_names)
    assert labels["scores_moved"].any()
    assert "<td>" in result._repr_html_()
    assert repr(result).startswith("CheckResult(")


def test_expected_and_measured_precision_are_of_the_same_rows_and_labels():
    """Half of the rows have no true label, and a third fewer candidates than slots."""
    rng = np.random.default_rng(5)
    scores = rng.random((1200, 6)) * 0.6
    labels = rng.random(scores.shape) < scores
    repair = oddslip.Repair(k=3, rule="isotonic-0").fit(scores, labels)
    labels[::2] = False
    scores[::3, 2:] = np.nan
    result = oddslip.check(repair, scores, labels, nan="absent", **FEW)
    repaired = repair.transform(scores, nan="absent")
    expected, measured = [], []
    for row, truth in zip(repaired, labels, strict=True):
        order = np.argsort(-row, kind="stable")
        top = [label for label in order if not np.isnan(row[label])][:3]
        expected.append(np.mean(row[top]))
        measured.append(np.mean(truth[top]))
    stored = result.to_dict()
    assert stored["measures"]["expected_precision"]["now"] == pytest.approx(np.mean(expected))
    assert stored["measures"]["expected_precision"]["measured"] == pytest.approx(np.mean(measured))
    assert stored["n_evaluated"] == (labels & ~np.isnan(scores)).any(axis=1).sum()
    assert f"Over the {stored['n_evaluated']:,} rows with a true label" in str(result)
    assert "over all 1,200 rows" in str(result)


def test_without_labels_no_precision_is_measured(world):
    result = oddslip.check(world.repair, world.month(0).scores)
    assert result.measures["expected_precision"]["measured"] is None
    assert result.to_dict()["n_evaluated"] is None


def test_the_expected_precision_is_not_trusted_under_drift(month):
    assert month(QUIET)[1].measures["expected_precision"]["trusted"]
    drifted = month("lost feature")[1]
    assert not drifted.measures["expected_precision"]["trusted"]
    assert "do not trust the expectation" in str(drifted)


def test_moved_prevalences_are_told_from_moved_scores(world):
    """The month of drifted prevalences is one; a lost feature is none."""
    scores = FAULTS["prior drift in 5 labels"].make(world, 5).scores
    moved = oddslip.check(world.repair, scores)
    assert moved.finding("OS501") is not None
    assert moved.finding("OS509") is None
    assert 'prior_shift="em"' in moved.finding("OS501").advice
    broken = oddslip.check(world.repair, FAULTS["lost feature"].make(world, 5).scores)
    assert broken.finding("OS509") is not None
    assert 'prior_shift="em"' not in broken.finding("OS501").advice


def test_names_in_another_order_change_nothing(world, month):
    (scores, labels), straight = month("swapped label columns")
    names = world.pair.label_names
    panel = oddslip.Panel(scores[:, ::-1].copy(), labels[:, ::-1].copy(), label_names=names[::-1])
    turned = oddslip.check(world.repair, panel, **FEW)
    assert {each.code for each in turned.findings} == {each.code for each in straight.findings}
    assert turned.metrics["map"].value == pytest.approx(straight.metrics["map"].value, abs=2e-3)


def test_hostile_names_stay_one_line(world):
    names = [f"</script>\n\x1b[31m{j}" for j in range(40)]
    fitted = replace(world.repair, label_names=tuple(names))
    scores = FAULTS["unit change"].make(world, 0).scores
    result = oddslip.check(fitted, scores, label_names=names)
    for finding in result.findings:
        assert "\x1b" not in finding.sentence
        assert "\n" not in finding.sentence
    assert "<script>" not in result._repr_html_()


def test_a_notebook_shows_commands_as_code(world):
    scores, labels = world.month(0)
    page = oddslip.check(None, scores, labels, k=7, **FEW)._repr_html_()
    assert "<code>oddslip fit</code>" in page
    assert "`" not in page


def test_a_calibrator_without_k_is_watched_but_for_its_slots(world):
    scores, labels = world.pair.weighted[:4000], world.pair.labels[:4000]
    fitted = Platt().fit(scores, labels)
    result = oddslip.check(fitted, world.month(0).scores, k=7)
    assert result.passed
    assert "OS502" not in result.looked_for
    assert "OS501" in result.looked_for
    moved = oddslip.check(fitted, FAULTS["unit change"].make(world, 0).scores, k=7)
    assert "OS501" in moved.failed


# ---------------------------------------------------------------------------------- what it refuses


REFUSED = {
    "k is needed": lambda world: oddslip.check(None, world.month(0).scores),
    "k must be that of the repair": lambda world: oddslip.check(
        world.repair, world.month(0).scores, k=5
    ),
    "fail_on must be": lambda world: oddslip.check(
        world.repair, world.month(0).scores, fail_on="OS999"
    ),
    "max_drop must be": lambda world: oddslip.check(
        world.repair, world.month(0).scores, max_drop=-1
    ),
    "repair must be": lambda world: oddslip.check(42, world.month(0).scores),
    "a baseline of metrics needs labels": lambda world: oddslip.check(
        world.repair, world.month(0).scores, baseline={}
    ),
    "baseline must be the JSON": lambda world: oddslip.check(
        world.repair, *world.month(0), baseline={"schema": "other"}
    ),
    "baseline must be at k=7": lambda world: oddslip.check(
        world.repair, *world.month(0), baseline={"schema": "oddslip.check/1", "k": 5}
    ),
    "baseline must hold metrics": lambda world: oddslip.check(
        world.repair, *world.month(0), baseline={"schema": "oddslip.check/1", "k": 7}
    ),
    "baseline scores must have the same shape": lambda world: oddslip.check(
        world.repair, *world.month(0), baseline=np.zeros((3, 40))
    ),
    "this repair was fitted on probability": lambda world: oddslip.check(
        world.repair, world.month(0).scores, kind="margin"
    ),
    "at least one row must have a true label": lambda world: oddslip.check(
        world.repair, world.month(0).scores, np.zeros((3000, 40), bool)
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_can_not_be_checked_is_refused_in_one_line(world, why):
    with pytest.raises(InvalidInput, match=why) as refusal:
        REFUSED[why](world)
    assert "\n" not in str(refusal.value)


def test_a_baseline_that_is_no_json_is_refused(world, tmp_path):
    path = tmp_path / "baseline.json"
    path.write_text("{{{")
    with pytest.raises(UnreadableFile, match="must be JSON"):
        oddslip.check(world.repair, *world.month(0), baseline=path)
