"""One rule for every verb that takes two things of the same rows or labels.

Names decide; a side without names has its numbers; what cannot be matched is refused. Each verb is
run on two sides that were named and ordered by hand, and its answer compared with that of the same
cells aligned by hand, and with that by position. docs/matching.md shows what was seen:
``ODDSLIP_WRITE_DOCS=1 python -m pytest tests/contracts/test_matching.py`` writes it.
"""

import os
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import oddslip
from oddslip.calibrators import Isotonic
from oddslip.learners import OneVsRest
from oddslip.shifts import realized_shift

PAGE = Path(__file__).parents[2] / "docs" / "matching.md"
BEGIN, END = "<!-- outcomes: begin -->\n", "<!-- outcomes: end -->"

N, L, K = 40, 4, 2
RNG = np.random.default_rng(11)
SCORES = RNG.random((N, L)) * [0.9, 0.7, 0.5, 0.3]
OTHER = SCORES ** [1.0, 1.5, 2.0, 2.5] * RNG.uniform(0.6, 1, (N, L))
TRUE = (RNG.random((N, L)) < SCORES).astype(int)
TRUE[TRUE.sum(axis=1) == 0, 0] = 1  # every row is evaluated
HIDDEN = (RNG.random((N, L)) < 0.3).astype(int)
WEIGHT = RNG.uniform(0.5, 3, N)
PRIOR = np.array([0.05, 0.2, 0.4, 0.6])
FEATURES = RNG.normal(size=(N, 3)) + TRUE[:, :3]
ORDERS = {"rows": RNG.permutation(N), "labels": np.array([2, 0, 3, 1])}
SIZES = {"rows": N, "labels": L}


class Side(NamedTuple):
    """One of two things: the order of its rows and labels, and their names where it has any."""

    rows: np.ndarray = np.arange(N)
    labels: np.ndarray = np.arange(L)
    row_names: list | None = None
    label_names: list | None = None

    def table(self, cells):
        """Cells in this order: a frame where rows or labels have names, else an array."""
        cells = np.asarray(cells)
        cells = cells[self.rows] if cells.ndim == 1 else cells[np.ix_(self.rows, self.labels)]
        return self._named(cells, self.label_names)

    def features(self):
        """Of the rows, in their order."""
        return self._named(FEATURES[self.rows], None)

    def _named(self, cells, columns):
        if self.row_names is None and columns is None:
            return cells
        if cells.ndim == 1:
            return pd.Series(cells, index=self.row_names)
        return pd.DataFrame(cells, index=self.row_names, columns=columns)

    def per_label(self, numbers):
        """Numbers of the labels, in their order."""
        numbers = np.asarray(numbers)[self.labels]
        return numbers if self.label_names is None else pd.Series(numbers, index=self.label_names)

    def long(self, cells):
        """One line per cell, in order of the rows and labels."""
        names = [
            self.row_names or self.rows.tolist(),
            self.label_names or self.labels.tolist(),
        ]
        values = np.asarray(cells)[np.ix_(self.rows, self.labels)]
        at = [(row, label) for row in range(N) for label in range(L)]
        return pa.table(
            {
                "row": [names[0][row] for row, _ in at],
                "label": [names[1][label] for _, label in at],
                "score": [values[cell] for cell in at],
            }
        )

    def back(self, cells):
        """Cells or numbers of these labels in the order of the world."""
        cells = np.asarray(cells, float)
        if cells.ndim == 1:
            return cells[np.argsort(self.labels)]
        return cells[np.argsort(self.rows)][:, np.argsort(self.labels)]


# -------------------------------------------------------------------------- what is matched, by verb


def evaluated(one, two):
    return oddslip.evaluate(one.table(SCORES), two.table(TRUE), k=K, n_replicates=0)["map"].value


def fitted(one, two):
    scores = one.table(SCORES)
    repair = oddslip.Repair(k=K, rule="isotonic-0").fit(scores, two.table(TRUE))
    return one.back(repair.fitted_.maps.evaluate(np.ascontiguousarray(scores)))


def transformed(one, two):
    return two.back(Isotonic().fit(one.table(SCORES), one.table(TRUE)).transform(two.table(OTHER)))


def rungs(diagnosis):
    return [rung["metrics"]["map"]["value"] for rung in diagnosis.ladder.to_dict()["rungs"]]


def whole_rungs(diagnosis):
    """Values of rungs that rank all rows by one map: row ids decide folds, and so the others."""
    names = ("raw", "unweighted", "ceiling")
    return [diagnosis.ladder.value(name) for name in names if name in diagnosis.ladder]


def diagnosed(one, two):
    return whole_rungs(oddslip.diagnose(one.table(SCORES), two.table(TRUE), k=K, n_replicates=0))


def twinned(one, two):
    found = oddslip.diagnose(
        one.table(SCORES), one.table(TRUE), unweighted=two.table(OTHER), k=K, n_replicates=0
    )
    return [*whole_rungs(found), *one.back(found.shifts.direct)]


