"""Santander's product recommendation: customers, month by month, and what they add next."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, save_npz

from experiments.datasets.cache import cached_entry, default_folder, hash_inputs, unchanged
from experiments.datasets.origin import is_generated
from experiments.datasets.recommendation import Period, Recommendation
from experiments.datasets.santander.columns import PRODUCTS, Features, name_features
from experiments.datasets.santander.features import (
    Following,
    Histories,
    Labelled,
    iterate_features,
    label_rows,
    order_rows,
    read_histories,
    unpack,
)
from experiments.datasets.santander.paper_features import (
    Categories,
    fit_encoding,
    iterate_encoded,
    read_categories,
)
from experiments.datasets.santander.rows import check_csv, write_rows
from oddslip.core.sparse import read_array
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.arrays import map_npy
from oddslip.io.json import read_json
from oddslip.io.progress import progress_bar
from oddslip.writers import write_scores

_RECORD = "recommendation.json"
FILE_NAME = "train_ver2.csv"
_TABLE = "rows.parquet"
_FORM = 1  # of the features: a change makes all kept rows anew


def read_santander(
    data: str | os.PathLike[str],
    cache: str | os.PathLike[str] | None = None,
    *,
    demographics: bool | None = None,
    following: Following = "row",
    features: Features = "own",
) -> Recommendation:
    """Rows of Kaggle's Santander Product Recommendation, in three periods.

    A row is a customer in a month. Its label is the set of products that the customer does not
    hold then and holds in the following row. Rows stand in order of month, then of customer, and
    are cut by count: 65% train, 15% validation, 20% test. See docs/paper/data.md.

    Parameters
    ----------
    data : path
        The file ``train_ver2.csv``, or the folder that holds it.
    cache : path, optional
        Where the made rows are kept; ``.work/data/santander`` unless given. The features of the
        full file take 5.6 GB there, the paper's 11 GB. A second call with the same file opens them
        in seconds.
    demographics : bool, optional
        Whether demographic columns are used. By default, if the file has them.
    following : {"row", "month"}
        What the following row is: the customer's next one, or only one of the next month. Rows
        without a following row are left out. ``"row"`` gives the paper's counts.
    features : {"own", "paper"}
        Columns of our own, with history, or the paper's: 11 categorical columns one-hot and 29
        standardised numbers. The latter need demographics.

    Returns
    -------
    Recommendation
        Features are a memory-mapped float32 array, labels are sparse, row ids are customers.

    Examples
    --------
    >>> rows = read_santander("train_ver2.csv")  # doctest: +SKIP
    >>> rows.test.n_rows  # doctest: +SKIP
    2538132
    """
    if following not in ("row", "month"):
        raise InvalidInput(f'following must be "row" or "month", got following={following!r}.')
    if features not in ("own", "paper"):
        raise InvalidInput(f'features must be "own" or "paper", got features={features!r}.')
    is_paper = features == "paper"
    if is_paper and demographics is False:
        raise InvalidInput('demographics must not be False with features="paper", got False.')
    path = find_csv(data)
    has_demographics = check_csv(path)
    if (demographics or is_paper) and not has_demographics:
        remedy = 'features="own"' if is_paper else "demographics=None"
        raise InvalidInput(f"{path} must have demographic columns, got none. Pass {remedy}.")
    used = has_demographics if demographics is None else demographics
    folder = default_folder("santander") if cache is None else Path(cache)
    with unchanged([path]):
        sha256 = hash_inputs([path])
        what = {"sha256": sha256[path.name], "form": _FORM, "demographics": used}
        if is_paper:  # entries with our own columns have the name they always had
            what["features"] = features

        def fill_table(entry: Path) -> None:
            write_rows(path, entry / _TABLE, demographics=used, features=features)

        def fill(entry: Path) -> None:
            entry_of_table = {"reader": "santander-table", **what}
            table = cached_entry(folder, entry_of_table, fill_table) / _TABLE
            categories = read_categories(table) if is_paper else None
            histories = read_histories(table, categories)
            _keep_rows(entry, histories, following, sha256, categories)

        rows = open_rows(
            cached_entry(folder, {"reader": "santander", "following": following, **what}, fill)
        )
        return replace(rows, generated=is_generated([path]))


def find_csv(data: str | os.PathLike[str]) -> Path:
    """The training file, given by itself or by its folder."""
    folder = Path(data)
    places = [folder / FILE_NAME, folder / "santander" / FILE_NAME] if folder.is_dir() else [folder]
    for path in places:
        if path.is_file():
            return path
    raise UnreadableFile(
        f"{places[0]} must be a file, got none. It is {FILE_NAME} of the Kaggle competition "
        "Santander Product Recommendation: download and unzip it there, or make one of the same "
        "form with: python -m experiments generate santander."
    )


def build_labels(histories: Histories, labelled: Labelled) -> tuple[csr_matrix, NDArray[np.int64]]:
    """Labels and customers of the kept rows, in order of month and customer."""
    rows = order_rows(histories, labelled)
    added = labelled.added[rows]
    some = np.flatnonzero(added)
    cells = unpack(added[some])
    counts = np.zeros(len(rows) + 1, np.int64)
    counts[some + 1] = cells.sum(axis=1)
    indices = np.nonzero(cells)[1].astype(np.int32)
    values = np.ones(len(indices), np.int8)
    shape = (len(rows), len(PRODUCTS))
    return csr_matrix((values, indices, np.cumsum(counts)), shape), histories.customer[rows]


def _keep_rows(
    entry: Path,
    histories: Histories,
    following: Following,
    sha256: dict[str, str],
    categories: Categories | None,
) -> None:
    """Write the kept rows; with categories, their features are the paper's."""
    labelled = label_rows(histories, following)
    n_rows = int(labelled.has_next.sum())
    start, _ = cut_rows(n_rows)  # refuses too few before anything is written
    Y, customers = build_labels(histories, labelled)
    customer = histories.customer
    if categories is None:
        names = name_features(histories.demographics is not None)
        features = iterate_features(histories, labelled.has_next)
    else:
        rows = order_rows(histories, labelled)
        encoding = fit_encoding(histories, categories, rows[:start])
        names = encoding.feature_names
        features = iterate_encoded(histories, encoding, rows)
    record = {
        "name": "santander",
        "label_names": PRODUCTS,
        "feature_names": names,
        "settings": {
            **({} if categories is None else {"features": "paper"}),
            "demographics": histories.demographics is not None,
            "following": following,
            "percent_of_rows": [65, 15, 20],
            "n_rows_read": len(customer),
            "n_rows_without_following": len(customer) - n_rows,
            "n_customers": int(1 + np.count_nonzero(customer[1:] != customer[:-1])),
            "n_months": int(np.unique(histories.month).size),
        },
        "sha256": sha256,
    }

    def blocks() -> Iterator[tuple[int, NDArray[np.float32]]]:
        with progress_bar("santander: features", n_rows) as advance:
            for first, cells in features:
                yield first, cells
                advance(len(cells))

    keep_rows(entry, blocks(), Y, customers, record)


