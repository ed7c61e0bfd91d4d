"""Every example of the docs is right; links, paths and names in them lead somewhere."""

import contextlib
import doctest
import importlib
import re
from pathlib import Path

import pytest

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


def test_links_lead_somewhere():
    dead = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())
        if not target.startswith("http") and not (page.parent / target).exists()
    ]
    assert dead == []


def test_every_decision_is_listed():
    index = (ROOT / "docs/decisions/index.md").read_text()
    for page in (ROOT / "docs/decisions").glob("[0-9]*.md"):
        assert page.name in index


# What is named in prose or code: a path of this repository, a module of ours, a public name.
PATH = re.compile(r"(?<![\w/.-])((?:src|tests|benchmarks|examples|tools)/[\w./-]*\w)")
MODULE_FILE = re.compile(r"(?<![\w/.-])((?:\w+/)*\w+\.py)\b")
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
