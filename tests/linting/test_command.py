"""`oddslip lint`: exit codes, formats, ignored lines, and the hook and action that run it."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from pre_commit.clientlib import load_manifest

import oddslip
from oddslip.cli.app import main
from oddslip.linting.rules import RULES

ROOT = Path(__file__).parents[2]
NOTE = "OneVsRestClassifier(LogisticRegression(class_weight='balanced'))\n"
WARNING = NOTE + "np.argsort(scores, axis=1)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clean.py").write_text("print('labels')\n")
    (tmp_path / "note.py").write_text(NOTE)
    (tmp_path / "warning.py").write_text(WARNING)
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    return tmp_path


CODES = {
    "clean.py": 0,
    "note.py": 0,
    "note.py --severity note": 1,
    "warning.py": 1,
    "warning.py --severity note": 1,
    "broken.py": 1,
    ".": 1,
    "none.py": 2,
    "clean.py none.py": 2,
    "clean.py --format xml": 2,
    "clean.py --severity critical": 2,
    "": 2,
}


@pytest.mark.parametrize("typed", CODES)
def test_the_exit_code_says_what_was_found(folder, typed, capsys):
    assert main(["lint", *typed.split()]) == CODES[typed]
    output = capsys.readouterr()
    assert bool(output.err) == (CODES[typed] == 2)


def test_a_line_of_text_has_the_place_the_reason_and_the_page(folder, capsys):
    assert main(["lint", "warning.py"]) == 1
    line, summary = capsys.readouterr().out.splitlines()
    assert line.startswith("warning.py:1:40: OS903 warning: ")
    assert RULES["OS903"].reason in line
    assert "Line 2 ranks labels" in line
    assert RULES["OS903"].advice in line
    assert line.endswith("(docs/lint.md#os903)")
    assert summary == "1 finding in 1 file."


def test_hidden_notes_are_counted(folder, capsys):
    assert main(["lint", "note.py"]) == 0
    assert capsys.readouterr().out == "0 findings in 1 file. --severity note shows 1 more note.\n"


def test_a_pipe_gets_no_colours_and_a_terminal_does(folder, monkeypatch, capsys):
    main(["lint", "warning.py"])
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    main(["lint", "warning.py"])
    assert "\x1b[1;33m OS903 warning:" in capsys.readouterr().out


def test_piped_text_does_not_load_rich(folder):
    code = (
        "import sys\nfrom oddslip.cli.app import main\n"
        "main(['lint', 'warning.py'])\nassert 'rich.console' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_json_has_all_of_a_finding(folder, capsys):
    assert main(["lint", ".", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["files"], document["hidden_notes"]) == (4, 1)
    broken, warning = document["findings"]
    assert (broken["path"], broken["line"], broken["code"]) == ("broken.py", 2, "OS900")
    assert warning["doc"] == "docs/lint.md#os903"
    assert (warning["line"], warning["column"], warning["cell"]) == (1, 40, None)


def check_sarif(log):
    """What the schema of SARIF 2.1.0 demands of the parts that we write."""
    assert log["version"] == "2.1.0"
    assert re.fullmatch(r"https://\S+sarif\S+2\.1\.0\.json", log["$schema"])
    (run,) = log["runs"]
    assert set(run) <= {"tool", "results", "columnKind"}
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    driver = run["tool"]["driver"]
    assert driver["name"]
    assert driver["version"] == oddslip.__version__
    rules = driver["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert {"id", "shortDescription", "fullDescription", "help", "helpUri"} <= set(rule)
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
        assert re.fullmatch(r"https://\S+", rule["helpUri"])
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        for location in result["locations"]:
            physical = location["physicalLocation"]
            assert re.fullmatch(r"[\w.~!$&'()*+,;=:@%/-]+", physical["artifactLocation"]["uri"])
            assert physical["region"]["startLine"] >= 1
            assert physical["region"]["startColumn"] >= 1
    return run["results"]


def test_sarif_is_valid_and_names_the_place(folder, capsys):
    (folder / "a b#%é.py").write_text(WARNING)
    assert main(["lint", ".", "--format", "sarif", "--severity", "note"]) == 1
    results = check_sarif(json.loads(capsys.readouterr().out))
    places = [
        (
            result["ruleId"],
            result["level"],
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        )
        for result in results
    ]
    assert places == [
        ("OS903", "warning", "a%20b%23%25%C3%A9.py"),
        ("OS900", "warning", "broken.py"),
        ("OS903", "note", "note.py"),
        ("OS903", "warning", "warning.py"),
    ]


def test_sarif_without_findings_is_valid(folder, capsys):
    assert main(["lint", "clean.py", "--format", "sarif"]) == 0
    assert check_sarif(json.loads(capsys.readouterr().out)) == []


@pytest.mark.parametrize(
    ("comment", "n_findings"),
    [
        ("# oddslip: ignore", 0),
        ("# oddslip: ignore[OS903]", 0),
        ("#oddslip:ignore[OS901, OS903]  because", 0),
        ("# noqa  # oddslip: ignore[OS903]", 0),
        ("# oddslip: ignore[OS901]", 1),
        ("# oddslip: ignore[]", 1),
        ("# ignore", 1),
    ],
)
def test_a_comment_ignores_the_codes_it_names(folder, comment, n_findings, capsys):
    (folder / "note.py").write_text(f"{NOTE.rstrip()}  {comment}\n{NOTE}")
    main(["lint", "note.py", "--severity", "note", "--format", "json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [each["line"] for each in findings] == [1, 2][1 - n_findings :]


def test_hostile_names_are_shown_printable(folder, capsys):
    for name in ("\x1b[31mred.py", "a\u202egnp.py"):
        (folder / name).write_text(WARNING)
    for form in ("text", "json", "sarif"):
        assert main(["lint", ".", "--format", form]) == 1
        assert all(c.isprintable() or c == "\n" for c in capsys.readouterr().out)


# --- Hooks and the action ------------------------------------------------------------------------


@pytest.fixture
def on_path(folder, monkeypatch):
    """The fixture repository, with a command `oddslip` that is this checkout's."""
    commands = folder / ".bin"
    commands.mkdir()
    script = commands / "oddslip"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m oddslip "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(commands), prepend=os.pathsep)
    scores = np.random.default_rng(0).random((300, 4))
    np.save("scores.npy", scores)
    np.save("labels.npy", np.random.default_rng(1).random(scores.shape) < scores)
    oddslip.Repair(k=2, rule="isotonic-0").fit(scores, np.load("labels.npy")).save("r.oddslip")
    return folder


