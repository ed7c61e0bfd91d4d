"""Examples and numbers of the docs are right; links, paths and names in them lead somewhere."""

import ast
import contextlib
import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import oddslip

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    if not {"examples", "reference"} & set(page.relative_to(ROOT).parts)  # those are built
)
WITH_EXAMPLES = [page for page in PAGES if ">>>" in page.read_text()]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_are_right(page):
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_the_overview_of_the_docs_is_that_of_its_page():
    text = (ROOT / "docs/diagnose.md").read_text()
    (first_block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[:1]
    example = doctest.DocTestParser().get_doctest(first_block, {}, "diagnose.md", None, 0)
    doctest.DocTestRunner().run(example, clear_globs=False)
    with Image.open(ROOT / "docs/figure-overview.png") as picture:
        sentences = picture.info["Description"], example.globs["diagnosis"].verdict.sentence
    drawn, current = ([float(n) for n in re.findall(r"0\.\d+", text)] for text in sentences)
    assert len(current) > 2
    assert drawn == pytest.approx(current, abs=0.01)


def python_blocks(page):
    """Blocks of Python without prompts, which no doctest runs."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if ">>>" not in block]


@pytest.mark.parametrize("name", ["index.md", "spark.md"])
def test_the_first_block_runs_when_it_is_pasted(name, tmp_path):
    block = python_blocks(ROOT / "docs" / name)[0]
    environment = os.environ | {
        "PYTHONPATH": str(Path(oddslip.__file__).parents[1]),
        "PYSPARK_PYTHON": sys.executable,
    }
    process = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout


def test_every_block_of_python_parses():
    blocks = [block for page in PAGES for block in python_blocks(page)]
    assert blocks
    for block in blocks:
        ast.parse(block)


def headings(page):
    """Anchors of the headings of a page, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def is_dead(page, link):
    """Whether a link of a page leads to no file, or to no heading of one."""
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return not target.exists() or (bool(anchor) and anchor not in headings(target))


def test_links_lead_somewhere():
    dead = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())
        if not link.startswith("http") and is_dead(page, link)
    ]
    assert dead == []


def test_a_link_that_leads_nowhere_would_be_found():
    page = ROOT / "docs/guide.md"
    assert is_dead(page, "repairs.md")
    assert is_dead(page, "repair.md#no-such-heading")
    assert not is_dead(page, "repair.md#the-rules")


def table_rows(page):
    """Cells of every line of a table, without code marks."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def test_the_gains_of_the_rules_are_those_of_the_studies():
    study = table_rows(ROOT / "docs/paper/selection-study.md")
    table = [row for row in table_rows(ROOT / "docs/repair.md") if len(row) == 7][2:]
    assert len(table) == 4
    for name, *numbers in table:
        others, tuned = [row for row in study if row[0] == name and len(row) == 6][:2]
        assert numbers == [row[place] for row in (others, tuned) for place in (1, 3, 4)]
    study = {tuple(row[:2]): row for row in table_rows(ROOT / "docs/paper/mulan.md")}
    rows = [row for row in table_rows(ROOT / "docs/paper/index.md") if tuple(row[:2]) in study]
    table = [row for row in rows if row[1] in {"auto", "paper", "tau 0"}]
    assert len(table) == 6
    for *key, gain, harmed in table:
        assert [gain, harmed] == [study[tuple(key)][place] for place in (5, 2)]


def test_the_baskets_of_the_readme_are_those_of_the_study():
    study = {row[0]: row[1:3] for row in table_rows(ROOT / "docs/paper/tafeng.md") if len(row) == 5}
    weighted, unweighted = study["raw score"]
    (sentence,) = re.findall(
        r"Ta-Feng,.*?\(\[the study\]", (ROOT / "README.md").read_text(), re.DOTALL
    )
    numbers = [unweighted, weighted, study["per-label isotonic, prior"][0]]
    assert re.findall(r"0\.\d{3}", sentence) == numbers


def test_the_last_baskets_of_the_index_are_those_of_the_study():
    numbers = []
    for page, learner in (("instacart", "mlp"), ("instacart-400", "lightgbm")):
        rows = table_rows(ROOT / f"docs/paper/{page}.md")
        start = next(at for at, row in enumerate(rows) if f"{learner} w=r" in row)
        column = rows[start].index(f"{learner} w=r")
        study = {row[0]: row[column : column + 2] for row in rows[start + 2 : start + 5]}
        weighted, unweighted = study["raw score"]
        numbers += [unweighted, weighted, study["per-label isotonic, prior"][0]]
    (paragraph,) = re.findall(
        r"\*\*Instacart's last baskets.\*\*.*?\n\n",
        (ROOT / "docs/paper/index.md").read_text(),
        re.DOTALL,
    )
    assert re.findall(r"0\.\d{3}", paragraph) == numbers


def test_every_decision_is_listed():
    index = (ROOT / "docs/decisions/index.md").read_text()
    for page in (ROOT / "docs/decisions").glob("[0-9]*.md"):
        assert page.name in index


# What is named in prose or code: a path of this repository, a module of ours, a public name.
PATH = re.compile(r"(?<![\w/.-])((?:src|tests|benchmarks|examples|tools)/[\w./-]*\w)")
MODULE_FILE = re.compile(r"(?<![\w/.-])((?:\w+/)*\w+\.pyx?)\b")
DOTTED = re.compile(r"(?<![\w/.@-])oddslip((?:\.[A-Za-z_]\w*)+)")
HISTORY = {"01-numba.md"}  # names code that is no longer there
BUILT = {"examples/index", "benchmarks/results"}  # by the site, by `make bench`


def missing_paths(text):
    """Paths in a text that are not in this repository."""
    paths = set(PATH.findall(text)) - BUILT
    missing = {path for path in paths if not (ROOT / path).exists()}
    for path in set(MODULE_FILE.findall(text)) - paths:
        if "/" in path and not any((ROOT / base / path).exists() for base in ("", "src/oddslip")):
            missing.add(path)
    return missing


def missing_names(text):
    """Names in a text that begin with "oddslip." and lead nowhere."""
    missing = set()
    for dotted in DOTTED.findall(text):
        *folders, name = dotted.removeprefix(".").split(".")
        if not folders and name in {"txt", "toml", "npz"}:
            continue
        thing = oddslip
        for part in [*folders, name]:
            with contextlib.suppress(ImportError, AttributeError):  # a name, not a module
                importlib.import_module(f"{thing.__name__}.{part}")
            if not hasattr(thing, part):
                missing.add(f"oddslip{dotted}")
                break
            thing = getattr(thing, part)
    return missing


def test_every_path_and_name_of_ours_exists():
    missing = {
        page.name: absent
        for page in PAGES
        if page.name not in HISTORY
        and (absent := missing_paths(page.read_text()) | missing_names(page.read_text()))
    }
    assert missing == {}


def test_a_path_or_name_that_is_gone_would_be_found():
    text = "See `src/oddslip/plannings.py`, `diagnosis/arffs.py` and `oddslip.reports.pages.write`."
    assert missing_paths(text) == {"src/oddslip/plannings.py", "diagnosis/arffs.py"}
    assert missing_names(text) == {"oddslip.reports.pages.write"}
    text = "See `tests/test_docs.py`, `selection/rules.py`, `oddslip.rank` and `oddslip.shifts.what_if`."
    assert missing_paths(text) | missing_names(text) == set()
