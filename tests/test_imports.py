"""Which package may import which. The table is the architecture: change it first."""

import ast
import importlib
from pathlib import Path

import oddslip

ROOT = Path(oddslip.__file__).parent
BASE = {"errors", "kernels"}
CORE = BASE | {"io", "core"}
ROWS = CORE | {"sources", "tallies"}
VERBS = {
    "metrics",
    "shifts",
    "repairs",
    "calibrators",
    "selection",
    "diagnosis",
    "planning",
    "serving",
}
VERBS |= {"decisions"}
# Lowest first. A package may import those of its set, and itself.
MAY_IMPORT = {
    "errors": set(),
    "kernels": set(),
    "io": {"errors"},
    "linting": {"errors", "io"},
    "core": BASE | {"io"},
    "spark": CORE,
    "sources": CORE | {"spark"},
    "writers": CORE | {"sources"},
    "tallies": CORE | {"sources"},
    "metrics": ROWS,
    "shifts": ROWS,
    "repairs": ROWS,
    "calibrators": ROWS | {"repairs"},
    "selection": ROWS | {"metrics", "repairs", "calibrators"},
    "diagnosis": ROWS | {"metrics", "shifts", "repairs", "calibrators", "selection"},
    "decisions": ROWS | {"metrics", "repairs"},
    "planning": ROWS | {"metrics", "shifts", "calibrators", "selection", "diagnosis", "adapters"},
    "serving": ROWS | {"metrics", "shifts", "repairs", "diagnosis", "decisions"},
    "reports": VERBS | {"errors", "core", "io"},
    "adapters": CORE,
    "learners": ROWS | {"writers", "spark", "metrics", "adapters", "selection"},
    "folding": CORE | {"adapters", "repairs", "serving"},
    "sklearn": ROWS | {"metrics", "repairs", "selection", "learners", "adapters"},
    "datasets": CORE,
    "mlflow": CORE | {"repairs", "calibrators", "diagnosis", "reports", "serving"},
    "cli": None,  # everything
    "__init__": None,
    "__main__": {"cli"},
}
# A result shows itself, and a repair exports itself: `plot` imports the figures, `__str__` the
# texts, `write_page` the page, and `to_onnx` and the like what writes them, when they are called, and nowhere else. Types are named before that.
CALLED = {"__str__", "plot", "write_page", "to_onnx", "to_sql", "to_json"}
WHEN_CALLED = {
    "diagnosis/result.py": {"reports"},
    "planning/plan.py": {"reports"},
    "diagnosis/ladder.py": {"reports"},
    "planning/rounds.py": {"reports"},
    "selection/repair.py": {"reports"},
    "metrics/evaluation.py": {"reports"},
    "metrics/reliability.py": {"reports"},
    "repairs/fitted_repair.py": {"reports", "serving"},
    "decisions/decision.py": {"reports"},
    "decisions/fitted_decision.py": {"reports", "serving"},
}
FILES = sorted(ROOT.rglob("*.py"))


def package_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def packages_in(tree):
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "import by full name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            assert parts[0] not in {"experiments", "benchmarks", "attacks", "tests"}
            if parts[0] == "oddslip" and parts[1:] not in ([], ["__version__"], ["DEFAULT_SEED"]):
                yield parts[1]


def imported_packages(path):
    """Packages a file imports; and those it imports for types or in a method of `CALLED`."""
    tree = ast.parse(path.read_text())
    apart = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.FunctionDef) and node.name in CALLED)
        or (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING")
    ]
    later = {package for node in apart for package in packages_in(node)}
    for node in apart:
        node.body = []
    return set(packages_in(tree)), later


def test_a_file_imports_only_the_packages_it_may():
    for path in FILES:
        package, name = package_of(path), path.relative_to(ROOT).as_posix()
        assert package in MAY_IMPORT, f"{package} is not in the table"
        if MAY_IMPORT[package] is None:
            continue
        allowed = MAY_IMPORT[package] | {package}
        imported, later = imported_packages(path)
        assert not imported - allowed, f"{name} may not import {imported - allowed}"
        rest = later - allowed - WHEN_CALLED.get(name, set())
        assert not rest, f"a method of {name} may not import {rest}"


def test_no_two_packages_import_each_other():
    for package, allowed in MAY_IMPORT.items():
        for other in (allowed or set()) - {package}:
            assert package not in (MAY_IMPORT[other] or set()), f"{package} and {other}"


def test_no_module_is_imported_by_a_string_but_public_names():
    """Such an import would bypass the table."""
    forbidden = {"import_module", "__import__", "spec_from_file_location"}
    for path in FILES:
        if path.relative_to(ROOT).as_posix() == "core/lazy.py":
            continue
        tree = ast.parse(path.read_text())
        names = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(tree)}
        assert not names & forbidden, path
        if "lazy_names" in names:
            name = ".".join(["oddslip", *path.parent.relative_to(ROOT).parts])
            package = importlib.import_module(name)
            allowed = MAY_IMPORT[package_of(path)]
            homes = {module.split(".")[1] for module in package._PUBLIC.values()}
            assert allowed is None or homes <= allowed | {package_of(path)}
            assert set(getattr(package, "_PACKAGES", ())) <= set(MAY_IMPORT)


def test_names_that_moved_lead_to_public_packages():
    """The one import by a string that the table does not know: it may lead to a higher package."""
    for path in FILES:
        tree = ast.parse(path.read_text())
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "moved_names":
                homes = [each.value for each in ast.walk(call) if isinstance(each, ast.Constant)]
                homes = [each for each in homes if each.startswith("oddslip.")]
                assert homes, path
                assert all(home.split(".")[1] in MAY_IMPORT for home in homes), path


def test_only_one_file_imports_pyspark():
    importers = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and "pyspark" in ast.unparse(node).split()[1].split(".")
    }
    assert importers == {"spark/session.py"}


def classes_by_base():
    """Base classes of every class, by name; and the package that defines it."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases = {getattr(base, "id", getattr(base, "attr", None)) for base in node.bases}
                yield node.name, bases, package_of(path)


def test_every_subclass_of_source_is_defined_in_sources():
    classes, sources = list(classes_by_base()), {"Source"}
    for _ in classes:  # a subclass may be read before its parent
        sources |= {name for name, bases, _ in classes if bases & sources}
    homes = {name: package for name, _, package in classes if name in sources}
    assert {"ArraySource", "ParquetSource", "RowSubset"} <= homes.keys()
    assert set(homes.values()) == {"sources"}, homes


def test_every_package_has_a_docstring():
    for init in ROOT.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(init.read_text())), init
