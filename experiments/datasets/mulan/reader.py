"""`read_mulan`: reads a MULAN data set by the paper's protocol or by a stricter one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.mulan.arff import Missing, read_arff
from experiments.datasets.mulan.files import SOURCES, MulanFiles, find_data, list_files, name_pinned
from experiments.datasets.mulan.labels import (
    check_alike,
    match_labels,
    read_label_list,
    read_labels,
    take_columns,
)
from oddslip.core.weights import balance_ratios
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.inputs import free_memory
from oddslip.io.paths import check_path

Protocol = Literal["paper", "clean"]
Table = Any  # a float64 array, or a scipy CSR matrix if it was left as read
_STRIP = 64  # features that are standardised together
_SEED = 42  # caption of the paper's Table 2, as is the size of the calibration split


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MulanData:
    """A data set: features X and labels Y of its training and test file, and the split.

    ``fitted`` and ``calibration`` are indices of training rows, in the order of the permutation.

    Attributes
    ----------
    name, protocol : str
        Which data set, and by which protocol it was read.
    X_train, X_test : numpy.ndarray or scipy.sparse.csr_matrix
        Features.
    Y_train, Y_test : numpy.ndarray of bool
        Labels.
    fitted, calibration : numpy.ndarray of int
        The split of the training rows.
    feature_names, label_names, unmatched : tuple of str
        Names; ``unmatched`` are listed labels that the protocol finds no attribute for.
    sha256 : dict
        By file name.
    pinned : bool
        Whether the three files are, byte for byte, one of the paper's eleven sets.
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
        """Negatives / positives of each label in the fitted rows; 1 where either is missing."""
        return balance_ratios(self.Y_train[self.fitted].sum(axis=0), self.fitted.size)

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
        False leaves features as read, sparse if the file is. Standardised ones are dense: a zero
        becomes another number.
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
    label_list = read_label_list(files.labels)
    train, test = (
        read_arff(path, missing=missing, encoding=encoding) for path in (files.train, files.test)
    )
    check_alike(train, test, files)
    literally = protocol == "paper"
    labels, unmatched = match_labels(train.attributes, label_list.names, files, literally=literally)
    columns = list(labels)
    features = [at for at in range(len(train.attributes)) if at not in labels]
    Y_train = read_labels(train, columns, files.train)
    Y_test = read_labels(test, columns, files.test)
    calibration, fitted = split_rows(len(Y_train), files.train)
    X_train, X_test = take_columns(train, features), take_columns(test, features)
    if standardise:
        X_train, X_test = _standardise(X_train, X_test, None if literally else fitted)
    paths = files.labels, files.train, files.test
    hashes = label_list.sha256, train.sha256, test.sha256
    pinned = name_pinned(hashes)
    return MulanData(
        name=pinned or files.name,
        protocol=protocol,
        X_train=X_train,
        Y_train=Y_train,
        X_test=X_test,
        Y_test=Y_test,
        feature_names=tuple(train.attributes[at].name for at in features),
        label_names=tuple(labels.values()),
        fitted=fitted,
        calibration=calibration,
        unmatched=unmatched,
        pinned=pinned is not None,
        sha256={path.name: each for path, each in zip(paths, hashes, strict=True)},
    )


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
    path = check_path("where", where)
    name = os.fspath(where)
    if not isinstance(where, str) or path.name != name:
        return list_files(path) if path.is_dir() else list_files(path.parent, path.name)
    try:
        return find_data(name, data)
    except UnreadableFile:
        if path.is_dir() and data is None:
            return list_files(path)
        if data is not None or not download or name.lower() not in SOURCES:
            raise
    from experiments.datasets.mulan.files import fetch_mulan

    return fetch_mulan(name)


class Scale(NamedTuple):
    """Mean and population standard deviation of each feature; 1 where it does not vary."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def measure_scale(X: NDArray[np.float64], *, finite: bool | None = None) -> Scale:
    """The scale of some rows. NaN cells are left out; a feature of NaN alone keeps its values.

    ``finite`` says that no cell of the table is NaN, where X is a part of it.
    """
    finite = bool(np.isfinite(X).all()) if finite is None else finite
    table: Any = X if finite else np.ma.masked_invalid(X)
    mean, deviation, low, high = (
        np.asarray(np.ma.filled(each, 0.0))
        for each in (table.mean(axis=0), table.std(axis=0), table.min(axis=0), table.max(axis=0))
    )
    # The mean of equal numbers may miss them by a rounding, and their deviation then be almost 0.
    constant = low == high
    return Scale(np.where(constant, low, mean), np.where(constant, 1.0, deviation))


def apply_scale(X: NDArray[np.float64], scale: Scale) -> None:
    """Standardise in place."""
    X -= scale.mean
    X /= scale.deviation


def _standardise(X_train: Table, X_test: Table, fitted: NDArray[np.int64] | None) -> list[Table]:
    """Both tables scaled: by the fitted rows, or each by itself if they are None.

    A zero becomes another number, so a scaled table is dense, sparse as the file may be. A few
    features are made dense and scaled at a time: nothing else is as large as the outcome.
    """
    tables = X_train, X_test
    n_bytes = sum(8 * table.shape[0] * table.shape[1] for table in tables)
    free = free_memory()
    if free is not None and n_bytes > free and not isinstance(X_train, np.ndarray):
        raise InvalidInput(
            f"standardised features must fit into memory, got {n_bytes:,} bytes where {free:,} "
            "are free. Pass standardise=False: sparse features then stay sparse."
        )
    columns = [table if isinstance(table, np.ndarray) else table.tocsc() for table in tables]
    cells = [each if isinstance(each, np.ndarray) else each.data for each in columns]
    finite = [bool(np.isfinite(each).all()) for each in cells]
    if fitted is not None:  # NaN may lie in other rows alone
        part = X_train[fitted]
        finite[0] = bool(np.isfinite(part if isinstance(part, np.ndarray) else part.data).all())
    scaled = [table if isinstance(table, np.ndarray) else np.empty(table.shape) for table in tables]
    for strip in _strips(X_train.shape[1]):
        parts = [
            np.ascontiguousarray(each[:, strip])
            if isinstance(each, np.ndarray)
            else each[:, strip].toarray(order="C")
            for each in columns
        ]
        common = None
        if fitted is not None:
            common = measure_scale(parts[0][fitted], finite=finite[0])
        for table, part, whole in zip(scaled, parts, finite, strict=True):
            apply_scale(part, common or measure_scale(part, finite=whole))
            table[:, strip] = part
    return list(scaled)


def _strips(n_features: int) -> list[slice]:
    """A few features at a time, and never one alone: NumPy adds a lone column in another order."""
    starts = list(range(0, n_features, _STRIP))
    if len(starts) > 1 and n_features - starts[-1] == 1:
        starts[-1] -= 1
    ends = [*starts[1:], n_features]
    return [slice(start, end) for start, end in zip(starts, ends, strict=True)]
