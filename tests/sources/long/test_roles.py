"""Long tables as people have them: user_id, item_id, score, label, in files and frames."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oddslip
from oddslip import InvalidInput, open_source
from oddslip.cli.app import main
from oddslip.errors import OddslipError
from oddslip.sources.long.roles import find_roles

FORMS = (
    "csv",
    "csv with line numbers",
    "parquet",
    "arrow",
    "pandas",
    "filtered pandas",
    "polars",
    "lazy polars",
)
USERS, ITEMS = ["u3", "u1", "u2"], [40, 7, 21, 11]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def panel():
    rng = np.random.default_rng(3)
    scores = rng.permutation(12).reshape(3, 4) / 12
    return scores, rng.random((3, 4)) < 0.5


def candidates(names=("user_id", "item_id", "score", "label"), seed=1):
    """The cells of the panel in some order of lines."""
    scores, truths = panel()
    order = np.random.default_rng(seed).permutation(12)
    row, label = np.divmod(order, 4)
    cells = [
        np.array(USERS)[row],
        np.array(ITEMS)[label],
        scores[row, label],
        truths[row, label].astype(int),
    ]
    return pd.DataFrame(dict(zip(names, cells, strict=False)))


def put(frame, form, name="s"):
    if form.startswith("csv"):
        frame.to_csv(f"{name}.csv", index="numbers" in form)
        return f"{name}.csv"
    if form == "pandas":
        return frame
    if form == "filtered pandas":
        return pd.concat([frame.head(2), frame]).set_axis(np.arange(len(frame) + 2) * 3)[2:]
    if form == "parquet":
        frame.set_index(np.arange(len(frame)) + 5).to_parquet(f"{name}.parquet")
        return f"{name}.parquet"
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if form == "arrow":
        return table
    return pl.from_arrow(table).lazy() if form == "lazy polars" else pl.from_arrow(table)


def by_name(source):
    """Scores and truths of cells, by the names of row and label."""
    cells = {}
    for block in source.blocks():
        for row, scores, truths in zip(block.row_ids, block.scores, block.truths(), strict=True):
            for label, score, true in zip(source.label_names, scores, truths, strict=True):
                cells[row, label] = (score, bool(true))
    return cells


def wanted_cells():
    scores, truths = panel()
    return {
        (user, str(item)): (scores[row, label], bool(truths[row, label]))
        for row, user in enumerate(USERS)
        for label, item in enumerate(ITEMS)
    }


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "names",
    [
        ("user_id", "item_id", "score", "label"),
        ("row", "label", "score", "true"),
        ("qid", "docid", "y_score", "relevance"),
        ("customerID", "ProductId", "Prediction", "clicked"),
        ("session id", "candidate", "probability", "y_true"),
        ("row_id", "label", "pred", "target"),
    ],
)
def test_columns_are_known_by_the_names_that_people_give_them(names, form, nan):
    assert by_name(open_source(put(candidates(names), form), nan=nan)) == wanted_cells()


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("form", FORMS)
def test_columns_may_be_said_and_the_others_are_ignored(form, nan):
    frame = candidates(("shopper", "dish", "p", "ate")).assign(score=7.0, price="dear", label="x")
    columns = {"row": "shopper", "label": "dish", "score": "p", "true": "ate"}
    source = open_source(put(frame, form), columns=columns, nan=nan)
    assert by_name(source) == wanted_cells()


@pytest.mark.parametrize("form", FORMS)
def test_roles_that_are_not_said_are_looked_for_by_name(form):
    frame = candidates(("shopper", "dish", "score", "label")).assign(price="dear")
    source = open_source(put(frame, form), columns={"row": "shopper", "label": "dish"})
    assert by_name(source) == wanted_cells()


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("form", FORMS)
def test_scores_and_truth_may_come_in_two_tables_in_two_orders(form, nan):
    roles = {"row": "shopper", "label": "dish", "score": "p"}
    for names, columns in (
        (("user_id", "item_id", "score", "label"), None),
        (("shopper", "dish", "p", "label"), roles),
    ):
        scores = put(candidates(names)[list(names[:3])], form)
        truth = candidates(names, seed=2)[[names[0], names[1], "label"]]
        source = open_source(scores, put(truth, form, "y"), nan=nan, columns=columns)
        assert by_name(source) == wanted_cells()
        pairs = truth.query("label == 1")[list(names[:2])]
        source = open_source(scores, put(pairs, form, "y"), nan=nan, columns=columns)
        assert by_name(source) == wanted_cells()
        source = open_source(
            put(candidates(names), form),
            exclude=put(pairs, form, "y"),
            nan=nan,
            columns=columns,
        )
        assert source.positives().indices.size == 0


@pytest.mark.parametrize("items", ["0 1 2 3 4 5", "a b c d e f"])
@pytest.mark.parametrize("verb", ["evaluate", "fit", "diagnose", "check", "calibration"])
def test_verbs_take_a_long_frame_that_brings_its_truth(verb, items):
    rng = np.random.default_rng(0)
    scores = rng.random((200, 6))
    truths = rng.random((200, 6)) < scores
    row, label = np.divmod(rng.permutation(scores.size), 6)
    names = np.array(items.split())
    columns = {"item_id": names[label], "score": scores[row, label], "label": truths[row, label]}
    frame = pd.DataFrame({"user_id": row} | columns)
    by_name = dict(zip(names, 1.0 + np.arange(6), strict=True))
    if verb == "evaluate":
        actual = oddslip.evaluate(frame, k=2, weights=by_name, n_replicates=0)
        expected = oddslip.evaluate(scores, truths, k=2, weights=1.0 + np.arange(6), n_replicates=0)
        for metric in ("map", "psp"):
            assert actual[metric].value == pytest.approx(expected[metric].value)
    elif verb == "fit":
        fitted = oddslip.Repair(k=2, weights=by_name, prior=dict.fromkeys(names, 0.5)).fit(frame)
        assert fitted.fitted_.rank(frame, k=2).shape == (200, 2)
    elif verb == "check":
        assert oddslip.check(None, frame, k=2, n_replicates=50).n_rows == 200
    else:
        calibration = open_source(frame) if verb == "calibration" else None
        actual = oddslip.diagnose(
            frame, k=2, weights=by_name, calibration=calibration, n_replicates=50
        )
        assert actual.n_rows == 200


def test_a_table_that_was_opened_shows_the_order_of_its_labels():
    scores, _ = panel()
    frame = candidates(("row", "label", "score")).sort_values(["row", "label"])
    frame["label"] = frame["label"].map(lambda item: f"i{item}")
    source = open_source(frame)
    places = [ITEMS.index(int(name[1:])) for name in source.label_names]
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    actual = oddslip.shifts.shift_odds(source, weights[places])
    expected = oddslip.shifts.shift_odds(scores, weights)
    rows = [USERS.index(name) for name in source.row_ids()]
    np.testing.assert_allclose(actual, expected[rows][:, places])


# --- Wide tables stay wide ------------------------------------------------------------------------


def test_a_wide_table_whose_labels_are_called_like_roles_stays_wide():
    frame = pd.DataFrame({"user": [1, 2], "item": [0.1, 0.2], "score": [0.3, 0.4]})
    for form in ("csv", "arrow", "pandas", "polars", "lazy polars"):
        source = open_source(put(frame, form))
        assert source.label_names == ("item", "score")
    frame = pd.DataFrame({"user": [0.1, 0.2], "item": [0.1, 0.2], "score": [0.3, 0.4]})
    for form in ("csv", "parquet", "pandas", "polars"):
        assert open_source(put(frame, form)).n_labels == 3


def test_truth_whose_columns_are_labels_of_the_scores_is_wide():
    scores = pd.DataFrame({"query": [0.1, 0.7], "doc": [0.3, 0.2]})
    truth = pd.DataFrame({"query": [0, 1], "doc": [1, 0]})
    for form in ("csv", "arrow", "pandas", "polars"):
        source = open_source(put(scores, form), put(truth, form, "y"))
        assert source.positives().indices.tolist() == [1, 0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"price": 2.5}, "also 'price'"),
        ({"prediction": 0.5}, "'score' and 'prediction'"),
        ({"product": 5}, "'item_id' and 'product' for the label"),
    ],
)
def test_a_column_too_many_is_named_and_columns_are_shown(form, extra, message):
    frame = candidates().assign(**extra)
    with pytest.raises(InvalidInput) as error:
        open_source(put(frame, form))
    assert message in str(error.value)
    assert "columns={'row': 'user_id', 'label': 'item_id', 'score': 'score'" in str(error.value)


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "pandas", "polars"])
def test_a_table_that_is_neither_wide_nor_long_is_shown_the_long_form(form):
    frame = candidates(("who", "dish", "score", "label")).assign(
        dish=lambda t: "d" + t.dish.map(str)
    )
    with pytest.raises(OddslipError, match="line per cell, with the columns row, label, score"):
        list(open_source(put(frame, form)).blocks())
    with pytest.raises(
        OddslipError, match="line per true label, with the columns row_id and label"
    ):
        open_source(panel()[0], put(frame[["who", "dish"]], form))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "columns must be"),
        ("user", "columns must be"),
        ({"user": "user_id"}, "'user': 'user_id'"),
        ({"row": 3}, "'row': 3"),
        ({"row": "shopper"}, "got 'shopper' for the row"),
        ({"row": "user_id", "label": "user_id"}, "name a column once"),
    ],
)
def test_columns_that_are_no_columns_are_refused_in_one_line(columns, message):
    frame = candidates()
    for form in ("csv", "parquet", "pandas"):
        with pytest.raises(InvalidInput) as error:
            open_source(put(frame, form), columns=columns)
        assert message in str(error.value)
        assert "\n" not in str(error.value)


def test_columns_of_what_is_no_table_are_refused():
    with pytest.raises(InvalidInput, match="columns"):
        open_source(panel()[0], columns={"row": "user_id"})
    np.save("s.npy", panel()[0])
    with pytest.raises(InvalidInput, match="columns"):
        open_source("s.npy", columns={"row": "user_id"})


@pytest.mark.parametrize("form", FORMS)
def test_truth_may_come_from_the_table_of_other_scores(form):
    other = candidates(("user_id", "item_id", "score"), seed=4).assign(score=0.5)
    source = open_source(put(other, form), put(candidates(), form, "y"))
    cells = {name: (0.5, true) for name, (_, true) in wanted_cells().items()}
    assert by_name(source) == cells
    with pytest.raises(OddslipError):
        open_source(put(other, form), put(other, form, "y"))


def test_a_role_wants_a_name_of_its_own():
    assert find_roles(["user_id", "label", "score"], ["score"])["label"] == "label"
    assert find_roles(["user_id", "item", "label", "score"], ["score"])["true"] == "label"
    assert find_roles(["user_id", "item", "label"], [], truths=True)["true"] == "label"
    assert find_roles(["user_id", "score"], ["score"]) is None
    assert find_roles(["user", "item", "news"], [], truths=True) is None


# --- The command line -----------------------------------------------------------------------------


@pytest.mark.parametrize("named", [False, True])
def test_commands_take_candidates_as_people_have_them(capsys, named):
    rng = np.random.default_rng(0)
    scores = rng.random((200, 6))
    truths = rng.random((200, 6)) < scores
    row, label = np.divmod(rng.permutation(scores.size), 6)
    names = ("shopper", "dish", "p", "ate") if named else ("user_id", "item_id", "score", "label")
    cells = (row, label, scores[row, label], truths[row, label].astype(int))
    pd.DataFrame(dict(zip(names, cells, strict=True))).to_csv("s.csv", index=False)
    more = ["--columns", "row=shopper,label=dish,score=p,true=ate"] if named else []
    for command in (
        ["evaluate", "s.csv", "-k", "2", "--bootstrap", "50"],
        ["rank", "s.csv", "-k", "2", "-o", "top.csv"],
        ["fit", "s.csv", "-k", "2", "-o", "r.oddslip"],
        ["apply", "r.oddslip", "s.csv", "-k", "2", "-o", "top.parquet"],
        ["apply", "r.oddslip", "s.csv", "-o", "all.parquet"],
        [
            "diagnose",
            "s.csv",
            "-k",
            "2",
            "--bootstrap",
            "50",
            "--calibration",
            "s.csv",
            "--unweighted",
            "s.csv",
        ],
        ["check", "r.oddslip", "s.csv", "--bootstrap", "50", "--fail-on", "none"],
    ):
        assert main([*command, *more]) == 0, capsys.readouterr().err
    assert pq.read_table("top.parquet").num_rows == 200
    pd.DataFrame(dict(zip(names[:3], cells, strict=False))).to_csv("o.csv")
    more += ["--against", "o.csv", "--bootstrap", "50", "--reliability"]
    assert main(["evaluate", "s.csv", "-k", "2", *more]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("text", ["row", "row=", "user=user_id", "row=a,row=b", "=a", ""])
def test_columns_of_the_command_line_that_say_nothing_are_one_line(capsys, text):
    candidates().to_csv("s.csv", index=False)
    assert main(["rank", "s.csv", "-k", "1", "--columns", text]) == 2
    assert capsys.readouterr().err.count("\n") == 1
