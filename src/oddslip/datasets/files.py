"""Where the files of a MULAN data set are: in a folder that is given, or looked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from oddslip.datasets.pins import PINS
from oddslip.errors import InvalidInput, UnreadableFile


class MulanFiles(NamedTuple):
    """The three files of one data set.

    Attributes
    ----------
    name : str
        Of the data set.
    labels, train, test : pathlib.Path
        The XML file of label names and the two ARFF files.
    """

    name: str
    labels: Path
    train: Path
    test: Path


def find_data(name: str, data: str | os.PathLike[str] | None = None) -> MulanFiles:
    """Find a data set by its name.

    Parameters
    ----------
    name : str
        Such as ``"emotions"``. Upper and lower case are the same.
    data : path, optional
        Look here only. Otherwise: where the variable ODDSLIP_DATA points, then this user's cache,
        which `fetch_mulan` fills.

    Examples
    --------
    >>> find_data("emotions").train.name  # doctest: +SKIP
    'emotions-train.arff'
    """
    roots = search_path() if data is None else [Path(data)]
    half: UnreadableFile | None = None
    for root in roots:
        for parent in (root / "mulan", root):
            folder = _find(parent, name, folders=True)
            if folder is None:
                continue
            try:
                return list_files(folder, name)
            except UnreadableFile as error:  # a set of which a file lacks may be whole elsewhere
                half = half or error
    if half is not None:
        raise half
    tried = ", ".join(str(root) for root in roots)
    raise UnreadableFile(
        f"data set {name!r} must be a folder of {tried}, got none there. "
        "Pass the folder itself, or point ODDSLIP_DATA at the one that holds it."
    )


def list_files(folder: str | os.PathLike[str], name: str | None = None) -> MulanFiles:
    """The three files in a folder: NAME.xml, NAME-train.arff, NAME-test.arff.

    ``-sparse.arff`` does as well, and is taken if both are there. Without a name there must be
    one label list in the folder, which has the name.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UnreadableFile(f"{folder} must be a folder with a MULAN data set, got none.")
    if name is None:
        lists = sorted(path.stem for path in _entries(folder) if path.suffix.lower() == ".xml")
        if len(lists) != 1:
            came = f"{', '.join(lists[:5])}{', ...' if len(lists) > 5 else ''}" if lists else "none"
            raise InvalidInput(
                f"{folder} must hold one label list NAME.xml, got {came}. "
                f"Name one of several: {folder / 'NAME'}."
            )
        name = lists[0]
    train = [f"{name}-train-sparse.arff", f"{name}-train.arff"]
    test = [f"{name}-test-sparse.arff", f"{name}-test.arff"]
    found = []
    for wanted in ([f"{name}.xml"], train, test):
        paths = [path for each in wanted if (path := _find(folder, each)) is not None]
        if not paths:
            raise UnreadableFile(f"{folder} must hold {' or '.join(wanted)}, got no such file.")
        found.append(paths[0])
    return MulanFiles(found[0].stem, *found)


def default_cache() -> Path:
    """The folder of this user in which fetched data sets are kept."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "oddslip"


def name_pinned(hashes: Collection[str]) -> str | None:
    """Which of the paper's data sets has files of exactly these SHA-256, if any."""
    for name, each in PINS.items():
        if set(hashes) == {file.sha256 for file in each.files}:
            return name
    return None


def search_path() -> list[Path]:
    """Folders in which data is looked for, the first wins."""
    told = os.environ.get("ODDSLIP_DATA")
    return [*([Path(told)] if told else []), default_cache()]


def _find(folder: Path, name: str, *, folders: bool = False) -> Path | None:
    """The entry of that name, in the very spelling if there is one, else in any case."""
    same = [path for path in _entries(folder, folders) if path.name.lower() == name.lower()]
    return min(same, key=lambda path: (path.name != name, path.name), default=None)


def _entries(folder: Path, folders: bool = False) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() == folders]
    except OSError:
        return []
