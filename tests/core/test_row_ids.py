"""Rows, labels and kinds that belong together: each case is matched or refused, none is silent."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import oddslip
from oddslip.calibrators import Inversion, Isotonic
from oddslip.cli.app import main
from oddslip.core.panel import Panel
from oddslip.core.row_ids import UnorderedNames
from oddslip.core.weights import by_label
from oddslip.errors import InvalidInput
from oddslip.writers import write_scores

rng = np.random.default_rng(5)
N, NAMES, K = 60, ["a", "b", "c", "d"], 2
SCORES = rng.random((N, 4))
TRUE = (rng.random((N, 4)) < SCORES * 0.8).astype(int)
IDS = [f"u{row}" for row in range(N)]
TURN = rng.permutation(N)
TURNED = [IDS[row] for row in TURN]
MAP = oddslip.evaluate(SCORES, TRUE, k=K, n_replicates=0)["map"].value


def frame(cells, ids=None, names=NAMES):
    return pd.DataFrame(cells, index=ids, columns=names)


def polars(cells, ids=None):
    named = {} if ids is None else {"row_id": ids}
    return pl.DataFrame(named | {name: cells[:, at] for at, name in enumerate(NAMES)})


def found(scores, labels, **more):
    return oddslip.evaluate(scores, labels, k=K, n_replicates=0, **more)["map"].value


# ------------------------------------------------------------------------------------- in Python

MATCHED = {
    "frames with the same index in another order": lambda: found(
        frame(SCORES, IDS), frame(TRUE[TURN], TURNED)
    ),
    "frames whose index counts from elsewhere": lambda: found(
        frame(SCORES, range(5, 5 + N)), frame(TRUE[TURN], TURN + 5)
    ),
    "frames with labels in another order": lambda: found(
        frame(SCORES, IDS), frame(TRUE[:, [2, 0, 3, 1]], IDS, ["c", "a", "d", "b"])
    ),
    "integers in another order against a default index": lambda: found(
        frame(SCORES), frame(TRUE[TURN], TURN)
    ),
    "a reversed index against a default one": lambda: found(
        frame(SCORES[::-1], range(N - 1, -1, -1)), frame(TRUE)
    ),
    "a default index that has a name": lambda: found(
        frame(SCORES, pd.RangeIndex(N, name="user")), frame(TRUE[TURN], TURN)
    ),
    "a numbered index against bare rows, in order": lambda: found(
        frame(SCORES, pd.Index(range(N), dtype="int32")), TRUE
    ),
    "integers of two types": lambda: found(
        frame(SCORES, pd.Index(range(7, N + 7), dtype="uint64")),
        frame(TRUE[TURN], pd.Index(TURN + 7, dtype="Int64")),
    ),
    "a series of lists with integers against a default index": lambda: found(
        frame(SCORES), pd.Series([np.flatnonzero(row) for row in TRUE[TURN]], index=TURN)
    ),
    "polars ids and a pandas index": lambda: found(
        polars(SCORES, np.arange(N)), frame(TRUE[TURN], TURN)
    ),
    "a pandas index and polars ids": lambda: found(frame(SCORES), polars(TRUE[TURN], TURN)),
    "polars ids on both sides": lambda: found(
        polars(SCORES, np.arange(N)), polars(TRUE[TURN], TURN)
    ),
    "polars ids on one side": lambda: found(polars(SCORES), polars(TRUE[TURN], TURN)),
    "a panel of polars frames": lambda: found(
        Panel(polars(SCORES, IDS), polars(TRUE[TURN], TURNED)), None
    ),
    "integer columns in another order against bare cells": lambda: found(
        frame(SCORES[:, [2, 0, 3, 1]], None, [2, 0, 3, 1]), TRUE
    ),
    "bare cells against integer columns in another order": lambda: found(
        SCORES, frame(TRUE[:, [2, 0, 3, 1]], None, [2, 0, 3, 1])
    ),
    "integer columns against a sparse matrix": lambda: found(
        frame(SCORES[:, [2, 0, 3, 1]], None, [2, 0, 3, 1]), sparse.csr_array(TRUE)
    ),
    "integer columns against default ones": lambda: found(
        frame(SCORES[:, [2, 0, 3, 1]], None, [2, 0, 3, 1]), frame(TRUE, None, None)
    ),
    "integer columns against lists": lambda: found(
        frame(SCORES[:, [2, 0, 3, 1]], None, [2, 0, 3, 1]),
        [np.flatnonzero(row) for row in TRUE],
    ),
    "columns that are years against lists of years": lambda: found(
        frame(SCORES, None, [1999, 2000, 2001, 2002]),
        [1999 + np.flatnonzero(row) for row in TRUE],
    ),
    "label_names that order a frame": lambda: found(
        frame(SCORES[:, [2, 0, 3, 1]], None, ["c", "a", "d", "b"]), TRUE, label_names=NAMES
    ),
    "arrays as predict_proba of several outputs gives them": lambda: found(
        [np.column_stack([1 - column, column]) for column in SCORES.T], TRUE
    ),
    "a matrix of numpy": lambda: found(SCORES.view(np.matrix), TRUE.view(np.matrix)),
    "exclude of rows in another order": lambda: found(
        frame(np.hstack([SCORES, np.ones((N, 1))]), IDS, [*NAMES, "e"]),
        frame(np.hstack([TRUE, np.ones((N, 1))]), IDS, [*NAMES, "e"]),
        exclude=pd.Series([["e"]] * N, index=TURNED),
    ),
    "row_ids and an index": lambda: found(
        Panel(SCORES, frame(TRUE[TURN], TURNED), row_ids=IDS), None
    ),
    "a series of lists": lambda: found(
        frame(SCORES, IDS), pd.Series([np.flatnonzero(row) for row in TRUE[TURN]], index=TURNED)
    ),
    "a two-level index": lambda: found(
        frame(SCORES, pd.MultiIndex.from_product([range(N // 2), ["x", "y"]])),
        frame(TRUE[TURN], pd.MultiIndex.from_tuples([(row // 2, "xy"[row % 2]) for row in TURN])),
    ),
    "the same ids in the same order, some twice": lambda: found(
        frame(SCORES, [1] * N), frame(TRUE, [1] * N)
    ),
    "default columns are no names": lambda: found(frame(SCORES, IDS, None), frame(TRUE, IDS)),
}

SKEWED = np.random.default_rng(1).random(N) + 0.1
WEIGHED = oddslip.evaluate(SCORES, TRUE, k=K, n_replicates=0, sample_weight=SKEWED)["map"].value
HIDDEN = (np.random.default_rng(2).random((N, 4)) < 0.3).astype(int)
PARTLY = oddslip.evaluate(SCORES, TRUE, k=K, n_replicates=0, exclude=HIDDEN)["map"].value

PAIRED = {
    "a sample weight by integers in another order": (
        lambda: found(frame(SCORES), TRUE, sample_weight=pd.Series(SKEWED[TURN], index=TURN)),
        WEIGHED,
    ),
    "a sample weight in a default order, of integer ids": (
        lambda: found(
            frame(SCORES[TURN], TURN), frame(TRUE[TURN], TURN), sample_weight=pd.Series(SKEWED)
        ),
        WEIGHED,
    ),
    "exclude by ids": (
        lambda: found(frame(SCORES, IDS), frame(TRUE, IDS), exclude=frame(HIDDEN[TURN], TURNED)),
        PARTLY,
    ),
    "exclude by integers in another order": (
        lambda: found(frame(SCORES), frame(TRUE), exclude=frame(HIDDEN[TURN], TURN)),
        PARTLY,
    ),
    "exclude by names in another order": (
        lambda: found(frame(SCORES), TRUE, exclude=frame(HIDDEN[:, ::-1], None, NAMES[::-1])),
        PARTLY,
    ),
    "exclude by integer columns in another order": (
        lambda: found(SCORES, TRUE, exclude=frame(HIDDEN[:, ::-1], None, [3, 2, 1, 0])),
        PARTLY,
    ),
}

REFUSED = {
    "an index on one side": (
        lambda: found(frame(SCORES), frame(TRUE, TURNED)),
        "must both have row ids or neither, got 'u",
    ),
    "an index and bare rows": (
        lambda: found(frame(SCORES, IDS), TRUE),
        r"ids .a frame's index, a column row_id, row_ids=., or drop these .* \.to_numpy",
    ),
    "integers that are no numbering and bare rows": (
        lambda: found(frame(SCORES, range(5, 5 + N)), TRUE),
        "must both have row ids or neither, got 5 and so on among the scores alone",
    ),
    "rows of two lengths, named on one side": (
        lambda: found(frame(SCORES, range(N - 1, -1, -1)), TRUE[:-1]),
        "as many rows, got 60 and 59",
    ),
    "text ids and integers of polars": (
        lambda: found(polars(SCORES, IDS), frame(TRUE, range(5, 5 + N))),
        "cast one",
    ),
    "a sample weight of named rows beside bare scores": (
        lambda: found(SCORES, TRUE, sample_weight=pd.Series(SKEWED, index=IDS)),
        "scores and sample_weight must both have row ids or neither",
    ),
    "exclude of named rows beside bare scores": (
        lambda: found(SCORES, TRUE, exclude=frame(HIDDEN, IDS)),
        "exclude .*must both have row ids or neither",
    ),
    "label_names that are not a frame's": (
        lambda: found(frame(SCORES), TRUE, label_names=["a", "b", "c", "x"]),
        "same label names, got 'x' in the label_names alone. Rename the columns",
    ),
    "comparisons of rows that have names on one side": (
        lambda: oddslip.evaluate(SCORES, TRUE, k=K, n_replicates=0).compare(
            oddslip.evaluate(frame(SCORES, IDS), frame(TRUE, IDS), k=K, n_replicates=0)
        ),
        "first scores and second scores must both have row ids or neither",
    ),
    "a twin of named rows beside bare scores": (
        lambda: oddslip.diagnose(SCORES, TRUE, k=K, unweighted=frame(SCORES, IDS, None)),
        "must both have row ids or neither",
    ),
    "a twin of other labels": (
        lambda: oddslip.diagnose(
            frame(SCORES), TRUE, k=K, unweighted=frame(SCORES, None, ["a", "b", "c", "x"])
        ),
        "same label names, got 'd' in the scores alone",
    ),
    "calibration scores of other labels": (
        lambda: oddslip.diagnose(
            frame(SCORES), TRUE, k=K, calibration=(frame(SCORES, None, ["a", "b", "c", "x"]), TRUE)
        ),
        "same label names, got 'd' in the scores alone",
    ),
    "a series of weights by name, for labels that have none": (
        lambda: oddslip.diagnose(SCORES, TRUE, k=K, weights=pd.Series([1.0, 2, 3, 4], index=NAMES)),
        "weights given by name .* have none",
    ),
    "complex sample weights": (
        lambda: found(SCORES, TRUE, sample_weight=np.ones(N, complex)),
        "sample_weight must be numbers, got .*j",
    ),
    "a truth value for a weight": (
        lambda: oddslip.diagnose(SCORES, TRUE, k=K, weights=True),
        "weights must be .*, got True",
    ),
    "truth values for weights": (
        lambda: oddslip.diagnose(SCORES, TRUE, k=K, weights=[True, False, True, True]),
        "weights must be numbers, got .True",
    ),
    "propensities whose inverse is none": (
        lambda: found(SCORES, TRUE, propensities=[0.5, 1e-310, 0.5, 0.5]),
        "propensities must be above 0 and at most 1, got 1e-310 for label 1. The least is 1e-150",
    ),
    "arrays of one class in a list of several outputs": (
        lambda: found([np.ones((N, 1)), np.ones((N, 2))], TRUE[:, :2]),
        "two columns, .*got shape .60, 1. at label 0",
    ),
    "a row that labels lack": (
        lambda: found(frame(SCORES, IDS), frame(TRUE, ["x", *IDS[1:]])),
        "'u0' among the scores",
    ),
    "a row that scores lack": (
        lambda: found(frame(SCORES[:-1], IDS[:-1]), frame(TRUE, IDS)),
        "'u59' among the labels",
    ),
    "a row named twice": (
        lambda: found(frame(SCORES, IDS), frame(TRUE, ["u1", *IDS[1:]])),
        "'u1' more than once among the labels",
    ),
    "text ids and numbers": (
        lambda: found(frame(SCORES, [str(7 + r) for r in range(N)]), frame(TRUE, range(7, 7 + N))),
        "cast one",
    ),
    "a label that labels lack": (
        lambda: found(frame(SCORES), frame(TRUE, None, ["a", "b", "c", "x"])),
        "same label names, got 'd' in the scores alone",
    ),
    "a twin of other rows": (
        lambda: oddslip.diagnose(
            frame(SCORES, IDS), frame(TRUE, IDS), k=K, unweighted=frame(SCORES, ["x", *IDS[1:]])
        ),
        "'u0' among the scores",
    ),
    "calibration labels of other rows": (
        lambda: oddslip.diagnose(
            SCORES, TRUE, k=K, calibration=(frame(SCORES, IDS, None), frame(TRUE, ["x", *IDS[1:]]))
        ),
        "'u0' among the scores",
    ),
    "weights of a stranger": (
        lambda: oddslip.diagnose(
            frame(SCORES), TRUE, k=K, weights={"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
        ),
        "weights given by name .* 'e'",
    ),
    "weights that lack a label": (
        lambda: oddslip.diagnose(frame(SCORES), TRUE, k=K, weights={"a": 1, "b": 2, "c": 3}),
        "weights given by name .* 'd' is missing",
    ),
    "a prior that lacks a label": (
        lambda: Isotonic(prior=pd.Series({"a": 0.1, "b": 0.2, "c": 0.3})).fit(frame(SCORES), TRUE),
        "prior given by name .* 'd' is missing",
    ),
    "a sample weight of other rows": (
        lambda: found(
            frame(SCORES, IDS),
            frame(TRUE, IDS),
            sample_weight=pd.Series(1.0, index=["x", *IDS[1:]]),
        ),
        "'u0' among the scores",
    ),
    "margins for a repair of probabilities": (
        lambda: Isotonic().fit(SCORES, TRUE).rank(SCORES * 9 - 7, k=K),
        "fitted on probabilities, got scores from",
    ),
    "probabilities for a repair of margins": (
        lambda: Isotonic(kind="margin").fit(SCORES * 9 - 7, TRUE).transform(SCORES),
        "fitted on margins, got scores that all lie between 0 and 1",
    ),
    "candidates with probabilities for a repair of margins": (
        lambda: (
            Isotonic(kind="margin")
            .fit(SCORES * 9 - 7, TRUE)
            .rank(sparse.csr_matrix(SCORES + 1e-9), k=K)
        ),
        "fitted on margins, got scores that all lie between 0 and 1",
    ),
    "a panel of another kind": (
        lambda: Isotonic().fit(SCORES, TRUE).rank(Panel(SCORES, kind="margin"), k=K),
        "fitted on probability scores, got margin scores",
    ),
}


@pytest.mark.parametrize("case", MATCHED)
def test_rows_that_belong_together_are_matched(case):
    assert MATCHED[case]() == MAP


@pytest.mark.parametrize("case", PAIRED)
def test_what_goes_with_rows_is_matched_as_labels_are(case):
    act, wanted = PAIRED[case]
    assert act() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        (SCORES, frame(TRUE[TURN], TURN)),
        (SCORES.tolist(), pd.Series([np.flatnonzero(row) for row in TRUE[TURN]], index=TURN)),
        (frame(SCORES[TURN], TURN), TRUE),
    ],
)
def test_rows_matched_by_number_with_bare_ones_are_told_of_once(scores, labels):
    with pytest.warns(UserWarning, match="matched by number") as told:
        assert found(scores, labels) == pytest.approx(MAP, abs=1e-12)
    assert len(told) == 1
    assert told[0].filename == __file__


@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_do_not_are_refused_by_name(case):
    act, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message) as refusal:
        act()
    assert "\n" not in str(refusal.value)


def test_a_twin_in_another_order_is_turned():
    twin = np.sqrt(SCORES)
    straight = oddslip.diagnose(SCORES, TRUE, k=K, unweighted=twin, n_replicates=0)
    turned = oddslip.diagnose(
        frame(SCORES, IDS, None),
        frame(TRUE, IDS),
        k=K,
        n_replicates=0,
        unweighted=frame(twin[TURN][:, ::-1], TURNED, NAMES[::-1]),
    )
    assert turned.ladder.value("unweighted") == straight.ladder.value("unweighted")
    np.testing.assert_array_equal(turned.shifts.direct, straight.shifts.direct)


@pytest.mark.parametrize(("ids", "again"), [(IDS, TURNED), (range(N), TURN)])
def test_two_evaluations_are_paired_by_ids(ids, again):
    first = oddslip.evaluate(frame(SCORES, ids), frame(TRUE, ids), k=K)
    other = SCORES ** [1, 2, 3, 4]
    straight = first.compare(oddslip.evaluate(frame(other, ids), frame(TRUE, ids), k=K))
    turned = first.compare(oddslip.evaluate(frame(other[TURN], again), frame(TRUE, ids), k=K))
    for metric, estimate in straight.to_dict().items():
        assert turned.to_dict()[metric] == pytest.approx(estimate, abs=1e-12)
    assert turned["map"].value != 0


def test_calibration_scores_are_matched_by_the_names_of_labels():
    def gains(calibration, **more):
        return oddslip.diagnose(
            frame(SCORES), TRUE, k=K, calibration=calibration, n_replicates=0, **more
        ).ladder.to_dict()

    turn = [2, 0, 3, 1]
    straight = gains((SCORES[TURN], TRUE[TURN]))
    names = [NAMES[at] for at in turn]
    assert gains((frame(SCORES[TURN][:, turn], None, names), TRUE[TURN][:, turn])) == straight
    assert gains(Panel(SCORES[TURN][:, turn], TRUE[TURN][:, turn], label_names=names)) == straight
    lists = [[NAMES[at] for at in np.flatnonzero(row)] for row in TRUE[TURN]]
    assert gains((SCORES[TURN], lists)) == straight


def test_calibration_scores_are_matched_by_the_numbers_of_labels():
    turn = [2, 0, 3, 1]
    told = {"k": K, "n_replicates": 0}
    straight = oddslip.diagnose(SCORES, TRUE, calibration=(SCORES[TURN], TRUE[TURN]), **told)
    turned = oddslip.diagnose(
        SCORES, TRUE, calibration=(frame(SCORES[TURN][:, turn], None, turn), TRUE[TURN]), **told
    )
    assert turned.ladder.to_dict() == straight.ladder.to_dict()


def test_a_table_that_brings_its_truth_calibrates(tmp_path):
    cells = [(row, label) for row in TURN for label in range(4)]
    table = pa.table(
        {
            "row": [IDS[row] for row, _ in cells],
            "label": [NAMES[label] for _, label in cells],
            "score": [SCORES[cell] for cell in cells],
            "true": [TRUE[cell] for cell in cells],
        }
    )
    pq.write_table(table, tmp_path / "calibration.parquet")
    told = {"k": K, "n_replicates": 0}
    wanted = oddslip.diagnose(
        frame(SCORES), TRUE, calibration=(SCORES[TURN], TRUE[TURN]), **told
    ).ladder.to_dict()
    for given in (table, tmp_path / "calibration.parquet", str(tmp_path / "calibration.parquet")):
        assert (
            oddslip.diagnose(frame(SCORES), TRUE, calibration=given, **told).ladder.to_dict()
            == wanted
        )


def test_a_repair_goes_to_integer_columns_by_their_numbers():
    turn = [2, 0, 3, 1]
    repair = Isotonic().fit(SCORES, TRUE)
    scores = frame(SCORES[:, turn], None, turn)
    np.testing.assert_array_equal(repair.transform(scores), repair.transform(SCORES)[:, turn])
    refit = Isotonic().fit(scores, TRUE)
    np.testing.assert_array_equal(refit.transform(scores), repair.transform(SCORES)[:, turn])
    np.testing.assert_array_equal(refit.transform(SCORES), repair.transform(SCORES))


def test_labels_of_a_long_table_in_an_unseen_order_take_no_positions():
    for labels in (TRUE, sparse.csr_array(TRUE), [np.flatnonzero(row) for row in TRUE]):
        with pytest.raises(InvalidInput, match="order of appearance"):
            Panel(SCORES, labels, label_names=UnorderedNames(NAMES))
    with pytest.raises(InvalidInput, match="prior must name the labels"):
        by_label("prior", [0.1, 0.2, 0.3, 0.4], UnorderedNames(NAMES))
    lists = [[NAMES[at] for at in np.flatnonzero(row)] for row in TRUE]
    assert found(Panel(SCORES, lists, label_names=UnorderedNames(NAMES)), None) == MAP
    weights = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    listed = Panel(SCORES, lists, label_names=UnorderedNames(NAMES))
    assert Inversion(weights).fit(listed).fitted_.maps.b.tolist() == pytest.approx(
        (-np.log([1.0, 2.0, 3.0, 4.0])).tolist()
    )


@pytest.mark.parametrize(
    "named",
    [
        {3: 4.0, 2: 3.0, 1: 2.0, 0: 1.0},
        pd.Series([4.0, 3.0, 2.0, 1.0], index=[3, 2, 1, 0]),
        pd.DataFrame({"weight": [4.0, 3.0, 2.0, 1.0]}, index=[3, 2, 1, 0]),
        pd.DataFrame({"label": [3, 2, 1, 0], "weight": [4.0, 3.0, 2.0, 1.0]}),
    ],
)
def test_weights_by_number_go_to_labels_without_names(named):
    fitted = [
        Inversion(weights).fit_transform(SCORES, TRUE) for weights in (named, [1.0, 2.0, 3.0, 4.0])
    ]
    np.testing.assert_array_equal(*fitted)


@pytest.mark.parametrize("form", ["w.npy", "w.txt", "w.csv"])
def test_numbers_per_label_come_from_files(tmp_path, form):
    path, weights, prior = tmp_path / form, [1.0, 2.0, 3.0, 4.0], TRUE.mean(axis=0)

    def written(numbers, name):
        path = tmp_path / (name + form)
        if form == "w.npy":
            np.save(path, numbers)
        elif form == "w.txt":
            np.savetxt(path, numbers)
        else:
            rows = [
                f"{label},{number!r}"
                for label, number in zip(NAMES, map(float, numbers), strict=True)
            ]
            path.write_text("\n".join(["label,weight", *rows[::-1]]) + "\n")
        return path

    told = {"k": K, "n_replicates": 0}
    wanted = oddslip.diagnose(
        frame(SCORES), TRUE, weights=weights, prior=prior, propensities=prior, metric="psp", **told
    )
    paths = [written(prior, "prior"), str(written(prior, "chances"))]
    for path in (written(weights, "w"), str(written(weights, "w"))):
        got = oddslip.diagnose(
            frame(SCORES),
            TRUE,
            weights=path,
            prior=paths[0],
            propensities=paths[1],
            metric="psp",
            **told,
        )
        assert got.weights.tolist() == wanted.weights.tolist()
        assert got.ladder.to_dict() == wanted.ladder.to_dict()
        repair = oddslip.Repair(k=K, weights=path, prior=paths[0], rule="isotonic-0").fit(
            frame(SCORES), TRUE
        )
        same = oddslip.Repair(k=K, weights=weights, prior=prior, rule="isotonic-0").fit(
            frame(SCORES), TRUE
        )
        np.testing.assert_array_equal(*(each.transform(frame(SCORES)) for each in (repair, same)))
    assert found(frame(SCORES), TRUE, weights=path) == MAP


def test_a_path_of_weights_that_is_none_is_refused_in_one_line():
    with pytest.raises(
        InvalidInput, match=r"weights must be .*got 'nowhere\.npy', and there is no such file"
    ):
        oddslip.diagnose(SCORES, TRUE, k=K, weights="nowhere.npy")


def test_sample_weights_come_from_a_file(tmp_path):
    np.save(tmp_path / "w.npy", SKEWED)
    assert found(SCORES, TRUE, sample_weight=tmp_path / "w.npy") == WEIGHED


@pytest.mark.parametrize(
    "named",
    [
        {"d": 4.0, "c": 3.0, "b": 2.0, "a": 1.0},
        pd.Series([4.0, 3.0, 2.0, 1.0], index=["d", "c", "b", "a"]),
        pd.DataFrame({"label": ["d", "c", "b", "a"], "weight": [4.0, 3.0, 2.0, 1.0]}),
        pd.DataFrame({"weight": [4.0, 3.0, 2.0, 1.0]}, index=["d", "c", "b", "a"]),
    ],
)
def test_weights_by_name_go_to_their_labels(named):
    fitted = [
        Inversion(weights).fit_transform(frame(SCORES), TRUE)
        for weights in (named, [1.0, 2.0, 3.0, 4.0])
    ]
    np.testing.assert_array_equal(*fitted)


# ------------------------------------------------------------------------- files, on the command line


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The same rows with ids in Parquet, in order and turned; and what does not belong."""
    monkeypatch.chdir(tmp_path)
    for name, order in (("straight", np.arange(N)), ("turned", TURN)):
        ids = [IDS[row] for row in order]
        save(f"wide-{name}.parquet", {"row_id": ids} | columns(SCORES[order]))
        save(f"truth-{name}.parquet", {"row_id": ids} | columns(TRUE[order]))
        write_scores(
            f"list-{name}.parquet",
            [(0, SCORES[order])],
            n_rows=N,
            n_labels=4,
            dtype="f8",
            label_names=NAMES,
            row_ids=ids,
            kind="probability",
        )
        cells = [(row, label) for row in order for label in range(4)]
        save(
            f"long-{name}.parquet",
            {
                "row": [IDS[row] for row, _ in cells],
                "label": [NAMES[label] for _, label in cells],
                "score": [SCORES[cell] for cell in cells],
            },
        )
        true = [cell for cell in cells if TRUE[cell]]
        pairs = {"label": [NAMES[label] for _, label in true]}
        save(f"pairs-{name}.parquet", {"row": [IDS[row] for row, _ in true]} | pairs)
        lists = [[NAMES[j] for j in np.flatnonzero(TRUE[row])] for row in order]
        save(f"lists-{name}.parquet", {"row_id": ids, "labels": lists})
    save("strange.parquet", {"row_id": ["x", *IDS[1:]]} | columns(TRUE))
    save("twice.parquet", {"row_id": ["u1", *IDS[1:]]} | columns(TRUE))
    save("strange-pairs.parquet", {"row": ["x"], "label": ["a"]})
    save("wide-margins.parquet", columns(SCORES * 9 - 7))
    write_scores(
        "margins.parquet",
        [(0, SCORES * 9 - 7)],
        n_rows=N,
        n_labels=4,
        dtype="f8",
        label_names=NAMES,
        kind="margin",
    )
    np.save("scores.npy", SCORES)
    np.save("margins.npy", SCORES * 9 - 7)
    sparse.save_npz("truth.npz", sparse.csr_array(TRUE))
    (tmp_path / "w.csv").write_text("label,weight\nd,4\nc,3\nb,2\na,1\n")
    (tmp_path / "w-short.csv").write_text("label,weight\nd,4\nc,3\nb,2\n")
    Isotonic().fit(SCORES, TRUE).save("repair.oddslip")
    Isotonic(kind="margin").fit(SCORES * 9 - 7, TRUE).save("margin-repair.oddslip")


