"""Arguments that cannot mean anything are refused with one line, by every verb that takes them."""

import numpy as np
import pytest

import oddslip
from oddslip.adapters.features import as_features
from oddslip.calibrators import Inversion, Isotonic, Popularity, Raw, build_calibrator
from oddslip.learners import OneVsRest
from oddslip.metrics import precision_at_k
from oddslip.shifts import realized_shift, shift_odds

SCORES = np.array([[0.9, 0.2, 0.6], [0.1, 0.7, 0.3]])
LABELS = np.array([[1, 0, 0], [0, 0, 1]])
NAMES = ["a", "b", "c"]
HIDDEN = np.ma.array(SCORES, mask=LABELS == 1)
HIDDEN_LABELS = np.ma.array(LABELS, mask=[[0, 0, 0], [0, 1, 0]])
HIDDEN_NUMBERS = np.ma.array([0.5, 0.5, 0.5], mask=[0, 0, 1])

MASKED = {
    "scores": (
        lambda: oddslip.evaluate(HIDDEN, LABELS, k=2),
        "scores must not hold masked cells, got 2, the first at row 0, label '0'. "
        "Drop those rows, or fill them: cells.filled(0).",
    ),
    "scores with names": (
        lambda: oddslip.evaluate(HIDDEN[1:], LABELS[1:], k=2, label_names=NAMES),
        "scores must not hold masked cells, got 1, the first at row 0, label 'c'.",
    ),
    "whole numbers as scores": (lambda: oddslip.rank(HIDDEN_LABELS, k=2), "row 1, label '1'"),
    "rows of scores": (lambda: oddslip.rank(list(HIDDEN), k=2), "row 0, label '0'"),
    "labels": (
        lambda: oddslip.evaluate(SCORES, HIDDEN_LABELS, k=2, label_names=NAMES),
        "labels must not hold masked cells, got 1, the first at row 1, label 'b'.",
    ),
    "rows of labels": (
        lambda: oddslip.evaluate(SCORES, list(HIDDEN_LABELS), k=2),
        "labels must not hold masked cells, got 1, the first at row 1, label '1'.",
    ),
    "labels of a metric": (lambda: precision_at_k(SCORES, HIDDEN_LABELS, k=2), "labels must not"),
    "labels of a plan": (
        lambda: oddslip.plan(HIDDEN_LABELS, rounds=10, learning_rate=0.1),
        "labels must not hold masked cells",
    ),
    "counts of a plan": (
        lambda: oddslip.plan(
            counts=np.ma.array([1, 2], mask=[0, 1]), n_rows=9, rounds=10, learning_rate=0.1
        ),
        "counts must not hold masked cells, got 1, the first at label '1'.",
    ),
    "weights": (
        lambda: shift_odds(SCORES, HIDDEN_NUMBERS),
        "weights must not hold masked cells, got 1, the first at label '2'.",
    ),
    "weights with names": (
        lambda: Inversion(HIDDEN_NUMBERS).fit(SCORES, LABELS, label_names=NAMES),
        "weights must not hold masked cells, got 1, the first at label 'c'.",
    ),
    "one weight": (
        lambda: Inversion(np.ma.masked).fit(SCORES, LABELS),
        "weights must not hold masked cells, got 1.",
    ),
    "prior": (
        lambda: Isotonic(prior=HIDDEN_NUMBERS).fit(SCORES, LABELS),
        "prior must not hold masked cells, got 1, the first at label '2'.",
    ),
    "prior of a shift": (lambda: realized_shift(SCORES, HIDDEN_NUMBERS), "prior must not hold"),
    "propensities": (
        lambda: oddslip.evaluate(SCORES, LABELS, k=2, propensities=HIDDEN_NUMBERS),
        "propensities must not hold masked cells",
    ),
    "features": (
        lambda: as_features(HIDDEN),
        "X must not hold masked cells, got 2, the first at row 0, feature '0'.",
    ),
}


@pytest.mark.parametrize("case", MASKED)
def test_masked_cells_are_refused_where_the_first_is_named(case):
    ask, line = MASKED[case]
    with pytest.raises(oddslip.InvalidInput) as refused:
        ask()
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_mask_that_hides_nothing_changes_nothing():
    plain = oddslip.evaluate(SCORES, LABELS, k=2).to_dict()
    open_cells = np.ma.array(SCORES, mask=False), np.ma.array(LABELS)
    assert oddslip.evaluate(*open_cells, k=2).to_dict() == plain


@pytest.mark.parametrize("calibrator", [Raw(), Popularity(), Inversion(2.0)])
@pytest.mark.parametrize("bad", [np.nan, 1.5, -0.5, np.inf])
def test_a_calibrator_that_needs_no_fit_still_refuses_bad_scores(calibrator, bad):
    scores = SCORES.copy()
    scores[1, 2] = bad
    with pytest.raises(oddslip.InvalidInput, match="row 1, label '2'"):
        calibrator.fit(scores, LABELS)


