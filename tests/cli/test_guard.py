"""No output of a command is one of its inputs or another output: every command, by introspection."""

import inspect
import os
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from typer.main import get_command

from oddslip.cli import guard
from oddslip.cli.app import app, main

SCORES = np.random.default_rng(0).random((30, 4))
LABELS = (SCORES > 0.6).astype(np.int8)
FOLDERS = ("checkpoint",)  # the program chooses the names of the files in them


def leaves(command, name=()):
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for each, below in inner.items():
        yield from leaves(below, (*name, each))


COMMANDS = dict(leaves(get_command(app)))


def files_of(command):
    """Parameters of a command that are paths, or texts that may name a file."""
    hints = get_type_hints(inspect.unwrap(command.callback))
    paths = [each for each in command.params if "Path" in str(hints.get(each.name))]
    texts = [each for each in command.params if each.name in ("weights", "propensities", "repair")]
    return list({each.name: each for each in [*paths, *texts]}.values())


def is_output(parameter):
    return parameter.param_type_name == "option" and parameter.name in guard.OUTPUTS


def typed(name, command, path):
    """A command line with these files, and something for whatever else is needed."""
    words, arguments = list(name), []
    hints = get_type_hints(inspect.unwrap(command.callback))
    for parameter in command.params:
        value = path.get(parameter.name)
        is_argument = parameter.param_type_name == "argument"
        if value is None and not (parameter.required or is_argument):
            continue
        if value is None:
            kind = str(hints[parameter.name])
            is_number = "int" in kind or "float" in kind
            value = "1" if is_number else f"other-{parameter.name}.npy"
        if is_argument:
            arguments.append(value)
            continue
        words += [max(parameter.opts, key=len), *([value] * parameter.nargs)]
    return [*words, *arguments]


OVERLAPS = [
    (name, output.name, other.name)
    for name, command in COMMANDS.items()
    for output in files_of(command)
    if is_output(output)
    for other in files_of(command)
    if other.name != output.name and other.name not in FOLDERS
    if not (is_output(other) and other.name < output.name)
]


def test_every_file_of_every_command_is_known_as_input_output_or_folder():
    names = {*guard.INPUTS, *guard.OUTPUTS, *FOLDERS}
    unknown = {
        (name, parameter.name)
        for name, command in COMMANDS.items()
        for parameter in files_of(command)
        if parameter.name not in names
    }
    assert not unknown
    assert len(OVERLAPS) > 40


@pytest.mark.parametrize(("name", "output", "other"), OVERLAPS)
def test_no_command_writes_over_its_input_or_twice(
    name, output, other, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("s.npy").write_text("dear")
    line = typed(name, COMMANDS[name], {output: "s.npy", other: "s.npy"})
    assert main(line) == 2, line
    stderr = capsys.readouterr().err
    assert "must be another file than" in stderr, stderr
    assert stderr.count("\n") == 1
    assert Path("s.npy").read_text() == "dear"
    assert os.listdir() == ["s.npy"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", SCORES)
    np.save("y.npy", LABELS)
    (tmp_path / "below").mkdir()
    return tmp_path


@pytest.mark.parametrize("alias", ["./s.npy", "below/../s.npy", "link.npy", "hard.npy", "absolute"])
def test_a_file_is_known_by_whatever_name_it_has(folder, capsys, alias):
    os.symlink("s.npy", "link.npy")
    os.link("s.npy", "hard.npy")
    raw = Path("s.npy").read_bytes()
    output = str(folder / "s.npy") if alias == "absolute" else alias
    assert main(["rank", "s.npy", "-k", "2", "-o", output]) == 2
    assert "would be overwritten" in capsys.readouterr().err
    assert Path("s.npy").read_bytes() == raw


def test_an_output_in_an_input_folder_is_refused_where_it_would_be_read(folder, capsys):
    assert main(["rank", "s.npy", "-k", "2", "-o", "below/part-1.parquet"]) == 0
    for output in ("below/part-2.parquet", "below/../below/part-1.parquet"):
        assert main(["evaluate", "below", "y.npy", "-k", "2", "--figure", output]) == 2
        assert main(["rank", "below", "-k", "2", "-o", output]) == 2
        assert "must be another file than scores" in capsys.readouterr().err
    for output in ("below/out.npy", "below/_out.parquet", "part-2.parquet"):
        main(["rank", "below", "-k", "2", "-o", output])
        assert "must be another file" not in capsys.readouterr().err


def test_an_output_that_a_pattern_would_match_is_refused(folder, capsys):
    np.save("part-1.npy", SCORES)
    for output in ("part-2.npy", "part-1.npy", "below/../part-3.npy"):
        assert main(["rank", "part-*.npy", "-k", "2", "-o", output]) == 2
        assert "must be another file than scores" in capsys.readouterr().err
    assert main(["rank", "part-*.npy", "-k", "2", "-o", "below/part-2.npy"]) == 0
    assert main(["rank", "part-*.npy", "-k", "2", "-o", "ranked.npy"]) == 0


def test_an_address_of_this_machine_is_a_path(folder, capsys):
    assert main(["rank", "s.npy", "-k", "2", "-o", "t.parquet"]) == 0
    address = f"file://{folder}/t.parquet"
    assert main(["rank", address, "-k", "2", "-o", "t.parquet"]) == 2
    assert "must be another file than scores" in capsys.readouterr().err


def test_the_margins_beside_the_scores_are_an_output_too(folder, capsys):
    line = ["score", "m.oddslip", "t.margin.npy", "-o", "t.npy", "--kind", "both"]
    assert main(line) == 2
    assert "margins must be another file than features" in capsys.readouterr().err


def test_an_output_of_an_earlier_run_is_replaced(folder):
    for _ in range(2):
        assert main(["rank", "s.npy", "-k", "2", "-o", "t.npy"]) == 0


def test_a_text_that_is_no_file_is_no_input(folder):
    Path("balanced").touch()
    plan = ["plan", "y.npy", "--rounds", "3", "--learning-rate", "1", "--weights", "balanced"]
    assert main([*plan, "--json-file", "other.json"]) == 0
