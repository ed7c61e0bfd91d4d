"""A ZIP archive of trained scores, with a manifest of their origin and SHA-256."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from oddslip.core.provenance import commit, versions
from oddslip.errors import InvalidInput, UnreadableFile, first_line
from oddslip.io.files import atomic_write

MANIFEST = "MANIFEST.json"
SUFFIXES = (".npy", ".npz", ".json")
EXCLUDED_FOLDERS = ("training", "data")  # unfinished models, and data that may not be passed on
_CHUNK_BYTES = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files give the same bytes


def write_archive(work: Path, output: Path) -> dict[str, Any]:
    """Write all finished arrays of a work folder to one .zip, atomically.

    Parameters
    ----------
    work : Path
        Folder of trained scores. Arrays that would need pickle raise.
    output : Path

    Returns
    -------
    dict
        The manifest, which the archive holds too: path, size and SHA-256 of every file.

    Examples
    --------
    >>> write_archive(Path(".work"), Path("scores.zip"))["n_files"]  # doctest: +SKIP
    14
    """
    if not work.is_dir():
        raise InvalidInput(f"work must be a folder of trained scores, got {work}.")
    paths = list(_find(work))
    if not paths:
        raise InvalidInput(f"{work} must hold finished arrays (.npy, .npz), got none. Train first.")
    files = []
    with (
        atomic_write(output) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
    ):
        for path in paths:
            _check_plain(path)
            name = path.relative_to(work).as_posix()
            with path.open("rb") as file, archive.open(_entry(name), "w", force_zip64=True) as to:
                sha256, size = _copy(file, to)
            files.append({"path": name, "bytes": size, "sha256": sha256})
        manifest = {
            "format": "oddslip.archive/1",
            "n_files": len(files),
            "versions": versions(),
            "commit": commit(),
            "files": files,
        }
        archive.writestr(_entry(MANIFEST), json.dumps(manifest, indent=1) + "\n")
    return manifest


def check_archive(path: Path) -> dict[str, Any]:
    """Compare every file of an archive with its manifest, and return the manifest."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest: dict[str, Any] = json.loads(archive.read(MANIFEST))
            files = {each["path"]: (each["sha256"], each["bytes"]) for each in manifest["files"]}
            names = [name for name in archive.namelist() if name != MANIFEST]
            if sorted(names) != sorted(files):
                raise ValueError("its files are not those of its manifest")
            for name in names:
                with archive.open(name) as file:
                    if _copy(file, None) != files[name]:
                        raise ValueError(f"{name!r:.80} is not what the manifest lists")
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise UnreadableFile(
            f"{path} is not an archive of scores, or was altered ({first_line(error)})."
        ) from error
    return manifest


def _find(work: Path) -> Iterator[Path]:
    """Finished arrays and the notes beside them, sorted by path."""
    for path in sorted(work.rglob("*")):
        folders = path.relative_to(work).parts[:-1]
        hidden = any(part.startswith(".") for part in path.relative_to(work).parts)
        if path.is_file() and path.suffix in SUFFIXES and not hidden:
            finished = path.suffix != ".npy" or (path.parent / "finished.json").exists()
            if finished and not set(folders) & set(EXCLUDED_FOLDERS):
                yield path


def _check_plain(path: Path) -> None:
    """Raise for an array that only pickle could read."""
    if path.suffix == ".json":
        return
    try:
        array_file = np.load(
            path, mmap_mode="r" if path.suffix == ".npy" else None, allow_pickle=False
        )
        if path.suffix == ".npz":
            with array_file:
                for name in array_file.files:
                    array_file[name]
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise UnreadableFile(
            f"{path} must be plain arrays without pickle ({first_line(error)}). Remove it."
        ) from error


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, _EPOCH)


def _copy(file: IO[bytes], to: IO[bytes] | None) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while piece := file.read(_CHUNK_BYTES):
        digest.update(piece)
        size += len(piece)
        if to is not None:
            to.write(piece)
    return digest.hexdigest(), size
