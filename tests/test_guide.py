"""Command lines and findings that the guide, the README and the docs speak of exist."""

import re
import shlex
from pathlib import Path

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


def parse(line):
    """Parse a command line by the options of its command, without running it."""
    words = shlex.split(re.split(r"[|>]", line)[0])[1:]
    command = GROUPS
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    command.make_context("oddslip", words)


def find_bad_lines(lines):
    """Lines that do not parse, with the reason."""
    bad = []
    for line in lines:
        try:
            parse(line)
        except Exception as error:
            bad.append(f"{line}: {error!r}")
    return bad


def test_every_command_line_of_the_docs_parses():
    assert find_bad_lines(line for _, line in LINES) == []


def test_a_bad_command_line_would_be_found():
    lines = [
        "oddslip plann x.npy",
        "oddslip evaluate a.npy b.npy --no-such-option 7",
        "oddslip rank",
    ]
    assert len(find_bad_lines(lines)) == len(lines)


def test_there_are_command_lines_to_test():
    assert {page.name for page, _ in LINES} >= {"README.md", "guide.md"}


def test_the_guide_speaks_of_findings_and_verdicts_that_exist():
    guide = (ROOT / "docs/guide.md").read_text()
    findings = (ROOT / "docs/findings.md").read_text()
    verdicts = (ROOT / "docs/diagnose.md").read_text()
    codes = set(re.findall(r"OS\d{3}", guide))
    assert codes
    assert all(f"## {code}" in findings for code in codes)
    named = re.findall(r"\*\*The verdict is `(\w+)`", guide)
    assert len(named) >= 4
    assert all(f"`{verdict}`" in verdicts for verdict in named)
