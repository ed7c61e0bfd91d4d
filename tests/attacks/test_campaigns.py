"""A slice of every campaign of `python -m attacks`, and what the frame promises."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from attacks import NAMES, ONLY_IF_NAMED, module_of
from attacks.child import try_in_child
from attacks.frame import Result, Run, run_campaigns
from attacks.outcome import Outcome
from attacks.table import write_table

ROOT = Path(__file__).parents[2]
NEEDS = {"models": ("lightgbm", "xgboost", "torch"), "inputs": ("lightgbm", "xgboost", "torch")}


@pytest.mark.parametrize("name", NAMES)
def test_a_slice_of_the_campaign_finds_nothing(name):
    for package in NEEDS.get(name, ("lightgbm",)):
        pytest.importorskip(package)
    campaign = import_module(module_of(name))
    outcome = campaign.attack(campaign.SLICE, 1)
    assert not outcome.failures
    assert outcome.tried > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_campaign_says_what_it_is_and_how_often_it_tries(name):
    campaign = import_module(module_of(name))
    assert campaign.TITLE
    assert "\n" not in campaign.TITLE
    assert 0 < campaign.SLICE <= campaign.FULL


def test_bad_inputs_are_at_least_400_and_every_command_and_verb_is_among_them():
    from typer.main import get_command

    import oddslip
    from attacks.inputs import read_calls
    from oddslip.cli.app import app

    typed = [call.typed for call in read_calls()]
    assert len(typed) == len(set(typed)) >= 400
    assert all(call.line for call in read_calls())
    commands = get_command(app).commands.items()
    for command in [name for name, each in commands if not each.hidden]:
        assert any(each.startswith(f"$ oddslip {command}") for each in typed), command
    rooms = [getattr(oddslip, room) for room in oddslip._PACKAGES]
    verbs = {
        name
        for place in (oddslip, *rooms)
        for name in place.__all__
        if name.islower() and callable(getattr(place, name))
    }
    assert not [verb for verb in verbs if not any(f"{verb}(" in each for each in typed)]


PLANTED = """
import os
import time


def prepare(seed, folder):
    def attempt(number):
        if number == 3:
            os.kill(os.getpid(), 11)
        if number == 5:
            time.sleep(60)
        if number == 7:
            raise TypeError("a bare one")
        return "well"

    return attempt
"""


def test_a_signal_a_hang_and_a_stray_exception_are_findings_and_the_rest_goes_on(
    tmp_path, monkeypatch
):
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    outcome = try_in_child("planted", 9, 0, seconds=2.0)
    assert outcome.tried == 9
    told = [failure.partition(" try ")[2] for failure in outcome.failures]
    assert told == ["3: signal 11", "5: hung for 2 s", "7: TypeError: 'a bare one'"]


def test_a_child_that_can_not_begin_is_a_finding(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("def prepare(seed, folder):\n    raise OSError('no')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "cannot be prepared" in try_in_child("planted", 9, 0).failures[0]


def test_a_campaign_that_is_not_done_within_the_bound_is_a_failure():
    (result,) = run_campaigns([Run("repairs", "", 10**9, 0)], minutes=0.02)
    assert result.outcome == Outcome(0, ("not done within the bound",))


def test_the_command_ends_with_1_and_names_the_failure_if_anything_broke(tmp_path):
    page = tmp_path / "attacks.md"
    command = [sys.executable, "-m", "attacks", "cells", "--count", "20", "--table", str(page)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert "| cells | Result cells of studies, changed and resealed | 20 | 0 |" in page.read_text()
    told = subprocess.run(
        [*command[:3], "repairs", "--minutes", "0.01"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert "not done within the bound" in told.stderr


def test_only_the_long_fuzzers_wait_to_be_named():
    assert set(ONLY_IF_NAMED) <= set(NAMES)
    assert {"inputs", "repairs", "models", "checkpoints", "cells", "caches", "journals"} <= (
        set(NAMES) - set(ONLY_IF_NAMED)
    )


def test_the_page_keeps_the_fuzzers_of_an_earlier_run(tmp_path):
    page = tmp_path / "attacks.md"
    long = Result(Run("fuzz-repairs", "Fuzz", 5, 0), Outcome(5, ()), 1.0)
    short = Result(Run("cells", "Cells", 2, 0), Outcome(2, ()), 1.0)
    write_table(page, [long], "python -m attacks fuzz-repairs", 0)
    write_table(page, [short], "python -m attacks", 0)
    told = page.read_text()
    assert "| fuzz-repairs |" in told
    assert "| cells |" in told
    assert "python -m attacks fuzz-repairs" in told


def test_a_run_of_some_campaigns_replaces_their_lines_alone(tmp_path):
    page = tmp_path / "attacks.md"
    first = [
        Result(Run(name, name, 2, 0), Outcome(2, ("broke",)), 1.0) for name in ("kills", "forks")
    ]
    write_table(page, first, "python -m attacks", 0)
    again = Result(Run("kills", "kills", 100, 0), Outcome(100, ()), 1.0)
    write_table(page, [again], "python -m attacks kills", 0)
    lines = [line.split(" | ")[:4] for line in page.read_text().splitlines() if line[:2] == "| "]
    assert lines[1:] == [["| forks", "forks", "2", "1"], ["| kills", "kills", "100", "0"]]


@pytest.mark.parametrize("number", [17909, 17945, 46173])
def test_a_damaged_table_that_arrow_or_polars_choke_on_is_refused(number, tmp_path):
    pytest.importorskip("polars")
    from attacks.readers import prepare

    assert prepare(0, tmp_path)(number) == "refused"
