"""Laws that every calibrator obeys, whatever its map."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import oddslip
import oddslip.sources.base as sources
from oddslip import Repair
from oddslip.calibrators import (
    Beta,
    Ceiling,
    Hierarchical,
    HierarchicalIsotonic,
    Inversion,
    Isotonic,
    LabelFree,
    Offset,
    Platt,
    PooledIsotonic,
    Popularity,
    Raw,
    Temperature,
)
from oddslip.datasets import synthetic_pair

PAIR = synthetic_pair(3000, 25, prevalence=(0.003, 0.2), noise=0.3, saturate=0.05, n_dead=2, seed=3)
CAL, EVAL = PAIR.calibration, ~PAIR.calibration
EVERY = {
    "raw": Raw,
    "inversion": lambda **options: Inversion(PAIR.weights, **options),
    "isotonic": Isotonic,
    "isotonic, steps": lambda **options: Isotonic(interpolation="step", **options),
    "isotonic, exclude": lambda **options: Isotonic(dead="exclude", **options),
    "pooled": PooledIsotonic,
    "ceiling": Ceiling,
    "offset": Offset,
    "platt": Platt,
    "beta": Beta,
    "temperature": Temperature,
    "shared temperature": lambda **options: Temperature(shared=True, **options),
    "popularity": Popularity,
    "label-free shift": LabelFree,
    "label-free shift, prior": lambda **options: LabelFree(prior=PAIR.prior, **options),
    "hierarchical": Hierarchical,
    "hierarchical, weights and prior": lambda **options: Hierarchical(
        weights=PAIR.weights, prior=PAIR.prior, **options
    ),
    "hierarchical, isotonic": HierarchicalIsotonic,
    "repair": lambda **options: Repair(k=7, rule="paper", **options),
}
PER_LABEL = {
    "isotonic": Isotonic,
    "offset": Offset,
    "platt": Platt,
    "beta": Beta,
    "temperature": Temperature,
}
KINDS = {"probability": PAIR.weighted, "margin": PAIR.weighted_margin.astype(np.float32)}


@pytest.fixture(params=EVERY)
def make(request):
    return EVERY[request.param]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def fitted(make, kind):
    return make(kind=kind).fit(KINDS[kind][CAL], PAIR.labels[CAL])


def test_calibrated_scores_are_probabilities_of_the_same_shape_and_type(make, kind):
    scores = KINDS[kind][EVAL]
    out = fitted(make, kind).transform(scores)
    assert out.shape == scores.shape
    assert out.dtype == scores.dtype
    assert ((out >= 0) & (out <= 1)).all()


def test_each_map_never_decreases(make, kind):
    calibrator = fitted(make, kind)
    scores = np.sort(KINDS[kind][EVAL], axis=0)
    assert (np.diff(calibrator.fitted_.transform(scores, dtype=np.float64), axis=0) >= 0).all()


def test_rank_equals_a_stable_sort_of_the_compared_values(make, kind):
    calibrator = fitted(make, kind)
    scores = KINDS[kind][EVAL]
    values = calibrator.fitted_.maps.values(oddslip.Panel(scores, kind=kind))
    for k in (1, 7, 25):
        wanted = np.argsort(-values, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(calibrator.rank(scores, k=k), wanted)


def test_blocks_and_threads_do_not_matter(make, kind, monkeypatch):
    whole = fitted(make, kind)
    scores = KINDS[kind][EVAL]
    monkeypatch.setattr(sources, "BLOCK_BYTES", 5000)
    parts = fitted(make, kind)
    np.testing.assert_allclose(
        parts.transform(scores), whole.transform(scores), rtol=1e-6, atol=1e-12
    )
    # Counts are exact, and so are knots; those of a mixture lie on a logistic map, which is a sum.
    tolerance = 1e-9 if isinstance(whole, HierarchicalIsotonic) else 0
    for name in ("x", "y", "start", "stop", "code"):
        found, wanted = getattr(parts.fitted_.maps, name), getattr(whole.fitted_.maps, name)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=0)


def test_saved_and_loaded_it_does_the_same(make, kind, tmp_path):
    calibrator = fitted(make, kind)
    calibrator.save(tmp_path / "repair.oddslip")
    loaded = oddslip.load_repair(tmp_path / "repair.oddslip")
    scores = KINDS[kind][EVAL]
    np.testing.assert_array_equal(loaded.transform(scores), calibrator.transform(scores))
    np.testing.assert_array_equal(loaded.rank(scores, k=7), calibrator.rank(scores, k=7))
    assert loaded.to_dict() == calibrator.fitted_.to_dict()


def test_it_clones_and_keeps_its_parameters(make):
    calibrator = make(kind="margin")
    copy = clone(calibrator)
    assert type(copy) is type(calibrator)
    assert copy.get_params().keys() == calibrator.get_params().keys()
    assert copy.kind == "margin"


def test_it_works_inside_a_pipeline(make):
    pipeline = make_pipeline(FunctionTransformer(), make())
    out = pipeline.fit(PAIR.weighted[CAL], PAIR.labels[CAL]).transform(PAIR.weighted[EVAL])
    np.testing.assert_array_equal(out, fitted(make, "probability").transform(PAIR.weighted[EVAL]))


def test_inputs_are_left_alone(make):
    scores, labels = PAIR.weighted[CAL].copy(), PAIR.labels[CAL].copy()
    make().fit(scores, labels).transform(scores)
    np.testing.assert_array_equal(scores, PAIR.weighted[CAL])
    np.testing.assert_array_equal(labels, PAIR.labels[CAL])


def test_labels_in_another_order_are_mapped_by_name(make):
    names = list(PAIR.label_names)
    calibrator = make().fit(PAIR.weighted[CAL], PAIR.labels[CAL], label_names=names)
    order = np.random.default_rng(0).permutation(len(names))
    shuffled = oddslip.Panel(PAIR.weighted[EVAL][:, order], label_names=[names[j] for j in order])
    wanted = calibrator.transform(oddslip.Panel(PAIR.weighted[EVAL], label_names=names))
    np.testing.assert_array_equal(calibrator.transform(shuffled), wanted[:, order])


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["x", *PAIR.label_names[1:]], "'x' in the scores alone"),
        (PAIR.label_names[:-1], f"{PAIR.label_names[-1]!r} in the repair alone"),
        ([*PAIR.label_names, "more"], "'more' in the scores alone"),
    ],
)
def test_other_labels_are_refused(make, names, line):
    calibrator = make().fit(PAIR.weighted[CAL], PAIR.labels[CAL], label_names=PAIR.label_names)
    with pytest.raises(oddslip.InvalidInput, match=line):
        calibrator.transform(oddslip.Panel(np.full((2, len(names)), 0.5), label_names=names))


def test_another_number_of_labels_is_refused(make):
    with pytest.raises(oddslip.InvalidInput, match="as many labels, got 24 and 25"):
        fitted(make, "probability").transform(PAIR.weighted[EVAL][:, :-1])


def test_scores_of_the_other_kind_are_refused(make):
    panel = oddslip.Panel(PAIR.weighted[EVAL], kind="probability")
    with pytest.raises(oddslip.InvalidInput, match="fitted on margin scores"):
        fitted(make, "margin").transform(panel)


def test_bad_cells_are_refused_when_fitting_and_when_applying(make):
    bad = PAIR.weighted[CAL].copy()
    bad[5, 3] = np.nan
    calibrator = fitted(make, "probability")
    with pytest.raises(oddslip.InvalidInput, match="the first at row 5, label '3'"):
        calibrator.transform(bad)
    with pytest.raises(oddslip.InvalidInput, match="the first at row 5, label '3'"):
        calibrator.rank(bad, k=7)
    if type(calibrator) not in (Raw, Inversion, Popularity):  # those look at no score to fit
        with pytest.raises(oddslip.InvalidInput, match="the first at row 5, label '3'"):
            make().fit(bad, PAIR.labels[CAL])


def test_it_can_not_be_used_before_fit(make):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        make().transform(PAIR.weighted)


@pytest.mark.parametrize("make", PER_LABEL.values(), ids=PER_LABEL)
@pytest.mark.parametrize("tau", [0, 5])
def test_the_dead_label_policy_is_done_and_recorded(make, tau):
    counts = PAIR.labels[CAL].sum(0)
    dead = counts <= tau
    assert dead.any()
    assert not dead.all()
    prior = np.linspace(0.01, 0.02, 25)
    scores = PAIR.weighted[EVAL]
    for policy in ("prior", "exclude"):
        calibrator = make(dead=policy, tau=tau, prior=prior)
        out = calibrator.fit(PAIR.weighted[CAL], PAIR.labels[CAL]).transform(scores)
        record = calibrator.record_
        np.testing.assert_array_equal(record.dead, dead)
        np.testing.assert_array_equal(record.n_positives, counts)
        assert {record.action[j] for j in np.flatnonzero(dead)} == {policy}
        wanted = prior.astype(np.float32) if policy == "prior" else np.zeros(25, np.float32)
        np.testing.assert_allclose(
            out[:, dead], np.broadcast_to(wanted[dead], out[:, dead].shape), rtol=1e-6
        )
        if policy == "exclude":
            last = calibrator.rank(scores, k=25)[:, -dead.sum() :]
            np.testing.assert_array_equal(last, np.broadcast_to(np.flatnonzero(dead), last.shape))
    with pytest.warns(UserWarning, match=r"dead labels keep their raw score and rise in"):
        calibrator = make(dead="identity", tau=tau).fit(PAIR.weighted[CAL], PAIR.labels[CAL])
    np.testing.assert_allclose(calibrator.transform(scores)[:, dead], scores[:, dead], rtol=1e-5)


@pytest.mark.parametrize("make", PER_LABEL.values(), ids=PER_LABEL)
def test_the_prior_says_where_it_comes_from(make):
    given = make(prior=np.full(25, 0.1)).fit(PAIR.weighted[CAL], PAIR.labels[CAL]).record_
    found = make().fit(PAIR.weighted[CAL], PAIR.labels[CAL]).record_
    assert given.prior_source == "given"
    assert found.prior_source == "smoothed calibration prevalence"
    counts, n = PAIR.labels[CAL].sum(0), int(CAL.sum())
    np.testing.assert_allclose(found.prior, (counts + 0.5) / (n + 1))


@pytest.mark.parametrize("make", PER_LABEL.values(), ids=PER_LABEL)
@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"dead": "zero"}, 'dead must be one of "prior", "identity", "exclude", got \'zero\'.'),
        ({"tau": -1}, "tau must be a whole number, at least 0, got tau=-1."),
        ({"tau": 0.5}, "tau must be a whole number, at least 0, got tau=0.5."),
        ({"prior": [0.1]}, "prior must hold one number per label, n_labels=25"),
        ({"prior": np.full(25, 1.5)}, "prior must be between 0 and 1, got 1.5 for label 0."),
        ({"kind": "logit"}, 'kind must be "probability" or "margin"'),
    ],
)
def test_bad_arguments_are_refused_at_fit(make, options, line):
    with pytest.raises(oddslip.InvalidInput) as refused:
        make(**options).fit(PAIR.weighted[CAL], PAIR.labels[CAL])
    assert line in str(refused.value)


def test_on_margins_the_order_inside_saturated_cells_survives():
    saturated = PAIR.weighted == 1.0
    rows = np.flatnonzero(saturated.sum(axis=1) >= 3)
    assert rows.size
    stored = Raw().fit(PAIR.weighted, PAIR.labels).rank(PAIR.weighted[rows], k=3)
    kept = Raw(kind="margin").fit(PAIR.weighted_margin, PAIR.labels)
    by_margin = kept.rank(PAIR.weighted_margin[rows], k=3)
    # Stored probabilities tie at 1.0 and fall back on the label index; margins do not.
    assert (np.diff(stored) > 0).all()
    assert not (np.diff(by_margin) > 0).all()
    wanted = np.argsort(-PAIR.weighted_margin[rows], axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(by_margin, wanted)


def test_calibrating_the_weighted_arm_returns_most_of_what_the_weight_cost():
    labels = PAIR.labels[EVAL]

    def score(panel):
        return oddslip.evaluate(panel, labels, k=7, n_replicates=0)["map"].value

    raw, twin = score(PAIR.weighted[EVAL]), score(PAIR.unweighted[EVAL])
    isotonic = Isotonic(prior=PAIR.prior).fit(PAIR.weighted[CAL], PAIR.labels[CAL])
    repaired = score(isotonic.transform(PAIR.weighted[EVAL]))
    assert repaired - raw > 0.6 * (twin - raw) > 0


# ------------------------------------------------------------------------- rows of unequal weight

N = 900
LABELS = PAIR.labels[:N]
TIMES = np.random.default_rng(5).integers(1, 4, N)
UNEQUAL = np.random.default_rng(6).gamma(2.0, 1.0, N) + 0.01


def probabilities(calibrator, kind):
    return calibrator.fitted_.transform(KINDS[kind][N:1300], dtype=np.float64)


# A repair draws folds by row, and a mixture trusts a label by its rows, not by their weight.
BY_WEIGHT = [name for name in EVERY if name not in ("repair", "hierarchical, isotonic")]


@pytest.mark.parametrize("name", BY_WEIGHT)
def test_a_whole_weight_is_the_row_so_many_times(name, kind):
    make, scores = EVERY[name], KINDS[kind][:N]
    weighed = make(kind=kind).fit(scores, LABELS, sample_weight=TIMES)
    repeated = make(kind=kind).fit(scores.repeat(TIMES, axis=0), LABELS.repeat(TIMES, axis=0))
    np.testing.assert_allclose(
        probabilities(weighed, kind), probabilities(repeated, kind), rtol=1e-7, atol=1e-10
    )
    assert (weighed.record_.n_positives == LABELS.sum(axis=0)).all()


def test_equal_weights_change_nothing(make, kind):
    scores = KINDS[kind][:N]
    plain = make(kind=kind).fit(scores, LABELS)
    weighed = make(kind=kind).fit(scores, LABELS, sample_weight=np.ones(N))
    np.testing.assert_allclose(
        probabilities(weighed, kind), probabilities(plain, kind), rtol=1e-12, atol=0
    )


def test_blocks_threads_and_order_of_weighed_rows_do_not_matter(make, kind, monkeypatch):
    scores, order = KINDS[kind][:N], np.random.default_rng(7).permutation(N)
    if make is EVERY["repair"]:
        order = np.arange(N)  # folds go by row number
    whole = make(kind=kind).fit(scores, LABELS, sample_weight=UNEQUAL, threads=1)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 5000)
    turned = make(kind=kind)
    turned.fit(scores[order], LABELS[order], sample_weight=UNEQUAL[order], threads=3)
    np.testing.assert_allclose(
        probabilities(turned, kind), probabilities(whole, kind), rtol=1e-6, atol=1e-10
    )