def calibrated(one, two):
    held_out = two.table(OTHER), two.table(TRUE)
    return rungs(
        oddslip.diagnose(
            one.table(SCORES), one.table(TRUE), calibration=held_out, k=K, n_replicates=0
        )
    )


def compared(one, two):
    first, second = (
        oddslip.evaluate(side.table(SCORES), side.table(TRUE), k=K, n_replicates=50)
        for side in (one, two)
    )  # the same scores: no difference in any draw, if rows are paired
    difference = first.compare(second)["map"]
    return [difference.value, difference.low, difference.high]


def weighed(one, two):
    return oddslip.evaluate(
        one.table(SCORES), one.table(TRUE), sample_weight=two.table(WEIGHT), k=K, n_replicates=0
    )["map"].value


def excluded(one, two):
    return oddslip.evaluate(
        one.table(SCORES), one.table(TRUE), exclude=two.table(HIDDEN), k=K, n_replicates=0
    )["map"].value


def checked(one, two):
    found = oddslip.check(None, one.table(SCORES), two.table(TRUE), k=K, n_replicates=0)
    return found.to_dict()["metrics"]["map"]["value"]


def planned(one, two):
    found = oddslip.plan(
        one.table(TRUE),
        unweighted=two.table(SCORES),
        weights="10x",
        k=K,
        n_replicates=0,
        rounds=60,
        learning_rate=0.1,
    )
    return found.to_dict()["what_if"]["unweighted"]["value"]


def shifted(one, two):
    return one.back(realized_shift(one.table(SCORES), two.per_label(PRIOR)).shift)


def trained(one, two):
    model = OneVsRest("logistic").fit(one.features(), two.table(TRUE))
    return model.predict_margin(FEATURES)


def classified(one, two):
    from oddslip import RepairedClassifier

    model = RepairedClassifier(k=K, cv=2, seed=1).fit(one.features(), two.table(TRUE))
    return model.predict_proba(FEATURES)


def paneled(one, two):
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = OneVsRestClassifier(LogisticRegression()).fit(FEATURES, TRUE)
    panel = oddslip.panel_from(model, one.features(), two.table(TRUE))
    return oddslip.evaluate(panel, k=K, n_replicates=0)["map"].value


def lengthened(one, two):
    return oddslip.evaluate(one.long(SCORES), two.table(TRUE), k=K, n_replicates=0)["map"].value


class Verb(NamedTuple):
    """A call of two sides, which of the two things it matches, and cases in which it differs."""

    call: object
    axes: tuple[str, ...] = ("rows", "labels")
    exceptions: tuple = ()  # (outcome, axis, naming, names, order)


POSITION, MATCHED, REFUSED, TOLD = "position", "matched", "refused", ", with a warning"
# Names that are no numbers of the other side.
NAMELESS = [("text", "same order"), ("text", "another order"), ("integers", "another set")]


def differs(outcome, axis, naming):
    """A verb whose outcome differs where names of one side are no numbers of the other."""
    return tuple((outcome(order), axis, naming, names, order) for names, order in NAMELESS)


def refused(order):
    return REFUSED


def told(order):
    return (MATCHED if order == "same order" else POSITION) + TOLD


VERBS = {
    "`evaluate`: scores, labels": Verb(evaluated),
    "`Evaluation.compare`: scores, scores": Verb(compared, ("rows",)),
    "`Repair.fit`: scores, labels": Verb(fitted),
    "`Repair.transform`: calibration scores, scores": Verb(
        transformed,
        ("labels",),
        differs(told, "labels", "one named") + differs(told, "labels", "other named"),
    ),
    "`diagnose`: scores, labels": Verb(diagnosed),
    "`diagnose(unweighted=)`: scores, twin": Verb(twinned),
    "`diagnose(calibration=)`: scores, calibration scores": Verb(calibrated, ("labels",)),
    "`sample_weight=`: scores, weights": Verb(weighed, ("rows",)),
    "`exclude=`: scores, exclusions": Verb(excluded),
    "`check`: scores, labels": Verb(checked),
    "`plan(unweighted=)`: labels, scores": Verb(planned),
    "`prior=`, `weights=`, `propensities=`: scores, numbers": Verb(
        shifted, ("labels",), differs(refused, "labels", "other named")
    ),
    "`OneVsRest.fit`: features, labels": Verb(trained, ("rows",)),
    "`RepairedClassifier.fit`: features, labels": Verb(
        classified,
        ("rows",),
        # scikit-learn cuts frames and arrays into the same parts.
        tuple(
            (POSITION, "rows", naming, "integers", "another set")
            for naming in ("one named", "other named")
        ),
    ),
    "`panel_from`: features, labels": Verb(paneled, ("rows",)),
    "a long table: scores, labels": Verb(
        lengthened, exceptions=differs(refused, "labels", "one named")
    ),
}
ALWAYS_NAMED = {"a long table: scores, labels"}  # on its first side


# ---------------------------------------------------------------------------------------- the cases


