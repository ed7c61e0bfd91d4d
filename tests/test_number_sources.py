"""Every section with decimal numbers or shares says where they come from, and that source exists.

A source is a command of ours, a results file, an example that a test runs, or a link to a section
that has one. The text above a page's first section speaks for all of its sections.
"""

import re
from pathlib import Path

import pytest

from benchmarks import NAMES as BENCHMARKS
from experiments.app import app as experiments_app
from oddslip.cli.app import app as oddslip_app

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    if not {"examples", "reference"} & set(page.relative_to(ROOT).parts)  # those are built
)
FENCED = re.compile(r"^```.*?^```[^\n]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^ {4}[^\n]*$|`[^`]*`|\]\([^)]*\)", re.MULTILINE)
# Versions are no measurements; 0.0, 0.5 and 1.0 are ends and the middle of a scale.
VERSION = re.compile(r"\b(?:Python|pyspark|versions?|of|and|or) \d+\.\d+(?=[\s,;):]|\.\s|$)")
NUMBER = re.compile(
    r"(?<![\w./=^-])[-+]?\d[\d,]*(?:\.\d+)?%|(?<![\w./=^-])[-+]?\d[\d,]*\.\d+(?!\.?\d)"
)
TRIVIAL = {"0.0", "-0.0", "0.5", "1.0", "0%", "50%", "100%"}
LINK = re.compile(r"\]\(([^)\s]*)\)")


def command_names(app):
    """Names of the commands of an application, as they are typed."""
    return {
        command.name or command.callback.__name__.replace("_", "-")
        for command in app.registered_commands
    }


COMMANDS = {
    r"python -m experiments ([a-z][\w-]*)": command_names(experiments_app),
    r"python -m benchmarks ([a-z]\w*)": set(BENCHMARKS),
    r"(?:`|^ {4}|\$ )oddslip ([a-z]+)": command_names(oddslip_app),
    r"(?:`|^ {4})make ([a-z-]+)": set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    ),
}
FILE = re.compile(r"(?:experiments|benchmarks)/results/[\w.-]*\w")
OTHERS = re.compile(r">>> |python -m (?:attacks|timeit|benchmarks)\b|tests/[\w/]+\.py")


def sections(text):
    """Text by heading; headings inside a block of code are none."""
    blank = FENCED.sub(lambda block: re.sub(r"^#", " ", block.group(), flags=re.MULTILINE), text)
    starts = [0, *(match.start() for match in re.finditer(r"^#+ ", blank, re.MULTILINE))]
    return [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True) if text]


def anchor_of(section):
    """The anchor of a section's heading."""
    title = section.split("\n", 1)[0].lstrip("# ").lower()
    return re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


def has_command(text):
    """Whether a text names a command or a results file that exists, or runs an example."""
    named = any(
        name in names
        for pattern, names in COMMANDS.items()
        for name in re.findall(pattern, text, re.MULTILINE)
    )
    stored = any((ROOT / path).exists() for path in FILE.findall(text))
    return named or stored or bool(OTHERS.search(text))


def links_to_source(page, text):
    """Whether a text links to a page or a section of one that has a source."""
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if target.suffix != ".md" or not target.exists():
            continue
        parts = sections(target.read_text())
        if anchor:
            parts = [part for part in parts if anchor_of(part) == anchor]
        if any(has_command(part) for part in parts):
            return True
    return False


def numbers_of(section):
    """Decimal numbers and shares in the prose and tables of a section."""
    prose = VERSION.sub("", CODE.sub("", FENCED.sub("", section)))
    return [number for number in NUMBER.findall(prose) if number not in TRIVIAL]


def sections_without_source(page, text):
    """Headings of sections with numbers that come from nowhere."""
    lead, *rest = [part for part in sections(text) if part.strip()] or [""]
    if has_command(lead):
        return []
    return [
        f"{part.splitlines()[0]}: {', '.join(numbers_of(part)[:5])}"
        for part in (lead, *rest)
        if numbers_of(part) and not has_command(part) and not links_to_source(page, part)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_number_has_a_source(page):
    assert sections_without_source(page, page.read_text()) == []


@pytest.mark.parametrize(
    ("text", "is_sourced"),
    [
        ("# Speed\n\nIt takes 3.25 s.\n", False),
        ("# Speed\n\nIt takes 3.25 s by `python -m benchmarks ranking`.\n", True),
        ("# Speed\n\nBy `python -m experiments no-such-study`.\n\n## Next\n\n0.123\n", False),
        ("# Speed\n\nBy `python -m experiments mulan`.\n\n## Next\n\n0.123\n", True),
        ("# Speed\n\nFrom `experiments/results/no-such.jsonl`: 12%.\n", False),
        ("# Speed\n\nFrom `experiments/results/mulan-paper.jsonl`: 12%.\n", True),
        ("# Speed\n\nNeeds Python 3.11, and `x = 0.123`.\n\n    0.123\n", True),
        ("# Speed\n\n0.123, as [measured](paper/leaf.md).\n", True),
        ("# Speed\n\n```text\n# 0.123\n```\n\n0.456\n", False),
    ],
)
def test_a_number_without_a_source_is_found(text, is_sourced):
    assert (sections_without_source(ROOT / "docs/index.md", text) == []) is is_sourced


def test_commands_and_results_that_pages_name_exist():
    missing = []
    for page in PAGES:
        text = page.read_text()
        for pattern, names in COMMANDS.items():
            typed = re.findall(pattern, text, re.MULTILINE)
            missing += [f"{page.name}: {name}" for name in typed if name not in names]
        missing += [
            f"{page.name}: {path}" for path in FILE.findall(text) if not (ROOT / path).exists()
        ]
    assert missing == []
