"""A diagnosis by another metric: every number, choice and sentence is of that one."""

from dataclasses import fields, replace

import numpy as np
import pytest

import oddslip
from oddslip import InvalidInput
from oddslip.calibrators import Isotonic
from oddslip.diagnosis import diagnose
from oddslip.diagnosis.checks import CHECKS
from oddslip.diagnosis.result import Measurements
from oddslip.diagnosis.verdict import judge
from oddslip.metrics.at_k import NAMES
from oddslip.reports.html.page import render_page
from oddslip.reports.text import as_text, show_diagnosis

K = 7
OTHERS = [metric for metric in NAMES if metric != "map"]


@pytest.fixture(scope="module")
def told(arguments):
    return arguments("capped")


@pytest.fixture(scope="module")
def by_ndcg(told):
    return diagnose(**told, metric="ndcg")


def ndcg(ranking, truth):
    """Mean over the rows with a true label, by NumPy alone."""
    discounts = 1 / np.log2(np.arange(2, K + 2))
    hits = np.take_along_axis(truth, ranking, 1)
    ideal = np.array([discounts[: min(K, n)].sum() for n in truth.sum(axis=1)])
    return ((hits * discounts).sum(axis=1) / ideal).mean()


def recall(ranking, truth):
    return (np.take_along_axis(truth, ranking, 1).sum(axis=1) / truth.sum(axis=1)).mean()


def precision(ranking, truth):
    return np.take_along_axis(truth, ranking, 1).mean()


ORACLES = {"ndcg": ndcg, "recall": recall, "precision": precision}


@pytest.mark.parametrize("metric", ORACLES)
def test_rungs_and_loss_are_those_of_numpy(told, metric):
    found = diagnose(**told | {"n_replicates": 0}, metric=metric)
    truth = np.asarray(told["labels"]).astype(int)
    some = truth.any(axis=1)
    repaired = Isotonic(prior=told["prior"]).fit(*told["calibration"]).transform(told["scores"])
    wanted = {
        name: ORACLES[metric](np.argsort(-scores[some], axis=1, kind="stable")[:, :K], truth[some])
        for name, scores in (
            ("raw", told["scores"]),
            ("unweighted", told["unweighted"]),
            ("isotonic", repaired),
        )
    }
    for name, value in wanted.items():
        assert found.ladder.value(name) == pytest.approx(value, abs=1e-12), name
    parts = found.decomposition
    assert parts.metric == metric
    assert parts.loss == pytest.approx(wanted["unweighted"] - wanted["raw"], abs=1e-12)
    assert parts.isotonic == pytest.approx(wanted["isotonic"] - wanted["raw"], abs=1e-12)
    assert sum(parts.by_cause.values()) == pytest.approx(parts.loss, abs=1e-12)


def test_a_metric_changes_no_number_of_a_rung_but_the_chosen_one(by_ndcg, scene):
    by_map = scene("capped")
    for name, rung in by_map.ladder.rungs.items():
        if name != "chosen":
            assert by_ndcg.ladder[name].metrics == rung.metrics, name
            assert by_ndcg.ladder[name].differences == rung.differences, name
    mine, other = by_ndcg.to_dict(), by_map.to_dict()
    for part in ("shifts", "saturation", "signal", "takeover", "overlap", "drift", "labels"):
        assert mine[part] == other[part], part


def test_two_rungs_are_held_together_in_the_metric(by_ndcg):
    ladder = by_ndcg.ladder
    assert ladder.lead("inversion", "raw") == ladder.gain("inversion", "ndcg")


@pytest.mark.parametrize("metric", ["ndcg", "psp"])
def test_the_rung_chosen_is_what_repair_deploys_by_the_metric(told, metric):
    propensities = np.linspace(0.1, 1.0, told["scores"].shape[1])
    by = {"metric": metric, "propensities": propensities}
    found = diagnose(**told | {"n_replicates": 0}, **by)
    repair = oddslip.Repair(k=K, prior=told["prior"], weights=told["weights"], **by)
    assert found.chosen[:2] == (repair.fit(*told["calibration"]).chosen_, repair.why_)
    assert f"{NAMES[metric]}@{K}" in found.chosen.why


def test_a_rule_can_choose_otherwise_by_another_metric():
    """Hits at the top count for MAP, any of the K for recall: the two disagree here."""
    rng = np.random.default_rng(5)
    scores = rng.random((400, 12))
    labels = rng.random((400, 12)) < scores * np.linspace(0.05, 0.9, 12)
    why = {
        metric: diagnose(scores, labels, k=3, metric=metric, n_replicates=0).chosen.why
        for metric in ("map", "recall")
    }
    assert "MAP@3" in why["map"]
    assert "recall@3" in why["recall"]
    assert why["map"].replace("MAP@3", "") != why["recall"].replace("recall@3", "")


