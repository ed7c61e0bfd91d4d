"""ARFF files, dense or sparse, read line by line."""

from __future__ import annotations

import hashlib
import math
import os
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, NoReturn

import numpy as np
from scipy.sparse import csr_matrix

from oddslip.errors import InvalidInput, UnreadableFile

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


_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INDEX = re.compile(r"(\d+)\s+", re.ASCII)


class Cells:
    """What both kinds of rows share: how a token becomes a number."""

    def __init__(self, attributes: Sequence[Attribute], keep_missing: bool) -> None:
        self.attributes = attributes
        self.keep_missing = keep_missing
        codes = [_code_values(attribute) for attribute in attributes]
        self.codes = codes
        self.converters: list[Callable[[str], float]] = [
            float if code is None else _plain_codes(code).__getitem__ for code in codes
        ]

    def convert(self, token: Token, column: int) -> float:
        """The number of a token: its position if nominal, NaN if missing."""
        code, name = self.codes[column], show(self.attributes[column].name)
        if token.is_missing:
            if self.keep_missing:
                return math.nan
            raise Fault(f'attribute {name} has a missing value. Pass missing="nan" to keep it')
        if code is None:
            value = float(token.text) if _NUMBER.fullmatch(token.text) else math.nan
            if not math.isfinite(value):
                raise Fault(f"attribute {name} must be a finite number, got {show(token.text)}")
            return value
        if token.text not in code:
            declared = ", ".join(list(code)[:5]) + (", ..." if len(code) > 5 else "")
            raise Fault(
                f"attribute {name} must be one of {show('{' + declared + '}', 60)}, "
                f"got {show(token.text)}"
            )
        return code[token.text]


class DenseRows(Cells):
    """Rows with one value per attribute, separated by commas."""

    def __init__(self, attributes: Sequence[Attribute], keep_missing: bool) -> None:
        super().__init__(attributes, keep_missing)
        self.cells = array("d")

    def add(self, line: str) -> None:
        """Take one row."""
        if line.startswith("{"):
            raise Fault("rows must be all dense or all sparse, got a sparse row among dense ones")
        self.cells.fromlist(self._read_plain(line) or self._read_with_care(line))

    def result(self) -> Any:
        """All rows as an array of shape (rows, attributes)."""
        return np.frombuffer(self.cells, np.float64).reshape(-1, len(self.attributes))

    def _read_plain(self, line: str) -> list[float] | None:
        if not _is_plain(line):
            return None
        values = line.split(",")
        if len(values) != len(self.converters):
            return None
        try:
            row = [convert(value) for convert, value in zip(self.converters, values, strict=True)]
        except (KeyError, ValueError):
            return None
        return row if math.isfinite(sum(row)) else None

    def _read_with_care(self, line: str) -> list[float]:
        tokens, at = [], 0
        while True:
            token, at = take_token(line, at, BARE_CELL)
            tokens.append(token)
            if at == len(line) or line[at] == "%":
                break
            if line[at] != ",":
                raise Fault(f"values must be separated by commas, got {show(line[at:])}")
            at += 1
        if len(tokens) != len(self.attributes):
            raise Fault(
                f"a row must have one value for each of the {len(self.attributes)} attributes, "
                f"got {len(tokens)}"
            )
        return [self.convert(token, column) for column, token in enumerate(tokens)]


class SparseRows(Cells):
    """Rows of pairs ``{index value, ...}``. An attribute left out is 0, or its first value."""

    def __init__(self, attributes: Sequence[Attribute], keep_missing: bool) -> None:
        super().__init__(attributes, keep_missing)
        self.indptr, self.indices, self.values = array("q", [0]), array("i"), array("d")

    def add(self, line: str) -> None:
        """Take one row."""
        if not line.startswith("{"):
            raise Fault("rows must be all dense or all sparse, got a dense row among sparse ones")
        indices, values = self._read_plain(line) or self._read_with_care(line)
        self.indices.fromlist(indices)
        self.values.fromlist(values)
        self.indptr.append(len(self.indices))

    def result(self) -> Any:
        """All rows as a scipy CSR matrix of shape (rows, attributes), without stored zeros."""
        parts = (self.values, np.float64), (self.indices, np.int32), (self.indptr, np.int64)
        arrays = tuple(np.frombuffer(part, dtype) for part, dtype in parts)
        rows = csr_matrix(arrays, shape=(len(self.indptr) - 1, len(self.attributes)), copy=True)
        rows.eliminate_zeros()
        return rows

    def _read_plain(self, line: str) -> tuple[list[int], list[float]] | None:
        if not _is_plain(line) or not line.endswith("}"):
            return None
        try:
            pairs = [item.split() for item in line[1:-1].split(",")]
            indices = [int(index) for index, _ in pairs]
            if indices[0] < 0 or any(a >= b for a, b in pairwise(indices)):
                return None
            converters = self.converters
            values = [converters[at](pair[1]) for at, pair in zip(indices, pairs, strict=True)]
        except (IndexError, KeyError, ValueError):
            return None
        return (indices, values) if math.isfinite(sum(values)) else None

    def _read_with_care(self, line: str) -> tuple[list[int], list[float]]:
        row: dict[int, float] = {}
        at = skip_spaces(line, 1)
        while line[at : at + 1] != "}" or row:
            index, at = self._take_index(line, at)
            if index in row:
                raise Fault(f"sparse indices must be different within a row, got {index} twice")
            token, at = take_token(line, at, BARE_ITEM)
            row[index] = self.convert(token, index)
            if line[at : at + 1] == "}":
                break
            if line[at : at + 1] != ",":
                _complain_unclosed(line, at)
            at = skip_spaces(line, at + 1)
        at = skip_spaces(line, at + 1)
        if at < len(line) and line[at] != "%":
            raise Fault(f"a sparse row must end at its brace, got {show(line[at:])}")
        indices = sorted(row)
        return indices, [row[index] for index in indices]

    def _take_index(self, line: str, at: int) -> tuple[int, int]:
        found = _INDEX.match(line, at)
        if found is None:
            if at >= len(line):
                _complain_unclosed(line, at)
            raise Fault(f"a sparse row must hold pairs 'index value', got {show(line[at:])}")
        # The length is checked first: Python refuses to read thousands of digits.
        digits = found[1].lstrip("0") or "0"
        if len(digits) > 18 or int(digits) >= len(self.attributes):
            raise Fault(
                f"a sparse index must be below the number of attributes, "
                f"{len(self.attributes)}, got {show(digits)[1:-1]}"
            )
        return int(digits), found.end()


