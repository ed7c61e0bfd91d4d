"""Cells that count for nothing: excluded, NaN, or no candidates of a sparse or long table.

Three forms of the same cells must agree, and each must agree with an oracle that never sees them:
NumPy over the cells there are, scikit-learn on the rows a label has, or the same verb on a panel
from which a row's absent labels were cut.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, special
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score
from tests.support.trials import try_candidates

import oddslip
from oddslip.calibrators import Isotonic
from oddslip.calibrators.catalogue import NAMES, build_calibrator
from oddslip.cli.app import main
from oddslip.core.panel import Panel
from oddslip.errors import InvalidInput
from oddslip.metrics import average_precision_at_k, hit_rate_at_k, ndcg_at_k, recall_at_k
from oddslip.selection.folds import assign_folds
from oddslip.shifts import direct_shift, realized_shift, saturation
from oddslip.sources import open_source

FORMS = ("exclude", "lists", "nan", "sparse")


def as_form(form, scores, gone):
    """The same panel in one of the forms: scores, and what more to say."""
    if form == "exclude":
        return scores, {"exclude": sparse.csr_array(gone)}
    if form == "lists":
        return scores, {"exclude": [np.flatnonzero(row) for row in gone]}
    if form == "nan":
        return np.where(gone, np.nan, scores).astype(scores.dtype), {"nan": "absent"}
    cells = scores[~gone], np.nonzero(~gone)
    return sparse.csr_array(cells, shape=scores.shape), {}


@st.composite
def worlds(draw, most_labels=9):
    """Scores with ties, true labels, absent cells, and K; long rows now and then."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n_rows = draw(st.integers(1, 12))
    n_labels = draw(st.sampled_from([*range(1, most_labels + 1), 600]))
    values = np.concatenate([[0.0, 1.0], rng.random(draw(st.sampled_from([2, 5, 1000])))])
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    scores = rng.choice(values, (n_rows, n_labels)).astype(dtype)
    true = rng.random((n_rows, n_labels)) < 0.4
    gone = rng.random((n_rows, n_labels)) < draw(st.sampled_from([0.05, 0.4, 0.9]))
    gone[rng.random(n_rows) < 0.1] = True
    return scores, true, gone, draw(st.integers(1, min(n_labels, 12)))


def ranked(scores, gone, k):
    """Labels by score, then by index, of those that are there."""
    out = np.full((len(scores), k), -1)
    for row, absent, shown in zip(scores, gone, out, strict=True):
        there = np.flatnonzero(~absent)
        order = there[np.lexsort((there, -row[there].astype(float)))][:k]
        shown[: order.size] = order
    return out


@settings(max_examples=60, deadline=None)
@given(worlds(), st.sampled_from(FORMS), st.sampled_from(["probability", "margin"]))
def test_absent_cells_take_no_slot(world, form, kind):
    scores, _, gone, k = world
    scores = scores if kind == "probability" else scores * 8 - 4
    cells, told = as_form(form, scores, gone)
    shown, values = oddslip.rank(cells, k=k, kind=kind, with_scores=True, **told)
    np.testing.assert_array_equal(shown, ranked(scores, gone, k))
    wanted = np.take_along_axis(scores, np.maximum(shown, 0), axis=1)
    np.testing.assert_array_equal(values, np.where(shown >= 0, wanted, np.nan))


