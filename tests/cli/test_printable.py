"""Names and paths from outside never steer the terminal, nor run in a spreadsheet."""

import importlib.resources
import json
import re

import numpy as np
import pytest

from oddslip.cli.app import main

# A colour, a C1 control, an override and an isolate of the writing direction.
HOSTILE = ["\x1b[31mred", "\x9b31mred", "a\u202egnp", "\u2066b"]
X = np.random.default_rng(0).random((60, 4))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", X)
    np.save("y.npy", (X > 0.6).astype(np.int8))
    (tmp_path / "names.txt").write_text("\n".join(HOSTILE), encoding="utf-8")
    return tmp_path


NAMED = ["--label-names", "names.txt"]


@pytest.mark.parametrize("name", ["\x1b[31mred", "\x9b31m", "a\u202egnp", "\u2066b"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "s.npy", "y.npy", "--calibrator", "platt", "-o"],
        ["train", "s.npy", "y.npy", "-p", "num_iterations=2", "-o"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_path_is_shown_printable(folder, capsys, arguments, name):
    assert main([*arguments, name]) == 0
    output = capsys.readouterr()
    assert all(c.isprintable() or c == "\n" for c in output.out + output.err)
    assert (folder / name).exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["rank", "s.npy", "-k", "4", "--json"],
        ["rank", "s.npy", "-k", "4"],
        ["diagnose", "s.npy", "y.npy", "-k", "2", "--bootstrap", "0", "--json"],
        ["diagnose", "s.npy", "y.npy", "-k", "2", "--bootstrap", "0", "--verbose"],
        ["fit", "s.npy", "y.npy", "--calibrator", "platt", "-o", "r", "--json"],
    ],
)
def test_label_names_are_shown_printable(folder, capsys, arguments):
    assert main([*arguments, *NAMED]) == 0
    output = capsys.readouterr()
    assert all(c.isprintable() or c == "\n" for c in output.out + output.err)


def test_json_holds_the_names_as_they_are(folder, capsys):
    assert main(["rank", "s.npy", "-k", "4", "--json", *NAMED]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert sorted(first["labels"]) == sorted(HOSTILE)


def is_guarded(text):
    """Whether the report's download writes an apostrophe before a cell."""
    page = importlib.resources.files("oddslip.reports.html") / "templates" / "page.js"
    (formula,) = re.findall(r"const formula = /(.+)/;", page.read_text(encoding="utf-8"))
    return re.match(formula, text) is not None


@pytest.mark.parametrize(
    "cell",
    [
        "=1",
        " =1",
        "\n=1",
        "\t1",
        "\r1",
        "+1",
        "-1",
        "@x",
        "\uff1d1",
        "\u200b=1",
        "\ufeff=1",
        "\xa0=1",
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_is_guarded_in_the_download(cell):
    assert is_guarded(cell)


@pytest.mark.parametrize("cell", ["a=1", "milk", " milk", "1-2", "Zürich"])
def test_any_other_cell_is_left_alone(cell):
    assert not is_guarded(cell)