def _complain_unclosed(line: str, at: int) -> NoReturn:
    came = show(line[at:]) if at < len(line) else "the end of the line"
    raise Fault(f"a sparse row must go on with a comma or end with a brace, got {came}")


def _code_values(attribute: Attribute) -> dict[str, float] | None:
    if attribute.values is None:
        return None
    return {value: float(code) for code, value in enumerate(attribute.values)}


def _plain_codes(codes: dict[str, float]) -> dict[str, float]:
    """The codes without those values that mean something else when they stand bare."""
    return {value: code for value, code in codes.items() if value != "?" and value == value.strip()}


def _is_plain(line: str) -> bool:
    # Python reads 1_000 and digits of other scripts as numbers; ARFF does not.
    return line.isascii() and not any(mark in line for mark in "'\"%_")


_LONGEST_LINE = 1 << 26  # bytes; a longer one is no table of ours, and must not fill the memory

Missing = Literal["error", "nan"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arff:
    """An ARFF file: what it declares and its cells.

    Attributes
    ----------
    relation : str
        Name of the relation.
    attributes : tuple
        Name, and the declared values if it is nominal, of each column.
    cells : numpy.ndarray or scipy.sparse.csr_matrix
        Of shape (rows, attributes); sparse if the file is.
    sha256 : str
        Of the bytes that were read.
    """

    relation: str
    attributes: tuple[Attribute, ...]
    cells: Any  # (rows, attributes): a float64 array, or a scipy CSR matrix of a sparse file
    sha256: str  # of the bytes that were read

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes, in the order of the columns."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def nominal(self) -> dict[str, tuple[str, ...]]:
        """Declared values of each nominal attribute. A cell holds a position in this list."""
        return {each.name: each.values for each in self.attributes if each.values is not None}

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self.cells, np.ndarray) else "sparse"
        return f"Arff({self.relation!r}, {kind}, shape={self.cells.shape})"


def read_arff(
    path: str | os.PathLike[str], *, missing: Missing = "error", encoding: str = "utf-8"
) -> Arff:
    """Read an ARFF file of numeric and nominal attributes.

    Parameters
    ----------
    path : path
        A file with dense rows ``1,2,a`` or sparse rows ``{0 1, 2 a}``, not both.
    missing : "error" or "nan"
        What a bare ``?`` is.
    encoding : str
        Of names and nominal values.

    Returns
    -------
    Arff
        Nominal values are coded by their position in the declared list.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "tiny.arff"
    >>> lines = "@relation tiny", "@attribute 'a b' real", "@attribute c {x,y}", "@data", "1.5,y"
    >>> _ = path.write_text("\\n".join(lines))
    >>> read_arff(path).names, read_arff(path).cells
    (('a b', 'c'), array([[1.5, 1. ]]))
    """
    if missing not in ("error", "nan"):
        raise InvalidInput(f'missing must be "error" or "nan", got missing={missing!r}.')
    path = Path(path)
    digest = hashlib.sha256()
    number = 0
    header, rows, ended = Header(), None, False
    try:
        "".encode(encoding)
        with path.open("rb") as file:
            for number, line in _lines(file, digest, encoding):  # noqa: B007
                if not line or line.startswith("%"):
                    continue
                if not ended:
                    ended = header.add(line)
                    continue
                if rows is None:
                    kind = SparseRows if line.startswith("{") else DenseRows
                    rows = kind(header.attributes, missing == "nan")
                rows.add(line)
            if not ended:
                raise Fault("the file must have a line @data, but it ends here")
    except _LineFault as fault:
        raise UnreadableFile(f"{path}, line {fault.number}: {fault}.") from None
    except Fault as fault:
        raise UnreadableFile(f"{path}, line {max(number, 1)}: {fault}.") from None
    except LookupError:
        raise InvalidInput(f"encoding must be one that Python knows, got {encoding!r}.") from None
    except OSError as error:
        raise UnreadableFile(f"{path} can not be read ({error.strerror}).") from error
    if rows is None:
        rows = DenseRows(header.attributes, False)
    return Arff(header.relation, header.attributes, rows.result(), digest.hexdigest())


class _LineFault(Fault):
    """A fault of a line that could not even be handed out."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def _lines(file: BinaryIO, digest: Any, encoding: str) -> Iterator[tuple[int, str]]:
    """Line numbers and lines without outer spaces."""
    number = 0
    while raw := file.readline(_LONGEST_LINE + 1):
        number += 1
        if len(raw) > _LONGEST_LINE:
            raise _LineFault(number, f"a line must be at most {_LONGEST_LINE} bytes long")
        digest.update(raw)
        if b"\0" in raw:
            raise _LineFault(number, "the file must be text, got a zero byte")
        try:
            line = raw.decode(encoding)
        except UnicodeError:
            message = f"the file must be text in {encoding}. Pass another encoding if it has one"
            raise _LineFault(number, message) from None
        yield number, (line.removeprefix("\ufeff") if number == 1 else line).strip()
