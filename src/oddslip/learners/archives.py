"""A trained model in one file: a zip of JSON and of the groups as their learner writes them.

Every group carries its SHA-256. Nothing is pickled, so nothing in the file is ever run.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from typing import Any

from oddslip.errors import UnreadableFile
from oddslip.sources.sinks import whole_file

FORMAT = 1
_HEAD = "model.json"
_DAMAGED = (OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)


def write_archive(
    path: str | os.PathLike[str], head: dict[str, Any], groups: dict[str, bytes]
) -> None:
    """Write the head and the named groups, whole or not at all."""
    sums = {name: hashlib.sha256(body).hexdigest() for name, body in groups.items()}
    text = json.dumps({"format": FORMAT, "sha256": sums, **head}, allow_nan=False)
    with (
        whole_file(path) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        for name, body in {_HEAD: text.encode(), **groups}.items():
            # A fixed date: the same model gives the same bytes.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), body, _method(name))


def _method(name: str) -> int:
    return zipfile.ZIP_DEFLATED if name.endswith((".json", ".txt")) else zipfile.ZIP_STORED


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[bytes]]:
    """The head and the groups, in their order, each checked against its SHA-256."""
    try:
        with zipfile.ZipFile(path) as archive:
            head: dict[str, Any] = json.loads(archive.read(_HEAD))
            if head["format"] != FORMAT:
                raise UnreadableFile(
                    f"{path} has format {head['format']}, this version reads {FORMAT}. "
                    "Update oddslip."
                )
            groups = []
            for name, digest in head["sha256"].items():
                body = archive.read(name)
                if hashlib.sha256(body).hexdigest() != digest:
                    raise UnreadableFile(f"{path} was altered: {name} does not match its checksum.")
                groups.append(body)
    except UnreadableFile:
        raise
    except FileNotFoundError as error:
        raise UnreadableFile(f"{path} does not exist.") from error
    except _DAMAGED as error:
        raise UnreadableFile(f"{path} is cut short or not a saved model ({error}).") from error
    return head, groups
