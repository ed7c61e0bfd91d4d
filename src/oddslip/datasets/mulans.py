"""Multi-label data sets in MULAN's form, split and standardised by a protocol."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oddslip.datasets.arff_headers import Attribute
from oddslip.datasets.arffs import Arff, Missing, read_arff
from oddslip.datasets.files import MulanFiles, find_data, list_files, name_pinned
from oddslip.datasets.label_lists import read_label_list
from oddslip.datasets.pins import PINS
from oddslip.datasets.standardisations import measure_scale
from oddslip.errors import InvalidInput, UnreadableFile

Protocol = Literal["paper", "clean"]
Table = Any  # a float64 array, or a scipy CSR matrix if it was left as read

_SEED = 42  # caption of the paper's Table 2, as is the size of the calibration split
_TRUTHS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MulanData:
    """A data set: features X and labels Y of its training and test file, and the split.

    ``fitted`` and ``calibration`` are indices of training rows, in the order of the permutation.
    """

    name: str
    protocol: Protocol
    X_train: Table
    Y_train: NDArray[np.bool_]
    X_test: Table
    Y_test: NDArray[np.bool_]
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]  # in the order of the ARFF file
    fitted: NDArray[np.int64]
    calibration: NDArray[np.int64]
    unmatched: tuple[str, ...]  # listed labels that the protocol finds no attribute for
    sha256: dict[str, str]  # by file name
    pinned: bool  # whether the three files are, byte for byte, one of the paper's eleven sets

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.label_names)

    @property
    def k(self) -> int:
        """The paper's K: 7, or all labels if there are fewer."""
        return min(7, self.n_labels)

    @property
    def prevalence(self) -> NDArray[np.float64]:
        """Share of the fitted rows in which each label is true: the prior."""
        return np.asarray(self.Y_train[self.fitted].mean(axis=0))

    @property
    def r(self) -> NDArray[np.float64]:
        """Negatives / positives of each label in the fitted rows; 1 where it has no positive."""
        positives = self.Y_train[self.fitted].sum(axis=0)
        negatives = self.fitted.size - positives
        return np.divide(negatives, positives, out=np.ones(self.n_labels), where=positives > 0)

    @property
    def calibration_positives(self) -> NDArray[np.int64]:
        """Calibration rows in which each label is true; 0 marks a dead label."""
        return np.asarray(self.Y_train[self.calibration].sum(axis=0))

    def __repr__(self) -> str:
        rows = f"n_train={len(self.Y_train)}, n_test={len(self.Y_test)}"
        shape = f"n_features={len(self.feature_names)}, n_labels={self.n_labels}"
        return f"MulanData({self.name!r}, {rows}, {shape}, protocol={self.protocol!r})"


def read_mulan(
    where: str | os.PathLike[str],
    *,
    protocol: Protocol = "paper",
    data: str | os.PathLike[str] | None = None,
    missing: Missing = "error",
    standardise: bool = True,
    download: bool = True,
    encoding: str = "utf-8",
) -> MulanData:
    """Read a data set of three files: NAME.xml, NAME-train.arff, NAME-test.arff.

    Parameters
    ----------
    where : str or path
        A name to look for (see `find_data`), a folder, or ``folder/NAME`` if it holds several.
    protocol : "paper" or "clean"
        "paper" matches label names literally, escapes kept, leaves out listed labels that match
        no attribute, and standardises each file by its own mean and deviation. "clean" reads
        escapes, wants every listed label, and standardises both files by the fitted rows.
    data : path, optional
        Look for a name here only.
    missing : "error" or "nan"
        What a ``?`` among the features is. Labels are never missing.
    standardise : bool
        False leaves features as read, sparse if the file is.
    download : bool
        Whether a name of the paper's eleven that is not found may be fetched; not if ``data``
        is given.
    encoding : str
        Of the ARFF files.

    Examples
    --------
    >>> birds = read_mulan("birds", protocol="clean")  # doctest: +SKIP
    >>> birds.n_labels, birds.fitted.size, birds.calibration.size  # doctest: +SKIP
    (19, 226, 96)
    """
    if protocol not in ("paper", "clean"):
        raise InvalidInput(f'protocol must be "paper" or "clean", got protocol={protocol!r}.')
    files = _locate(where, data, download)
    listed = read_label_list(files.labels)
    train, test = (
        read_arff(path, missing=missing, encoding=encoding) for path in (files.train, files.test)
    )
    _check_alike(train, test, files)
    labels, unmatched = _match_labels(train.attributes, listed.names, protocol == "paper", files)
    columns = list(labels)
    features = np.delete(np.arange(len(train.attributes)), columns)
    Y_train = _read_labels(train, columns, files.train)
    Y_test = _read_labels(test, columns, files.test)
    calibration, fitted = split_rows(len(Y_train), files.train)
    X_train, X_test = train.cells[:, features], test.cells[:, features]
    if standardise:
        X_train, X_test = _standardise(X_train, X_test, None if protocol == "paper" else fitted)
    paths = files.labels, files.train, files.test
    hashes = listed.sha256, train.sha256, test.sha256
    pinned = name_pinned(hashes)
    return MulanData(
        name=pinned or files.name, protocol=protocol,
        X_train=X_train, Y_train=Y_train, X_test=X_test, Y_test=Y_test,
        feature_names=tuple(train.attributes[at].name for at in features),
        label_names=tuple(labels.values()), fitted=fitted, calibration=calibration,
        unmatched=unmatched, pinned=pinned is not None,
        sha256={path.name: each for path, each in zip(paths, hashes, strict=True)},
    )  # fmt: skip


