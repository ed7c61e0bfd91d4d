"""What a run was: its command, its versions, and the hashes of the files it read."""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from oddslip import __version__
from oddslip.core.results import plain
from oddslip.errors import UnreadableFile
from oddslip.io.files import hash_bytes, hash_file
from oddslip.io.progress import progress_bar

PACKAGES = ("numpy", "scipy", "scikit-learn", "lightgbm", "xgboost", "torch")


def versions() -> dict[str, str]:
    """Versions of Python, of us, and of what the numbers depend on."""
    numbers = {"python": platform.python_version(), "oddslip": __version__}
    for name in (*PACKAGES, "xgboost-cpu"):
        try:
            numbers[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return numbers


def commit() -> str | None:
    """The commit of the checkout this package runs from, marked where it was altered since.

    None where it is installed, or where there is no git to ask.
    """
    git = ["git", "-C", str(Path(__file__).parent)]
    inside = [*git, "ls-files", "--error-unmatch", Path(__file__).name]
    ask = [*git, "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty"]
    try:
        subprocess.run(inside, capture_output=True, check=True, timeout=20)
        process = subprocess.run(ask, capture_output=True, check=True, timeout=20, text=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip() or None


def digest_of(configuration: dict[str, Any]) -> str:
    """Sixteen digits that change with anything in the configuration.

    Examples
    --------
    >>> digest_of({"seed": 42, "weight": "none"}) == digest_of({"weight": "none", "seed": 42})
    True
    """
    text = json.dumps(plain(configuration), sort_keys=True)
    return hash_bytes(text.encode())[:16]


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
    typed = sys.argv[1:] if arguments is None else arguments
    paths = {part: path for part, path in inputs.items() if path is not None}
    return {
        "command": shlex.join(["oddslip", *typed]),
        "seed": seed,
        "versions": versions(),
        "inputs": hash_files(paths),
    }


def hash_files(paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of files, read in small pieces. Of a folder, each of its files."""
    files = [(part, file) for part, path in paths.items() for file in _files_of(path)]
    try:
        sizes = [file.stat().st_size for _, file in files]
        with progress_bar("hashing inputs", sum(sizes)) as advance:
            hashes = [hash_file(file, advance) for _, file in files]
    except OSError as error:
        raise UnreadableFile(f"{error.filename} cannot be read ({error.strerror}).") from error
    described: dict[str, dict[str, Any]] = {}
    for (part, file), size, digest in zip(files, sizes, hashes, strict=True):
        key = part if file == paths[part] else f"{part}, {file.name}"
        described[key] = {"file": str(file), "bytes": size, "SHA-256": digest}
    return described


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file())
