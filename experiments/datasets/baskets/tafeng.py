"""Ta-Feng: grocery baskets of one shop, a JSON file ``{user: [basket, ...]}`` in order of time."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.baskets.basket import Baskets, check_lines
from experiments.datasets.baskets.features import FEATURES_VERSION, build_recommendation
from experiments.datasets.cache import default_folder, recall_rows
from experiments.datasets.mulan import files
from experiments.datasets.recommendation import Recommendation
from oddslip.errors import UnreadableFile
from oddslip.io.files import hash_bytes

FILE = "tafeng_merged.json"


def read_tafeng(
    data: str | os.PathLike[str] | None = None,
    n_labels: int | None = 1000,
    cache: str | os.PathLike[str] | None = None,
) -> Recommendation:
    """Read Ta-Feng as a next-basket task: one row per user and period.

    The third-last basket of a user trains, the second-last validates, the last tests. Users with
    fewer than four baskets are left out and counted in ``settings``. The file has no times and
    no kinds of items.

    Parameters
    ----------
    data : path, optional
        The file tafeng_merged.json, its folder, or the folder above. Otherwise it is looked for
        where `find_data` looks.
    n_labels : int, optional
        How many items are labels, the most frequent in training baskets. None takes all.
    cache : path, optional
        Where rows are kept, ``.work/data/tafeng`` by default.

    Examples
    --------
    >>> rows = read_tafeng()  # doctest: +SKIP
    >>> rows.train.X.shape  # doctest: +SKIP
    (10061, 2006)
    """
    path = find_tafeng(data)
    raw = _read(path)
    sha256 = {path.name: hash_bytes(raw)}
    what = {
        "reader": "tafeng",
        "features": FEATURES_VERSION,
        "n_labels": n_labels,
        "sha256": sha256,
    }

    def build() -> Recommendation:
        baskets = parse_tafeng(raw, str(path))
        return build_recommendation(baskets, n_labels, name="tafeng", sha256=sha256)

    rows = recall_rows(default_folder("tafeng") if cache is None else cache, what, build)
    return replace(rows, generated=False)  # nothing generates this form


def find_tafeng(data: str | os.PathLike[str] | None = None) -> Path:
    """The file, in a folder that is given or looked for."""
    roots = files.search_path() if data is None else [Path(data)]
    for root in roots:
        for path in (root, root / FILE, root / "tafeng" / FILE):
            if path.is_file():
                return path
    places = ", ".join(str(root) for root in roots)
    raise UnreadableFile(
        f"{FILE} must be in a folder of {places}, got none there. It comes with the code of "
        '"A Next Basket Recommendation Reality Check" (Li and others, 2023). '
        "Pass its folder, or point ODDSLIP_DATA at the one that holds it."
    )


def parse_tafeng(raw: bytes, source: str) -> Baskets:
    """Baskets from the bytes of the file."""
    try:
        histories = json.loads(raw, object_pairs_hook=_refuse_twice)
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFile(f"{source} is cut short or not JSON ({reason}).") from error
    if not isinstance(histories, dict):
        raise UnreadableFile(f"{source} must be one object {{user: [basket, ...]}}, got another.")
    orders = histories.values()
    if not all(isinstance(each, list) for each in orders):
        raise UnreadableFile(f"{source} must hold a list of baskets for every user.")
    baskets = list(chain.from_iterable(orders))
    if not all(isinstance(each, list) for each in baskets):
        raise UnreadableFile(f"{source} must hold lists of items as baskets.")
    lines = list(chain.from_iterable(baskets))
    if not set(map(type, lines)) <= {int} or not all(map((1 << 62).__gt__, map(abs, lines))):
        raise UnreadableFile(f"{source} must hold whole numbers as items.")
    items, codes = np.unique(np.array(lines, dtype=np.int64), return_inverse=True)
    users = _read_users(list(histories))
    n_orders = np.fromiter(map(len, orders), np.int64, len(users))
    sizes = np.fromiter(map(len, baskets), np.int64, len(baskets))
    sorted_baskets = _sort_users(users, n_orders, sizes, codes.astype(np.int32), items)
    check_lines(sorted_baskets, source)
    return sorted_baskets


def _sort_users(
    users: NDArray[Any],
    n_orders: NDArray[np.int64],
    sizes: NDArray[np.int64],
    codes: NDArray[np.int32],
    items: NDArray[np.int64],
) -> Baskets:
    """Users by id, items of a basket by code: what the file's own order is does not matter."""
    rank = np.empty(users.size, dtype=np.int64)
    by_id = np.argsort(users, kind="stable")
    rank[by_id] = np.arange(users.size)
    user_of_order = np.repeat(rank, n_orders)
    by_user = np.argsort(user_of_order, kind="stable")
    place = np.empty(sizes.size, dtype=np.int64)
    place[by_user] = np.arange(sizes.size)
    order_of_line = np.repeat(place, sizes)
    lines = np.lexsort((codes, order_of_line))
    return Baskets(
        users=users[by_id],
        items=items,
        order_starts=np.append(0, np.cumsum(n_orders[by_id])),
        line_starts=np.append(0, np.cumsum(sizes[by_user])),
        line_items=codes[lines],
    )


def _read_users(names: list[str]) -> NDArray[Any]:
    """Ids as numbers where all of them are, else as text."""
    numbers = all(len(name) < 18 and name.isascii() and name.isdigit() for name in names)
    if numbers and len(set(map(int, names))) == len(names):
        return np.array([int(name) for name in names], dtype=np.int64)
    return np.array(names, dtype=np.str_)


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    columns = dict(pairs)
    if len(columns) != len(pairs):
        raise ValueError("a user stands in it twice")
    return columns


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read ({error.strerror}).") from error
