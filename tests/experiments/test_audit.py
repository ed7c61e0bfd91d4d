"""The audit's counts are those of its table, and every item says where it can be seen."""

import re
from collections import Counter
from pathlib import Path

from experiments.app import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/paper/audit.md"
STATES = ("works", "partly", "missing", "wrong")
LINES = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
ITEMS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES]


def test_the_counts_are_those_of_the_table():
    counts = Counter(state for _, state, _, _ in ITEMS)
    assert set(counts) <= set(STATES)
    parts = ", ".join(f"{counts[state]} {state}" for state in STATES)
    assert f"{len(ITEMS)} items: {parts}." in PAGE.read_text()


def test_what_is_not_missing_can_be_seen_and_what_is_partly_there_says_why():
    names = {command.callback.__name__.replace("_", "-") for command in app.registered_commands}
    for item, state, where, difference in ITEMS:
        assert where or state == "missing", item
        assert difference or state != "partly", item
        for path in re.findall(r"`(tests/[\w/.]+)`", where):
            assert (ROOT / path).exists(), item
        for study in re.findall(r"python -m experiments ([\w-]+)", where):
            assert study in names, item