def run(command, **environment):
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}
    )


HOOKS = {hook["id"]: hook for hook in load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))}


def test_the_hooks_run_their_commands(on_path):
    assert set(HOOKS) == {"oddslip-lint", "oddslip-check"}
    lint, check = (shlex.split(HOOKS[name]["entry"]) for name in HOOKS)
    assert run([*lint, "clean.py"]).returncode == 0
    assert run([*lint, "clean.py", "warning.py"]).returncode == 1
    assert run([*check, "r.oddslip", "scores.npy"]).returncode == 0
    assert not HOOKS["oddslip-check"]["pass_filenames"]


ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def run_step(name, **inputs):
    """Run a step of the action as a runner does: inputs replaced, by bash that stops at errors."""
    inputs = {key: each["default"] for key, each in ACTION["inputs"].items()} | inputs
    (step,) = (step for step in ACTION["runs"]["steps"] if step["name"] == name)
    environment = {
        key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda hit: inputs[hit[1]], value)
        for key, value in step["env"].items()
    }
    assert "${{" not in step["run"]  # would run what an input says
    return run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], **environment)


def test_the_action_lints_the_paths_and_writes_sarif(on_path):
    assert run_step("Lint", paths="clean.py\nnote.py").returncode == 0
    assert run_step("Lint", paths="note.py", severity="note").returncode == 1
    linted = run_step("Lint", paths="clean.py warning.py", sarif="lint.sarif")
    assert linted.returncode == 1
    assert "warning.py:1:40: OS903" in linted.stdout
    assert len(check_sarif(json.loads((on_path / "lint.sarif").read_text()))) == 1
    assert run_step("Lint", paths="none.py", sarif="lint.sarif").returncode == 2


@pytest.mark.parametrize("paths", ["clean.py; touch owned", "$(touch owned)", "`touch owned`", "*"])
def test_the_action_runs_nothing_that_an_input_says(on_path, paths):
    assert run_step("Lint", paths=paths).returncode == 2
    assert not (on_path / "owned").exists()


def test_the_action_checks_scores_if_told_to(on_path):
    assert run_step("Check", check="r.oddslip scores.npy labels.npy").returncode == 0
    assert run_step("Check", check="r.oddslip none.npy").returncode == 2
