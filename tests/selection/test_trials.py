"""Out-of-fold values against a plain loop over scikit-learn, and how little they cost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from tests.support.trials import try_candidates

import oddslip.sources.base as sources
from oddslip.calibrators import Beta, Isotonic, Offset, Platt, PooledIsotonic, Raw, Temperature
from oddslip.datasets import synthetic_pair
from oddslip.errors import InvalidInput
from oddslip.metrics import (
    average_precision_at_k,
    hit_rate_at_k,
    ndcg_at_k,
    precision_at_k,
    psp_at_k,
    recall_at_k,
)
from oddslip.metrics.at_k import label_propensities
from oddslip.selection.candidates import PAPER, PAPER_TAUS, RAW, WIDE, Candidate, read_candidate
from oddslip.selection.folds import assign_folds
from oddslip.sources import open_source
from oddslip.tallies.cell_counts import CellCounts

PAIR = synthetic_pair(900, 12, prevalence=(0.004, 0.3), noise=0.5, saturate=0.03, seed=5)


def plain_map(values, labels, k):
    """MAP@K of every row with a true label, from its definition."""
    found = []
    for row, true in zip(values, labels, strict=True):
        if not true.any():
            continue
        hits, gained = 0, 0.0
        for rank, label in enumerate(np.argsort(-row, kind="stable")[:k], start=1):
            if true[label]:
                hits += 1
                gained += hits / rank
        found.append(gained / min(k, true.sum()))
    return found


def plain_maps(scores, labels, held, candidate, prior):
    """What a candidate, fitted by scikit-learn without the held rows, makes of the held rows."""
    kept = ~held
    if candidate.form == "raw":
        return scores[held]
    fit = IsotonicRegression(out_of_bounds="clip").fit
    if candidate.form == "pooled":
        shared = fit(scores[kept].ravel(), labels[kept].ravel().astype(float))
        return shared.predict(scores[held].ravel()).reshape(-1, scores.shape[1])
    values = np.empty((held.sum(), scores.shape[1]))
    for label, (x, y) in enumerate(zip(scores.T, labels.T, strict=True)):
        n = y[kept].sum()
        if n <= candidate.tau:
            values[:, label] = (n + 0.5) / (kept.sum() + 1) if prior is None else prior[label]
        else:
            values[:, label] = fit(x[kept], y[kept].astype(float)).predict(x[held])
    return values


def plain_trials(scores, labels, k, folds, prior):
    """Mean out-of-fold MAP@K of the paper's candidates."""
    means = {}
    # Labels of which a given prior promises 20 positives and more, and none is there, take no part.
    unheard = np.zeros(labels.shape[1], bool)
    if prior is not None:
        unheard = ~labels.any(axis=0) & (prior * len(scores) >= 20)
    for candidate in PAPER:
        rows = []
        for fold in range(folds.max() + 1):
            held = folds == fold
            values = plain_maps(scores, labels, held, candidate, prior)
            values = np.where(unheard, -np.inf, values)
            # Scikit-learn's block means differ in the last digit from label to label.
            rows += plain_map(
                values if candidate.form == "raw" else values.round(12), labels[held], k
            )
        means[candidate.name] = np.mean(rows)
    return means


@pytest.mark.parametrize("given_prior", [False, True])
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_the_papers_candidates_equal_a_loop_over_scikit_learn(given_prior, seed):
    rng = np.random.default_rng(seed)
    n_rows, n_labels = int(rng.integers(20, 90)), int(rng.integers(2, 9))
    margins = rng.standard_normal((n_rows, n_labels)) * 2
    labels = rng.random(margins.shape) < 1 / (1 + np.exp(-margins - rng.normal(-2, 2, n_labels)))
    labels[0, 0] = True
    scores = 1 / (1 + np.exp(-margins))
    prior = rng.random(n_labels) if given_prior else None
    k, n_folds = int(rng.integers(1, n_labels + 1)), int(rng.integers(2, 6))
    source = open_source(scores, labels)
    folds = assign_folds(source, n_folds, seed=seed)
    trials = try_candidates(source, PAPER, k=k, folds=folds, prior=prior)
    wanted = plain_trials(scores, labels, k, folds[0].of_keys(source.row_keys()), prior)
    for candidate, mean in zip(trials.candidates, trials.means, strict=True):
        assert mean == pytest.approx(wanted[candidate.name], abs=1e-12), candidate.name


def calibrator_of(candidate, **options):
    makers = {"offset": Offset, "platt": Platt, "beta": Beta, "temperature": Temperature}
    if candidate.form == "isotonic":
        return Isotonic(tau=candidate.tau, **options)
    if candidate.form in makers:
        return makers[candidate.form](**options)
    return {"raw": Raw, "pooled": PooledIsotonic}[candidate.form]()


