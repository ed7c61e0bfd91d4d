"""The label list of a MULAN data set, and which columns are labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mulan.arff import Arff, Attribute
from experiments.datasets.mulan.files import MulanFiles
from oddslip.errors import UnreadableFile
from oddslip.io.files import hash_bytes

_LARGEST_LIST = 1 << 26  # bytes


class LabelList(NamedTuple):
    """Names of the labels, in the order of the file, and the file's SHA-256."""

    names: tuple[str, ...]
    sha256: str


class FormatError(Exception):
    """What is wrong, at the place where the parser stands."""


def read_label_list(path: str | os.PathLike[str]) -> LabelList:
    """Read ``<labels><label name="..."/></labels>``.

    Labels inside labels, a hierarchy, are listed in the order in which they open.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "tiny.xml"
    >>> _ = path.write_text('<labels><label name="a"><label name="b"/></label></labels>')
    >>> read_label_list(path).names
    ('a', 'b')
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST_LIST + 1)
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read ({error.strerror}).") from error
    if len(raw) > _LARGEST_LIST:
        raise UnreadableFile(f"{path} must be at most {_LARGEST_LIST} bytes long.")
    parser = expat.ParserCreate(namespace_separator=" ")
    names: dict[str, None] = {}

    def open_element(tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        name = attributes.get("name", "")
        if tag == "labels" and not names:
            return
        if tag != "label" or not name:
            raise FormatError(f'it must hold <label name="..."> elements only, got <{tag[:40]}>')
        if name in names:
            raise FormatError(f"labels must have different names, got {name[:40]!r} twice")
        names[name] = None

    def refuse_declarations(*_: object) -> None:
        # Entities can grow without bound or point at other files. No label list needs them.
        raise FormatError("a label list must not declare a document type or entities")

    parser.StartElementHandler = open_element
    parser.StartDoctypeDeclHandler = refuse_declarations
    parser.EntityDeclHandler = refuse_declarations
    try:
        parser.Parse(raw, True)
        if not names:
            raise FormatError("it must list at least one label, got none")
    except FormatError as refused:
        raise UnreadableFile(f"{path}, line {parser.CurrentLineNumber}: {refused}.") from None
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise UnreadableFile(f"{path}, line {error.lineno}: not a whole XML ({reason}).") from None
    except (LookupError, ValueError) as error:  # an encoding that expat cannot have
        raise UnreadableFile(f"{path}, line 1: not a readable XML ({error}).") from None
    return LabelList(tuple(names), hash_bytes(raw))


_TRUTHS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def check_alike(train: Arff, test: Arff, files: MulanFiles) -> None:
    """Refuse a test file whose columns are not those of the training file."""
    if len(train.attributes) != len(test.attributes):
        raise UnreadableFile(
            f"{files.test} must declare the {len(train.attributes)} attributes of "
            f"{files.train.name}, got {len(test.attributes)}."
        )
    for ours, theirs in zip(train.attributes, test.attributes, strict=True):
        if (ours.name, ours.values) != (theirs.name, theirs.values):
            raise UnreadableFile(
                f"{files.test} must declare the attributes of {files.train.name} in the same way "
                f"and order, but {ours.name[:40]!r} there is {theirs.name[:40]!r} here"
                + (" with other values." if ours.name == theirs.name else ".")
            )


def match_labels(
    attributes: Sequence[Attribute],
    label_names: Sequence[str],
    files: MulanFiles,
    *,
    literally: bool,
) -> tuple[dict[int, str], tuple[str, ...]]:
    """Columns of the labels with their listed names, and listed names without a column."""
    remaining, columns = set(label_names), {}
    for column, attribute in enumerate(attributes):
        for name in (attribute.literal,) if literally else (attribute.name, attribute.literal):
            if name in remaining:
                columns[column] = name
                remaining.remove(name)
                break
    if not columns or (remaining and not literally):
        unmatched = next(name for name in label_names if name in remaining)
        raise UnreadableFile(
            f"{files.labels} must list attributes of {files.train.name}, got {unmatched[:40]!r}, "
            "which is none."
        )
    return columns, tuple(name for name in label_names if name in remaining)


def take_columns(arff: Arff, columns: Sequence[int]) -> Any:
    """Some columns of the cells, as a copy: row by row in memory, or sparse if the file is."""
    if isinstance(arff.cells, np.ndarray):
        return arff.cells.take(columns, axis=1)
    return arff.cells[:, columns]


def read_labels(arff: Arff, columns: Sequence[int], path: Path) -> NDArray[np.bool_]:
    """Label cells as truths. A nominal label is what its value says, whatever its position."""
    cells = take_columns(arff, columns)
    cells = cells if isinstance(cells, np.ndarray) else cells.tocsc()  # a label at a time is dense
    truths = np.empty(cells.shape, np.bool_)
    for label, column in enumerate(columns):
        attribute, codes = arff.attributes[column], cells[:, [label]]
        codes = (codes if isinstance(codes, np.ndarray) else codes.toarray())[:, 0]
        values = ("0", "1") if attribute.values is None else attribute.values
        meanings = [_TRUTHS.get(value.lower()) for value in values]
        valid = [code for code, truth in enumerate(meanings) if truth is not None]
        strange = ~np.isin(codes, valid)
        if strange.any():
            row = int(np.flatnonzero(strange)[0])
            cell = _name_cell(codes[row], attribute)
            raise UnreadableFile(
                f"{path}: label {attribute.name[:40]!r} must be 0 or 1, got {cell} in data row "
                f"{row}."
            )
        truths[:, label] = np.isin(codes, [code for code, truth in enumerate(meanings) if truth])
    return truths


def _name_cell(code: float, attribute: Attribute) -> str:
    if np.isnan(code):
        return "a missing value"
    return f"{code:g}" if attribute.values is None else repr(attribute.values[int(code)])