def columns(cells):
    return {name: cells[:, at].tolist() for at, name in enumerate(NAMES)}


def save(name, table):
    pq.write_table(pa.table(table), name)


@pytest.mark.parametrize("scores", ["wide", "list", "long"])
@pytest.mark.parametrize("labels", ["truth", "pairs", "lists"])
def test_files_are_matched_by_their_ids(files, scores, labels):
    for one, other in (("straight", "turned"), ("turned", "turned"), ("turned", "straight")):
        value = found(f"{scores}-{one}.parquet", f"{labels}-{other}.parquet")
        assert value == pytest.approx(MAP, abs=1e-12)


def test_a_twin_file_in_another_order_is_turned(files):
    paths = ["wide-straight.parquet", "truth-turned.parquet"]
    straight = oddslip.diagnose(*paths, k=K, unweighted="wide-straight.parquet", n_replicates=0)
    turned = oddslip.diagnose(*paths, k=K, unweighted="long-turned.parquet", n_replicates=0)
    assert turned.ladder.value("unweighted") == straight.ladder.value("unweighted")
    np.testing.assert_array_equal(turned.shifts.direct, straight.shifts.direct)


COMMANDS = {
    "matched: ids in another order": (
        "evaluate wide-turned.parquet truth-straight.parquet -k 2",
        "",
    ),
    "matched: against another order": (
        "evaluate wide-turned.parquet truth-straight.parquet -k 2 --against list-straight.parquet",
        "",
    ),
    "matched: a twin in another order": (
        "diagnose wide-turned.parquet truth-straight.parquet -k 2 --bootstrap 0 "
        "--unweighted list-straight.parquet",
        "",
    ),
    "matched: weights by name": (
        "fit wide-turned.parquet truth-straight.parquet --calibrator inversion --weights w.csv "
        "-o r.oddslip",
        "",
    ),
    "matched: a kind that the file says": ("rank margins.parquet -k 2", ""),
    "refused: a strange row": (
        "evaluate wide-straight.parquet strange.parquet -k 2",
        "'u0' among the scores",
    ),
    "refused: a row twice": ("evaluate wide-straight.parquet twice.parquet -k 2", "more than once"),
    "refused: strange pairs": (
        "evaluate wide-straight.parquet strange-pairs.parquet -k 2",
        "'x', which is none of their row ids",
    ),
    "refused: ids against numbers": (
        "evaluate scores.npy pairs-straight.parquet -k 2 --label-names names.txt",
        "scores have no row ids",
    ),
    "refused: ids beside labels without": (
        "evaluate wide-turned.parquet truth.npz -k 2",
        "must both have row ids or neither",
    ),
    "refused: a strange twin": (
        "diagnose wide-straight.parquet truth-turned.parquet -k 2 --unweighted strange.parquet",
        "float column",
    ),
    "refused: calibration labels of other rows": (
        "diagnose scores.npy truth.npz -k 2 --calibration wide-straight.parquet "
        "--calibration-labels strange.parquet",
        "'u0' among the scores",
    ),
    "refused: weights that lack a label": (
        "diagnose wide-straight.parquet truth-turned.parquet -k 2 --weights w-short.csv",
        "'a' is missing",
    ),
    "refused: another kind than the file's": (
        "evaluate margins.parquet truth.npz -k 2 --kind probability",
        'written as "margin"',
    ),
    "refused: margins for probabilities": (
        "apply repair.oddslip margins.npy -o x.npy",
        "fitted on probabilities",
    ),
    "refused: probabilities for margins": (
        "apply margin-repair.oddslip scores.npy -k 2 -o x.npy",
        "fitted on margins",
    ),
    "refused: a file of probabilities for margins": (
        "apply margin-repair.oddslip wide-straight.parquet -k 2 -o x.npy",
        "fitted on margins",
    ),
    "refused: a file that does not say that it holds margins": (
        "apply repair.oddslip wide-margins.parquet -o x.npy",
        "fitted on probabilities",
    ),
    "refused: a long file of probabilities for margins": (
        "apply margin-repair.oddslip long-straight.parquet -k 2 -o x.npy",
        "fitted on margins",
    ),
    "refused: a margin file for probabilities": (
        "apply repair.oddslip margins.parquet -o x.npy",
        'written as "margin"',
    ),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_commands_match_or_refuse(files, capsys, case):
    command, message = COMMANDS[case]
    with open("names.txt", "w") as file:
        file.write("\n".join(NAMES))
    code = main(command.split())
    said = capsys.readouterr()
    if case.startswith("matched"):
        assert not code, said.err
        if "evaluate" in command:
            assert f"{MAP:.4f}" in said.out
    else:
        assert code == 2
        assert message in " ".join(said.err.split())


def test_a_written_table_keeps_its_kind(files):
    assert oddslip.open_source("margins.parquet").kind == "margin"
    assert main(["apply", "repair.oddslip", "scores.npy", "-o", "repaired.parquet"]) in (0, None)
    assert oddslip.open_source("repaired.parquet").kind == "probability"


# ------------------------------------------------------------------------------- every other verb


def test_a_plan_matches_unweighted_scores_with_its_labels():
    told = {"rounds": 60, "learning_rate": 0.1, "k": K, "n_replicates": 0}
    weights = dict(zip(NAMES, (1.0, 2.0, 30.0, 40.0), strict=True))
    straight = oddslip.plan(
        TRUE, weights=list(weights.values()), unweighted=SCORES, label_names=NAMES, **told
    )
    turned = oddslip.plan(
        frame(TRUE, IDS),
        weights=weights,
        unweighted=frame(SCORES[TURN][:, ::-1], TURNED, NAMES[::-1]),
        **told,
    )
    assert turned.to_dict() == straight.to_dict()


def test_a_baseline_is_matched_with_the_scores_that_are_checked():
    told = {"k": K, "n_replicates": 0}
    other = SCORES ** [1, 2, 3, 4]
    straight = oddslip.check(None, SCORES, TRUE, baseline=other, **told)
    turned = oddslip.check(
        None,
        frame(SCORES, IDS),
        frame(TRUE, IDS),
        baseline=frame(other[TURN][:, ::-1], TURNED, NAMES[::-1]),
        **told,
    )
    assert turned.to_dict()["changes"] == straight.to_dict()["changes"]


def test_a_file_of_labels_with_integer_columns_goes_by_their_numbers(tmp_path):
    turn = [2, 0, 3, 1]
    truth = {str(label): TRUE[:, label].tolist() for label in turn}
    pq.write_table(pa.table(truth), tmp_path / "truth.parquet")
    assert found(SCORES, tmp_path / "truth.parquet") == MAP


def test_labels_in_a_file_go_to_integer_columns_by_their_numbers(tmp_path):
    rng = np.random.default_rng(3)
    scores, truth = rng.random((30, 4)), (rng.random((30, 4)) < 0.4).astype(int)
    np.save(tmp_path / "y.npy", truth)
    columns = [2, 0, 3, 1]
    frame = pd.DataFrame(scores[:, columns], columns=columns)
    by_number = oddslip.evaluate(frame, tmp_path / "y.npy", k=2, n_replicates=0)
    aligned = oddslip.evaluate(scores, truth, k=2, n_replicates=0)
    assert by_number["map"].value == aligned["map"].value