@pytest.mark.parametrize(
    "name", ["raw", "pooled", "isotonic-3", "offset", "platt", "beta", "temperature"]
)
@pytest.mark.parametrize(
    ("metric", "function"),
    [
        ("map", average_precision_at_k),
        ("precision", precision_at_k),
        ("recall", recall_at_k),
        ("ndcg", ndcg_at_k),
        ("hit_rate", hit_rate_at_k),
    ],
)
def test_each_row_is_ranked_by_a_calibrator_that_did_not_see_its_fold(name, metric, function):
    candidate = read_candidate(name)
    source = open_source(PAIR.weighted, PAIR.labels)
    folds = assign_folds(source, 3, seed=1)
    numbers = folds[0].of_keys(source.row_keys())
    tried = [RAW] if candidate == RAW else [RAW, candidate]
    trials = try_candidates(source, tried, k=3, metric=metric, folds=folds, prior=PAIR.prior)
    sums, n = trials.by_fold.first[0], trials.by_fold.n[0]
    for fold in range(3):
        held = np.flatnonzero(numbers == fold)
        kept = np.flatnonzero(numbers != fold)
        calibrator = calibrator_of(candidate, prior=PAIR.prior)
        fitted = calibrator.fit(PAIR.weighted[kept], PAIR.labels[kept]).fitted_
        ranking = fitted.rank(PAIR.weighted[held], k=3)
        shown = np.zeros((held.size, PAIR.n_labels))
        np.put_along_axis(shown, ranking, [[3.0, 2.0, 1.0]], axis=1)
        values = function(shown, PAIR.labels[held], k=3, kind="margin", per_row=True)
        assert n[fold] == PAIR.labels[held].any(axis=1).sum()
        assert sums[fold].sum() == pytest.approx(values.sum(), abs=1e-9)


def test_psp_of_raw_scores_out_of_fold_is_their_psp():
    trials = try_candidates(
        open_source(PAIR.weighted, PAIR.labels), [Candidate("raw")], k=3, metric="psp"
    )
    chances = label_propensities(PAIR.labels.sum(axis=0), PAIR.n_rows)
    wanted = psp_at_k(PAIR.weighted, PAIR.labels, k=3, propensities=chances)
    assert trials.means[0] == pytest.approx(wanted, abs=1e-12)


def test_repeats_are_averaged():
    source = open_source(PAIR.weighted, PAIR.labels)
    folds = assign_folds(source, 5, seed=9, n_repeats=2)
    both = try_candidates(source, PAPER, k=3, folds=folds)
    alone = [try_candidates(source, PAPER, k=3, folds=[each]).means for each in folds]
    np.testing.assert_allclose(both.means, np.mean(alone, axis=0), rtol=0, atol=1e-12)
    assert (alone[0] != alone[1]).any()


