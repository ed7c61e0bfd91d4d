"""Bad input: one clear line in Python, the same line and exit code 2 on the command line."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import oddslip
from oddslip.cli.app import main
from oddslip.cli.messages import in_options

GOOD = np.array([[0.9, 0.2, 0.6], [0.1, 0.7, 0.3]])
TRUE = np.array([[1, 0, 0], [0, 0, 1]])
NAMES = ["a", "b", "c"]


def changed(array, row, column, value, dtype=float):
    copy = np.array(array, dtype)
    copy[row, column] = value
    return copy


# scores, labels, options, and the line that must come out
ARRAYS = {
    "NaN": (
        changed(GOOD, 1, 2, np.nan),
        TRUE,
        {},
        "scores hold 1 NaN cell in rows 0 to 1, the first at row 1, label '2'. Drop or fill those rows, or pass nan=\"absent\".",
    ),
    "NaN with a name": (
        changed(GOOD, 1, 2, np.nan),
        TRUE,
        {"label_names": NAMES},
        "the first at row 1, label 'c'.",
    ),
    "two NaN": (
        changed(changed(GOOD, 1, 2, np.nan), 0, 1, np.nan),
        TRUE,
        {},
        "scores hold 2 NaN cells in rows 0 to 1, the first at row 0, label '1'.",
    ),
    "float32 NaN": (changed(GOOD, 0, 0, np.nan, np.float32), TRUE, {}, "scores hold 1 NaN cell"),
    "infinite": (
        changed(GOOD, 0, 1, np.inf),
        TRUE,
        {},
        "scores hold 1 infinite cell in rows 0 to 1, the first at row 0, label '1'.",
    ),
    "infinite margin": (
        changed(GOOD, 0, 1, -np.inf),
        TRUE,
        {"kind": "margin"},
        "scores hold 1 infinite cell",
    ),
    "NaN margin": (changed(GOOD, 0, 1, np.nan), TRUE, {"kind": "margin"}, "scores hold 1 NaN cell"),
    "above one": (
        changed(GOOD, 0, 2, 1.5),
        TRUE,
        {},
        "probabilities must be between 0 and 1, got 1.5 at row 0, label '2'. If scores are log-odds, pass kind=\"margin\".",
    ),
    "below zero": (
        changed(GOOD, 1, 0, -0.25),
        TRUE,
        {},
        "probabilities must be between 0 and 1, got -0.25 at row 1, label '0'.",
    ),
    "bad cell in a row without a true label": (
        changed(GOOD, 1, 0, np.nan),
        [[1, 0, 0], [0, 0, 0]],
        {},
        "the first at row 1, label '0'",
    ),
    "label of two": (
        GOOD,
        changed(TRUE, 1, 1, 2, int),
        {},
        "labels must be 0 or 1, got 2 at row 1, label '1'.",
    ),
    "a byte that is no bool": (
        GOOD,
        np.array([[1, 0, 0], [0, 7, 0]], np.uint8).view(np.bool_),
        {},
        "labels must be 0 or 1, got 7 at row 1, label '1'.",
    ),
    "negative label": (
        GOOD,
        changed(TRUE, 0, 2, -1, int),
        {},
        "labels must be 0 or 1, got -1 at row 0, label '2'.",
    ),
    "fractional label": (
        GOOD,
        changed(TRUE, 0, 2, 0.5),
        {},
        "labels must be 0 or 1, got 0.5 at row 0, label '2'.",
    ),
    "NaN label": (
        GOOD,
        changed(TRUE, 0, 2, np.nan),
        {},
        "labels must be 0 or 1, got nan at row 0, label '2'.",
    ),
    "fewer label rows": (
        GOOD,
        TRUE[:1],
        {},
        "labels must have the shape of scores, (2, 3), got (1, 3).",
    ),
    "fewer label columns": (
        GOOD,
        TRUE[:, :2],
        {},
        "labels must have the shape of scores, (2, 3), got (2, 2).",
    ),
    "flat labels": (
        GOOD,
        np.array([1, 0]),
        {},
        "labels must be of shape (rows, labels), got shape (2,).",
    ),
    "flat scores": (GOOD[0], TRUE, {}, "scores must be of shape (rows, labels), got shape (3,)."),
    "three axes": (
        GOOD[None],
        TRUE,
        {},
        "scores must be of shape (rows, labels), got shape (1, 2, 3).",
    ),
    "no rows": (
        GOOD[:0],
        TRUE[:0],
        {},
        "scores must hold at least one row and one label, got shape (0, 3).",
    ),
    "no labels": (
        GOOD[:, :0],
        TRUE[:, :0],
        {},
        "scores must hold at least one row and one label, got shape (2, 0).",
    ),
    "k of zero": (GOOD, TRUE, {"k": 0}, "k must be between 1 and n_labels=3, got k=0."),
    "k above the labels": (GOOD, TRUE, {"k": 4}, "k must be between 1 and n_labels=3, got k=4."),
    "negative k": (GOOD, TRUE, {"k": -1}, "k must be between 1 and n_labels=3, got k=-1."),
    "unknown kind": (
        GOOD,
        TRUE,
        {"kind": "logit"},
        'kind must be "probability" or "margin", got \'logit\'.',
    ),
    "unknown tie policy": (
        GOOD,
        TRUE,
        {"ties": "random"},
        'ties must be one of "stable", "expected", "best", "worst", got \'random\'.',
    ),
    "unknown denominator": (
        GOOD,
        TRUE,
        {"denominator": "max"},
        'denominator must be one of "min", "relevant", "hits", got \'max\'.',
    ),
    "unknown rows": (
        GOOD,
        TRUE,
        {"rows": "some"},
        'rows must be one of "with_positives", "all", got \'some\'.',
    ),
    "names too few": (
        GOOD,
        TRUE,
        {"label_names": ["a", "b"]},
        "label_names must hold one name per label, n_labels=3, got 2.",
    ),
    "names twice": (
        GOOD,
        TRUE,
        {"label_names": ["a", "b", "a"]},
        "label_names must be unique, got 'a' more than once.",
    ),
    "no true label at all": (
        GOOD,
        np.zeros_like(TRUE),
        {},
        "at least one row must have a true label, got none in 2 rows.",
    ),
    "complex scores": (
        GOOD.astype(complex),
        TRUE,
        {},
        "scores must be numbers, got dtype complex128.",
    ),
    "text scores": (GOOD.astype(str), TRUE, {}, "scores must be numbers, got dtype <U32."),
    "text labels": (
        GOOD,
        TRUE.astype(str),
        {},
        "labels must be numbers 0 or 1, got an array of dtype <U21.",
    ),
    "level of two": (GOOD, TRUE, {"level": 2.0}, "level must be between 0 and 1, got level=2.0."),
    "negative replicates": (
        GOOD,
        TRUE,
        {"n_replicates": -1},
        "n_replicates must be at least 0, got n_replicates=-1.",
    ),
}

PYTHON_ONLY = {
    "ragged scores": (
        [[0.1, 0.2], [0.3]],
        [[1, 0], [0, 1]],
        {},
        "scores must be a table of shape (rows, labels), got rows of different lengths.",
    ),
    "label index too high": (
        GOOD,
        [[0], [3]],
        {},
        "label indices must be between 0 and n_labels - 1 = 2, got 3 at row 1.",
    ),
    "label index below zero": (
        GOOD,
        [[-1], [0]],
        {},
        "label indices must be between 0 and n_labels - 1 = 2, got -1 at row 0.",
    ),
    "label names in lists": (
        GOOD,
        [["a"], ["b"]],
        {},
        "labels are listed by name, got 'a' at row 0, but the labels have no names. Pass label_names, or lists of label indices.",
    ),
    "sparse label of two": (
        GOOD,
        sp.csr_array(changed(TRUE, 1, 1, 2, int)),
        {},
        "labels must be 0 or 1, got 2 at row 1, label '1'.",
    ),
    "fractional k": (GOOD, TRUE, {"k": 1.5}, "k must be a whole number, got k=1.5."),
    "k as text": (GOOD, TRUE, {"k": "7"}, "k must be a whole number, got k='7'."),
    "no labels given": (
        GOOD,
        None,
        {},
        "labels are needed to evaluate, got scores alone. Pass labels as well.",
    ),
    "row ids too few": (
        lambda: oddslip.Panel(GOOD, TRUE, row_ids=[1]),
        None,
        {},
        "row_ids must hold one id per row, n_rows=2, got shape (1,).",
    ),
    "a panel and labels": (
        lambda: oddslip.Panel(GOOD, TRUE),
        TRUE,
        {},
        "a Panel brings its own labels, kind and names;",
    ),
    "no threads": (GOOD, TRUE, {"threads": 0}, "threads must be at least 1, got threads=0."),
    "propensity of zero": (
        GOOD,
        TRUE,
        {"propensities": [0.5, 0, 1]},
        "propensities must be above 0 and at most 1, got 0 for label 1.",
    ),
    "propensities too few": (
        GOOD,
        TRUE,
        {"propensities": [0.5]},
        "propensities must hold one number per label, n_labels=3, got shape (1,).",
    ),
}

FLAGS = {"k": "-k", "n_replicates": "--bootstrap", "label_names": "--label-names"}


@pytest.mark.parametrize("case", [*ARRAYS, *PYTHON_ONLY])
def test_python_refuses_with_one_clear_line(case):
    scores, labels, options, line = (ARRAYS | PYTHON_ONLY)[case]
    with pytest.raises(oddslip.InvalidInput) as refused:
        oddslip.evaluate(scores() if callable(scores) else scores, labels, **({"k": 2} | options))
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("case", ARRAYS)
def test_the_command_line_refuses_with_the_same_line_of_options_and_exit_code_2(
    case, tmp_path, capsys
):
    scores, labels, options, line = ARRAYS[case]
    np.save(tmp_path / "scores.npy", scores)
    np.save(tmp_path / "labels.npy", labels)
    arguments = ["evaluate", str(tmp_path / "scores.npy"), str(tmp_path / "labels.npy")]
    for name, value in ({"k": 2} | options).items():
        if name == "label_names":
            (tmp_path / "names.txt").write_text("\n".join(value))
            value = tmp_path / "names.txt"
        arguments += [FLAGS.get(name, f"--{name}"), str(value)]
    known = {name: FLAGS.get(name, f"--{name}") for name in ("kind", "k", "level", "nan", *options)}
    assert_refused(arguments, in_options(line, known), capsys)


def assert_refused(arguments, line, capsys):
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("oddslip: ")
    assert told.err.count("\n") == 1
    assert line in told.err


def save_good(folder):
    np.save(folder / "scores.npy", GOOD)
    np.save(folder / "labels.npy", TRUE)


FILES = {
    "missing scores": (
        ["evaluate", "none.npy", "labels.npy", "-k", "2"],
        "none.npy does not exist.",
    ),
    "missing labels": (
        ["evaluate", "scores.npy", "none.npz", "-k", "2"],
        "none.npz does not exist.",
    ),
    "missing Parquet": (["evaluate", "none.parquet", "-k", "2"], "none.parquet"),
    "unknown ending": (
        ["evaluate", "scores.txt", "-k", "2"],
        "must end in .npy, .npz, .csv or .parquet, got '.txt'.",
    ),
    "no ending": (["evaluate", "scores", "-k", "2"], "does not exist."),
    "truncated": (["rank", "cut.npy", "-k", "2"], "cut.npy is cut short or not a NumPy file"),
    "truncated header": (["rank", "stub.npy", "-k", "2"], "stub.npy"),
    "empty file": (["rank", "empty.npy", "-k", "2"], "empty.npy"),
    "text in .npy": (["rank", "text.npy", "-k", "2"], "text.npy"),
    "text in .npz": (["rank", "text.npz", "-k", "2"], "text.npz"),
    "text in .parquet": (["rank", "text.parquet", "-k", "2"], "text.parquet"),
    "pickled objects": (["rank", "objects.npy", "-k", "2"], "never loaded"),
    "two arrays": (["rank", "two.npz", "-k", "2"], "must hold exactly one array, got 2"),
    "no k": (["rank", "scores.npy"], "-k"),
    "k is text": (["rank", "scores.npy", "-k", "seven"], "valid integer"),
    "unknown option": (["rank", "scores.npy", "-k", "2", "--frob"], "--frob"),
    "unknown command": (["frobnicate"], "frobnicate"),
    "missing names": (
        ["rank", "scores.npy", "-k", "2", "--label-names", "none.txt"],
        "none.txt does not exist",
    ),
    "unwritable output": (
        ["rank", "scores.npy", "-k", "2", "-o", "no/such/folder/r.npy"],
        "no/such/folder",
    ),
    "unknown output": (["rank", "scores.npy", "-k", "2", "-o", "ranked.xlsx"], "ranked.xlsx"),
    "no labels anywhere": (["evaluate", "scores.npy", "-k", "2"], "labels are needed to evaluate"),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_files_and_usage_are_refused_with_one_line(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_good(tmp_path)
    whole = (tmp_path / "scores.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-8])
    (tmp_path / "stub.npy").write_bytes(whole[:20])
    (tmp_path / "empty.npy").touch()
    for name in ("text.npy", "text.npz", "text.parquet", "scores.txt"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    np.savez(tmp_path / "two.npz", a=GOOD, b=GOOD)
    arguments, line = FILES[case]
    assert_refused(arguments, line, capsys)


def test_a_refusal_leaves_no_traceback_and_no_output_file(tmp_path):
    np.save(tmp_path / "scores.npy", changed(GOOD, 0, 0, np.nan))
    told = subprocess.run(
        [sys.executable, "-m", "oddslip", "rank", "scores.npy", "-k", "2", "-o", "ranked.npy"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 2
    assert "Traceback" not in told.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.npy"]


def test_hostile_names_do_not_reach_the_terminal_raw(tmp_path, capsys):
    np.save(tmp_path / "scores.npy", changed(GOOD, 0, 0, np.nan))
    np.save(tmp_path / "labels.npy", TRUE)
    (tmp_path / "names.txt").write_text("\x1b[31mred\nb\nc")
    files = [str(tmp_path / name) for name in ("scores.npy", "labels.npy")]
    assert main(["evaluate", *files, "-k", "2", "--label-names", str(tmp_path / "names.txt")]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_half_a_letter_is_refused_as_a_name_before_any_file_could_hold_it():
    names = ["a", "b", "\ud800 alone"]
    with pytest.raises(oddslip.InvalidInput, match="must be text that UTF-8 can hold"):
        oddslip.evaluate(GOOD, TRUE, k=2, label_names=names)
