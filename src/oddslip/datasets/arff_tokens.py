"""The smallest pieces of an ARFF line: names and values, bare or in quotes."""

from __future__ import annotations

import re
from typing import NamedTuple

# Each pattern is unrolled, so that a long quoted value costs one step per character.
_QUOTED = {
    "'": re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL),
    '"': re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL),
}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_SPACES = re.compile(r"\s*")

# How far a bare token goes: to the next space or brace in a declaration, to the next comma in a
# row (a % after a space opens a comment), to the next comma or closing brace between braces.
BARE_NAME = re.compile(r"[^\s{]*")
BARE_CELL = re.compile(r"[^,%]*(?:(?<!\s)%[^,%]*)*")
BARE_ITEM = re.compile(r"[^,}]*")


class Fault(Exception):  # noqa: N818
    """What is wrong with a line. The reader adds the file and the line number."""


class Token(NamedTuple):
    """A name or a value."""

    text: str  # what it means
    literal: str  # what stands in the file, without its outer quotes
    quoted: bool

    @property
    def is_missing(self) -> bool:
        """Whether it is the bare question mark of a missing value."""
        return not self.quoted and self.text == "?"


def take_token(line: str, at: int, bare: re.Pattern[str]) -> tuple[Token, int]:
    """The token that starts at a place or after the spaces there, and the place behind it."""
    at = skip_spaces(line, at)
    if at < len(line) and line[at] in _QUOTED:
        found = _QUOTED[line[at]].match(line, at)
        if found is None:
            raise Fault(f"a quote must be closed on its line, got {show(line[at:])}")
        literal = found[1]
        text = _ESCAPED.sub(_unescape, literal) if "\\" in literal else literal
        return Token(text, literal, True), skip_spaces(line, found.end())
    found = bare.match(line, at)
    end = at if found is None else found.end()
    text = line[at:end].rstrip()
    if not text:
        raise Fault(f"a name or value must not be empty, got {show(line[at:] or line)}")
    return Token(text, text, False), skip_spaces(line, end)


def skip_spaces(line: str, at: int) -> int:
    """The first place from here on that is no space."""
    found = _SPACES.match(line, at)
    return at if found is None else found.end()


def show(text: str, longest: int = 40) -> str:
    """A piece of a line for a message: quoted, on one line, not too long."""
    return repr(text if len(text) <= longest else text[: longest - 3] + "...")


def _unescape(found: re.Match[str]) -> str:
    return _CONTROLS.get(found[1], found[1])
