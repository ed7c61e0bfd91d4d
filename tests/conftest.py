"""Where genuine data is, for the tests that read some."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "shared" / "data"  # beside the checkout
HOW = "Point ODDSLIP_DATA at a folder that holds it, see docs/data.md."


@pytest.fixture(scope="session")
def genuine():
    """The folder of a genuine data set by name: ``genuine("mulan")``.

    A test whose data is not there is skipped, and fails where the variable CI is set.
    """
    root = Path(os.environ.get("ODDSLIP_DATA") or BESIDE)

    def find(name):
        folder = root / name
        if not folder.is_dir():
            refuse = pytest.fail if os.environ.get("CI") else pytest.skip
            refuse(f"needs genuine data in {folder}. {HOW}")
        return folder

    return find
