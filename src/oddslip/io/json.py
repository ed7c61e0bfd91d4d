"""JSON with a limit of depth and, for our own documents, a checksum of the content.

A number that changed on disk is still JSON. So documents that we write and read again carry the
SHA-256 of their content, in one fixed spelling.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oddslip.io.files import hash_bytes
from oddslip.io.inputs import read_bytes

CHECKSUM = "sha256"
MAX_DEPTH = 64  # our own documents are less than ten levels deep


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text, with a limit of depth.

    Parameters
    ----------
    text : str or bytes

    Returns
    -------
    JSON value

    Raises
    ------
    ValueError
        If it is not JSON, or nested too deeply.

    Examples
    --------
    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    return value


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += [part for part in each.values() if isinstance(part, dict | list)]
            elif isinstance(each, list):
                inner += [part for part in each if isinstance(part, dict | list)]
        if not inner:
            return
        level = inner
    raise ValueError("it is nested too deeply")


def read_json(path: Path) -> Any:
    """Parse a JSON file; ValueError if it is not JSON."""
    return parse_json(read_bytes(path).decode("utf-8"))


def with_checksum(content: Mapping[str, object]) -> dict[str, Any]:
    """Add a checksum to a document.

    Parameters
    ----------
    content : mapping of JSON values without NaN

    Returns
    -------
    dict
        The content as plain JSON values, and the key ``sha256``.

    Examples
    --------
    >>> document = with_checksum({"seed": 42})
    >>> verify_checksum(document)
    {'seed': 42}
    """
    plain: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    return {**plain, CHECKSUM: _digest(plain)}


def verify_checksum(document: object, *, required: bool = True) -> dict[str, Any]:
    """Compare a document with its checksum, and return its content.

    Parameters
    ----------
    document : dict
    required : bool
        Whether the checksum must be there, which documents of earlier versions lack. If it is
        there it must agree.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If the checksum does not agree.

    Examples
    --------
    >>> verify_checksum({"seed": 42}, required=False)
    {'seed': 42}
    """
    if not isinstance(document, dict):
        raise ValueError("it must be a table")
    content = {key: value for key, value in document.items() if key != CHECKSUM}
    if (CHECKSUM in document or required) and document.get(CHECKSUM) != _digest(content):
        raise ValueError("its checksum does not agree")
    return content


def _digest(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hash_bytes(text.encode())