# Of each argument: how it is given, and what it cannot be.
MANY = np.random.default_rng(0).random((40, 3))
TRUE = (MANY > 0.6).astype(int)
WRONG_NUMBERS = ("x", 1.5, None, object(), -1, True, [1], {}, np.nan, float("inf"))
PER_LABEL = ("x", object(), {}, [1], ["a", "b", "c"])


def evaluated(**options):
    return oddslip.evaluate(MANY, TRUE, **({"k": 2, "n_replicates": 5} | options))


def diagnosed(**options):
    return oddslip.diagnose(MANY, TRUE, **({"k": 2, "n_replicates": 5} | options))


def planned(**options):
    given = {"rounds": 3, "learning_rate": 0.1, "k": 2, "unweighted": MANY, "n_replicates": 5}
    return oddslip.plan(TRUE, **(given | options))


def chosen(**options):
    return oddslip.Repair(**({"k": 2} | options)).fit(MANY, TRUE)


def calibrated(**options):
    return Isotonic(**options).fit(MANY, TRUE)


def trained(**options):
    return OneVsRest(**({"parameters": {"num_iterations": 2}} | options)).fit(MANY, TRUE)


WRONG = [
    *((ask, "seed", WRONG_NUMBERS) for ask in (evaluated, diagnosed, planned, chosen, trained)),
    *((ask, "n_replicates", (*WRONG_NUMBERS, 10**30)) for ask in (evaluated, diagnosed, planned)),
    *(
        (ask, "threads", ("x", 1.5, object(), 0, -1, True, [1], 10**30))
        for ask in (evaluated, diagnosed, planned, trained)
    ),
    *((ask, "label_names", (3, object(), "abc")) for ask in (evaluated, diagnosed, planned)),
    (evaluated, "level", ("x", None, object(), 0, 1, True)),
    (evaluated, "propensities", PER_LABEL),
    (calibrated, "tau", WRONG_NUMBERS),
    (calibrated, "dead", (3, None, object(), [1])),
    (calibrated, "prior", (*PER_LABEL, 0.5)),
    (chosen, "rule", (5, None, object(), [1], "x")),
    (chosen, "n_folds", WRONG_NUMBERS),
    (diagnosed, "calibration", (3, object(), "x", [1])),
    (diagnosed, "weights", (*PER_LABEL, -1, np.nan)),
    (diagnosed, "prior", (*PER_LABEL, 0.5)),
    (planned, "weights", (*PER_LABEL, -1, np.nan)),
    (planned, "rounds", ("x", None, object(), 0, [1])),
    (planned, "learning_rate", ("x", None, object(), 0, [1])),
    (planned, "max_delta_step", ("x", object(), -1, [1])),
    (planned, "rows_in_leaf", WRONG_NUMBERS),
    (trained, "learner", (3, None, [1], "x")),
    (trained, "weights", (*PER_LABEL, -1)),
    (trained, "preset", (3, [1], "x")),
    (trained, "max_delta_step", ("x", object(), -1, [1])),
    (trained, "memory_bytes", WRONG_NUMBERS),
    (trained, "checkpoint", (3, object(), [1], b"x")),
    (trained, "parameters", (3, "x", [1], {"num_leaves": 1}, {"num_iterations": "x"})),
]


@pytest.mark.parametrize(
    ("ask", "name", "value"),
    [(ask, name, value) for ask, name, values in WRONG for value in values],
    ids=lambda value: getattr(value, "__name__", None) or f"{value!r:.20}".split(" at ")[0],
)
def test_an_argument_of_the_wrong_type_is_refused_and_not_tripped_over(ask, name, value):
    with pytest.raises(oddslip.errors.OddslipError) as refused:
        ask(**{name: value})
    assert "\n" not in str(refused.value)


def test_a_plan_refuses_what_are_no_labels_and_no_count_of_rows():
    for labels in (3, object(), [1], {"a": 1}):
        with pytest.raises(oddslip.InvalidInput, match="labels must"):
            oddslip.plan(labels, rounds=3, learning_rate=0.1)
    for n_rows in ("x", 1.5, object(), [1]):
        with pytest.raises(oddslip.InvalidInput, match="n_rows must be a whole number"):
            oddslip.plan(counts=[1, 2], n_rows=n_rows, rounds=3, learning_rate=0.1)


def test_a_name_or_path_of_the_wrong_type_is_refused():
    with pytest.raises(oddslip.InvalidInput, match="calibrator must be one of"):
        build_calibrator([1])
    with pytest.raises(oddslip.InvalidInput, match="path must be a path, got 3"):
        oddslip.load_repair(3)
