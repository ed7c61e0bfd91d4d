"""Campaigns that try to break oddslip: ``python -m attacks``. Each file that has a TITLE is one.

A campaign has ``TITLE`` (its line in the table), ``SLICE`` (tries in the tests, seconds), ``FULL``
(tries in ``make attack``) and ``attack(count, seed)``, which returns an `Outcome`. Whatever could
crash or hang runs in a child process, see `attacks.child`.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
NAMES = tuple(
    sorted(
        path.stem.replace("_", "-")
        for path in HERE.glob("*.py")
        if re.search(r"^TITLE\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
)
ONLY_IF_NAMED = ("fuzz-models", "fuzz-repairs")


def module_of(name: str) -> str:
    """The module that holds a campaign."""
    return f"attacks.{name.replace('-', '_')}"
