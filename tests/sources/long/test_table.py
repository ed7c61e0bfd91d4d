"""Long tables: names decide which label and which row a cell belongs to, not the order of lines.

The oracle is the dense panel that the lines were written from.
"""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oddslip
from oddslip import InvalidInput, open_source
from oddslip.calibrators import Isotonic
from oddslip.cli.app import main
from oddslip.errors import OddslipError

N_ROWS, N_LABELS = 30, 12
LABELS = {
    "numbers": list(range(N_LABELS)),
    "integers": [7 * label + 3 for label in range(N_LABELS)],
    "texts": [f"item {label}" for label in range(N_LABELS)],
}
FORMS = ("parquet", "csv", "arrow", "pandas", "polars")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def world():
    rng = np.random.default_rng(5)
    scores = rng.permutation(N_ROWS * N_LABELS).reshape(N_ROWS, N_LABELS) / (N_ROWS * N_LABELS)
    truths = rng.random(scores.shape) < 0.3 * scores + 0.1
    return scores, truths


def lines(order, labels, rows=None, **cells):
    """Cells of shape (rows, labels) as the columns of a long table, in an order of lines."""
    row, label = np.divmod(order, N_LABELS)
    names = np.arange(N_ROWS) if rows is None else np.asarray(rows)
    columns = {"row": names[row], "label": np.asarray(labels)[label]}
    return pd.DataFrame(columns | {name: cell[row, label] for name, cell in cells.items()})


def put(frame, form, name="s"):
    """The frame in one of the forms that people have."""
    if form == "csv":
        frame.to_csv(f"{name}.csv", index=False)
        return f"{name}.csv"
    if form == "pandas":
        return frame
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if form == "parquet":
        pq.write_table(table, f"{name}.parquet", row_group_size=50)
        return f"{name}.parquet"
    return pl.from_arrow(table) if form == "polars" else table


def orders():
    """Lines as a panel lies, from the last to the first, and shuffled."""
    cells = np.arange(N_ROWS * N_LABELS)
    return {"panel": cells, "reversed": cells[::-1], "shuffled": shuffled(1)}


def shuffled(seed):
    return np.random.default_rng(seed).permutation(N_ROWS * N_LABELS)


def metrics(*inputs, **options):
    evaluation = oddslip.evaluate(*inputs, k=3, n_replicates=0, **options)
    return [evaluation[name].value for name in ("map", "precision", "recall", "ndcg")]


