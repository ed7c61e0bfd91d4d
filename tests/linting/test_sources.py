"""Files, notebooks, and hostile text: everything is read, nothing is run, nothing crashes."""

import ast
import json
import os
import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from oddslip.errors import UnreadableFile
from oddslip.linting.lint import lint
from oddslip.linting.sources import MAX_SOURCE_CHARS

from .test_rules import GUILTY, INNOCENT

WEIGHTED = "OneVsRestClassifier(LogisticRegression(class_weight='balanced'))\n"


def write_notebook(path, *cells, kind="code"):
    listed = [{"cell_type": kind, "source": cell, "outputs": []} for cell in cells]
    path.write_text(json.dumps({"cells": listed, "nbformat": 4}), encoding="utf-8")
    return path


def places(path):
    return [(each.code, each.cell, each.line, each.column) for each in lint([path]).findings]


# --- Files ---------------------------------------------------------------------------------------


def test_a_folder_is_searched_and_each_file_read_once(tmp_path):
    for name in ("b.py", "a.py", "deep/er/c.py", "data.txt", ".hidden/x.py", "site-packages/y.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(WEIGHTED)
    (tmp_path / "env").mkdir()
    (tmp_path / "env/pyvenv.cfg").touch()
    (tmp_path / "env/z.py").write_text(WEIGHTED)
    write_notebook(tmp_path / "n.ipynb", WEIGHTED)
    result = lint([tmp_path, tmp_path / "a.py", tmp_path / "." / "b.py"])
    assert result.n_files == 4
    assert [Path(each.path).name for each in result.findings] == [
        "a.py",
        "b.py",
        "n.ipynb",
        "c.py",
    ]


def test_a_named_file_is_read_whatever_its_ending(tmp_path):
    (tmp_path / "script").write_text("#!/usr/bin/env python\n" + WEIGHTED)
    assert places(tmp_path / "script") == [("OS903", None, 2, 40)]


def test_links_that_go_round_end(tmp_path):
    (tmp_path / "a.py").write_text(WEIGHTED)
    (tmp_path / "round").symlink_to(tmp_path)
    (tmp_path / "self.py").symlink_to(tmp_path / "self.py")
    (tmp_path / "again.py").symlink_to(tmp_path / "a.py")
    assert lint([tmp_path]).n_files == 1
    with pytest.raises(UnreadableFile, match=r"self\.py"):
        lint([tmp_path / "self.py"])


@pytest.mark.parametrize("path", ["none.py", "a\0b.py", "/dev/null", "\udcff.py"])
def test_a_path_that_is_no_file_is_an_error(path):
    with pytest.raises(UnreadableFile):
        lint([path])


def test_nothing_is_run_or_imported(tmp_path):
    spy = tmp_path / "spy.py"
    spy.write_text(f"import os\nos.mkdir({str(tmp_path / 'owned')!r})\n")
    lint([spy])
    assert not (tmp_path / "owned").exists()
    assert "spy" not in sys.modules


# --- What cannot be parsed -----------------------------------------------------------------------

UNREADABLE = {
    "a syntax error": (b"x = 1\ny = = 2\n", 2),
    "Python 2": (b"print 'hello'\n", 1),
    "a null byte": (b"x = 1\0\n", 1),
    "no UTF-8": (b"x = '\xff'\n", 1),
    "an unknown encoding": (b"# coding: klingon\nx = 1\n", 1),
    "an encoding that is none of text": (b"# coding: zip\nx = 1\n", 1),
    "size": (b"#" * (MAX_SOURCE_CHARS + 1), 1),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_file_that_cannot_be_parsed_is_a_finding_at_its_line(tmp_path, what):
    text, line = UNREADABLE[what]
    path = tmp_path / "code.py"
    path.write_bytes(text)
    (finding,) = lint([path]).findings
    assert (finding.code, finding.severity) == ("OS900", "warning")
    assert finding.line == line
    assert finding.detail.startswith("Python says: ")


DEEP = {
    "parentheses": "(" * 100_000,
    "brackets": "x = " + "[" * 5000 + "]" * 5000,
    "minus signs": "-" * 100_000 + "1",
    "operators": "1" + "+1" * 100_000,
    "attributes": "a" + ".b" * 100_000,
    "indentation": "".join(" " * n + "if 1:\n" for n in range(200)),
    "loops": "".join(" " * n + "for label in labels:\n" for n in range(19)) + " " * 19 + WEIGHTED,
}


@pytest.mark.parametrize("what", DEEP)
def test_deep_source_is_parsed_or_a_finding(tmp_path, what):
    path = tmp_path / "code.py"
    path.write_text(DEEP[what])
    notebook = write_notebook(tmp_path / "code.ipynb", DEEP[what])
    codes = {code for code, *_ in places(path) + places(notebook)}
    assert codes <= {"OS900", "OS903"}  # which of them depends on the limits of Python


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xef\xbb\xbfx = 1\n",
        b"# coding: latin-1\nx = '\xe9'\n",
        b"x = 1\r\ry = 2\r\n",
        b"\x0c\n",
    ],
)
def test_other_encodings_and_line_ends_are_read(tmp_path, text):
    path = tmp_path / "code.py"
    path.write_bytes(text)
    assert lint([path]).findings == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_and_columns_are_those_of_an_editor(tmp_path, end):
    path = tmp_path / "code.py"
    before = "x = 'é𝛼'; "
    text = f"s = '\u2028 \x0b'\n{before}{WEIGHTED}".replace("\n", end)
    path.write_bytes(text.encode())
    assert places(path) == [("OS903", None, 2, 40 + len(before))]


