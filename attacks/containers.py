"""Containers taken apart and put together again, with right checksums around any contents."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import Any

MAGIC = b"oddslip\0"
VERSION = 3
START = struct.Struct("<8sIQ")
ALIGNMENT = 64

Bodies = dict[str, bytes]


def take_apart(raw: bytes) -> tuple[dict[str, Any], Bodies]:
    """The header of a good container, and the bytes of its members, unpacked."""
    _, _, length = START.unpack_from(raw)
    end = START.size + length
    header = json.loads(raw[START.size : end])
    first = end + 32 + -(end + 32) % ALIGNMENT
    bodies = {}
    for entry in header["members"]:
        start = first + entry["offset"]
        body = raw[start : start + entry["bytes"]]
        bodies[entry["name"]] = zlib.decompress(body) if entry["encoding"] else body
    return header, bodies


def put_together(
    header: Any, bodies: Bodies, *, adjust: bool = True, version: int = VERSION
) -> bytes:
    """A container with right checksums.

    Parameters
    ----------
    header : JSON value, or bytes in its place
    bodies : dict of bytes
        Written without compression, in their order.
    adjust : bool
        Whether to list the offsets, sizes and digests of the bodies in the header.
    version : int
    """
    if adjust and isinstance(header, dict):
        header = {**header, "members": list_members(header.get("members"), bodies)}
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    head = START.pack(MAGIC, version, len(text)) + text
    pieces = [head + hashlib.sha256(head).digest(), *bodies.values()]
    return b"".join(piece + bytes(-len(piece) % ALIGNMENT) for piece in pieces)


def list_members(entries: Any, bodies: Bodies) -> list[Any]:
    """Entries of these bodies: types and shapes as they were, sizes and digests put right."""
    before = {}
    if isinstance(entries, list):
        named = [entry for entry in entries if isinstance(entry, dict)]
        before = {entry.get("name"): entry for entry in named if type(entry.get("name")) is str}
    offset, listed = 0, []
    for name, body in bodies.items():
        size = {"offset": offset, "bytes": len(body), "encoding": None}
        entry = {"dtype": None, **before.get(name, {}), "name": name, **size}
        if entry["dtype"] is None:
            entry["shape"] = [len(body)]
        listed.append({**entry, "sha256": hashlib.sha256(body).hexdigest()})
        offset += len(body) + -len(body) % ALIGNMENT
    return listed


def put_together_version_2(meta: Any, members: list[Any], bodies: Bodies) -> bytes:
    """A repair as versions 0.1 and 0.2 wrote it, with a right checksum."""
    listed = [[entry["name"], entry["dtype"], entry["shape"]] for entry in members]
    header = {"arrays": listed, **meta} if isinstance(meta, dict) else meta
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    raw = START.pack(MAGIC, 2, len(text)) + text + b"".join(bodies.values())
    return raw + hashlib.sha256(raw).digest()
