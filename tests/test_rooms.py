"""Who may import whom. The table is the architecture; DESIGN changes start here."""

import ast
from pathlib import Path

import pytest

import oddslip

ROOT = Path(oddslip.__file__).parent
GROUND = {
    "errors", "kernels", "labels", "panels", "weights", "results", "tallies", "sources", "counting",
}  # fmt: skip
MAY_IMPORT = {
    "errors": set(),
    "kernels": set(),
    "progress": set(),
    "results": {"errors"},
    "labels": {"errors", "kernels"},
    "panels": {"errors", "kernels", "labels"},
    "weights": {"errors", "kernels", "labels", "panels"},
    "tallies": {"errors", "panels", "progress"},
    "sources": {"errors", "labels", "panels", "tallies"},
    "counting": {"errors", "kernels", "panels", "tallies", "sources"},
    "metrics": GROUND,
    "shifts": GROUND,
    "calibrators": GROUND,
    "selection": GROUND | {"metrics", "calibrators"},
    "learners": GROUND | {"progress"},
    "datasets": {"errors", "labels", "panels", "weights", "sources", "progress"},
    "diagnosis": GROUND | {"metrics", "shifts", "calibrators", "selection"},
    "reports": {
        "metrics",
        "shifts",
        "calibrators",
        "selection",
        "diagnosis",
        "errors",
        "results",
        "sources",
    },
    "studies": GROUND
    | {
        "metrics",
        "shifts",
        "calibrators",
        "selection",
        "diagnosis",
        "learners",
        "datasets",
        "reports",
        "progress",
    },
    "cli": None,  # everything
    "__init__": None,
    "__main__": {"cli"},
}
# Imports that stand in a function, against the way of the table: a result's plot() draws itself.
WHEN_CALLED = {"diagnosis": {"reports"}}
FILES = sorted(ROOT.rglob("*.py"))


def room_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported_rooms(path):
    """Rooms that a file imports when it is loaded, and those it imports when it is called."""
    tree = ast.parse(path.read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    late = {id(inner) for call in calls for inner in ast.walk(call)}
    rooms = {"loaded": set(), "called": set()}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by full name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "oddslip" and parts[1:] not in ([], ["__version__"], ["DEFAULT_SEED"]):
                rooms["called" if id(node) in late else "loaded"].add(parts[1])
    return rooms


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_the_rooms_it_may(path):
    room = room_of(path)
    assert room in MAY_IMPORT, f"{room} is not in the table of rooms"
    if MAY_IMPORT[room] is not None:
        rooms, allowed = imported_rooms(path), MAY_IMPORT[room] | {room}
        strangers = rooms["loaded"] - allowed
        strangers |= rooms["called"] - allowed - WHEN_CALLED.get(room, set())
        assert not strangers, f"{path.name} may not import {strangers}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_but_the_public_face_imports_by_a_string(path):
    if path != ROOT / "__init__.py":
        names = {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Name | ast.Attribute)
        }
        assert not names & {"import_module", "__import__", "spec_from_file_location"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_a_room_not_a_warehouse(path):
    assert len(path.read_text().splitlines()) <= 400


def test_half_of_the_files_are_short():
    lengths = sorted(len(path.read_text().splitlines()) for path in FILES)
    assert lengths[len(lengths) // 2] <= 150


def test_every_room_says_what_lives_there():
    for init in ROOT.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(init.read_text())), init
