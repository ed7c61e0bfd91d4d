"""The files of the paper's data sets: their bytes, where they lie, how they are fetched."""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from collections.abc import Collection
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from oddslip.errors import InvalidInput, UnreadableFile

HOME = "https://raw.githubusercontent.com/tsoumakas/mulan/43f6389/data/multi-label"
LICENCE = "none stated by tsoumakas/mulan beside the data; cite the source of the set"


class PinnedFile(NamedTuple):
    """A file, by its name, its size in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str


class PinnedSet(NamedTuple):
    """A data set: who made it, its label list, its training file and its test file."""

    source: str
    labels: PinnedFile
    train: PinnedFile
    test: PinnedFile

    @property
    def files(self) -> tuple[PinnedFile, PinnedFile, PinnedFile]:
        """The three files."""
        return self.labels, self.train, self.test


PINS = {
    "bibtex": PinnedSet(
        "Katakis, Tsoumakas and Vlahavas (2008), ECML/PKDD Discovery Challenge",
        PinnedFile("bibtex.xml", 5880,
                   "08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232"),
        PinnedFile("bibtex-train.arff", 2292961,
                   "8dcc9de6e0b2cebaec8c1f4fac78431adeeb73cfd3ab879b530a66d366e59174"),
        PinnedFile("bibtex-test.arff", 1215637,
                   "9b03329cde64d3f994bdf7fbbac3f3b10fe185c311cb9ae725475f59c7f3f922"),
    ),
    "birds": PinnedSet(
        "Briggs et al. (2013), MLSP competition",
        PinnedFile("birds.xml", 889,
                   "0f4ea547b2b3d538c8402662daf689e0d4520cc8b4f5ba113c2e7c01700f010f"),
        PinnedFile("birds-train.arff", 539367,
                   "8f215db6ee163149901e753977f631ba8bea0e0e8e1abc42b234414822f8ae36"),
        PinnedFile("birds-test.arff", 540883,
                   "51ba6326d65ccdd7c755b6461280eb6d2769c7f59d8e12fd4250f91e6ca28326"),
    ),
    "corel5k": PinnedSet(
        "Duygulu, Barnard, de Freitas and Forsyth (2002), ECCV",
        PinnedFile("Corel5k.xml", 11222,
                   "54ef6a6ccb7ca9b77524052b34b306d5d501661a5609b9d1cc7085b2b597679d"),
        PinnedFile("Corel5k-train-sparse.arff", 339535,
                   "19eb253c447144bea74ffa86b4731a56022addae2ba7d0aab72ad07fdc02e9b3"),
        PinnedFile("Corel5k-test-sparse.arff", 60876,
                   "e8f8e9cd052c43ba7bdfdf99d242f461fc8c2a03163466d921e576887b51d8a7"),
    ),
    "delicious": PinnedSet(
        "Tsoumakas, Katakis and Vlahavas (2008), ECML/PKDD MMD workshop",
        PinnedFile("delicious.xml", 34303,
                   "4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2"),
        PinnedFile("delicious-train.arff", 3056590,
                   "030186cdb542ebdd32052fcdbb1ebe30115b3a22518c1b4b198c45eb827aebe1"),
        PinnedFile("delicious-test.arff", 757565,
                   "2dfb01723a819914b0ca83361177ed413ce3f2169851d9f228d4692915d63944"),
    ),
    "emotions": PinnedSet(
        "Trohidis, Tsoumakas, Kalliris and Vlahavas (2008), ISMIR",
        PinnedFile("emotions.xml", 323,
                   "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0"),
        PinnedFile("emotions-train.arff", 252080,
                   "bbe704106c79bb8fb99c1d1d2e9bde081d6a2daeb01f100862f11fd91a3c1f98"),
        PinnedFile("emotions-test.arff", 132007,
                   "f13d4b746b7b5c8eb484bd751d6ac463d4560dff998a93516a5c1fe35daf6c8f"),
    ),
    "enron": PinnedSet(
        "Klimt and Yang (2004), ECML; tagged at UC Berkeley",
        PinnedFile("enron.xml", 1604,
                   "ed40c92d7f613eed51714912cab10dddc4ce456262137d8fef230d44c7f4457b"),
        PinnedFile("enron-train.arff", 607799,
                   "2988cefc1cdf7a8004a20ef84615cc8fa1b5d7434c16687283b41454e2d9d194"),
        PinnedFile("enron-test.arff", 324140,
                   "2f3aad54a8f54caaab4ab01246fe9dd385ba944a2633028f52747b57eac5474e"),
    ),
    "flags": PinnedSet(
        "Goncalves, Plastino and Freitas (2013), ICTAI; from the UCI flags data",
        PinnedFile("flags.xml", 304,
                   "7c9ed21a91b716b91f811323e20ee5a260ea2da62a5edcfeb1b91ec855a48f17"),
        PinnedFile("flags-train.arff", 7707,
                   "1861cdab7f8baf1aef6fb6198f304465ddfd99b7f9a435337c604119522df3c5"),
        PinnedFile("flags-test.arff", 4218,
                   "09f6136fae47dcc2f0f491efd6401a11072cbfb0bfbb2666c63b35bb06aeeb16"),
    ),
    "genbase": PinnedSet(
        "Diplaris, Tsoumakas, Mitkas and Vlahavas (2005), PCI",
        PinnedFile("genbase.xml", 992,
                   "198e8a1d7070e9603119e02e626cedc589db7577339b307b06f5192047b69eb9"),
        PinnedFile("genbase-train.arff", 1714007,
                   "37670db2c2b308a1c163d05501819526f1d65d659638ddfb76812d4ce384b5c6"),
        PinnedFile("genbase-test.arff", 758739,
                   "0e988520bedab39aa3f23f08f646c769bcdb6f9119ee298fd92b37127b226a36"),
    ),
    "medical": PinnedSet(
        "Pestian et al. (2007), BioNLP challenge",
        PinnedFile("medical.xml", 1818,
                   "51fa9d5c09e48caff3f0a0c75db1c9aa85944f8e35451f3ad8bd56fc422286ce"),
        PinnedFile("medical-train.arff", 69680,
                   "c764f45756ab1c553b8b4eaaf5605a5610a43bbbcf37492d0f1a12bf9c9e2244"),
        PinnedFile("medical-test.arff", 99124,
                   "6be472e75a6c0b0916187f343a398011b1b26f8f0ddc682c575312ad3532f6c4"),
    ),
    "scene": PinnedSet(
        "Boutell, Luo, Shen and Brown (2004), Pattern Recognition",
        PinnedFile("scene.xml", 285,
                   "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5"),
        PinnedFile("scene-train.arff", 3127968,
                   "b53ba93bdf412de922e3960389bcee24744fa3e872ce610511fc1d750888b64d"),
        PinnedFile("scene-test.arff", 3090742,
                   "ea38d20296b3ff7e220f477a3b802a9bcb2d768881fe6ee163efbc97ea527a42"),
    ),
    "yeast": PinnedSet(
        "Elisseeff and Weston (2001), NIPS",
        PinnedFile("yeast.xml", 526,
                   "c3056cc26444b5158b1588d1b73bec9c45429e10f0957ad085903423cb81f247"),
        PinnedFile("yeast-train.arff", 1501117,
                   "e759dc991ff54694a4ff9c4314f3be0d6fd2b1994a4b563f57e416394c6aebbd"),
        PinnedFile("yeast-test.arff", 918515,
                   "4aaac102bff9669a765bf0b378602e5cc8c3b181048282e2f003117b496d552a"),
    ),
}  # fmt: skip


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
