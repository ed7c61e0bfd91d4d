"""What is not Python but needed at run time is packed into the wheel."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "oddslip"
CODE = {".py", ".pyc", ".pyx", ".pxd", ".so", ".pyd"}


def test_every_file_that_is_no_code_is_packed_and_no_pattern_is_idle():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["oddslip"]
    packed = {pattern: set(PACKAGE.glob(pattern)) for pattern in patterns}
    assert [pattern for pattern, files in packed.items() if not files] == []
    needed = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in CODE}
    assert needed <= set().union(*packed.values())
