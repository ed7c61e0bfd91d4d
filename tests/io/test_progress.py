"""Progress bars, seen in a pseudo-terminal."""

import os
import pty
import subprocess
import sys

import pytest

SET_UP = """
import time
import numpy as np
import oddslip
from oddslip.io import progress
from oddslip.io.progress import progress_bar
progress.PATIENCE_S = {patience}
rng = np.random.default_rng(0)
scores = rng.random((400, 60))
labels = rng.random((400, 60)) < 0.2 * scores
"""


def watch(code, patience=0.0):
    """Output of Python code on a terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-c", SET_UP.format(patience=patience) + code],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    output = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the process has closed its end
            break
        if not part:
            break
        output += part
    os.close(ours)
    assert process.wait() == 0, output.decode()
    return output.decode()


def test_a_bar_names_its_work_and_counts_its_steps():
    output = watch(
        "with progress_bar('sorting shoes', 3) as advance:\n"
        "    for _ in range(3):\n        advance(1)\n        time.sleep(0.15)\n"
    )
    assert "sorting shoes" in output
    assert "2/3" in output or "3/3" in output


def test_a_single_long_step_has_a_bar():
    output = watch("with progress_bar('one step', 1):\n    time.sleep(0.4)\n", patience=0.1)
    assert "one step" in output
    assert "0/1" in output


def test_short_work_has_none():
    output = watch("with progress_bar('short', 1) as advance:\n    advance(1)\n", patience=5.0)
    assert "short" not in output


def test_short_bars_that_follow_each_other_are_one_piece_of_work():
    code = "for n in range(6):\n    with progress_bar(f'part {n}', 1):\n        time.sleep(0.15)\n"
    output = watch(code, patience=0.5)
    assert "part 0" not in output
    assert "part 5" in output


def test_a_bar_inside_a_bar_has_a_line_of_its_own():
    output = watch(
        "with progress_bar('outer work', 2) as advance:\n"
        "    with progress_bar('inner work', 5):\n        time.sleep(0.3)\n"
    )
    assert "outer work" in output
    assert "inner work" in output


@pytest.mark.parametrize(
    "call",
    [
        "oddslip.Repair(k=3).fit(scores, labels)",
        "oddslip.diagnose(scores, labels, k=3)",
        "oddslip.OneVsRest(learner='logistic').fit(scores, labels)",
    ],
)
def test_the_verbs_show_what_they_do(call):
    assert "━" in watch(call)


def test_nothing_is_written_where_nobody_watches(capfd):
    with pytest.MonkeyPatch.context() as patch:
        from oddslip.io import progress

        patch.setattr(progress, "PATIENCE_S", 0.0)
        with progress.progress_bar("unseen", 1) as advance:
            advance(1)
    assert capfd.readouterr() == ("", "")