@settings(max_examples=60, deadline=None)
@given(worlds(), st.sampled_from(FORMS), st.sampled_from(["stable", "expected", "best", "worst"]))
def test_metrics_are_those_of_rows_from_which_absent_labels_were_cut(world, form, ties):
    scores, true, gone, k = world
    kept = true & ~gone
    if not kept.any():
        return
    cells, told = as_form(form, scores, gone)
    found = oddslip.evaluate(cells, true, k=k, ties=ties, n_replicates=0, **told)
    assert found.row_numbers.tolist() == np.flatnonzero(kept.any(axis=1)).tolist()
    verbs = {
        "map": average_precision_at_k,
        "ndcg": ndcg_at_k,
        "recall": recall_at_k,
        "hit_rate": hit_rate_at_k,
    }
    for at, row in enumerate(found.row_numbers):
        there = ~gone[row]
        cut = {"k": min(k, int(there.sum())), "ties": ties}
        alone = scores[row, there][None], kept[row, there][None]
        for metric, verb in verbs.items():
            assert found.per_row(metric)[at] == pytest.approx(verb(*alone, **cut), abs=1e-12)
        hits = verbs["recall"](*alone, **cut) * kept[row].sum()
        assert found.per_row("precision")[at] == pytest.approx(hits / k, abs=1e-12)
    if ties == "stable":
        shown = ranked(scores, gone, k)
        hit = np.take_along_axis(kept, np.maximum(shown, 0), 1) & (shown >= 0)
        gains = np.cumsum(hit, axis=1) * hit / np.arange(1, k + 1)
        per_row = (
            gains.sum(axis=1)[kept.any(axis=1)] / np.minimum(k, kept.sum(axis=1))[kept.any(axis=1)]
        )
        assert found["map"].value == pytest.approx(per_row.mean(), abs=1e-12)


def world(n_rows=240, n_labels=8, seed=3, share=0.3):
    """Rows enough to calibrate on; label 3 is absent everywhere, row 0 has no label."""
    rng = np.random.default_rng(seed)
    scores = rng.random((n_rows, n_labels)).round(2)
    true = rng.random((n_rows, n_labels)) < scores * np.linspace(0.1, 0.9, n_labels)
    gone = rng.random((n_rows, n_labels)) < share
    gone[:, 3], gone[0] = True, True
    return scores, true, gone


@pytest.mark.parametrize("form", FORMS)
def test_isotonic_maps_are_those_of_the_rows_that_have_a_label(form):
    scores, true, gone = world()
    cells, told = as_form(form, scores, gone)
    mapped = Isotonic().fit(cells, true, **told).transform(cells, **told)
    assert np.isnan(mapped[gone]).all()
    for label in np.flatnonzero(~gone.all(axis=0)):
        there = ~gone[:, label]
        fit = IsotonicRegression(out_of_bounds="clip")
        wanted = fit.fit_transform(scores[there, label], true[there, label])
        np.testing.assert_allclose(mapped[there, label], wanted, atol=1e-12)
    areas = oddslip.metrics.auc_per_label(cells, true, **told)
    for label in np.flatnonzero(~gone.all(axis=0)):
        there = ~gone[:, label]
        wanted = roc_auc_score(true[there, label], scores[there, label])
        assert areas[label] == pytest.approx(wanted, abs=1e-12)
    assert np.isnan(areas[3])


# What is fitted label by label, on one label alone, from which absent rows were cut.
ALONE = ("isotonic", "offset", "platt", "beta", "temperature", "label_free", "inversion", "raw")


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("kind", ["probability", "margin"])
def test_a_map_is_that_of_the_label_alone(name, kind):
    scores, true, gone = world(share=0.2)
    scores = np.clip(scores, 0.01, 0.99)
    scores = special.logit(scores) if kind == "margin" else scores
    parameters = {"kind": kind, "weights": 3.0}
    for form in ("exclude", "sparse"):
        cells, told = as_form(form, scores, gone)
        mapped = build_calibrator(name, **parameters).fit(cells, true, **told)
        mapped = mapped.fitted_.transform(cells if told else said_kind(cells, kind), **told)
        for label in (0, 2, 7):
            there = ~gone[:, label]
            one = Panel(scores[there, label][:, None], true[there, label][:, None], kind=kind)
            alone = build_calibrator(name, **parameters).fit(one).fitted_.transform(one)
            np.testing.assert_allclose(mapped[there, label], alone[:, 0], atol=2e-9)


def said_kind(matrix, kind):
    """A source says its kind, so that nobody wonders about margins."""
    return open_source(matrix, kind=kind)