def keep_rows(
    folder: Path,
    blocks: Iterable[tuple[int, NDArray[np.float32]]],
    Y: csr_matrix,
    row_ids: NDArray[np.int64],
    record: dict[str, Any],
) -> None:
    """Write rows into a folder: features block by block, in whatever order blocks come."""
    width = len(record["feature_names"])
    write_scores(folder / "X.npy", blocks, n_rows=len(row_ids), n_labels=width, dtype=np.float32)
    save_npz(folder / "Y.npz", Y, compressed=False)
    np.save(folder / "ids.npy", row_ids, allow_pickle=False)
    (folder / _RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")


def open_rows(folder: Path) -> Recommendation:
    """The rows of a folder. Features are memory-mapped."""
    try:
        record = read_json(folder / _RECORD)
        return cut_periods(
            record["name"],
            map_npy(folder / "X.npy"),
            csr_matrix(read_array(folder / "Y.npz")),
            np.array(map_npy(folder / "ids.npy")),
            label_names=tuple(record["label_names"]),
            feature_names=tuple(record["feature_names"]),
            settings=record["settings"],
            sha256=record["sha256"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise UnreadableFile(
            f"{folder} must hold rows as they were kept, got other or damaged files. Remove it."
        ) from None


def cut_periods(name: str, X: Any, Y: Any, row_ids: NDArray[Any], **rest: Any) -> Recommendation:
    """Rows in order of time, as a recommendation of three periods."""
    n_rows = int(X.shape[0])
    start, end = cut_rows(n_rows)
    parts = (slice(0, start), slice(start, end), slice(end, n_rows))
    train, validation, test = (Period(X[part], Y[part], row_ids[part]) for part in parts)
    return Recommendation(name, train, validation, test, **rest)


def cut_rows(n_rows: int) -> tuple[int, int]:
    """Where the validation and the test period start: 65, 15 and 20% of the rows, by count.

    Validation and test are rounded down, and training has the rest. So the paper's counts come
    out of its 12,690,664 rows to the row.

    Examples
    --------
    >>> cut_rows(100)
    (65, 80)
    """
    n_validation, n_test = n_rows * 15 // 100, n_rows * 20 // 100
    if n_validation == 0:
        raise InvalidInput(
            f"at least 7 rows must have a following row to be cut into three periods, got {n_rows}."
        )
    return n_rows - n_validation - n_test, n_rows - n_test