def test_ties_bound_the_metric(arguments):
    told = arguments("saturated") | {"n_replicates": 0}
    found = diagnose(**told, metric="ndcg").ties
    worst, best = (
        oddslip.metrics.ndcg_at_k(told["scores"], told["labels"], k=K, ties=ties)
        for ties in ("worst", "best")
    )
    assert (found.worst, found.best) == pytest.approx((worst, best), abs=1e-12)
    assert found.worst < found.best


@pytest.mark.parametrize("metric", OTHERS)
def test_verdict_and_findings_speak_of_the_metric_alone(scene, scenes, metric):
    spoken = set()
    for name in scenes:
        found = scene(name)
        measured = Measurements(
            **{field.name: getattr(found, field.name) for field in fields(Measurements)}
        )
        measured = replace(measured, ladder=replace(found.ladder, metric=metric))
        findings = [made for check in CHECKS if (made := check(measured)) is not None]
        sentences = [judge(measured).sentence]
        for made in findings:
            sentences += [made.sentence, made.advice, *made.evidence]
        for sentence in sentences:
            assert "MAP" not in sentence
            assert "map_" not in sentence
        spoken.update(sentence for sentence in sentences if f"{NAMES[metric]}@{K}" in sentence)
    assert len(spoken) > 20


def test_text_page_frame_and_picture_show_the_metric(by_ndcg):
    text = as_text(show_diagnosis(by_ndcg, verbose=True))
    assert "nDCG@7" in text
    assert "MAP" not in text
    assert by_ndcg.to_dict()["metric"] == "ndcg"
    assert "nDCG@7" in by_ndcg._repr_html_()
    assert "MAP" not in by_ndcg._repr_html_()
    assert repr(by_ndcg.ladder).startswith("Ladder(nDCG@7")
    labels = [axis.get_xlabel() for axis in by_ndcg.plot("ladder").axes]
    assert labels == ["nDCG@7, with 95% intervals"]
    axis = by_ndcg.plot("waterfall").axes[0]
    assert "nDCG@7" in axis.get_xlabel() + axis.get_ylabel() + axis.get_title()


def test_the_page_names_map_only_among_the_other_metrics_and_for_the_reference_models(by_ndcg):
    page = render_page(by_ndcg)
    assert "<dt>metric</dt><dd>nDCG@7</dd>" in page
    assert page.count("MAP@7") == 1  # a column of the other metrics
    assert page.count("MAP@K") == 2  # what the reference models lost, and how they were picked
    assert "this model&#39;s in nDCG@7" in page


def test_psp_by_weights_is_what_evaluate_measures(told):
    found = diagnose(**told | {"n_replicates": 0}, metric="psp", propensities="weights")
    for rung, scores in (("raw", told["scores"]), ("unweighted", told["unweighted"])):
        seen = oddslip.evaluate(
            scores, told["labels"], k=K, weights=told["weights"], n_replicates=0
        )
        assert found.ladder.value(rung) == pytest.approx(seen["psp"].value, abs=1e-12)


def test_rows_by_keys_have_the_same_metric_in_any_order(told):
    pd = pytest.importorskip("pandas")
    n = 300
    index = pd.Index([f"row {at}" for at in range(n)], name="row_id")
    scores, labels, twin = (
        pd.DataFrame(np.asarray(told[name])[:n].astype(float), index=index)
        for name in ("scores", "labels", "unweighted")
    )
    order = np.random.default_rng(0).permutation(n)
    both = [
        diagnose(
            scores.iloc[rows],
            labels.iloc[rows],
            unweighted=twin.iloc[rows],
            k=K,
            keyed=True,
            metric="recall",
            weights=told["weights"],
            n_replicates=20,
        )
        for rows in (np.arange(n), order)
    ]
    plain = diagnose(scores, labels, unweighted=twin, k=K, metric="recall", n_replicates=0)
    assert both[0].verdict == both[1].verdict
    assert both[0].metric_name == "recall@7"
    assert "recall@7" in both[0].chosen.why
    for name in ("raw", "unweighted", "ceiling"):
        values = [each.ladder.value(name) for each in (*both, plain)]
        assert values == pytest.approx([values[0]] * 3, abs=1e-12)
    assert both[0].ties == pytest.approx(plain.ties, abs=1e-12)


def test_what_can_not_be_is_refused_in_a_line(told):
    with pytest.raises(InvalidInput, match=r"^metric must be one of \"map\", .* got 'auc'\.$"):
        diagnose(**told, metric="auc")
    with pytest.raises(
        InvalidInput, match=r"^propensities must be one per label, a file of them, or"
    ):
        diagnose(**told, metric="psp", propensities="counts")
    with pytest.raises(InvalidInput, match="needs the weights that labels were trained with"):
        diagnose(told["scores"], told["labels"], metric="psp", propensities="weights")