@pytest.mark.parametrize("name", NAMES)
def test_every_calibrator_takes_every_form_alike(name):
    scores, true, gone = world()
    fits = []
    for form in FORMS:
        cells, told = as_form(form, scores, gone)
        fitted = build_calibrator(name, weights=2.0).fit(cells, true, **told)
        fits.append((fitted.transform(cells, **told), fitted.rank(cells, k=5, **told)))
        values = np.where(gone, -np.inf, np.nan_to_num(fits[-1][0], nan=-np.inf))
        assert ((fits[-1][1] < 0).sum(axis=1) == np.maximum(0, 5 - (~gone).sum(axis=1))).all()
        shown = np.take_along_axis(values, np.maximum(fits[-1][1], 0), axis=1)
        shown = np.where(fits[-1][1] >= 0, shown, -np.inf)
        best = -np.sort(-values, axis=1)[:, :5]
        np.testing.assert_allclose(np.exp(shown), np.exp(best), atol=1e-9)
    for mapped, ranking in fits[1:]:
        np.testing.assert_allclose(mapped, fits[0][0], atol=1e-9)
        assert (ranking != fits[0][1]).mean() < 0.01


def test_weighed_rows_count_as_often_as_they_weigh():
    scores, true, gone = world(60)
    times = np.arange(60) % 3 + 1
    again = np.repeat(np.arange(60), times)
    for form in FORMS:
        cells, told = as_form(form, scores, gone)
        repeated, told_again = as_form(form, scores[again], gone[again])
        for name in ("isotonic", "offset", "pooled"):
            weighed = build_calibrator(name, prior=np.full(8, 0.2))
            weighed = weighed.fit(cells, true, sample_weight=times, **told)
            plain = build_calibrator(name, prior=np.full(8, 0.2))
            plain = plain.fit(repeated, true[again], **told_again)
            one, other = (each.transform(cells, **told) for each in (weighed, plain))
            np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_repair_chooses_by_what_is_there(form):
    scores, true, gone = world(150)
    cells, told = as_form(form, scores, gone)
    repair = oddslip.Repair(k=3, rule="isotonic", seed=1).fit(cells, true, **told)
    kept = true & ~gone
    values = np.full(scores.shape, -np.inf)
    source = open_source(scores)
    folds = assign_folds(source, 5, seed=1)[0].of_keys(source.row_keys())
    for fold in range(5):
        out, rest = folds == fold, folds != fold
        for label in range(8):
            seen = rest & ~gone[:, label]
            if not kept[seen, label].any():
                values[out, label] = 0.5 / (seen.sum() + 1)
                continue
            fit = IsotonicRegression(out_of_bounds="clip")
            fit.fit(scores[seen, label], kept[seen, label])
            values[out, label] = fit.predict(scores[out, label])
    wanted = oddslip.evaluate(
        values.clip(0, 1), true, k=3, exclude=sparse.csr_array(gone), n_replicates=0
    )
    assert repair.table_["isotonic-0"].mean == pytest.approx(wanted["map"].value, abs=1e-12)
    shown = repair.rank(cells, **told)
    there = np.take_along_axis(~gone, np.maximum(shown, 0), axis=1)
    assert there[shown >= 0].all()


def same(one, other, place=""):
    if isinstance(one, dict):
        assert one.keys() == other.keys(), place
        for name in one:
            same(one[name], other[name], f"{place}/{name}")
    elif isinstance(one, list):
        assert len(one) == len(other), place
        for at, pair in enumerate(zip(one, other, strict=True)):
            same(*pair, f"{place}/{at}")
    elif isinstance(one, float) and isinstance(other, float):
        assert one == pytest.approx(other, abs=1e-8, nan_ok=True), place
    else:
        assert one == other, place