def test_errors_and_leads_are_those_of_the_values_of_rows():
    """Of three candidates, against the rows' own metric."""
    source = open_source(PAIR.weighted, PAIR.labels)
    candidates = [RAW, Candidate("isotonic", tau=2), Candidate("pooled")]
    folds = assign_folds(source, 4, seed=3)
    trials = try_candidates(source, candidates, k=3, folds=folds)
    numbers = folds[0].of_keys(source.row_keys())
    values = np.full((PAIR.n_rows, 3), np.nan)
    for fold in range(4):
        held = numbers == fold
        for at, maps in enumerate(trials.fitted[0][fold]):
            panel = next(open_source(PAIR.weighted[held]).blocks())
            shown = np.zeros((held.sum(), PAIR.n_labels))
            np.put_along_axis(shown, maps.rank_panel(panel, 3), [[3.0, 2.0, 1.0]], axis=1)
            true = PAIR.labels[held]
            rows = np.flatnonzero(held)[true.any(axis=1)]
            options = {"k": 3, "kind": "margin", "per_row": True}
            values[rows, at] = average_precision_at_k(shown, true, **options)
    values = values[PAIR.labels.any(axis=1)]
    n = len(values)
    assert trials.n_evaluated == n

    def error(sample):
        return sample.std(ddof=1) / np.sqrt(n)

    np.testing.assert_allclose(trials.means, values.mean(axis=0), rtol=0, atol=1e-12)
    gains, errors = trials.gains()
    for at in range(3):
        difference = values[:, at] - values[:, 0]
        assert gains[at] == pytest.approx(difference.mean(), abs=1e-12)
        assert errors[at] == pytest.approx(error(difference), abs=1e-12)
        assert trials.level(at) == pytest.approx((values[:, at].mean(), error(values[:, at])))
    lead = values[:, 1] - values[:, 2]
    assert trials.lead(1, 2) == pytest.approx((lead.mean(), error(lead)))
    without = trials.without_fold(0, 1)
    outside = values[numbers[PAIR.labels.any(axis=1)] != 1]
    np.testing.assert_allclose(without.means, outside.mean(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("candidates", [PAPER, WIDE])
def test_blocks_threads_and_memory_order_do_not_matter(candidates, monkeypatch):
    source = open_source(PAIR.weighted, PAIR.labels)
    options = {"k": 3, "folds": assign_folds(source, 5, n_repeats=2), "weights": PAIR.weights}
    whole = try_candidates(source, candidates, **options)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4000)
    cut = open_source(np.asfortranarray(PAIR.weighted), PAIR.labels)
    for threads in (1, 3):
        cut.threads = threads
        parts = try_candidates(cut, candidates, **options)
        np.testing.assert_allclose(parts.means, whole.means, rtol=0, atol=1e-12)
        np.testing.assert_allclose(parts.gains(), whole.gains(), rtol=0, atol=1e-12)


def test_seven_candidates_share_one_isotonic_and_one_pooled_fit_per_fold(monkeypatch):
    calls, passes = [], []
    knots = CellCounts.isotonic_knots
    monkeypatch.setattr(
        CellCounts,
        "isotonic_knots",
        lambda self, *a: calls.append(self.n_labels) or knots(self, *a),
    )
    source = open_source(PAIR.weighted, PAIR.labels)
    blocks = source.blocks
    source.blocks = lambda: passes.append(1) or blocks()
    trials = try_candidates(source, PAPER, k=3)
    assert trials.n_fits == {"isotonic": 5, "pooled": 5}
    assert sorted(calls) == [1] * 5 + [PAIR.n_labels] * 5
    # The positives, the cells of all folds, and all rankings.
    assert len(passes) == 3


def test_a_label_beyond_the_reach_of_any_tau_is_ranked_once(monkeypatch):
    from oddslip.repairs.maps import LabelMaps

    ranked = []
    rank = LabelMaps.rank_panel
    monkeypatch.setattr(
        LabelMaps, "rank_panel", lambda self, *a: ranked.append(self) or rank(self, *a)
    )
    rng = np.random.default_rng(0)
    source = open_source(rng.random((200, 4)), rng.random((200, 4)) < 0.5)
    candidates = [RAW, *(Candidate("isotonic", tau=tau) for tau in PAPER_TAUS)]
    trials = try_candidates(source, candidates, k=2)
    assert len(ranked) == 5 + 5  # raw, and all taus as one, in each fold
    assert len(set(trials.means[1:])) == 1


def test_labels_of_the_held_rows_do_not_reach_their_own_maps():
    """Other labels in a fold change the values of that fold, and the fits of the others only."""
    scores, labels = PAIR.weighted, PAIR.labels.copy()
    source = open_source(scores, labels)
    inside = assign_folds(source, 5)[0].of_keys(source.row_keys()) == 2
    before = try_candidates(source, PAPER, k=3).fits
    labels[inside] = ~labels[inside]
    after = try_candidates(open_source(scores, labels), PAPER, k=3).fits
    for candidate in PAPER:
        for name in ("code", "a", "start", "stop", "x", "y"):
            one, other = (getattr(fits.fit(candidate, 2)[0], name) for fits in (before, after))
            np.testing.assert_array_equal(one, other)
    changed = [fits.fit(Candidate("isotonic"), 3)[0].y for fits in (before, after)]
    assert not np.array_equal(*changed)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"k": 13}, "k must be between 1 and n_labels=12"),
        ({"k": 3, "metric": "mrr"}, "metric must be one of"),
        ({"k": 3, "prior": [0.5]}, "prior must hold one number per label"),
    ],
)
def test_bad_arguments_are_refused(options, line):
    with pytest.raises(InvalidInput, match=line):
        try_candidates(open_source(PAIR.weighted, PAIR.labels), PAPER, **options)


def test_rows_without_any_true_label_are_refused():
    with pytest.raises(InvalidInput, match="at least one row must have a true label"):
        try_candidates(open_source(np.full((20, 3), 0.5), np.zeros((20, 3))), PAPER, k=2)


def test_a_single_positive_is_enough_to_try_all():
    labels = np.zeros((30, 3), bool)
    labels[7, 1] = True
    rng = np.random.default_rng(0)
    trials = try_candidates(open_source(rng.random((30, 3)), labels), WIDE, k=3, weights=2.0)
    assert np.isfinite(trials.means).all()
    assert trials.n_evaluated == 1
