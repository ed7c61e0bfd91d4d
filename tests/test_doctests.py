"""Every example in a docstring runs and is right."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import oddslip

ROOT = Path(oddslip.__file__).parent
MODULES = sorted(
    "oddslip." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if ">>>" in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_right(name):
    module = import_module(name.removesuffix(".__init__"))
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0