def test_diagnose_counts_what_is_there():
    scores, true, gone = world(300)
    scores[:, 1] = np.where(scores[:, 1] > 0.8, 1.0, scores[:, 1])
    twin = np.sqrt(scores)
    prior = np.full(8, 0.25)
    found = []
    for form in FORMS:
        cells, told = as_form(form, scores, gone)
        other, _ = as_form(form, twin, gone)
        found.append(
            oddslip.diagnose(
                cells,
                true,
                k=3,
                unweighted=other,
                weights=np.arange(1.0, 9.0),
                prior=prior,
                n_replicates=0,
                **told,
            )
        )
        first, other = (each.to_dict() for each in (found[0], found[-1]))
        for line in ("command", "python"):  # these repeat how the cells were passed
            assert first["summary"].pop(line)
            assert other["summary"].pop(line)
        same(first, other)
    diagnosis = found[0]
    assert diagnosis.finding("OS601").evidence["n_present"] == (~gone).sum()
    assert diagnosis.ladder.value("raw") == pytest.approx(
        oddslip.evaluate(scores, true, k=3, exclude=sparse.csr_array(gone))["map"].value
    )
    popular = oddslip.evaluate(
        np.tile(np.full(8, 0.25), (300, 1)), true, k=3, exclude=sparse.csr_array(gone)
    )
    assert diagnosis.ladder.value("popularity") == pytest.approx(popular["map"].value)
    assert diagnosis.saturation.n_saturated.tolist() == ((scores == 1) & ~gone).sum(0).tolist()
    with np.errstate(divide="ignore"):
        margins, others = special.logit(scores), special.logit(twin)
    for label in (0, 5, 7):
        there = ~gone[:, label] & (scores[:, label] > 0)
        gap = np.median(margins[there, label] - others[there, label])
        assert diagnosis.shifts.direct[label] == pytest.approx(gap, abs=0.05)
    held_out = oddslip.diagnose(
        scores,
        true,
        k=3,
        exclude=sparse.csr_array(gone),
        n_replicates=0,
        calibration=(scores[::-1], true[::-1], sparse.csr_array(gone[::-1])),
    )
    assert held_out.protocol == "deployment"


@pytest.mark.parametrize("kind", ["probability", "margin"])
def test_shifts_and_saturation_are_of_the_cells_there(kind):
    scores, _, gone = world(90)
    margins = special.logit(np.clip(scores, 0.02, 0.98))
    cells = margins if kind == "margin" else np.clip(scores, 0.02, 0.98)
    for form in FORMS:
        panel, told = as_form(form, cells, gone)
        source = open_source(panel, kind=kind, **told)
        realized = realized_shift(source, np.full(8, 0.3))
        assert np.isnan(realized.shift[3])
        for label in (0, 4):
            own = margins[~gone[:, label], label]
            root = optimize.brentq(lambda b, z=own: special.expit(z - b).mean() - 0.3, -30, 30)
            assert realized.shift[label] == pytest.approx(root, abs=1e-8)
        counted = saturation(source, k=3)
        wanted = [np.unique(cells[~gone[:, label], label]).size for label in range(8)]
        assert counted.n_distinct.tolist() == wanted
    exclude = {"exclude": sparse.csr_array(gone)}
    pair = [open_source(each, kind="margin", **exclude) for each in (margins + 1.5, margins)]
    shift = direct_shift(*pair)
    assert np.isnan(shift[3])
    np.testing.assert_allclose(np.delete(shift, 3), 1.5)


# -------------------------------------------------------------------------------- nothing excluded


def test_with_nothing_absent_every_bit_is_the_same():
    scores, true, _ = world()
    plain = oddslip.evaluate(scores, true, k=3)
    for told in ({"exclude": [[] for _ in scores]}, {"nan": "absent"}):
        assert oddslip.evaluate(scores, true, k=3, **told).to_dict() == plain.to_dict()
        np.testing.assert_array_equal(oddslip.rank(scores, k=3, **told), oddslip.rank(scores, k=3))
        repairs = [oddslip.Repair(k=3).fit(scores, true, **each) for each in ({}, told)]
        assert repairs[0].table_.to_dict() == repairs[1].table_.to_dict()
        one, other = (repair.transform(scores) for repair in repairs)
        np.testing.assert_array_equal(one, other)


