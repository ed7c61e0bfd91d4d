"""Prose of the pages that studies write."""

from __future__ import annotations

from textwrap import wrap


def paragraph(text: str) -> list[str]:
    """Lines of at most 99 characters; those of a point of a list stand under its first word.

    Examples
    --------
    >>> paragraph("- a point")
    ['- a point']
    """
    hanging = "  " if text.startswith("- ") else ""
    return wrap(text, 99, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
