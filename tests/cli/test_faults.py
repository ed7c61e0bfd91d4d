"""Whatever goes wrong ends in one line and an exit code; a traceback is shown to who asks."""

import os
import subprocess
import sys

import numpy as np
import pytest

import oddslip
from oddslip.cli.app import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ODDSLIP_DEBUG", raising=False)
    rng = np.random.default_rng(0)
    np.save("s.npy", rng.random((60, 3)))
    np.save("y.npy", (rng.random((60, 3)) < 0.4).astype(np.int8))
    return tmp_path


def break_rank(monkeypatch, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(oddslip, "rank", broken)


RANK = ["rank", "s.npy", "-k", "2"]


def test_a_fault_of_ours_is_one_line_that_asks_for_a_report(folder, monkeypatch, capsys):
    break_rank(monkeypatch, TypeError("no such\nthing."))
    assert main(RANK) == 1
    assert capsys.readouterr().err == (
        "oddslip: something of ours went wrong: TypeError: no such thing. "
        "Please report it; --debug shows where.\n"
    )


@pytest.mark.parametrize("arguments", [["--debug", *RANK], [*RANK, "--debug"]])
def test_debug_shows_where_it_came_from(folder, monkeypatch, capsys, arguments):
    break_rank(monkeypatch, TypeError("no such thing"))
    assert main(arguments) == 1
    output = capsys.readouterr().err
    assert "Traceback" in output
    assert "in broken" in output
    assert output.endswith("--debug shows where.\n")


def test_so_does_the_environment(folder, monkeypatch, capsys):
    break_rank(monkeypatch, TypeError("no such thing"))
    monkeypatch.setenv("ODDSLIP_DEBUG", "1")
    assert main(RANK) == 1
    assert "Traceback" in capsys.readouterr().err


def test_debug_changes_nothing_where_all_is_well(folder, capsys):
    assert main(RANK) == 0
    plain = capsys.readouterr()
    assert main(["--debug", *RANK]) == 0
    assert capsys.readouterr() == plain


def test_a_fault_of_the_machine_names_the_file(folder, monkeypatch, capsys):
    break_rank(monkeypatch, PermissionError(13, "Permission denied", "scores.npy"))
    assert main(RANK) == 2
    assert capsys.readouterr().err == "oddslip: scores.npy: Permission denied.\n"


def test_too_little_memory_is_said_so(folder, monkeypatch, capsys):
    break_rank(monkeypatch, MemoryError("Unable to allocate 9 TiB"))
    assert main(RANK) == 1
    assert capsys.readouterr().err.startswith("oddslip: memory must hold the work")


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "s.npy", "y.npy", "-k", "2"],
        ["diagnose", "s.npy", "y.npy", "-k", "2"],
        ["fit", "s.npy", "y.npy", "-k", "2", "-o", "r.oddslip"],
        ["train", "s.npy", "y.npy", "-o", "m.oddslip", "-p", "num_iterations=2"],
    ],
)
def test_a_negative_seed_is_refused_with_one_line(folder, capsys, arguments):
    assert main([*arguments, "--seed", "-1"]) == 2
    output = capsys.readouterr().err
    assert output.count("\n") == 1
    assert "seed must be" in output


def test_what_lightgbm_refuses_is_one_line_without_its_banner(folder):
    process = subprocess.run(
        [
            sys.executable,
            "-m",
            "oddslip",
            *["train", "s.npy", "y.npy", "-o", "m.oddslip", "-p", "num_leaves=1"],
        ],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert process.returncode == 2
    assert process.stderr.startswith("oddslip: LightGBM refuses this: ")
    assert "num_leaves" in process.stderr
    assert process.stderr.count("\n") == 1
    assert not (folder / "m.oddslip").exists()
