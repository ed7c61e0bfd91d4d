"""Fetching the paper's data sets from the public home of MULAN, checked byte for byte."""

from __future__ import annotations

import hashlib
import os
import secrets
from http.client import HTTPException
from pathlib import Path
from typing import Any

from oddslip.datasets.files import MulanFiles, default_cache, list_files
from oddslip.datasets.pins import HOME, PINS, PinnedFile
from oddslip.errors import InvalidInput, UnreadableFile

_SECONDS = 30  # without an answer


def fetch_mulan(name: str, *, into: str | os.PathLike[str] | None = None) -> MulanFiles:
    """Fetch one of the paper's data sets. What is already there, and whole, is not fetched again.

    Parameters
    ----------
    name : str
        One of the eleven, such as ``"emotions"``.
    into : path, optional
        A folder, in which the set gets a folder of its own. By default this user's cache, where
        `find_data` looks.

    Examples
    --------
    >>> fetch_mulan("emotions").train.name  # doctest: +SKIP
    'emotions-train.arff'
    """
    key = name.lower()
    if key not in PINS:
        raise InvalidInput(f"name must be one of {', '.join(PINS)}, got {name!r}.")
    folder = (default_cache() / "mulan" if into is None else Path(into)) / key
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableFile(f"{folder} can not be made ({error.strerror}).") from error
    for file in PINS[key].files:
        if not _is_whole(folder / file.name, file):
            _fetch_file(f"{HOME}/{key}/{file.name}", folder / file.name, file)
    return list_files(folder, Path(PINS[key].labels.name).stem)


def _fetch_file(url: str, path: Path, file: PinnedFile) -> None:
    """Whole and right, or not at all: the name appears once every byte has been checked."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with unfinished.open("xb") as out:
            raw = _download(url, file, path.parent)
            out.write(raw)
            out.flush()
            os.fsync(out.fileno())
        os.replace(unfinished, path)
    except UnreadableFile:
        raise
    except OSError as error:
        raise UnreadableFile(f"{path} can not be written ({error.strerror}).") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _download(url: str, file: PinnedFile, folder: Path) -> bytes:
    try:
        with _open_url(url) as answer:
            raw: bytes = answer.read(file.size + 1)  # one more shows that it is too long
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise UnreadableFile(
            f"{url} could not be fetched ({reason}). Without a network, put {file.name} into "
            f"{folder}, or point ODDSLIP_DATA at a folder that holds the set."
        ) from error
    if len(raw) != file.size:
        came = f"more than {file.size}" if len(raw) > file.size else str(len(raw))
        raise UnreadableFile(
            f"{url} must have {file.size} bytes, got {came}. Nothing was kept; try again."
        )
    if (came := hashlib.sha256(raw).hexdigest()) != file.sha256:
        raise UnreadableFile(
            f"{url} must have SHA-256 {file.sha256}, got {came}. Nothing was kept; "
            "the file or the way to it was altered."
        )
    return raw


def _open_url(url: str) -> Any:
    from urllib.request import urlopen

    return urlopen(url, timeout=_SECONDS)


def _is_whole(path: Path, file: PinnedFile) -> bool:
    try:
        if path.stat().st_size != file.size:
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    except OSError:
        return False
