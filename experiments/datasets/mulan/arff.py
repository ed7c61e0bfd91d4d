"""Strict reader of dense and sparse ARFF files, based on liac-arff.

liac-arff also accepts invalid files: a repeated index, a sparse row among dense ones, an empty
value, NaN, ``1_0``. It takes hours for an unclosed list of 40 values, and drops a quote at the end
of a name. So declarations are parsed here, liac-arff splits rows into text, and values are
converted here.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from experiments.datasets.extras import data_extra
from oddslip.errors import InvalidInput, UnreadableFile

Missing = Literal["error", "nan"]

_MAX_LINE_BYTES = 1 << 26  # bytes; longer lines must not fill the memory
_NUMERIC = ("numeric", "real", "integer")

# Each pattern is unrolled, so that a long quoted value costs one step per character.
_QUOTED = r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*\""""
_KEYWORD = re.compile(r"@(relation|attribute|data)(?:\s+|$)", re.ASCII | re.IGNORECASE)
_NAME = re.compile(rf"({_QUOTED}|[^\s{{'\"][^\s{{]*)\s*")
_ITEM = re.compile(rf"\s*({_QUOTED}|[^\s,}}'\"][^,}}]*)\s*([,}}])")
_QUOTES = re.compile(rf"{_QUOTED}|(['\"].*)")  # an open quote takes the rest, so it is met once
_COMMENT = re.compile(rf"((?:[^'\"%]|{_QUOTED}|(?<!\s)(?<!^)%)*)(?:(?<=\s)|^)%")
_EMPTY = re.compile(r"(?:^|,)\s*(?:,|$)")
_INDEX = re.compile(r"[{,]\s*([^\s,}]+)")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


class Attribute(NamedTuple):
    """One declared column."""

    name: str
    literal: str  # the name as it stands in the file, escapes kept, without its outer quotes
    values: tuple[str, ...] | None  # of a nominal attribute, coded by position; None if numeric


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
    try:
        "".encode(encoding)
        with path.open("rb") as file:
            lines = _Lines(file, encoding)
            relation, attributes = _read_header(lines)
            cells = _read_rows(lines, attributes, keep_missing=missing == "nan")
    except FormatError as fault:
        raise UnreadableFile(f"{path}, line {max(lines.number, 1)}: {fault}.") from None
    except LookupError:
        raise InvalidInput(f"encoding must be one that Python knows, got {encoding!r}.") from None
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read ({error.strerror}).") from error
    return Arff(relation, attributes, cells, lines.digest.hexdigest())


class FormatError(Exception):
    """Error in the current line. The reader adds the file and the line number."""


class _Lines:
    """Lines of a file without outer spaces and comments; skips empty ones."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self.file, self.encoding = file, encoding
        self.number, self.line, self.digest = 0, "", hashlib.sha256()

    def __iter__(self) -> Iterator[str]:
        while raw := self.file.readline(_MAX_LINE_BYTES + 1):
            self.number += 1
            self.line = self._decode(raw)
            if "%" in self.line and (comment := _COMMENT.match(self.line)):
                self.line = comment[1].rstrip()
            if self.line:
                yield self.line

    def _decode(self, raw: bytes) -> str:
        if len(raw) > _MAX_LINE_BYTES:
            raise FormatError(f"a line must be at most {_MAX_LINE_BYTES} bytes long")
        self.digest.update(raw)
        if b"\0" in raw:
            raise FormatError("the file must be text, got a zero byte")
        try:
            line = raw.decode(self.encoding)
        except UnicodeError:
            raise FormatError(
                f"the file must be text in {self.encoding}. Pass another encoding if it has one"
            ) from None
        return (line.removeprefix("\ufeff") if self.number == 1 else line).strip()


# ------------------------------------------------------------------------------------ declarations


def _read_header(lines: Iterable[str]) -> tuple[str, tuple[Attribute, ...]]:
    """The relation's name and the attributes, from the lines up to ``@data``."""
    relation, attributes = "", dict[str, Attribute]()
    for line in lines:
        match = _KEYWORD.match(line)
        if match is None:
            raise FormatError(
                f"a line before @data must be @relation or @attribute, got {_show(line)}"
            )
        keyword, rest = match[1].lower(), line[match.end() :]
        if keyword == "data":
            _expect_end(rest)
            if not attributes:
                raise FormatError("@data must follow at least one @attribute, got none")
            return relation, tuple(attributes.values())
        name, literal, kind = _take_name(rest)
        if keyword == "relation":
            relation = name
        elif name in attributes:
            raise FormatError(f"attributes must have different names, got {_show(name)} twice")
        else:
            attributes[name] = Attribute(name, literal, _read_kind(kind, name))
    raise FormatError("the file must have a line @data, but it ends here")


