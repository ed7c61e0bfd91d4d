"""Files of the paper's MULAN data sets: lookup, download and SHA-256 registry."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from experiments.datasets.extras import data_extra
from oddslip.errors import InvalidInput, UnreadableFile

HOME = "https://raw.githubusercontent.com/tsoumakas/mulan/43f6389/data/multi-label"
LICENCE = "none stated by tsoumakas/mulan beside the data; cite the source of the set"

# The paper's eleven sets and who made each; registry.txt holds the SHA-256 of their files.
SOURCES = {
    "bibtex": "Katakis, Tsoumakas and Vlahavas (2008), ECML/PKDD Discovery Challenge",
    "birds": "Briggs et al. (2013), MLSP competition",
    "corel5k": "Duygulu, Barnard, de Freitas and Forsyth (2002), ECCV",
    "delicious": "Tsoumakas, Katakis and Vlahavas (2008), ECML/PKDD MMD workshop",
    "emotions": "Trohidis, Tsoumakas, Kalliris and Vlahavas (2008), ISMIR",
    "enron": "Klimt and Yang (2004), ECML; tagged at UC Berkeley",
    "flags": "Goncalves, Plastino and Freitas (2013), ICTAI; from the UCI flags data",
    "genbase": "Diplaris, Tsoumakas, Mitkas and Vlahavas (2005), PCI",
    "medical": "Pestian et al. (2007), BioNLP challenge",
    "scene": "Boutell, Luo, Shen and Brown (2004), Pattern Recognition",
    "yeast": "Elisseeff and Weston (2001), NIPS",
}
_SECONDS = 30  # without an answer


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
    places = ", ".join(str(root) for root in roots)
    raise UnreadableFile(
        f"data set {name!r} must be a folder of {places}, got none there. "
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
            names = (
                f"{', '.join(lists[:5])}{', ...' if len(lists) > 5 else ''}" if lists else "none"
            )
            raise InvalidInput(
                f"{folder} must hold one label list NAME.xml, got {names}. "
                f"Name one of several: {folder / 'NAME'}."
            )
        name = lists[0]
    train = [f"{name}-train-sparse.arff", f"{name}-train.arff"]
    test = [f"{name}-test-sparse.arff", f"{name}-test.arff"]
    files = []
    for file_names in ([f"{name}.xml"], train, test):
        paths = [path for each in file_names if (path := _find(folder, each)) is not None]
        if not paths:
            raise UnreadableFile(f"{folder} must hold {' or '.join(file_names)}, got no such file.")
        files.append(paths[0])
    return MulanFiles(files[0].stem, *files)


def search_path() -> list[Path]:
    """Folders that are searched for data, in order."""
    folder = os.environ.get("ODDSLIP_DATA")
    return [*([Path(folder)] if folder else []), default_cache()]


def default_cache() -> Path:
    """The user's cache folder for downloaded data sets."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "oddslip"


def _find(folder: Path, name: str, *, folders: bool = False) -> Path | None:
    """The entry of that name, in the very spelling if there is one, else in any case."""
    same = [path for path in _entries(folder, folders) if path.name.lower() == name.lower()]
    return min(same, key=lambda path: (path.name != name, path.name), default=None)


def _entries(folder: Path, folders: bool = False) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() == folders]
    except OSError:
        return []


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
    if key not in SOURCES:
        raise InvalidInput(f"name must be one of {', '.join(SOURCES)}, got {name!r}.")
    with data_extra("fetch_mulan()", "pooch"):
        import pooch
    root = default_cache() / "mulan" if into is None else Path(into)
    try:
        (root / key).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableFile(f"{root / key} cannot be made ({error.strerror}).") from error
    files = list_pinned(key)
    store = pooch.create(path=root, base_url=f"{HOME}/", registry=files)
    for place in files:
        _fetch_file(store, place, pooch.HTTPDownloader(timeout=_SECONDS))
    return list_files(root / key, Path(next(iter(files))).stem)


def _fetch_file(store: Any, place: str, downloader: Any) -> None:
    """Download one file; pooch renames it after its SHA-256 is verified."""
    url = store.get_url(place)
    try:
        store.fetch(place, downloader=downloader)
    except ValueError as error:
        if isinstance(error, OSError):  # of requests, such as an address that is none
            raise _download_error(url, store.abspath / place, error) from error
        raise UnreadableFile(
            f"{url} must have SHA-256 {store.registry[place]}, got other bytes. Nothing was kept; "
            "the file or the way to it was altered."
        ) from error
    except OSError as error:
        raise _download_error(url, store.abspath / place, error) from error


def _download_error(url: str, path: Path, error: OSError) -> UnreadableFile:
    reason = " ".join(str(error).split()) or type(error).__name__
    return UnreadableFile(
        f"{url} could not be fetched ({reason}). Without a network, put {path.name} into "
        f"{path.parent}, or point ODDSLIP_DATA at a folder that holds the set."
    )


def name_pinned(hashes: Collection[str]) -> str | None:
    """Which of the paper's data sets has files of exactly these SHA-256, if any."""
    for name in SOURCES:
        if set(hashes) == set(list_pinned(name).values()):
            return name
    return None


def list_pinned(name: str) -> dict[str, str]:
    """The part of the registry that is one data set.

    Examples
    --------
    >>> list(list_pinned("birds"))
    ['birds/birds.xml', 'birds/birds-train.arff', 'birds/birds-test.arff']
    """
    return {at: each for at, each in read_registry().items() if at.startswith(f"{name}/")}


@cache
def read_registry() -> dict[str, str]:
    """SHA-256 of every pinned file by its place, such as ``birds/birds.xml``.

    The three files of a set stand in order: label list, training file, test file.
    """
    text = resources.files("experiments.datasets.mulan").joinpath("registry.txt").read_text("utf-8")
    lines = (line.partition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {place: sha256 for place, _, sha256 in lines}
