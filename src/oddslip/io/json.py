"""JSON from outside: bounded in depth, and sealed by a checksum of what it says.

A number that changed on disk is still JSON. So what we write and read again carries the SHA-256
of its content in one fixed spelling, and what does not agree with it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oddslip.io.files import hash_bytes
from oddslip.io.inputs import read_bytes

SEAL = "sha256"
DEEPEST = 64  # what we write is less than ten deep


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says; a ValueError where it is none, or nested deeper than ours ever is.

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
    if raw.count(b"[") + raw.count(b"{") > DEEPEST:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
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
    """What a JSON file says; a ValueError where it is none."""
    return parse_json(read_bytes(path).decode("utf-8"))


def with_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same content as plain JSON values, and its checksum.

    Examples
    --------
    >>> document = with_checksum({"seed": 42})
    >>> verify_checksum(document)
    {'seed': 42}
    """
    plain: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    return {**plain, SEAL: _digest(plain)}


def verify_checksum(document: Any, *, needed: bool = True) -> dict[str, Any]:
    """The content of a sealed document; a ValueError where it is not what was sealed.

    Files of earlier versions have no seal: pass ``needed=False`` where one may be missing. One
    that is there is always compared.
    """
    if not isinstance(document, dict):
        raise ValueError("it must be a table")
    content = {key: value for key, value in document.items() if key != SEAL}
    if (SEAL in document or needed) and document.get(SEAL) != _digest(content):
        raise ValueError("its checksum does not agree")
    return content


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hash_bytes(text.encode())
