"""What a run was: its command, its versions, and the hashes of the files it read."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 22


def describe_run(
    arguments: Sequence[str] | None, inputs: Mapping[str, Path | None], *, seed: int
) -> dict[str, Any]:
    """What a reader needs to redo a run.

    Parameters
    ----------
    arguments : sequence of str or None
        What was typed after ``oddslip``; without it, what this process was started with.
    inputs : mapping of str to path or None
        Files that were read, by the part they play; None for those that were not given.
    seed : int
    """
    from oddslip.studies.stores import versions

    typed = sys.argv[1:] if arguments is None else arguments
    given = {part: path for part, path in inputs.items() if path is not None}
    return {
        "command": shlex.join(["oddslip", *typed]),
        "seed": seed,
        "versions": versions(),
        "inputs": hash_files(given),
    }


def hash_files(paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of files, read in small pieces. Of a folder, each of its files."""
    from oddslip.errors import UnreadableFile
    from oddslip.progress import progress_bar

    files = [(part, file) for part, path in paths.items() for file in _files_of(path)]
    try:
        sizes = [file.stat().st_size for _, file in files]
        with progress_bar("hashing inputs", sum(sizes)) as advance:
            hashes = [_hash(file, advance) for _, file in files]
    except OSError as error:
        raise UnreadableFile(f"{error.filename} cannot be read ({error.strerror}).") from error
    told: dict[str, dict[str, Any]] = {}
    for (part, file), size, digest in zip(files, sizes, hashes, strict=True):
        key = part if file == paths[part] else f"{part}, {file.name}"
        told[key] = {"file": str(file), "bytes": size, "SHA-256": digest}
    return told


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file())


def _hash(path: Path, advance: Any) -> str:
    import hashlib

    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
            advance(len(piece))
    return digest.hexdigest()