def _take_name(text: str) -> tuple[str, str, str]:
    """A name, how it stands in the file, and what follows it."""
    match = _NAME.match(text)
    if match is None:
        _check_quotes(text)
        raise FormatError(f"a name must not be empty, got {_show(text)}")
    token = match[1]
    return _unquote(token), token[1:-1] if token[0] in "'\"" else token, text[match.end() :]


def _read_kind(text: str, name: str) -> tuple[str, ...] | None:
    """The values of a nominal attribute, or None of a numeric one."""
    word = text.split(maxsplit=1)[0] if text else "nothing"
    if word.lower() in _NUMERIC:
        _expect_end(text[len(word) :])
        return None
    if not text.startswith("{"):
        kind = _show(text) if text else word
        raise FormatError(
            f"attribute {_show(name)} must be numeric, real, integer or a list {{a, b}}, got {kind}"
        )
    values: dict[str, None] = {}
    at, mark = 1, ","
    while mark == ",":
        match = _ITEM.match(text, at)
        if match is None:
            _check_quotes(text[at:])
            problem = _show(text[at:]) if text[at:] else "the end of the line"
            raise FormatError(
                "nominal values must not be empty, and be separated by commas up to a brace, "
                f"got {problem}"
            )
        value = _unquote(match[1].rstrip())
        if value in values:
            raise FormatError(f"nominal values must be different, got {_show(value)} twice")
        values[value] = None
        at, mark = match.end(), match[2]
    _expect_end(text[at:])
    return tuple(values)


def _expect_end(text: str) -> None:
    if text.strip():
        raise FormatError(f"the declaration must end here, got {_show(text.strip())}")


def _check_quotes(text: str) -> None:
    """Reject a quote that is not closed."""
    for match in _QUOTES.finditer(text):
        if match[1]:
            raise FormatError(f"a quote must be closed on its line, got {_show(match[1])}")


def _unquote(token: str) -> str:
    """What a token means: escapes count in quotes only, and as liac-arff reads them in rows."""
    if token[0] not in "'\"":
        return token
    return str(next(_split_rows([token], 1, sparse=False))[0]) if "\\" in token else token[1:-1]


def _show(text: str, longest: int = 40) -> str:
    """A piece of a line for a message: quoted, on one line, not too long."""
    return repr(text if len(text) <= longest else text[: longest - 3] + "...")


# -------------------------------------------------------------------------------------------- rows


def _read_rows(lines: _Lines, attributes: Sequence[Attribute], *, keep_missing: bool) -> Any:
    """All rows, as an array or as a CSR matrix without stored zeros."""
    rest = iter(lines)
    first = list(islice(rest, 1))
    sparse = bool(first) and first[0].startswith("{")
    columns = _Columns(attributes, keep_missing)
    indptr, indices, values = array("q", [0]), array("i"), array("d")
    for row in _split_rows(chain(first, rest), len(attributes), sparse=sparse):
        if sparse:
            order = sorted(row)
            _check_indices(lines.line, len(attributes), n_found=len(row))
            values.fromlist(columns.convert(order, [row[at] for at in order], lines.line))
            indices.fromlist(order)
            indptr.append(len(indices))
        else:
            values.fromlist(columns.convert(columns.all, row, lines.line))
    cells = np.frombuffer(values, np.float64)
    if not sparse:
        return cells.reshape(-1, len(attributes))
    parts = cells, np.frombuffer(indices, np.int32), np.frombuffer(indptr, np.int64)
    table = csr_matrix(parts, shape=(len(indptr) - 1, len(attributes)), copy=True)
    table.eliminate_zeros()
    return table


