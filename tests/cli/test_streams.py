"""Standard streams that are closed or full: right exit codes, one line, no traceback."""

import subprocess
import sys

import numpy as np
import pytest

SCORES = np.random.default_rng(0).random((3000, 5))
FULL = "stdout cannot be written (No space left on device)."
CLOSED = "stdout cannot be written (Bad file descriptor)."


@pytest.fixture
def shell(tmp_path):
    np.save(tmp_path / "s.npy", SCORES)
    np.save(tmp_path / "y.npy", (SCORES > 0.7).astype(np.int8))

    def run(line):
        typed = f'set -o pipefail; "{sys.executable}" -m oddslip {line}'
        return subprocess.run(
            ["bash", "-c", typed], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    run.folder = tmp_path
    return run


@pytest.mark.parametrize(("where", "line"), [(">&-", CLOSED), ("> /dev/full", FULL)])
@pytest.mark.parametrize(
    "command",
    ["rank s.npy -k 2 --json", "rank s.npy -k 2", "evaluate s.npy y.npy -k 2", "--help"],
)
def test_a_stdout_that_takes_nothing_is_one_line_and_exit_code_2(shell, command, where, line):
    result = shell(f"{command} {where}")
    assert (result.returncode, result.stderr) == (2, f"oddslip: {line}\n")


@pytest.mark.parametrize("where", ["2>&-", "2> /dev/full", ">&- 2>&-", "<&- >&- 2>&-"])
def test_bad_input_has_its_exit_code_where_no_line_can_be_said(shell, where):
    result = shell(f"rank none.npy -k 2 {where}")
    assert (result.returncode, result.stdout, result.stderr) == (2, "", "")


@pytest.mark.parametrize("where", ["2>&-", "2> /dev/full", "<&-"])
def test_a_result_needs_stdout_alone(shell, where):
    result = shell(f"evaluate s.npy y.npy -k 2 --bootstrap 0 --json {where}")
    assert result.returncode == 0
    assert result.stdout.startswith("{")


def test_a_reader_that_went_away_is_no_error(shell):
    result = shell("rank s.npy -k 2 --json | head -1")
    assert (result.returncode, result.stderr) == (0, "")


def test_what_is_printed_never_goes_into_a_file_that_took_the_place_of_stdout(shell):
    shell("rank s.npy -k 2 -o t.npy >&- 2>&- <&-")
    assert np.load(shell.folder / "t.npy").shape == (3000, 2)
    shell("train s.npy y.npy -o m.oddslip -p num_iterations=2 >&- 2>&- <&-")
    assert shell("score m.oddslip s.npy -o p.npy").returncode == 0
