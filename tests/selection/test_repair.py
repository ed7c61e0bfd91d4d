"""Repair: an estimator that chooses well on pairs whose truth is known, and says why."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from tests.support.trials import try_candidates

import oddslip
import oddslip.sources.base as sources
from oddslip.calibrators import Inversion, Isotonic, Offset, PooledIsotonic, Raw
from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.metrics import average_precision_at_k, precision_at_k
from oddslip.selection import Candidate, Repair, Rule
from oddslip.selection.folds import assign_folds

PAIR = synthetic_pair(2000, 20, prevalence=(0.005, 0.3), noise=0.3, n_dead=1, seed=3)
CAL, EVAL = PAIR.calibration, ~PAIR.calibration


def fit(rule="auto", scores=PAIR.weighted, k=5, **options):
    return Repair(k=k, rule=rule, **options).fit(scores[CAL], PAIR.labels[CAL])


def test_the_papers_rule_keeps_raw_where_scores_are_the_truth_and_positives_are_scarce():
    """Mostly: a shared map ranks nearly as raw does, and now and then better by chance."""
    chosen = []
    for seed in range(12):
        pair = synthetic_pair(600, 40, prevalence=(0.002, 0.05), seed=seed)
        rows = pair.calibration
        repair = Repair(k=7, rule="paper", prior=pair.prior)
        repair.fit(pair.unweighted[rows], pair.labels[rows])
        chosen.append(repair.chosen_)
        if repair.chosen_ == "raw":
            np.testing.assert_array_equal(repair.transform(pair.unweighted), pair.unweighted)
    assert set(chosen) <= {"raw", "pooled"}
    assert chosen.count("raw") >= 7


@pytest.mark.parametrize("seed", range(4))
def test_auto_loses_nothing_that_matters_where_scores_are_the_truth(seed):
    """Nothing can be gained: raw stays, or a map that is all but raw."""
    pair = synthetic_pair(6000, 40, prevalence=(0.002, 0.05), seed=seed)
    rows = np.arange(6000) < 180
    repair = Repair(k=7, prior=pair.prior).fit(pair.unweighted[rows], pair.labels[rows])
    assert repair.chosen_ in ("raw", "hierarchical")
    raw, taken = (
        average_precision_at_k(scores, pair.labels[~rows], k=7)
        for scores in (pair.unweighted[~rows], repair.transform(pair.unweighted[~rows]))
    )
    assert taken > raw - 0.005


@pytest.mark.parametrize("rule", ["auto", "paper"])
@pytest.mark.parametrize("seed", range(4))
def test_a_collapsed_arm_gets_a_map_per_label_and_gains_on_other_rows(rule, seed):
    pair = synthetic_pair(2000, 40, prevalence=(0.002, 0.2), noise=0.3, saturate=0.02, seed=seed)
    rows, others = pair.calibration, ~pair.calibration
    repair = Repair(k=7, rule=rule, prior=pair.prior).fit(pair.weighted[rows], pair.labels[rows])
    assert repair.chosen_ not in ("raw", "pooled")
    before, after = (
        average_precision_at_k(scores, pair.labels[others], k=7)
        for scores in (pair.weighted[others], repair.transform(pair.weighted[others]))
    )
    assert after > before + 0.05


@pytest.mark.parametrize("kind", ["probability", "margin"])
@pytest.mark.parametrize(
    ("rule", "calibrator"),
    [
        ("raw", Raw),
        ("pooled", PooledIsotonic),
        ("isotonic", Isotonic),
        ("offset", Offset),
        ("isotonic-4", lambda **options: Isotonic(tau=4, **options)),
    ],
)
def test_what_was_chosen_is_fitted_on_all_rows(rule, calibrator, kind):
    scores = PAIR.weighted if kind == "probability" else PAIR.weighted_margin
    repair = fit(rule, scores, kind=kind)
    alone = calibrator(kind=kind).fit(scores[CAL], PAIR.labels[CAL])
    # The offset's exact step starts from the folds' summary, and may end a last digit away.
    near = 1e-6 if rule == "offset" else 0
    np.testing.assert_allclose(
        repair.transform(scores[EVAL]), alone.transform(scores[EVAL]), rtol=near, atol=0
    )
    np.testing.assert_array_equal(repair.rank(scores[EVAL]), alone.rank(scores[EVAL], k=5))
    assert repair.record_.n_positives.tolist() == PAIR.labels[CAL].sum(axis=0).tolist()
    if rule != "pooled":
        assert repair.record_.action == alone.record_.action


@pytest.mark.parametrize("dead", ["prior", "exclude"])
def test_the_dead_label_policy_and_prior_are_those_given(dead):
    repair = fit("isotonic", dead=dead, prior=PAIR.prior)
    gone = PAIR.dead[0]
    assert repair.record_.action[gone] == dead
    wanted = PAIR.prior[gone] if dead == "prior" else 0.0
    assert repair.transform(PAIR.weighted[EVAL])[0, gone] == np.float32(wanted)


def test_the_rank_is_of_k_labels_unless_told():
    repair = fit("isotonic", k=3)
    assert repair.rank(PAIR.weighted[EVAL]).shape == (EVAL.sum(), 3)
    assert repair.rank(PAIR.weighted[EVAL], k=9).shape == (EVAL.sum(), 9)


def test_the_metric_and_k_decide_what_is_compared():
    table = fit("raw", metric="precision", k=2).table_
    assert (table.metric, table.k) == ("precision", 2)
    wanted = precision_at_k(PAIR.weighted[CAL], PAIR.labels[CAL], k=2)
    assert table["raw"].mean == pytest.approx(wanted, abs=1e-12)


def test_the_same_seed_chooses_the_same_and_another_sees_other_folds():
    one, same, other = (fit("paper", seed=seed).table_.to_dict() for seed in (1, 1, 2))
    assert one == same
    assert one["candidates"] != other["candidates"]


@pytest.mark.parametrize("rule", ["auto", "paper"])
def test_a_file_gives_what_an_array_gives(rule, tmp_path, monkeypatch):
    np.save(tmp_path / "scores.npy", PAIR.weighted[CAL])
    np.save(tmp_path / "labels.npy", PAIR.labels[CAL])
    whole = fit(rule)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 3000)
    streamed = Repair(k=5, rule=rule).fit(tmp_path / "scores.npy", tmp_path / "labels.npy")
    assert streamed.chosen_ == whole.chosen_
    np.testing.assert_allclose(streamed.table_.means, whole.table_.means, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        streamed.transform(PAIR.weighted), whole.transform(PAIR.weighted), rtol=1e-6
    )


def test_rows_of_the_array_that_were_not_handed_over_do_not_matter():
    scores, labels = PAIR.weighted.copy(), PAIR.labels.copy()
    n = 500
    inside = Repair(k=5).fit(scores[:n], labels[:n])
    scores[n:], labels[n:] = np.nan, True
    again = Repair(k=5).fit(scores[:n], labels[:n])
    assert again.table_.to_dict() == inside.table_.to_dict()


def test_inputs_are_left_alone():
    scores, labels = PAIR.weighted[CAL].copy(), PAIR.labels[CAL].copy()
    Repair(k=5).fit(scores, labels)
    np.testing.assert_array_equal(scores, PAIR.weighted[CAL])
    np.testing.assert_array_equal(labels, PAIR.labels[CAL])


def test_a_saved_repair_does_the_same_and_knows_why(tmp_path):
    repair = fit()
    repair.save(tmp_path / "repair.oddslip")
    loaded = oddslip.load_repair(tmp_path / "repair.oddslip")
    np.testing.assert_array_equal(
        loaded.rank(PAIR.weighted[EVAL], k=5), repair.rank(PAIR.weighted[EVAL])
    )
    assert loaded.calibrator == "Repair"
    assert loaded.parameters["chosen"] == repair.chosen_
    assert loaded.parameters["why"] == repair.why_


def test_it_clones_and_takes_a_rule_of_ones_own():
    rule = Rule("mine", (Candidate("raw"), Candidate("offset")), guard=1.0)
    copy = clone(Repair(k=5, rule=rule, metric="ndcg", seed=3))
    assert (copy.rule, copy.metric, copy.seed) == (rule, "ndcg", 3)
    repair = copy.fit(PAIR.weighted[CAL], PAIR.labels[CAL])
    assert repair.table_.candidates == ("raw", "offset")
    assert repair.table_.rule == "mine"


@pytest.mark.parametrize("weights", ["balanced", PAIR.weights])
def test_weights_give_the_inversion_a_place(weights):
    rule = Rule("mine", (Candidate("raw"), Candidate("inversion"), Candidate("offset")), guard=1.0)
    assert fit(rule).table_.candidates == ("raw", "offset")
    repair = fit(rule, weights=weights, prior=PAIR.prior)
    assert repair.table_.candidates == ("raw", "inversion", "offset")
    alone = Inversion(weights, prior=PAIR.prior).fit(PAIR.weighted[CAL], PAIR.labels[CAL])
    taken = fit("inversion", weights=weights, prior=PAIR.prior)
    wanted = alone.transform(PAIR.weighted[EVAL])
    np.testing.assert_array_equal(taken.transform(PAIR.weighted[EVAL]), wanted)


def test_named_weights_are_resolved_without_the_rows_they_are_judged_on():
    source = oddslip.open_source(PAIR.weighted[CAL], PAIR.labels[CAL])
    trials = try_candidates(source, [Candidate("raw"), Candidate("inversion")], k=3, weights="sqrt")
    folds = assign_folds(source, 5)[0].of_keys(source.row_keys())
    for fold in (0, None):
        rows = np.flatnonzero(CAL) if fold is None else np.flatnonzero(CAL)[folds != fold]
        alone = Inversion("sqrt").fit(PAIR.weighted[rows], PAIR.labels[rows])
        maps, _ = trials.fits.fit(Candidate("inversion"), fold)
        np.testing.assert_array_equal(maps.b, alone.fitted_.maps.b)


def test_the_inversion_is_refused_without_weights():
    with pytest.raises(InvalidInput, match="rule 'inversion' needs the weights"):
        fit("inversion")


def test_labels_are_matched_by_name():
    names = list(PAIR.label_names)
    repair = Repair(k=5, rule="isotonic").fit(
        PAIR.weighted[CAL], PAIR.labels[CAL], label_names=names
    )
    turned = oddslip.Panel(PAIR.weighted[EVAL][:, ::-1], label_names=names[::-1])
    wanted = repair.transform(oddslip.Panel(PAIR.weighted[EVAL], label_names=names))
    np.testing.assert_array_equal(repair.transform(turned), wanted[:, ::-1])


def test_a_warning_points_at_the_line_that_called_fit():
    with pytest.warns(UserWarning, match="dead labels keep their raw score") as warned:
        fit("isotonic-20", dead="identity")
    assert [warning.filename for warning in warned] == [__file__]


def test_the_table_says_what_every_candidate_reached():
    table = fit().table_
    assert table["raw"].difference.value == table["raw"].standard_error == 0.0
    for line in table.lines:
        assert line.difference.low <= line.difference.value <= line.difference.high
        assert line.mean == pytest.approx(table["raw"].mean + line.difference.value)
    told = json.loads(json.dumps(table.to_dict()))
    assert [line["candidate"] for line in told["candidates"]] == list(table.candidates)
    assert [line["candidate"] for line in told["candidates"] if line["chosen"]] == [table.chosen]
    assert {"label_free", "temperature", "offset", "platt", "beta", "isotonic"} < set(told["fits"])
    assert told["fits"]["hierarchical"] == 15
    assert all(number in range(5, 16, 5) for number in told["fits"].values())
    frame = table.to_frame()
    assert frame.loc[frame["chosen"], "candidate"].tolist() == [table.chosen]


def test_an_interval_is_about_two_standard_errors_wide_on_each_side():
    for line in fit("paper").table_.lines[1:]:
        half = (line.difference.high - line.difference.low) / 2
        assert half == pytest.approx(1.96 * line.standard_error, rel=0.15)


def test_a_notebook_shows_the_table_once_fitted():
    assert "Repair" in Repair(k=5)._repr_html_()
    repair = fit("paper")
    assert f"{repair.chosen_} (chosen)" in repair._repr_html_()
    assert repair.why_ in repair._repr_html_()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"k": 0}, "k must be between 1 and n_labels=20"),
        ({"k": 2.0}, "k must be a whole number"),
        ({"rule": "best"}, 'rule must be "auto", "paper" or a candidate'),
        ({"metric": "MAP"}, "metric must be one of"),
        ({"dead": "zombie"}, "dead must be one of"),
        ({"n_folds": 0}, "n_folds must be a whole number"),
        ({"seed": "x"}, "seed must be a whole number"),
        ({"prior": [0.1]}, "prior must hold one number per label"),
        ({"kind": "odds"}, "kind must be"),
    ],
)
def test_bad_arguments_are_refused(options, line):
    with pytest.raises(InvalidInput, match=line):
        fit(**options)


def test_scores_alone_are_refused():
    with pytest.raises(InvalidInput, match="labels are needed to fit"):
        Repair(k=5).fit(PAIR.weighted[CAL])


def test_a_fitted_repair_shows_its_choice_and_not_the_cells_of_its_prior():
    rng = np.random.default_rng(0)
    scores = rng.random((300, 40))
    truth = rng.random((300, 40)) < scores / 4
    repair = Repair(k=3, rule="isotonic-5", prior=truth.mean(axis=0))
    repair.fit(scores, truth)
    assert repr(repair) == "Repair(k=3, rule='isotonic-5', chosen='isotonic-5', 40 labels)"


def test_propensities_of_named_weights_count_positives_as_the_rows_weigh():
    """Weighing all rows double says nothing new, of positives or of propensities."""
    options = {"metric": "psp", "propensities": "weights", "weights": "balanced"}
    once = Repair(k=5, rule="paper", **options).fit(PAIR.weighted[CAL], PAIR.labels[CAL])
    double = Repair(k=5, rule="paper", **options).fit(
        PAIR.weighted[CAL], PAIR.labels[CAL], sample_weight=np.full(CAL.sum(), 2.0)
    )
    assert once.chosen_ == double.chosen_
    assert double.table_.means == pytest.approx(once.table_.means)
