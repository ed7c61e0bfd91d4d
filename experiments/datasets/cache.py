"""Cache of prepared data: entries of a folder, named by the hash of all they depend on."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse, save_npz

from experiments.datasets.recommendation import Period, Recommendation
from oddslip.core.sparse import read_array
from oddslip.errors import UnreadableFile
from oddslip.io.arrays import map_npy
from oddslip.io.files import disk_full_message, flush, hash_file, lock, scratch_folder
from oddslip.io.json import read_json

MANIFEST = "files.json"
_FORMAT = 1
DESCRIPTION = "recommendation.json"
_PERIODS = ("train", "validation", "test")
_DAMAGED = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)


def default_folder(name: str) -> Path:
    """Default folder for the rows of a data set."""
    return Path(".work") / "data" / name


def name_entry(what: Mapping[str, Any]) -> str:
    """Name of an entry: a SHA-256 of all that it depends on.

    Examples
    --------
    >>> name_entry({"n_labels": 5}) == name_entry({"n_labels": 6})
    False
    """
    text = json.dumps({"format": _FORMAT, **what}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def cached_entry(
    folder: str | os.PathLike[str], what: Mapping[str, Any], fill: Callable[[Path], None]
) -> Path:
    """The folder of an entry, filled first unless it is complete.

    Parameters
    ----------
    folder : path
        Folder of the cache; created if necessary.
    what : dict
        All that the entry depends on: hashes of the inputs and settings, as JSON can hold them.
    fill : callable
        Writes files into the folder that it gets. Called only if necessary.

    Examples
    --------
    >>> cached_entry("cache", {"sha256": "..."}, fill)  # doctest: +SKIP
    """
    entry = Path(folder) / name_entry(what)
    if is_whole(entry):
        return entry
    with whole_folder(entry) as unfinished:
        fill(unfinished)
        hashes = {path.name: hash_file(path) for path in sorted(unfinished.iterdir())}
        (unfinished / MANIFEST).write_text(json.dumps(hashes, indent=1), encoding="utf-8")
    return entry


def is_whole(entry: Path) -> bool:
    """Whether all files of an entry are there, byte for byte as they were written."""
    try:
        hashes = read_json(entry / MANIFEST)
        return all(hash_file(entry / name) == each for name, each in hashes.items())
    except (OSError, ValueError, AttributeError, UnreadableFile):
        return False


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder, renamed to ``path`` if the block succeeds."""
    path = Path(path)
    with ExitStack() as stack:
        try:
            unfinished = stack.enter_context(scratch_folder(path))
        except OSError as error:
            raise UnreadableFile(
                f"{path.parent} cannot be written ({error.strerror}). Pass another folder as cache."
            ) from error
        with disk_full_message(path):
            yield unfinished
            for file in unfinished.iterdir():
                flush(file)
            _replace(unfinished, path)


def hash_inputs(paths: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of some files, by name."""
    return {path.name: hash_file(path) for path in paths}


def hash_roles(paths: Mapping[str, Path]) -> dict[str, str]:
    """SHA-256 of files by role, since two files may have the same name."""
    return {role: hash_file(path) for role, path in paths.items()}


def name_inputs(paths: Mapping[str, Path], hashes: Mapping[str, str]) -> dict[str, str]:
    """The hashes by file name; by role where two files have the same name."""
    names = [path.name for path in paths.values()]
    return {
        path.name if names.count(path.name) == 1 else role: hashes[role]
        for role, path in paths.items()
    }


@contextmanager
def unchanged(paths: Iterable[Path]) -> Iterator[None]:
    """Reject files that change while they are read."""
    before = {path: _stamp(path) for path in paths}
    yield
    for path, stamp in before.items():
        if _stamp(path) != stamp:
            raise UnreadableFile(f"{path} changed while it was read. Read it again once it rests.")


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _replace(unfinished: Path, path: Path) -> None:
    """Rename a finished folder. A complete entry of another process stays."""
    try:
        # Locked: another process may complete the damaged entry at the same time.
        with lock(path, wait=True):
            if path.is_dir() and not is_whole(path):
                shutil.rmtree(path, ignore_errors=True)
            unfinished.rename(path)
    except OSError as error:
        if not is_whole(path):
            raise UnreadableFile(f"{path} cannot be written ({error.strerror}).") from error


def recall_rows(
    folder: str | os.PathLike[str], what: Mapping[str, Any], build: Callable[[], Recommendation]
) -> Recommendation:
    """Cached rows, built first if necessary; see `cached_entry`.

    Examples
    --------
    >>> recall_rows("cache", {"sha256": "..."}, build)  # doctest: +SKIP
    """
    built: list[Recommendation] = []

    def fill(entry: Path) -> None:
        built.append(build())
        save_rows(entry, built[0])

    entry = cached_entry(folder, what, fill)
    return built[0] if built else load_rows(entry)


def save_rows(folder: Path, rows: Recommendation) -> None:
    """Write a recommendation into a folder. The same rows give the same bytes."""
    for name in _PERIODS:
        period: Period = getattr(rows, name)
        for part, matrix in (("X", period.X), ("Y", period.Y)):
            if issparse(matrix):
                # Not compressed: it is read far more often than written.
                save_npz(folder / f"{part}_{name}.npz", matrix, compressed=False)
            else:
                np.save(folder / f"{part}_{name}.npy", matrix, allow_pickle=False)
        np.save(folder / f"ids_{name}.npy", period.row_ids, allow_pickle=False)
    description = {
        "name": rows.name,
        "settings": rows.settings,
        "sha256": rows.sha256,
        "label_names": rows.label_names,
        "feature_names": rows.feature_names,
    }
    (folder / DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")


def load_rows(folder: Path) -> Recommendation:
    """Read what `save_rows` wrote. Sparse matrices are read once, without copies; a dense X
    stays on disk.
    """
    try:
        description = read_json(folder / DESCRIPTION)
        periods = {
            name: Period(
                X=_load_matrix(folder, f"X_{name}"),
                Y=_load_matrix(folder, f"Y_{name}"),
                row_ids=np.array(map_npy(folder / f"ids_{name}.npy")),
            )
            for name in _PERIODS
        }
        return Recommendation(
            name=description["name"],
            train=periods["train"],
            validation=periods["validation"],
            test=periods["test"],
            label_names=tuple(description["label_names"]),
            feature_names=tuple(description["feature_names"]),
            settings=description["settings"],
            sha256=description["sha256"],
        )
    except _DAMAGED as error:
        raise UnreadableFile(
            f"{folder} must hold rows as they were kept, got other or damaged files. Remove it."
        ) from error


def _load_matrix(folder: Path, name: str) -> Any:
    sparse = folder / f"{name}.npz"
    if sparse.exists():
        return read_array(sparse)
    return map_npy(folder / f"{name}.npy")