def split_rows(n_rows: int, path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Calibration rows and fitted rows: 30% of the training rows, at least 50, and the rest."""
    n_calibration = max(50, n_rows * 3 // 10)
    if n_rows <= n_calibration:
        raise UnreadableFile(
            f"{path} must have more than {n_calibration} rows, since that many are set aside for "
            f"calibration, got {n_rows}."
        )
    order = np.random.default_rng(_SEED).permutation(n_rows)
    return order[:n_calibration], order[n_calibration:]


def _locate(
    where: str | os.PathLike[str], data: str | os.PathLike[str] | None, download: bool
) -> MulanFiles:
    told = os.fspath(where)
    path = Path(told)
    if not isinstance(where, str) or path.name != told:
        return list_files(path) if path.is_dir() else list_files(path.parent, path.name)
    try:
        return find_data(told, data)
    except UnreadableFile:
        if path.is_dir() and data is None:
            return list_files(path)
        if data is not None or not download or told.lower() not in PINS:
            raise
    from oddslip.datasets.downloads import fetch_mulan

    return fetch_mulan(told)


def _check_alike(train: Arff, test: Arff, files: MulanFiles) -> None:
    if len(train.attributes) != len(test.attributes):
        raise UnreadableFile(
            f"{files.test} must declare the {len(train.attributes)} attributes of "
            f"{files.train.name}, got {len(test.attributes)}."
        )
    for ours, theirs in zip(train.attributes, test.attributes, strict=True):
        if (ours.name, ours.values) != (theirs.name, theirs.values):
            raise UnreadableFile(
                f"{files.test} must declare the attributes of {files.train.name} in the same way "
                f"and order, but {ours.name[:40]!r} there is {theirs.name[:40]!r} here"
                + (" with other values." if ours.name == theirs.name else ".")
            )


def _match_labels(
    attributes: Sequence[Attribute], listed: Sequence[str], literally: bool, files: MulanFiles
) -> tuple[dict[int, str], tuple[str, ...]]:
    """Columns of the labels with their listed names, and listed names without a column."""
    wanted, found = set(listed), {}
    for column, attribute in enumerate(attributes):
        for name in (attribute.literal,) if literally else (attribute.name, attribute.literal):
            if name in wanted:
                found[column] = name
                wanted.remove(name)
                break
    if not found or (wanted and not literally):
        lost = next(name for name in listed if name in wanted)
        raise UnreadableFile(
            f"{files.labels} must list attributes of {files.train.name}, got {lost[:40]!r}, "
            "which is none."
        )
    return found, tuple(name for name in listed if name in wanted)


def _read_labels(arff: Arff, columns: list[int], path: Path) -> NDArray[np.bool_]:
    """Label cells as truths. A nominal label is what its value says, whatever its position."""
    cells = arff.cells[:, columns]
    cells = cells if isinstance(cells, np.ndarray) else cells.toarray()
    truths = np.empty(cells.shape, np.bool_)
    for label, column in enumerate(columns):
        attribute, codes = arff.attributes[column], cells[:, label]
        if attribute.values is None:
            meanings = {0.0: False, 1.0: True}
        else:
            named = ((code, _TRUTHS.get(v.lower())) for code, v in enumerate(attribute.values))
            meanings = {float(code): truth for code, truth in named if truth is not None}
        strange = ~np.isin(codes, list(meanings))
        if strange.any():
            row = int(np.flatnonzero(strange)[0])
            code = codes[row]
            known = attribute.values is not None and not np.isnan(code)
            came = repr(attribute.values[int(code)]) if known and attribute.values else f"{code:g}"
            raise UnreadableFile(
                f"{path}: label {attribute.name[:40]!r} must be 0 or 1, got {came} in data row "
                f"{row}."
            )
        truths[:, label] = np.isin(codes, [code for code, truth in meanings.items() if truth])
    return truths


def _standardise(X_train: Table, X_test: Table, fitted: NDArray[np.int64] | None) -> Any:
    """Both tables dense and scaled: by the fitted rows, or each by itself if they are None."""
    tables = [each if isinstance(each, np.ndarray) else each.toarray() for each in (X_train, X_test)]
    if fitted is not None:
        scale = measure_scale(tables[0][fitted])
        return [scale.apply(each) for each in tables]
    return [measure_scale(each).apply(each) for each in tables]