# ------------------------------------------------------------------------------ names, files, words


@pytest.mark.parametrize("form", FORMS)
def test_rows_known_by_keys_may_lack_labels_too(form):
    scores, true, gone = world(n_rows=400)
    cells, told = as_form(form, scores, gone)
    ids = [f"customer {row}" for row in range(len(true))]
    rows = open_source(cells, true, row_ids=ids, **told)
    weights = np.linspace(1, 9, 8)
    options = {"k": 3, "weights": weights, "n_replicates": 0, "calibration": rows}
    keyed, numbered = (
        oddslip.diagnose(rows, keyed=True, **options),
        oddslip.diagnose(open_source(cells, true, **told), **options),
    )
    levels = [
        {rung["rung"]: rung["metrics"]["map"]["value"] for rung in each.ladder.to_dict()["rungs"]}
        for each in (keyed, numbered)
    ]
    assert levels[0] == pytest.approx(levels[1], abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_twin_may_be_of_another_kind_and_type_and_lack_other_cells(form):
    scores, true, gone = world(n_rows=300)
    cells, told = as_form(form, scores, gone)
    margins = special.logit(np.clip(np.sqrt(scores), 0.01, 0.99)).astype(np.float32)
    margins[::7, 2] = np.nan
    rows = open_source(cells, true, **told)
    twin = open_source(margins, kind="margin", nan="absent")
    diagnosis = oddslip.diagnose(
        rows, k=3, unweighted=twin, weights=np.linspace(1, 9, 8), n_replicates=50
    )
    lacking = sparse.csr_array(np.isnan(margins) | gone)
    alone = oddslip.evaluate(
        np.nan_to_num(margins),
        np.where(gone, 0, true),
        k=3,
        kind="margin",
        exclude=lacking,
        n_replicates=50,
    )
    ranking = oddslip.rank(np.nan_to_num(margins), k=3, kind="margin", exclude=lacking)
    shown = oddslip.rank(rows, k=3)
    shared = [len(set(one) & set(other) - {-1}) for one, other in zip(shown, ranking, strict=True)]
    assert diagnosis.overlap.mean == pytest.approx(np.mean(shared))
    filled = (shown >= 0).sum(axis=1)
    assert diagnosis.overlap.share_changed == pytest.approx(np.mean(shared < filled))
    assert alone["map"].value > 0
    assert {"unweighted", "what-if"} <= set(diagnosis.ladder)
    assert np.isnan(diagnosis.shifts.direct).sum() <= 1


@pytest.mark.parametrize("form", FORMS)
def test_other_scores_of_the_same_rows_rank_the_candidates_of_the_scores(form):
    """A twin or a baseline that holds every cell may not fill its slots with the absent ones."""
    scores, true, gone = world(n_rows=300)
    cells, told = as_form(form, scores, gone)
    other = np.sqrt(scores)[:, ::-1].copy()
    alone = oddslip.evaluate(other, true, k=3, exclude=sparse.csr_array(gone), n_replicates=0)
    rows = open_source(cells, true, **told)
    diagnosis = oddslip.diagnose(rows, k=3, unweighted=other, n_replicates=0)
    assert diagnosis.ladder.value("unweighted") == pytest.approx(alone["map"].value)
    raw = oddslip.evaluate(rows, k=3, n_replicates=0)["map"].value
    change = oddslip.check(None, rows, k=3, baseline=other, n_replicates=50).changes["map"]
    assert change.value == pytest.approx(raw - alone["map"].value)


@pytest.mark.parametrize("form", FORMS)
def test_folds_by_keys_fit_the_maps_of_the_rows_outside(form):
    from oddslip.selection.candidates import Candidate

    scores, true, gone = world(n_rows=400)
    cells, told = as_form(form, scores, gone)
    ids = np.array([f"customer {row}" for row in range(len(true))])
    rows = open_source(cells, true, row_ids=ids, **told)
    names = ("raw", "isotonic", "platt", "offset", "hierarchical")
    (assigned,) = assign_folds(rows, 3)
    trials = try_candidates(rows, [Candidate(name) for name in names], k=3, folds=[assigned])
    folds = assigned.of(Panel(scores, row_ids=ids))
    for fold in range(3):
        out = np.flatnonzero(folds != fold)
        cells, told = as_form(form, scores[out], gone[out])
        for at, name in enumerate(names):
            wanted = build_calibrator(name).fit(cells, true[out], **told).fitted_.maps
            found = trials.fitted[0][fold][at]
            values = [each.evaluate(scores) for each in (found, wanted)]
            # Folds are summed in bins of scores for what is no step function.
            near = 1e-12 if name in ("raw", "isotonic") else 1e-3
            np.testing.assert_allclose(*values, rtol=0, atol=near)


def test_psp_by_weights_is_psp_by_their_inverse():
    scores, true, _ = world(50)
    weights = np.arange(1.0, 9.0)
    by_weights = oddslip.evaluate(scores, true, k=3, weights=weights, n_replicates=0)["psp"]
    wanted = oddslip.evaluate(scores, true, k=3, propensities=1 / weights, n_replicates=0)["psp"]
    assert by_weights.value == pytest.approx(wanted.value, abs=1e-12)
    with pytest.raises(InvalidInput, match="propensities or weights"):
        oddslip.evaluate(scores, true, k=3, weights=weights, propensities=1 / weights)


def test_true_labels_may_be_listed_by_name():
    scores = [[0.9, 0.2], [0.1, 0.8], [0.3, 0.4]]
    listed = [["b"], ["b", "a"], []]
    found = oddslip.evaluate(scores, listed, k=1, label_names=["a", "b"], n_replicates=0)
    wanted = oddslip.evaluate(scores, [[0, 1], [1, 1], [0, 0]], k=1, n_replicates=0)
    assert found["map"].value == wanted["map"].value
    with pytest.raises(InvalidInput, match="among label_names, got 'c' at row 0"):
        oddslip.rank(scores, k=1, label_names=["a", "b"], exclude=[["c"], [], []])
    with pytest.raises(InvalidInput, match="the labels have no names"):
        oddslip.evaluate(scores, listed, k=1)


def test_rank_gives_names_and_scores():
    names, values = oddslip.rank(
        [[0.9, 0.2, 0.6], [0.5, np.nan, np.nan]],
        k=2,
        label_names=["a", "b", "c"],
        names=True,
        with_scores=True,
        nan="absent",
    )
    assert names.tolist() == [["a", "c"], ["a", None]]
    np.testing.assert_array_equal(values, [[0.9, 0.6], [0.5, np.nan]])


@pytest.mark.parametrize(
    ("exclude", "message"),
    [
        ([[9], []], "exclude is read as labels are: label indices"),
        ([[0]], "must have the shape of scores"),
        (sparse.csr_array(np.full((2, 3), 2)), "exclude is read as labels are: labels must be 0"),
        ("nowhere.npz", "does not exist"),
    ],
)
def test_what_can_not_be_excluded_is_refused(exclude, message):
    with pytest.raises((InvalidInput, oddslip.errors.OddslipError), match=message):
        oddslip.rank([[0.9, 0.2, 0.6], [0.1, 0.2, 0.3]], k=1, exclude=exclude)


def test_nan_is_refused_unless_it_is_called_absent():
    with pytest.raises(InvalidInput, match="1 NaN cell"):
        oddslip.rank([[0.9, np.nan]], k=1)
    with pytest.raises(InvalidInput, match="nan must be"):
        oddslip.rank([[0.9, np.nan]], k=1, nan="drop")
    with pytest.raises(InvalidInput, match="infinite"):
        oddslip.rank([[0.9, np.inf]], k=1, nan="absent", kind="margin")
    with pytest.raises(InvalidInput, match="between 0 and 1, got 7 at row 1, label '2'"):
        oddslip.rank(sparse.csr_array([[0.5, 0.0, 0.0], [0.0, 0.0, 7.0]]), k=1)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scores, true, gone = world(40, 5)
    names = ["a", "b", "c", "d", "e"]
    ids = [f"u{row}" for row in range(40)]
    np.save("scores.npy", scores)
    sparse.save_npz("true.npz", sparse.csr_array(true.astype(int)))
    sparse.save_npz("gone.npz", sparse.csr_array(gone.astype(int)))
    sparse.save_npz("sparse.npz", as_form("sparse", scores, gone)[0])
    wide = {"row_id": ids} | {name: scores[:, at] for at, name in enumerate(names)}
    pq.write_table(pa.table(wide), "wide.parquet")
    truth = {"row_id": ids} | {name: true[:, at] for at, name in enumerate(names)}
    pq.write_table(pa.table(truth), "true.parquet")
    with_nulls = {name: pa.array(scores[:, at], mask=gone[:, at]) for at, name in enumerate(names)}
    pq.write_table(pa.table({"row_id": ids} | with_nulls), "nulls.parquet")
    rows, labels = np.nonzero(gone)
    order = np.random.default_rng(0).permutation(rows.size)
    pairs = {
        "row_id": [ids[at] for at in rows[order]],
        "label": [names[at] for at in labels[order]],
    }
    pq.write_table(pa.table(pairs), "pairs.parquet")
    rows, labels = np.nonzero(~gone)
    order = np.random.default_rng(0).permutation(rows.size)
    long = {
        "row": [ids[at] for at in rows[order]],
        "label": [names[at] for at in labels[order]],
        "score": scores[rows, labels][order],
        "true": true[rows, labels][order],
    }
    pq.write_table(pa.table(long), "long.parquet")
    return scores, true, gone


def told(capsys, *arguments):
    assert main([str(each) for each in arguments]) == 0
    return capsys.readouterr().out


COMMANDS = [
    ["scores.npy", "true.npz", "--exclude", "gone.npz"],
    ["wide.parquet", "true.parquet", "--exclude", "pairs.parquet"],
    ["nulls.parquet", "true.parquet", "--nan", "absent"],
    ["sparse.npz", "true.npz"],
    ["long.parquet", "--nan", "absent"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: each[0])
def test_commands_take_exclusions_and_candidates(files, capsys, arguments):
    scores, true, gone = files
    wanted = oddslip.evaluate(scores, true, k=2, exclude=sparse.csr_array(gone), n_replicates=0)
    found = json.loads(told(capsys, "evaluate", *arguments, "-k", 2, "--bootstrap", 0, "--json"))
    # A long table has no row for a user without candidates, and its labels in another order.
    loose = 1e-12 if "long" not in arguments[0] else 0.02
    assert found["metrics"]["map"]["value"] == pytest.approx(wanted["map"].value, abs=loose)
    fitted = [*arguments, "--calibrator", "isotonic", "-o", "repair.oddslip", "--json"]
    assert json.loads(told(capsys, "fit", *fitted))["n_labels"] in (4, 5)


def test_a_ranking_with_empty_slots_is_written(files, capsys):
    scores, _, gone = files
    told(
        capsys,
        "rank",
        "scores.npy",
        "-k",
        4,
        "--exclude",
        "gone.npz",
        "--with-scores",
        "-o",
        "top.parquet",
    )
    table = pq.read_table("top.parquet")
    shown = ranked(scores, gone, 4)
    wanted = [[int(label) if label >= 0 else None for label in row] for row in shown]
    assert table.column("labels").to_pylist() == wanted
    lines = told(capsys, "rank", "scores.npy", "-k", 4, "--exclude", "gone.npz", "--json")
    listed = [json.loads(line)["labels"] for line in lines.splitlines()]
    assert listed == [[label for label in row if label is not None] for row in wanted]
