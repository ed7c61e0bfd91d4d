"""docs/architecture.md says what is: its rooms exist, and its flows follow real imports."""

import ast
import importlib
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import oddslip

ROOT = Path(oddslip.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


def read_flows(text):
    """Title and modules of each flow: the lines with arrows under a heading of the third level."""
    flows = {}
    for part in text.split("\n### ")[1:]:
        title, body = part.split("\n", maxsplit=1)
        chain = next(piece for piece in body.split("\n\n") if "→" in piece)
        flows[title] = re.findall(r"`([a-z0-9_.]+)`", chain)
    return flows


FLOWS = read_flows(PAGE.read_text())


def file_of(module):
    base = ROOT / Path(*module.split("."))
    for path in (base.with_suffix(".py"), base.with_suffix(".pyx"), base / "__init__.py"):
        if path.exists():
            return path
    return None


def home_of(module, name):
    """Where a name that is imported from a module is defined."""
    thing = getattr(importlib.import_module(module), name)
    if isinstance(thing, ModuleType):
        return thing.__name__
    return getattr(thing, "__module__", None) or module


class OnlyForTypes(ast.NodeTransformer):
    """Drop imports that only a type checker sees."""

    def visit_If(self, node):
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else node


@cache
def imported_by(module):
    """Modules that a module imports when it runs, without the leading "oddslip."."""
    path = file_of(module)
    if path.suffix == ".pyx":
        return frozenset()
    found = set()
    for node in ast.walk(OnlyForTypes().visit(ast.parse(path.read_text()))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "oddslip":
            found.add(node.module)
            found |= {home_of(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "oddslip":
            found.add(oddslip._HOMES.get(node.attr, "oddslip"))  # by the public face
    return frozenset(name.removeprefix("oddslip.") for name in found)


def test_there_are_four_flows():
    assert len(FLOWS) == 4
    assert all(len(chain) >= 5 for chain in FLOWS.values())


@pytest.mark.parametrize("flow", FLOWS)
def test_every_module_of_a_flow_exists_and_comes_once(flow):
    assert [name for name in FLOWS[flow] if file_of(name) is None] == []
    assert len(set(FLOWS[flow])) == len(FLOWS[flow])


@pytest.mark.parametrize("flow", FLOWS)
def test_of_two_neighbours_in_a_flow_one_imports_the_other(flow):
    strangers = [
        (first, second)
        for first, second in pairwise(FLOWS[flow])
        if second not in imported_by(first) and first not in imported_by(second)
    ]
    assert strangers == []


def test_the_page_and_the_package_have_the_same_rooms():
    table = PAGE.read_text().split("## The rooms")[1].split("\n## ")[0]
    told = set()
    for line in table.splitlines():
        if line.startswith("| `"):
            told |= {name.rstrip("/") for name in re.findall(r"`([a-z_]+/?)`", line.split("|")[1])}
    told -= {"src"}
    rooms = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
    rooms |= {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert told == rooms


def test_a_flow_that_is_wrong_would_be_found():
    assert "metrics.at_k" not in imported_by("kernels") | imported_by("tallies")
    assert "tallies" not in imported_by("metrics.at_k")
    assert file_of("metrics.no_such") is None