def test_warnings_about_the_source_are_not_ours(tmp_path):
    path = tmp_path / "code.py"
    path.write_text(r"x = '\d' if 1 is 1 else '\w'")
    assert lint([path]).findings == []  # pytest turns warnings into errors


# --- Notebooks -----------------------------------------------------------------------------------


def test_code_cells_of_a_notebook_are_one_program(tmp_path):
    path = write_notebook(
        tmp_path / "n.ipynb",
        "base = LogisticRegression(\n    class_weight='balanced')",
        ["model = OneVsRestClassifier(base)\n", "x = 1"],
        "np.argsort(probabilities, axis=1)",
    )
    (finding,) = lint([path]).findings
    assert (finding.cell, finding.line, finding.column) == (1, 2, 5)
    assert finding.severity == "warning"
    assert finding.detail == "Line 1 of cell 3 ranks labels by scores."


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\n",
        "!pip install lightgbm\n",
        "?help\n",
        "df.head?\n",
        "files = !ls\n",
        "out = %timeit -o f()\n",
        "%%time\n",
        "for i in x:\n    %time f(i)\n    !echo $i\n",
    ],
)
def test_magics_are_left_out(tmp_path, cell):
    path = write_notebook(tmp_path / "n.ipynb", cell + WEIGHTED)
    assert [code for code, *_ in places(path)] == ["OS903"]


def test_a_cell_of_another_language_is_left_out(tmp_path):
    path = write_notebook(tmp_path / "n.ipynb", "%%bash\nif [ 1 ]; then", WEIGHTED)
    assert places(path) == [("OS903", 2, 1, 40)]


def test_text_that_looks_like_a_magic_is_kept(tmp_path):
    path = write_notebook(tmp_path / "n.ipynb", "x = '''\n%s\n''' % 1\n" + WEIGHTED)
    assert places(path) == [("OS903", 1, 4, 40)]


def test_a_broken_cell_hides_no_other(tmp_path):
    path = write_notebook(tmp_path / "n.ipynb", "x = 1", "def f(:", WEIGHTED)
    assert places(path) == [("OS900", 2, 1, 7), ("OS903", 3, 1, 40)]


def test_markdown_is_not_code(tmp_path):
    assert places(write_notebook(tmp_path / "n.ipynb", WEIGHTED, kind="markdown")) == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"cells": 3}', '{"cells": null}', "[" * 100_000, '{"cells": [' * 9_999],
)
def test_a_file_that_is_no_notebook_is_a_finding(tmp_path, text):
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    assert [code for code, *_ in places(path)] == ["OS900"]


@pytest.mark.parametrize(
    "cells", [[3], [None], [{}], [{"cell_type": "code"}], [{"cell_type": "code", "source": [1]}]]
)
def test_strange_cells_are_no_crash(tmp_path, cells):
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert lint([path]).findings == []


# --- Random text ---------------------------------------------------------------------------------

QUIET = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SNIPPETS = [text for _, text in GUILTY.values()] + list(INNOCENT.values())
PIECES = st.sampled_from(sorted({piece for text in SNIPPETS for piece in text.split(" ")}))


def check_findings(path):
    lines = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for finding in lint([path]).findings:
        assert 1 <= finding.line <= lines.count("\n") + 1
        assert finding.column >= 1


@QUIET
@given(st.binary(max_size=300))
@example(b"\xff\xfe")
@example(b"#coding:\n")
def test_random_bytes_never_crash(tmp_path, raw):
    (tmp_path / "code.py").write_bytes(raw)
    check_findings(tmp_path / "code.py")
    (tmp_path / "code.ipynb").write_bytes(raw)
    lint([tmp_path / "code.ipynb"])


@QUIET
@given(st.lists(PIECES, max_size=30))
def test_shuffled_pieces_of_code_never_crash(tmp_path, pieces):
    (tmp_path / "code.py").write_text(" ".join(pieces), encoding="utf-8")
    check_findings(tmp_path / "code.py")
    write_notebook(tmp_path / "code.ipynb", *pieces)
    lint([tmp_path / "code.ipynb"])


@QUIET
@given(st.sampled_from(SNIPPETS), st.sampled_from(SNIPPETS), st.integers(0, 2**32))
def test_mutated_syntax_trees_never_crash(tmp_path, text, other, seed):
    tree, parts = ast.parse(text), [*ast.walk(ast.parse(other))]
    rng = random.Random(seed)
    for node in list(ast.walk(tree)):
        for name, value in ast.iter_fields(node):
            same = [part for part in parts if isinstance(part, ast.expr)]
            if isinstance(value, ast.expr) and same and rng.random() < 0.2:
                setattr(node, name, rng.choice(same))
    try:
        mutant = ast.unparse(tree)
    except (ValueError, RecursionError, AttributeError):  # not every tree is a program
        return
    (tmp_path / "code.py").write_text(mutant, encoding="utf-8")
    check_findings(tmp_path / "code.py")


def test_the_package_itself_has_no_warnings():
    result = lint([Path(__file__).parents[2] / "src"])
    assert result.n_files > 100
    assert [each for each in result.findings if each.severity == "warning"] == []


@pytest.mark.skipif(os.name == "nt", reason="no pipes")
def test_a_pipe_in_a_folder_is_skipped(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    assert lint([tmp_path]).n_files == 0
