"""Command lines and findings that the guide, the README and the docs speak of exist."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from oddslip.cli.app import app

ROOT = Path(__file__).parents[1]
GROUPS = typer.main.get_command(app)
# Lines that stand as a command of their own, indented or in a fence; not prose.
LINES = [
    (page, line.strip().split("#")[0])
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for line in page.read_text().splitlines()
    if re.match(r"( {4})?oddslip [a-z]", line)
]


@pytest.mark.parametrize(
    ("page", "line"), LINES, ids=[f"{page.name}: {line.strip()}" for page, line in LINES]
)
def test_a_command_line_of_the_docs_parses(page, line):
    words = shlex.split(re.split(r"[|>]", line)[0])[1:]
    command = GROUPS
    while hasattr(command, "commands"):
        assert words, f"{line} is not a whole command"
        assert words[0] in command.commands, f"{line} calls an unknown command"
        command, words = command.commands[words[0]], words[1:]
    command.make_context("oddslip", words)


def test_there_are_command_lines_to_test():
    assert {page.name for page, _ in LINES} >= {"README.md", "guide.md"}


def test_the_guide_speaks_of_findings_and_verdicts_that_exist():
    guide = (ROOT / "docs/guide.md").read_text()
    findings = (ROOT / "docs/findings.md").read_text()
    verdicts = (ROOT / "docs/diagnose.md").read_text()
    codes = set(re.findall(r"OS\d{3}", guide))
    assert codes
    assert all(f"## {code}" in findings for code in codes)
    told = re.findall(r"\*\*The verdict is `(\w+)`", guide)
    assert len(told) >= 4
    assert all(f"`{verdict}`" in verdicts for verdict in told)
