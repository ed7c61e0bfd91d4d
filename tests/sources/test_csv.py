"""CSV in and out: what is read, what is refused, and names that a spreadsheet would run."""

import importlib.resources
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oddslip
from oddslip import InvalidInput, open_source
from oddslip.cli.app import main
from oddslip.errors import OddslipError
from oddslip.sources.csv import FORMULA, escape_formula, unescape_formula
from oddslip.writers import write_ranking, write_scores

SCORES, LABELS = "a,b,c\n0.9,0.2,0.6\n0.1,0.5,0.3\n", "a,b,c\n1,0,0\n0,0,1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(name, text):
    with open(name, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return name


def cells(source):
    return np.concatenate([block.scores for block in source.blocks()])


def refusal(*arguments, **options):
    with pytest.raises(OddslipError) as error:
        list(open_source(*arguments, **options).blocks())
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_wide_file_gives_the_answer_of_the_array(folder):
    actual = oddslip.evaluate(put("s.csv", SCORES), put("y.csv", LABELS), k=2, n_replicates=0)
    array = np.array([[0.9, 0.2, 0.6], [0.1, 0.5, 0.3]])
    expected = oddslip.evaluate(array, [[1, 0, 0], [0, 0, 1]], k=2, n_replicates=0)
    assert actual["map"].value == expected["map"].value
    assert open_source("s.csv").label_names == ("a", "b", "c")


def test_a_file_without_rows_is_not_called_a_stream(folder):
    put("empty.csv", "a,b\n")
    assert refusal("empty.csv") == "empty.csv holds no rows."


def test_the_index_that_pandas_writes_names_the_rows(folder):
    put("s.csv", ",a,b\n7,0.9,0.2\n5,0.1,0.5\n")
    put("y.csv", ",b,a\n5,True,False\n7,False,True\n")
    source = open_source("s.csv", "y.csv")
    assert source.row_ids().tolist() == [7, 5]
    assert source.positives().indices.tolist() == [0, 1]


def test_ids_that_are_not_all_plain_whole_numbers_stay_text(folder):
    put("s.csv", "id,a\n007,0.9\n8,0.1\n")
    assert open_source("s.csv").row_ids().tolist() == ["007", "8"]


def test_pairs_name_labels_where_labels_have_names_and_else_number_them(folder):
    put("s.csv", "1,0\n0.9,0.2\n0.1,0.5\n")
    put("y.csv", "row,label\n0,1\n1,0\n")
    assert open_source("s.csv", "y.csv").positives().indices.tolist() == [0, 1]
    nameless = open_source(np.array([[0.9, 0.2], [0.1, 0.5]]), "y.csv")
    assert nameless.positives().indices.tolist() == [1, 0]


def test_an_empty_cell_is_no_score_and_can_mean_no_candidate(folder):
    put("s.csv", "a,b\n0.9,\n0.1,0.5\n")
    assert "null at row 0, label 'b'" in refusal("s.csv")
    partial = open_source("s.csv", nan="absent")
    assert [block.n_present().tolist() for block in partial.blocks()] == [[2.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n0.9,0.1\n0.2,x\n", "scores must be numbers, got 'x' at row 1, label 'b'"),
        ("a,b\n0.9\n", "Expected 2 columns, got 1"),
        ("a,a\n0.9,0.1\n", "must be unique, got 'a'"),
        ("0.9,0.1\n0.2,0.3\n", "must start with a line of label names, got numbers"),
        ("a;b\n0,9;0,1\n", "separated by ',', got ';'. Write it with commas"),
        ("a;b\n1;0\n", "separated by ',', got ';'"),
        ("row;label;score\n1;p;0.9\n1;q;0,1\n", "separated by ',', got ';'"),
        ("a\tb\n0.9\t0.1\n", "separated by ',', got '\\t'"),
        ("\ta\tb\n0\t0.9\t0.1\n", "separated by ',', got '\\t'"),
        ("a,b\n", "s.csv"),
        ("", "Empty CSV file"),
        ("row,label,score\n3,p,0.5\n3,q,z\n", "got 'z' at row '3', label 'q'"),
        ("a,b\n0.9,1.5\n", "between 0 and 1, got 1.5 at row 0, label 'b'"),
    ],
)
def test_what_is_no_table_of_scores_is_refused_in_one_line(folder, text, message):
    put("s.csv", text)
    with pytest.raises(OddslipError) as error:
        oddslip.rank("s.csv", k=1)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_separator_is_named_for_labels_and_in_tsv(folder):
    put("s.csv", "row_id,a,b\n1,0.9,0.1\n")
    assert "y.csv must have cells separated by ',', got '\\t'" in refusal(
        "s.csv", put("y.csv", "row\tlabel\n1\ta\n")
    )
    assert "separated by '\\t', got ','" in refusal(put("s.tsv", "a,b\n0.9,0.1\n"))


@pytest.mark.parametrize("name", ['"salt; sweet"', '"salt\tsweet"', "salt; sweet"])
def test_a_separator_in_the_name_of_a_label_separates_nothing(folder, name):
    assert open_source(put("s.csv", f"{name}\n0.9\n0.1\n")).label_names == (name.strip('"'),)
    assert open_source(put("s.csv", f"{name},b\n0.9,0.2\n")).n_labels == 2


def test_a_label_that_is_not_0_or_1_is_named(folder):
    put("y.csv", "a,b,c\n1,0,0\n0,2,0\n")
    assert "labels must be 0 or 1, got '2' at row 1, label 'b'" in refusal(
        put("s.csv", SCORES), "y.csv"
    )


def test_files_of_one_pattern_must_have_one_header(folder):
    put("p-2.csv", SCORES)
    put("p-10.csv", SCORES.replace("c", "d", 1))
    assert "p-10.csv differs from p-2.csv" in refusal("p-*.csv")
    put("p-10.csv", SCORES.replace("0.9", "0.8"))
    assert cells(open_source("p-*.csv"))[:, 0].tolist() == [0.9, 0.1, 0.8, 0.1]


def test_what_is_written_is_read_again_names_and_all(folder):
    rng = np.random.default_rng(0)
    scores = rng.random((5, 4))
    names, ids = ["=1+1", "a\rb", 'a,"b\n', "'=x"], ["=u", "v", "-1", "x\ry", "y"]
    blocks = [(3, scores[3:]), (0, scores[:3])]
    write_scores("o.csv", blocks, n_rows=5, n_labels=4, dtype="f8", label_names=names, row_ids=ids)
    source = open_source("o.csv")
    assert source.label_names == tuple(names)
    assert source.row_ids().tolist() == ids
    assert cells(source).tobytes() == scores.tobytes()


def test_a_ranking_has_a_column_per_slot_and_guards_names(folder):
    ranking, scores = np.array([[1, 0], [0, -1]]), np.array([[0.5, 0.25], [1.0, 0.0]])
    options = {"n_rows": 2, "k": 2, "scores_dtype": "f8", "label_names": ["=cmd", "milk"]}
    write_ranking("r.csv", [(0, ranking, scores)], **options)
    with open("r.csv", encoding="utf-8") as file:
        assert file.read().splitlines() == [
            "row,label_1,label_2,score_1,score_2",
            '0,"milk","\'=cmd",0.5,0.25',
            '1,"\'=cmd",,1,',
        ]


@given(st.text("='+-@ \t\n\u200bab", max_size=5))
def test_the_guard_comes_off_again_and_leaves_nothing_to_run(text):
    assert unescape_formula(escape_formula(text)) == text
    assert re.match(FORMULA, escape_formula(text)) is None


def test_the_guard_is_that_of_the_reports_download():
    page = importlib.resources.files("oddslip.reports.html") / "templates" / "page.js"
    assert f"const formula = /{FORMULA}/;" in page.read_text(encoding="utf-8")


def test_a_bad_ending_is_refused_before_anything_is_written(folder):
    with pytest.raises(InvalidInput, match=r"must end in .npy, .csv or .parquet"):
        write_scores("o.txt", [], n_rows=1, n_labels=1, dtype="f8")


@pytest.mark.parametrize("nan", ["refuse", "absent"])
@pytest.mark.parametrize(
    "text",
    [
        "a{},c\n0.5,0.5\n",
        "row,label,score\n1,a{},0.5\n1,c,0.5\n",
        "row,label,score\n1{},a,0.5\n1,c,0.5\n",
    ],
)
def test_a_carriage_return_within_a_name_wants_quotes(folder, capsys, text, nan):
    put("s.csv", text.format("\rb"))
    assert main(["rank", "s.csv", "-k", "1", "--nan", nan]) == 2
    error = capsys.readouterr().err
    assert "carriage return" in error
    assert error.count("\n") == 1
    put("s.csv", text.replace("a{}", '"a{}"').replace("1{}", '"1{}"').format("\rb"))
    assert main(["rank", "s.csv", "-k", "1", "--nan", "absent"]) == 0
