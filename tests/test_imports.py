"""Who may import whom. The table is the architecture; changes of the design start here."""

import ast
import importlib
from pathlib import Path

import pytest

import oddslip

ROOT = Path(oddslip.__file__).parent
GROUND = {
    "errors", "kernels", "progress", "results", "files", "labels", "weights", "panels", "tallies",
    "provenance", "wording", "sparse", "arguments", "inputs", "documents",
    "archives", "identity", "rates", "rows",
}  # fmt: skip
ROWS = GROUND | {"sources", "spread", "counting", "hulls"}
VERBS = {"metrics", "shifts", "calibrators", "selection", "diagnosis", "serving"}
MAY_IMPORT = {
    "errors": set(),
    "kernels": set(),
    "progress": set(),
    "results": {"errors"},
    "wording": set(),
    "rates": set(),
    "arguments": {"errors"},
    "files": {"arguments", "errors", "progress"},
    "inputs": {"arguments", "errors", "files"},
    "documents": {"files", "inputs"},
    "archives": {"errors", "files", "inputs"},
    "sparse": {"archives", "errors", "inputs"},
    "labels": {"arguments", "errors", "inputs", "kernels", "rows", "sparse"},
    "rows": {"errors"},
    "weights": {"archives", "arguments", "errors", "inputs", "rows"},
    "identity": {"errors", "kernels"},
    "panels": {
        "arguments",
        "errors",
        "identity",
        "inputs",
        "kernels",
        "labels",
        "rows",
        "weights",
    },
    "tallies": {"arguments", "errors", "panels", "progress"},
    "provenance": {"errors", "files", "progress", "results"},
    "engines": GROUND,
    "sources": GROUND | {"engines"},
    "spread": GROUND | {"sources"},
    "counting": GROUND | {"sources"},
    "hulls": GROUND | {"sources", "counting"},
    "metrics": ROWS,
    "shifts": ROWS,
    "calibrators": ROWS,
    "selection": ROWS | {"metrics", "calibrators"},
    "diagnosis": ROWS | {"metrics", "shifts", "calibrators", "selection"},
    "reports": VERBS | {"errors", "results", "wording", "files"},
    "serving": ROWS | {"metrics", "shifts", "calibrators", "selection", "diagnosis"},
    "learners": ROWS | {"engines", "metrics"},
    "datasets": GROUND,
    "wrappers": ROWS | {"metrics", "calibrators", "selection", "learners"},
    "mlflow": GROUND | {"calibrators", "diagnosis", "reports", "serving"},
    "cli": None,  # everything
    "__init__": None,
    "__main__": {"cli"},
}
# A result shows itself, and a repair exports itself: `plot` imports the figures, `__str__` the
# texts, and `to_onnx` and the like what writes them, when they are called, and nowhere else. Types are named before that.
CALLED = {"__str__", "plot", "to_onnx", "to_sql", "to_json"}
WHEN_CALLED = {
    "diagnosis/result.py": {"reports"},
    "diagnosis/plan.py": {"reports"},
    "diagnosis/ladder.py": {"reports"},
    "selection/repair.py": {"reports"},
    "metrics/evaluation.py": {"reports"},
    "metrics/reliability.py": {"reports"},
    "calibrators/saved.py": {"reports", "serving"},
}
FILES = sorted(ROOT.rglob("*.py"))


def room_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def rooms_in(tree):
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "import by full name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "oddslip" and parts[1:] not in ([], ["__version__"], ["DEFAULT_SEED"]):
                yield parts[1]


def imported_rooms(path):
    """Rooms a file imports; those it imports only for types, or when such a method is called, apart."""
    tree = ast.parse(path.read_text())
    apart = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.FunctionDef) and node.name in CALLED)
        or (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING")
    ]
    later = {room for node in apart for room in rooms_in(node)}
    for node in apart:
        node.body = []
    return set(rooms_in(tree)), later


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_the_rooms_it_may(path):
    room = room_of(path)
    assert room in MAY_IMPORT, f"{room} is not in the table of rooms"
    allowed = MAY_IMPORT[room]
    if allowed is None:
        return
    imported, later = imported_rooms(path)
    strangers = imported - allowed - {room}
    assert not strangers, f"{path.name} may not import {strangers}"
    strangers = later - allowed - {room} - WHEN_CALLED.get(path.relative_to(ROOT).as_posix(), set())
    assert not strangers, f"a method of {path.name} may not import {strangers}"


def test_no_two_rooms_import_each_other():
    for room, allowed in MAY_IMPORT.items():
        for other in (allowed or set()) - {room}:
            assert room not in (MAY_IMPORT[other] or set()), f"{room} and {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_imported_by_a_string_but_a_room_its_own_names(path):
    """Such an import would walk around the table."""
    tree = ast.parse(path.read_text())
    names = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(tree)}
    if path.name != "__init__.py":
        assert not names & {"import_module", "__import__", "spec_from_file_location"}
    elif "import_module" in names:
        package = ".".join(["oddslip", *path.parent.relative_to(ROOT).parts])
        room = importlib.import_module(package)
        assert all(home.startswith(f"{package}.") for home in room._HOMES.values())
        assert set(getattr(room, "_ROOMS", ())) <= set(MAY_IMPORT)


def test_one_file_alone_imports_pyspark():
    importers = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and "pyspark" in ast.unparse(node).split()[1].split(".")
    }
    assert importers == {"engines/spark.py"}


def classes_by_base():
    """Base classes of every class, by the names they go by; and the room that defines it."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = {getattr(base, "id", getattr(base, "attr", None)) for base in node.bases}
                yield node.name, bases, room_of(path)


def test_every_subclass_of_source_is_defined_in_sources():
    classes, sources = list(classes_by_base()), {"Source"}
    for _ in classes:  # a subclass may be read before its parent
        sources |= {name for name, bases, _ in classes if bases & sources}
    homes = {name: room for name, _, room in classes if name in sources}
    assert {"ArraySource", "ParquetSource", "FoldSource"} <= homes.keys()
    assert set(homes.values()) == {"sources"}, homes


def test_every_room_says_what_lives_there():
    for init in ROOT.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(init.read_text())), init
