"""Where the files of Instacart are, and their columns as lazy tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oddslip.datasets import files as data_files
from oddslip.datasets.basket_checks import load_polars, polars_errors, require_columns
from oddslip.errors import InvalidInput, UnreadableFile

# The names of the files as Kaggle gives them. A joined file has orders and products in one.
NAMES: dict[str, str | None] = {
    "orders": "orders.csv",
    "prior": "order_products__prior.csv",
    "train": "order_products__train.csv",
    "products": "products.csv",
    "aisles": "aisles.csv",
    "departments": "departments.csv",
    "joined": None,
}
_LAST = "reordered"  # not read, but its absence shows a line that was cut within its product
_MAY_BE_NONE = ("train", "joined")
_SOURCE = (
    'Instacart is on Kaggle, "Instacart Market Basket Analysis" (2017); needed are '
    + ", ".join(name for name in NAMES.values() if name)
    + "."
)


def find_instacart(
    data: str | os.PathLike[str] | None, names: Mapping[str, str | None] | None = None
) -> dict[str, Path]:
    """The files by what they hold, in a folder that is given or looked for."""
    wanted = _choose_names(names)
    roots = data_files.search_path() if data is None else [Path(data)]
    lacking: list[str] = []
    for root in roots:
        for folder in (root, root / "instacart"):
            paths = {role: folder / name for role, name in wanted.items()}
            absent = [path.name for path in paths.values() if not path.is_file()]
            if not absent:
                return paths
            # What a folder lacks is worth telling only if it has something.
            if len(absent) < len(paths) and not lacking:
                lacking = [f"{folder} must hold {', '.join(absent)}, got no such file."]
    tried = ", ".join(str(root) for root in roots)
    complaint = lacking or [
        f"the files of Instacart must be in a folder of {tried}, got none. "
        "Pass the folder itself, or point ODDSLIP_DATA at the one that holds it."
    ]
    raise UnreadableFile(f"{complaint[0]} {_SOURCE}")


def scan_columns(path: Path, columns: Mapping[str, Any], optional: tuple[str, ...] = ()) -> Any:
    """Columns of a CSV file as a lazy table. Short or foreign lines are refused."""
    pl = load_polars()
    with polars_errors(str(path)):
        header = pl.scan_csv(path, infer_schema=False).collect_schema()
        require_columns(header, tuple(columns), str(path))
        table = pl.scan_csv(path, infer_schema=False, schema_overrides=dict(columns))
        full = [name for name in columns if name not in optional]
        if _LAST in header and _LAST not in full:
            full.append(_LAST)
        # polars fills up a line that is cut short with nulls.
        gap = pl.any_horizontal(pl.col(*full).is_null()).arg_true().first()
        line = table.select(gap).collect(engine="streaming").item()
        if line is not None:
            raise UnreadableFile(
                f"{path} must have {', '.join(full)} in every line, got data line {line + 1} "
                "without all of them. Is the file cut short?"
            )
    return table.select(*columns)


def _choose_names(names: Mapping[str, str | None] | None) -> dict[str, str]:
    told = dict(names or {})
    strangers = [role for role in told if role not in NAMES]
    if strangers:
        raise InvalidInput(f"files must be named for {', '.join(NAMES)}, got {strangers[0]!r}.")
    chosen = {**NAMES, **told}
    if chosen["joined"] is not None:
        chosen.update(orders=None, prior=None, train=None)
    for role in told:
        if chosen[role] is None and role not in _MAY_BE_NONE and chosen["joined"] is None:
            raise InvalidInput(f"files must name a file for {role}, got None.")
    return {role: name for role, name in chosen.items() if name is not None}