def _split_rows(lines: Iterable[str], n_columns: int, *, sparse: bool) -> Iterator[Any]:
    """Texts of each row by liac-arff: a list, or a dictionary by index; None where it is missing.

    All columns are declared as text, since its numbers are too lenient: it cuts 1.5 to an integer.
    """
    with data_extra("read_arff()", "liac-arff"):
        import arff
    line = ""

    def checked_lines() -> Iterator[str]:
        nonlocal line
        for line in lines:
            if line.startswith("{") != sparse:
                problem = (
                    "a dense row among sparse ones" if sparse else "a sparse row among dense ones"
                )
                raise FormatError(f"rows must be all dense or all sparse, got {problem}")
            yield line

    head = ["@relation r", *(f"@attribute c{at} string" for at in range(n_columns)), "@data"]
    kind = arff.LOD_GEN if sparse else arff.DENSE_GEN
    try:
        yield from arff.ArffDecoder().decode(chain(head, checked_lines()), return_type=kind)["data"]
    except (arff.ArffException, csv.Error, ValueError):  # its messages name neither line nor remedy
        _check_quotes(line)
        if sparse:
            _check_indices(line, n_columns)
            rule = "a sparse row must hold pairs, {index value, ...}"
        elif (n_values := _QUOTES.sub("q", line).count(",") + 1) != n_columns:
            raise FormatError(
                f"a row must have one value for each of the {n_columns} attributes, got {n_values}"
            ) from None
        else:
            rule = "values must be separated by commas, those with spaces quoted"
        raise FormatError(f"{rule}, got {_show(line)}") from None


def _check_indices(line: str, n_columns: int, n_found: int = -1) -> None:
    """Refuse indices of a sparse row that liac-arff lets pass: of one given twice, it keeps one."""
    if _is_plain(line) and n_found == (line.count(",") + 1 if n_found else 0):
        return
    indices = set()
    for index in _INDEX.findall(_QUOTES.sub("q", line)):
        # The length is looked at first: Python refuses to read thousands of digits.
        if index.isdecimal() and (len(index) > 18 or int(index) >= n_columns):
            problem = _show(index)[1:-1]
            raise FormatError(
                f"a sparse index must be below the number of attributes, {n_columns}, got {problem}"
            )
        if not index.isdecimal() or not index.isascii():
            raise FormatError(
                f"a sparse row must hold pairs, {{index value, ...}}, got {_show(line)}"
            )
        if int(index) in indices:
            raise FormatError(f"sparse indices must be different within a row, got {index} twice")
        indices.add(int(index))


class _Columns:
    """Converts text to numbers: nominal values by their position in the declared list."""

    def __init__(self, attributes: Sequence[Attribute], keep_missing: bool) -> None:
        self.attributes, self.keep_missing = attributes, keep_missing
        self.all = range(len(attributes))
        self.codes = [
            None if each.values is None else {v: float(at) for at, v in enumerate(each.values)}
            for each in attributes
        ]
        self.converters: list[Callable[[Any], float]] = [
            float if codes is None else codes.__getitem__ for codes in self.codes
        ]

    def convert(
        self, columns: Sequence[int], texts: Sequence[str | None], line: str
    ) -> list[float]:
        """Numbers of the texts in some columns of a line."""
        if _is_plain(line):
            converters = self.converters
            try:
                row = [converters[at](text) for at, text in zip(columns, texts, strict=True)]
                if math.isfinite(sum(row)):
                    return row
            except (KeyError, TypeError, ValueError):
                pass
        if None in texts and _EMPTY.search(_QUOTES.sub("q", line)):
            raise FormatError(f"a value must not be empty, got {_show(line)}")
        return [self._convert(text, at) for at, text in zip(columns, texts, strict=True)]

    def _convert(self, text: str | None, column: int) -> float:
        codes, name = self.codes[column], _show(self.attributes[column].name)
        if text is None:
            if self.keep_missing:
                return math.nan
            raise FormatError(
                f'attribute {name} has a missing value. Pass missing="nan" to keep it'
            )
        if codes is None:
            value = float(text) if _NUMBER.fullmatch(text) else math.nan
            if not math.isfinite(value):
                raise FormatError(f"attribute {name} must be a finite number, got {_show(text)}")
            return value
        if text not in codes:
            declared = ", ".join(list(codes)[:5]) + (", ..." if len(codes) > 5 else "")
            raise FormatError(
                f"attribute {name} must be one of {_show('{' + declared + '}', 60)}, "
                f"got {_show(text)}"
            )
        return codes[text]


def _is_plain(line: str) -> bool:
    # Python reads 1_000 and digits of other scripts as numbers; ARFF does not.
    return line.isascii() and not any(mark in line for mark in "'\"_")
