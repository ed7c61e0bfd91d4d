"""The rows of an ARFF file: dense ones with a value per attribute, sparse ones with pairs.

Plain lines take a fast way. Whatever fails there, for any reason, is read again with care, and
only that second reading complains: so it alone decides what is right.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import csr_matrix

from oddslip.datasets.arff_headers import Attribute
from oddslip.datasets.arff_tokens import (
    BARE_CELL,
    BARE_ITEM,
    Fault,
    Token,
    show,
    skip_spaces,
    take_token,
)

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
