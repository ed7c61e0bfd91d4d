"""Cells that a spreadsheet would run: an apostrophe makes them text, and is taken off again."""

from __future__ import annotations

import re

# The pattern of the report's download, letter by letter: reports/html/templates/page.js.
PATTERN = (
    r"^[\s\u0000-\u001f\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]"
)
_FORMULA = re.compile(PATTERN)


def guard(text: str) -> str:
    """The text with an apostrophe where it would be run, or where one would be taken off.

    Examples
    --------
    >>> guard("=1+1"), guard("milk"), unguard(guard("=1+1"))
    ("'=1+1", 'milk', '=1+1')
    """
    return f"'{text}" if _FORMULA.match(text.lstrip("'")) else text


def unguard(text: str) -> str:
    """What `guard` was given."""
    guarded = text.startswith("'") and _FORMULA.match(text.lstrip("'"))
    return text[1:] if guarded else text
