"""What an ARFF file declares before its rows: one attribute per line, numeric or nominal."""

from __future__ import annotations

import re
from typing import NamedTuple

from oddslip.datasets.arff_tokens import (
    BARE_ITEM,
    BARE_NAME,
    Fault,
    show,
    skip_spaces,
    take_token,
)

_KEYWORD = re.compile(r"@(\w+)(?:\s+|$)", re.ASCII)
_NUMERIC = {"numeric", "real", "integer"}


class Attribute(NamedTuple):
    """One declared column."""

    name: str
    literal: str  # the name as it stands in the file, escapes kept, without its outer quotes
    values: tuple[str, ...] | None  # of a nominal attribute, coded by position; None if numeric


class Header:
    """Takes the lines before the rows, one by one."""

    def __init__(self) -> None:
        self.relation = ""
        self._attributes: dict[str, Attribute] = {}

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes declared so far, in order."""
        return tuple(self._attributes.values())

    def add(self, line: str) -> bool:
        """Take one line without outer spaces. True if it is ``@data``."""
        found = _KEYWORD.match(line)
        keyword = found[1].lower() if found else ""
        if found is None or keyword not in ("relation", "attribute", "data"):
            raise Fault(f"a line before @data must be @relation or @attribute, got {show(line)}")
        if keyword == "data":
            _expect_end(line, found.end())
            if not self._attributes:
                raise Fault("@data must follow at least one @attribute, got none")
            return True
        if keyword == "relation":
            self.relation = take_token(line, found.end(), BARE_NAME)[0].text
            return False
        attribute = read_attribute(line, found.end())
        if attribute.name in self._attributes:
            raise Fault(f"attributes must have different names, got {show(attribute.name)} twice")
        self._attributes[attribute.name] = attribute
        return False


def read_attribute(line: str, at: int) -> Attribute:
    """The attribute declared from a place of the line on: its name, then its kind."""
    name, at = take_token(line, at, BARE_NAME)
    if line[at : at + 1] == "{":
        values, at = _read_values(line, at + 1)
        _expect_end(line, at)
        return Attribute(name.text, name.literal, values)
    kind = line[at:].split(maxsplit=1)
    if not kind or kind[0].lower() not in _NUMERIC:
        came = show(line[at:]) if kind else "nothing"
        raise Fault(
            f"attribute {show(name.text)} must be numeric, real, integer or a list "
            f"{{a, b}}, got {came}"
        )
    _expect_end(line, at + len(kind[0]))
    return Attribute(name.text, name.literal, None)


def _read_values(line: str, at: int) -> tuple[tuple[str, ...], int]:
    """The values of a nominal attribute, from behind the opening brace on."""
    values: dict[str, None] = {}
    while True:
        token, at = take_token(line, at, BARE_ITEM)
        if token.text in values:
            raise Fault(f"nominal values must be different, got {show(token.text)} twice")
        values[token.text] = None
        following = line[at : at + 1]
        if following == "}":
            return tuple(values), at + 1
        if following != ",":
            came = show(line[at:]) if following else "the end of the line"
            raise Fault(f"nominal values must be separated by commas up to a brace, got {came}")
        at += 1


def _expect_end(line: str, at: int) -> None:
    at = skip_spaces(line, at)
    if at < len(line) and line[at] != "%":
        raise Fault(f"the declaration must end here, got {show(line[at:])}")
