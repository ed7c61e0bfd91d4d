"""Help, completion and exit codes: what a shell sees of the command."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import typer

from oddslip.cli.app import app, main

ROOT = Path(__file__).parents[2]
OUR_OWN = [sys.executable, "-m", "oddslip"]


def walk(command, path=()):
    """Every command that does something, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, each in inner.items():
        if not each.hidden:
            yield from walk(each, (*path, name))


COMMANDS = dict(walk(typer.main.get_command(app)))
EXAMPLES = [
    (path, line.strip())
    for path, command in COMMANDS.items()
    for line in (command.help or "").splitlines()
    if line.strip().startswith("oddslip ")
]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_shows_an_example_and_explains_every_option(path, capsys):
    assert main([*path, "--help"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"Examples?:", output)
    assert any(example[0] == path for example in EXAMPLES)
    for parameter in COMMANDS[path].params:
        assert getattr(parameter, "help", None), parameter.name


@pytest.mark.parametrize(("path", "line"), EXAMPLES, ids=lambda value: str(value))
def test_every_example_is_a_command_line_that_parses(path, line):
    words = shlex.split(re.split(r"[|>]", line)[0])[1:]
    assert tuple(words[: len(path)]) == path
    COMMANDS[path].make_context("oddslip", words[len(path) :])


def test_the_docs_name_the_commands_that_have_an_output_option():
    page = (ROOT / "docs/cli.md").read_text()
    help_texts = {
        option: set(re.findall(r"`([a-z]+)`", commands))
        for option, commands in re.findall(
            r"^\| `(--[a-z-]+)[^|]*\| ([^|]*) \|", page, re.MULTILINE
        )
        if commands != "most commands"
    }
    assert "--figure" in help_texts
    for option, commands in help_texts.items():
        having = {
            path[0]
            for path, command in COMMANDS.items()
            if len(path) == 1 and any(option in each.opts for each in command.params)
        }
        assert commands == having, option


def test_every_command_is_in_the_docs():
    page = (ROOT / "docs/cli.md").read_text()
    for path in COMMANDS:
        assert f"| `oddslip {' '.join(path)}` |" in page


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_a_shell_is_printed(shell):
    process = subprocess.run(
        [*OUR_OWN, "--show-completion", shell],
        capture_output=True,
        text=True,
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert process.returncode == 0
    assert "_ODDSLIP_COMPLETE" in process.stdout
    assert process.stderr == ""


@pytest.mark.parametrize(
    ("words", "offered"), [("oddslip di", "diagnose"), ("oddslip diagnose --we", "--weights")]
)
def test_a_shell_is_offered_commands_and_options(words, offered):
    process = subprocess.run(
        OUR_OWN,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "_ODDSLIP_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        },
    )
    assert process.stdout.split() == [offered]


def test_exit_codes_of_the_docs_are_those_of_the_help(capsys):
    assert main(["--help"]) == 0
    exit_codes = re.search(r"Exit codes: (.*?killed)", capsys.readouterr().out, re.DOTALL).group(1)
    page = (ROOT / "docs/cli.md").read_text()
    documented = re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    assert set(re.findall(r"\b\d+\b", exit_codes)) == set(documented)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["rank", "-h"]])
def test_what_is_done_is_0(arguments, capsys):
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "arguments",
    [["divine"], ["rank"], ["rank", "none.npy", "-k", "2"], ["rank", "s.npy", "-k", "two"]],
    ids=" ".join,
)
def test_bad_usage_and_bad_input_are_one_line_and_2(arguments, capsys):
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert re.fullmatch(r"oddslip: .*\n", output.err)


def test_a_reader_that_goes_away_is_0(tmp_path):
    np.save(tmp_path / "s.npy", np.random.default_rng(0).random((60_000, 3)))
    line = f"{shlex.join(OUR_OWN)} rank s.npy -k 3 --json | head -1"
    process = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, capture_output=True, text=True
    )
    assert (process.returncode, process.stderr) == (0, "")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A panel that takes long to diagnose and no room on the disk: it is all holes."""
    folder = tmp_path_factory.mktemp("large")
    shape = 200_000, 2_000
    np.lib.format.open_memmap(folder / "s.npy", "w+", np.float32, shape).flush()
    true = sp.csr_array((np.ones(3, np.int8), ([0, 1, 2], [0, 1, 2])), shape)
    sp.save_npz(folder / "y.npz", true)
    return folder


def wait_for_panel(run):
    """Until the command has opened the scores, where one can see it."""
    for _ in range(600):
        files = Path(f"/proc/{run.pid}/fd")
        if not files.exists() or any(
            os.path.realpath(each).endswith("s.npy") for each in files.iterdir()
        ):
            return
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("signal_number", "code", "line"),
    [
        (signal.SIGINT, 130, "oddslip: interrupted\n"),
        (signal.SIGTERM, 143, "oddslip: terminated\n"),
    ],
    ids=["Ctrl-C", "kill"],
)
def test_an_interrupted_diagnosis_is_one_line(large, signal_number, code, line):
    run = subprocess.Popen(
        [*OUR_OWN, "diagnose", "s.npy", "y.npz", "--json-file", "f.json"],
        cwd=large,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_panel(run)
    time.sleep(1.5)  # in the midst of the first passes over the panel
    run.send_signal(signal_number)
    output = run.communicate(timeout=120)
    assert (run.returncode, *output) == (code, "", line)
    assert sorted(path.name for path in large.iterdir()) == ["s.npy", "y.npz"]


def test_without_arguments_the_help_is_shown_line_by_line(capsys):
    assert main([]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert {"Usage:", "demo", "diagnose", "check"} <= {line.split()[0] for line in lines if line}
