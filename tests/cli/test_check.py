"""`oddslip check` and `oddslip trend` through the real command: exit codes, files, words."""

import json
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import oddslip
from oddslip.cli.app import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    rng = np.random.default_rng(0)
    scores = rng.random((800, 6))
    labels = rng.random(scores.shape) < scores
    names = [f"item {j}" for j in range(6)]
    oddslip.Repair(k=2, rule="isotonic-0").fit(scores, labels, label_names=names).save(
        folder / "repair.oddslip"
    )
    (folder / "names.txt").write_text("\n".join(names))
    quiet = rng.random((600, 6))
    np.save(folder / "quiet.npy", quiet)
    np.save(folder / "labels.npy", rng.random(quiet.shape) < quiet)
    np.save(folder / "moved.npy", quiet**4)
    np.save(folder / "noise.npy", rng.random((600, 6)))
    return folder


def run(folder, *words):
    command = [sys.executable, "-m", "oddslip", "check", *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_exit_codes_say_passed_not_passed_and_bad_input(folder):
    passed = run(folder, "repair.oddslip", "quiet.npy", "--label-names", "names.txt")
    assert (passed.returncode, passed.stderr) == (0, "")
    assert passed.stdout.startswith("Passed.")
    failed = run(folder, "repair.oddslip", "moved.npy", "--annotate")
    assert failed.returncode == 3
    assert failed.stdout.startswith("Not passed: OS501")
    assert "\n::error title=OS501 scores moved::" in failed.stdout
    wrong = run(folder, "repair.oddslip", "none.npy")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1


CODES = {
    "a named finding": (3, "repair.oddslip moved.npy --fail-on OS501,OS504"),
    "a finding that was not named": (0, "repair.oddslip moved.npy --fail-on OS504"),
    "a sure drop": (3, "repair.oddslip noise.npy labels.npy --fail-on none"),
    "a drop that is allowed": (
        0,
        "repair.oddslip noise.npy labels.npy --fail-on none --max-drop 1",
    ),
    "no drop": (0, "repair.oddslip quiet.npy labels.npy"),
    "a paired drop": (3, "raw noise.npy labels.npy -k 2 --baseline quiet.npy --fail-on none"),
    "another repair as baseline": (
        0,
        "repair.oddslip quiet.npy labels.npy --baseline repair.oddslip",
    ),
    "raw scores": (0, "raw quiet.npy -k 2"),
    "raw scores that are noise": (3, "raw noise.npy labels.npy -k 2"),
    "raw scores without k": (2, "raw quiet.npy"),
    "an unknown code": (2, "repair.oddslip quiet.npy --fail-on OS999"),
    "another k": (2, "repair.oddslip quiet.npy -k 3"),
    "no repair": (2, "quiet.npy quiet.npy"),
    "a strange kind": (2, "raw quiet.npy -k 2 --kind logit"),
    "a day without a log": (2, "repair.oddslip quiet.npy --when 2026-05-01"),
    "a strange day": (2, "repair.oddslip quiet.npy --log log.jsonl --when today"),
    "json and annotations": (2, "repair.oddslip quiet.npy --json --annotate"),
    "no such folder": (2, "repair.oddslip quiet.npy --junit none/check.xml"),
}


@pytest.mark.parametrize("what", CODES)
def test_the_exit_code_of(folder, what, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    code, words = CODES[what]
    options = ["--label-names", "names.txt"] if words.startswith("repair.oddslip") else []
    assert main(["check", *words.split(), *options, "--bootstrap", "200"]) == code
    out, err = capsys.readouterr()
    assert err.count("\n") == (code == 2)
    assert bool(out) == (code != 2)
    assert not (folder / "log.jsonl").exists()


def test_every_output_says_the_same(folder, tmp_path, capsys):
    words = ["check", folder / "repair.oddslip", folder / "moved.npy", "--json"]
    files = {"--json-file": "check.json", "--junit": "check.xml", "--log": "log.jsonl"}
    for option, name in files.items():
        words += [option, tmp_path / name]
    words += ["--when", "2026-05-01", "--label-names", folder / "names.txt"]
    assert main([*map(str, words)]) == 3
    printed = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "check.json").read_text()) == printed
    line = json.loads((tmp_path / "log.jsonl").read_text())
    assert line.pop("when") == "2026-05-01"
    assert line.pop("about")["labels"] == ""
    assert line == printed
    failures = ElementTree.parse(tmp_path / "check.xml").findall(".//testcase[failure]")
    assert [each.get("name").split()[0] for each in failures] == sorted(printed["failed"])
    assert "item" in printed["findings"][0]["sentence"]
    assert main(["trend", str(tmp_path / "log.jsonl"), "-o", str(tmp_path / "trend.html")]) == 0
    assert "1 run in" in capsys.readouterr().out
    assert "OS501" in (tmp_path / "trend.html").read_text()


def test_a_trend_of_no_log_is_refused(tmp_path, capsys):
    (tmp_path / "log.jsonl").write_text("nonsense\n")
    assert main(["trend", str(tmp_path / "log.jsonl"), "-o", str(tmp_path / "trend.html")]) == 2
    assert "line 1 is none" in capsys.readouterr().err
    assert not (tmp_path / "trend.html").exists()
