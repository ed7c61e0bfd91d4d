"""The XML label list of a MULAN data set."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from oddslip.errors import UnreadableFile

_LARGEST_LIST = 1 << 26  # bytes


class LabelList(NamedTuple):
    """Names of the labels, in the order of the file, and the file's SHA-256."""

    names: tuple[str, ...]
    sha256: str


class _Refused(Exception):  # noqa: N818
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
        raise UnreadableFile(f"{path} can not be read ({error.strerror}).") from error
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
            raise _Refused(f'it must hold <label name="..."> elements only, got <{tag[:40]}>')
        if name in names:
            raise _Refused(f"labels must have different names, got {name[:40]!r} twice")
        names[name] = None

    def refuse_declarations(*_: object) -> None:
        # Entities can grow without bound or point at other files. No label list needs them.
        raise _Refused("a label list must not declare a document type or entities")

    parser.StartElementHandler = open_element
    parser.StartDoctypeDeclHandler = refuse_declarations
    parser.EntityDeclHandler = refuse_declarations
    try:
        parser.Parse(raw, True)
        if not names:
            raise _Refused("it must list at least one label, got none")
    except _Refused as refused:
        raise UnreadableFile(f"{path}, line {parser.CurrentLineNumber}: {refused}.") from None
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise UnreadableFile(f"{path}, line {error.lineno}: not a whole XML ({reason}).") from None
    except (LookupError, ValueError) as error:  # an encoding that expat can not have
        raise UnreadableFile(f"{path}, line 1: not a readable XML ({error}).") from None
    return LabelList(tuple(names), hashlib.sha256(raw).hexdigest())