def positives_by_name(source):
    """The true labels of each row, both by name."""
    truths = source.positives()
    names = source.label_names or tuple(map(str, range(source.n_labels)))
    parts = np.split(truths.indices, truths.indptr[1:-1])
    ids = source.row_ids().tolist()
    return {row: {names[at] for at in part} for row, part in zip(ids, parts, strict=True)}


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("order", ["panel", "reversed", "shuffled"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", LABELS)
def test_truth_of_its_own_table_is_matched_by_name_in_every_order_of_lines(
    world, labels, form, order, nan
):
    scores, truths = world
    names = LABELS[labels]
    table = put(lines(orders()[order], names, score=scores), form)
    pairs = put(lines(shuffled(2), names, true=truths).query("true")[["row", "label"]], form, "y")
    expected = pytest.approx(metrics(scores, truths), abs=1e-12)
    assert metrics(table, pairs, nan=nan) == expected
    cells = put(lines(shuffled(3), names, true=truths), form, "z")
    assert metrics(table, cells, nan=nan) == expected


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("labels", LABELS)
def test_every_label_is_calibrated_by_its_own_positives(world, labels, nan):
    scores, truths = world
    names = LABELS[labels]
    table = put(lines(shuffled(1), names, score=scores), "parquet")
    pairs = put(
        lines(shuffled(2), names, true=truths).query("true")[["row", "label"]], "parquet", "y"
    )
    fitted = Isotonic().fit(table, pairs, nan=nan).fitted_
    expected = dict(zip(map(str, names), truths.sum(axis=0).tolist(), strict=True))
    actual = dict(zip(fitted.label_names, fitted.record.n_positives.tolist(), strict=True))
    assert actual == expected


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("labels", ["numbers", "integers"])
def test_integer_labels_come_in_order_of_their_values(world, labels, nan):
    names = LABELS[labels]
    for order in orders().values():
        for form in ("parquet", "csv", "arrow"):
            table = put(lines(order, names, score=world[0]), form)
            assert open_source(table, nan=nan).label_names == tuple(map(str, names))


@pytest.mark.parametrize("nan", ["refuse", "absent"])
def test_text_labels_come_as_they_are_first_named_unless_label_names_order_them(world, nan):
    names = LABELS["texts"]
    order = orders()["reversed"]
    table = put(lines(order, names, score=world[0]), "arrow")
    assert open_source(table, nan=nan).label_names == tuple(names[::-1])
    assert open_source(table, nan=nan, label_names=names).label_names == tuple(names)


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("form", ["parquet", "csv", "arrow"])
def test_exclusions_name_integer_labels(world, form, nan):
    scores, truths = world
    absent = np.random.default_rng(9).random(scores.shape) < 0.3
    for names in LABELS.values():
        table = put(lines(shuffled(1), names, score=scores, true=truths), form)
        pairs = lines(shuffled(2), names, gone=absent).query("gone")[["row", "label"]]
        exclude = put(pairs, form, "gone")
        expected = metrics(scores, truths, exclude=[np.flatnonzero(row) for row in absent])
        actual = metrics(table, nan=nan, exclude=exclude)
        assert actual == pytest.approx(expected, abs=1e-12)


def index_forms(truths):
    """Labels that say nothing but where a label stands."""
    rows, labels = np.nonzero(truths)
    np.save("y.npy", truths)
    lists = [np.flatnonzero(row).tolist() for row in truths]
    return {
        "array": truths,
        "frame": pd.DataFrame(truths),
        "lists": lists,
        "npy": "y.npy",
        "pairs": pa.table({"row": rows, "label": labels}),
        "table of lists": pa.table({"row_id": np.arange(N_ROWS), "labels": lists}),
    }


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("form", ["array", "frame", "lists", "npy", "pairs", "table of lists"])
def test_indices_of_labels_whose_order_nobody_saw_are_refused(world, form, nan):
    scores, truths = world
    labels = index_forms(truths)[form]
    names = LABELS["texts"]
    table = put(lines(orders()["reversed"], names, score=scores), "arrow")
    with pytest.raises(InvalidInput, match="label_names"):
        metrics(table, labels, nan=nan)
    with pytest.raises(InvalidInput, match=r"exclude.*label_names"):
        oddslip.rank(table, k=3, nan=nan, exclude=labels)


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("form", ["array", "lists", "npy", "pairs", "table of lists"])
def test_indices_count_in_the_order_that_label_names_say(world, form, nan):
    scores, truths = world
    labels, names = index_forms(truths)[form], LABELS["texts"]
    order = np.arange(N_ROWS * N_LABELS)
    table = put(lines(order, names, score=scores), "arrow")
    actual = metrics(table, labels, nan=nan, label_names=names)
    assert actual == pytest.approx(metrics(scores, truths), abs=1e-12)
    excluded = oddslip.rank(table, k=3, nan=nan, label_names=names, exclude=labels)
    np.testing.assert_array_equal(excluded, oddslip.rank(scores, k=3, exclude=truths))


@pytest.mark.parametrize("nan", ["refuse", "absent"])
def test_numbers_of_labels_are_their_indices(world, nan):
    scores, truths = world
    table = put(lines(np.arange(N_ROWS * N_LABELS), LABELS["numbers"], score=scores), "arrow")
    expected = pytest.approx(metrics(scores, truths), abs=1e-12)
    for labels in index_forms(truths).values():
        assert metrics(table, labels, nan=nan) == expected


@pytest.mark.parametrize("nan", ["refuse", "absent"])
def test_lists_of_names_are_matched_whatever_the_order_of_labels(world, nan):
    scores, truths = world
    for names in (LABELS["texts"], LABELS["integers"]):
        order = np.arange(scores.size).reshape(scores.shape)[:, ::-1].ravel()
        table = put(lines(order, names, score=scores), "arrow")
        lists = [[str(names[at]) for at in np.flatnonzero(row)] for row in truths]
        actual = metrics(table, lists, nan=nan)
        assert actual == pytest.approx(metrics(scores, truths), abs=1e-12)


@pytest.mark.parametrize("nan", ["refuse", "absent"])
def test_rows_numbered_in_another_order_are_matched_by_number(world, nan):
    scores, truths = world
    for order in (orders()["reversed"], shuffled(1)):
        table = put(lines(order, LABELS["numbers"], score=scores), "arrow")
        with pytest.warns(UserWarning, match="by number"):
            actual = metrics(table, truths, nan=nan)
        assert actual == pytest.approx(metrics(scores, truths), abs=1e-12)


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("rows", [[f"u{row}" for row in range(N_ROWS)], range(5, N_ROWS + 5)])
def test_named_rows_beside_rows_without_names_are_refused(world, rows, nan):
    scores, truths = world
    table = put(lines(shuffled(1), LABELS["numbers"], list(rows), score=scores), "arrow")
    with pytest.raises(InvalidInput, match="row"):
        metrics(table, truths, nan=nan)


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_score_is_no_candidate(world, form):
    scores, truths = world
    absent = np.random.default_rng(4).random(scores.shape) < 0.3
    absent[3] = True
    holed = np.where(absent, np.nan, scores)
    table = put(lines(shuffled(1), LABELS["texts"], score=holed, true=truths), form)
    actual = metrics(table, nan="absent")
    assert actual == pytest.approx(metrics(holed, truths, nan="absent"), abs=1e-12)
    assert open_source(table, nan="absent").n_rows == N_ROWS


# --- What cannot be read --------------------------------------------------------------------------


def error_line(capsys, *arguments):
    assert main([str(each) for each in arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize("column", ["row", "label"])
@pytest.mark.parametrize("shape", ["together", "scattered"])
def test_a_name_that_is_no_utf8_is_refused_in_one_line(capsys, nan, column, shape):
    rows = list("aabb" if shape == "together" else "abab")
    labels = list("xyxy" if shape == "together" else "xxyy")
    columns = {"row": rows, "label": labels, "score": [0.1, 0.2, 0.3, 0.4]}
    raw = [b"\xff\xfe" if at == 1 else text.encode() for at, text in enumerate(columns[column])]
    damaged = pa.array(raw, pa.binary()).view(pa.string())
    table = pa.table(columns | {column: damaged})
    pq.write_table(table, "s.parquet")
    error = error_line(capsys, "rank", "s.parquet", "-k", 1, "--nan", nan)
    assert re.search("UTF-?8", error)
    with pytest.raises(OddslipError, match=r"UTF-?8"):
        oddslip.rank("s.parquet", k=1, nan=nan)


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize(
    ("column", "cells"),
    [("score", list("abcd")), ("label", [["a"], ["b"]] * 2), ("row", [{"x": 1}] * 4)],
)
def test_a_column_of_a_type_that_has_no_place_is_named(column, cells, nan):
    columns = {"row": [1, 1, 2, 2], "label": list("abab"), "score": [0.1, 0.2, 0.3, 0.4]}
    with pytest.raises(InvalidInput, match=f"{column} must be a column of"):
        oddslip.rank(pa.table(columns | {column: cells}), k=1, nan=nan)
