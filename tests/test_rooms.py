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
FILES = sorted(ROOT.rglob("*.py"))


def room_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by full name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "oddslip" and parts[1:] not in ([], ["__version__"], ["DEFAULT_SEED"]):
                yield parts[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_the_rooms_it_may(path):
    room = room_of(path)
    assert room in MAY_IMPORT, f"{room} is not in the table of rooms"
    allowed = MAY_IMPORT[room]
    if allowed is not None:
        strangers = set(imported_rooms(path)) - allowed - {room}
        assert not strangers, f"{path.name} may not import {strangers}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_a_room_not_a_warehouse(path):
    assert len(path.read_text().splitlines()) <= 400


def test_half_of_the_files_are_short():
    lengths = sorted(len(path.read_text().splitlines()) for path in FILES)
    assert lengths[len(lengths) // 2] <= 150


def test_every_room_says_what_lives_there():
    for init in ROOT.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(init.read_text())), init