CASES = [
    (naming, names, order)
    for naming in ("both named", "one named", "other named")
    for names in ("text", "integers")
    for order in ("same order", "another order", "another set")
    if not (names == "text" and order == "another set" and naming != "both named")
] + [("neither named", "", "same order"), ("neither named", "", "another order")]


def rule(axis, naming, names, order):
    """What the rule says of a case."""
    if naming == "neither named":
        return POSITION if order != "same order" else MATCHED
    if naming == "both named":
        return REFUSED if order == "another set" else MATCHED
    if names == "integers" and order != "another set":
        told = axis == "rows" and order == "another order"
        return MATCHED + TOLD if told else MATCHED
    if axis == "rows":
        return REFUSED
    return MATCHED if order == "same order" else POSITION


def sides_of(axis, naming, names, order):
    """Two sides: one of them in another order than the world's, with or without names."""
    size = SIZES[axis]
    turn = np.arange(size) if order == "same order" else ORDERS[axis]
    known = [f"{axis[0]}{at}" for at in range(size)] if names == "text" else list(range(size))

    def side(order_of, named, strange):
        shown = [known[at] for at in order_of]
        if strange:
            shown = [at + 100 for at in shown] if names == "integers" else ["x", *shown[1:]]
        return Side(**{axis: order_of, f"{axis[:-1]}_names": shown if named else None})

    strange = order == "another set"
    straight = np.arange(size)
    if naming == "one named":
        return side(turn, True, strange), side(straight, False, False)
    if naming == "other named":
        return side(straight, False, False), side(turn, True, strange)
    both = naming == "both named"
    return side(straight, both, False), side(turn, both, strange)


def without_names(verb):
    """The verb, or one that gives the same answer and takes two sides without names."""
    return evaluated if verb in ALWAYS_NAMED else VERBS[verb].call


@cache
def nameless(verb, axis, first_is_turned, same_order):
    """Answers without any names, of sides that lie alike and of those of a case."""
    naming = "one named" if first_is_turned else "other named"
    order = "same order" if same_order else "another order"
    sides = sides_of(axis, naming, "text", order)
    first, second = (side._replace(row_names=None, label_names=None) for side in sides)
    plain = without_names(verb)
    return plain(first, first), plain(first, second)


def outcome(verb, axis, case):
    """What a verb does with two sides: matched, position or refused, perhaps with a warning."""
    call = VERBS[verb].call
    one, two = sides_of(axis, *case)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = call(one, two)
        except oddslip.InvalidInput:
            return REFUSED
    said = TOLD if any("are matched by" in str(each.message) for each in caught) else ""
    aligned, placed = nameless(verb, axis, case[0] == "one named", case[2] == "same order")
    if np.allclose(answer, aligned, rtol=1e-9, atol=1e-12, equal_nan=True):
        return MATCHED + said
    assert np.allclose(answer, placed, rtol=1e-9, atol=1e-12, equal_nan=True), "neither"
    return POSITION + said


def wanted(verb, axis, case):
    """What the rule says, or None where a verb cannot come to such a case."""
    if verb in ALWAYS_NAMED and case[0] in ("other named", "neither named"):
        return None
    exceptions = {tuple(rest): outcome for outcome, *rest in VERBS[verb].exceptions}
    return exceptions.get((axis, *case), rule(axis, *case))


EVERY = [
    (verb, axis, case)
    for verb in VERBS
    for axis in VERBS[verb].axes
    for case in CASES
    if wanted(verb, axis, case) is not None
]


@pytest.mark.parametrize(
    ("verb", "axis", "case"),
    EVERY,
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)
def test_every_verb_matches_by_the_one_rule(verb, axis, case):
    assert outcome(verb, axis, case) == wanted(verb, axis, case)


@pytest.mark.parametrize("verb", VERBS)
def test_the_cases_tell_matching_from_position(verb):
    for axis in VERBS[verb].axes:
        one, two = sides_of(axis, "neither named", "", "another order")
        call = without_names(verb)
        assert not np.allclose(call(one, two), call(Side(), Side()), equal_nan=True)


def written():
    """The tables of docs/matching.md."""
    parts = []
    for axis in ("rows", "labels"):
        verbs = [verb for verb in VERBS if axis in VERBS[verb].axes]
        parts += [f"### {axis.capitalize()}\n", "| case | " + " | ".join(verbs) + " |"]
        parts.append("|---" * (1 + len(verbs)) + "|")
        for case in CASES:
            cells = [wanted(verb, axis, case) or "no such case" for verb in verbs]
            parts.append(f"| {', '.join(filter(None, case))} | " + " | ".join(cells) + " |")
        parts.append("")
    return "\n".join(parts)


def test_the_page_shows_what_every_verb_does():
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    tables, tail = rest.split(END)
    if os.environ.get("ODDSLIP_WRITE_DOCS"):
        PAGE.write_text(head + BEGIN + written() + END + tail, encoding="utf-8")
        return
    assert tables == written()
