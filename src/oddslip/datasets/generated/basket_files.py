"""Made-up purchases as one Parquet file of (user, order, item), in the plain form."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from oddslip import DEFAULT_SEED
from oddslip.datasets.generated.basket_lines import draw_blocks
from oddslip.datasets.generated.catalogues import (
    DEPARTMENTS,
    draw_catalogue,
    name_aisles,
    name_products,
)
from oddslip.datasets.generated.checks import check_count, make_folder
from oddslip.datasets.origins import note_generated
from oddslip.progress import progress_bar
from oddslip.sources.sinks import whole_file

BASKETS_NAME, ITEMS_NAME = "baskets.parquet", "items.parquet"


def generate_baskets(
    folder: str | os.PathLike[str],
    *,
    n_users: int,
    seed: int = DEFAULT_SEED,
    n_products: int = 49_688,
) -> Path:
    """Write ``baskets.parquet`` and ``items.parquet`` for made-up users.

    Users and habits are those of `generate_instacart`; every order is told. Columns are user,
    order, item, dow, hour and days_since_prior; and item, name, aisle, department.

    Parameters
    ----------
    folder : path
        Where the files go. Made if it is not there.
    n_users, seed, n_products : int
        As for `generate_instacart`.

    Returns
    -------
    Path
        The file of purchases.

    Examples
    --------
    >>> generate_baskets("data", n_users=1000)  # doctest: +SKIP
    PosixPath('data/baskets.parquet')
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_users = check_count("n_users", n_users, 1, 100_000_000)
    n_products = check_count("n_products", n_products, 200, 10_000_000)
    seed = check_count("seed", seed, 0)
    catalogue = draw_catalogue(n_products, seed)
    path = make_folder(folder) / BASKETS_NAME
    schema = pa.schema(
        {
            "user": pa.int64(), "order": pa.int64(), "item": pa.int64(),
            "dow": pa.int8(), "hour": pa.int8(), "days_since_prior": pa.float32(),
        }
    )  # fmt: skip
    aisles = np.array(name_aisles(catalogue))
    departments = np.array(DEPARTMENTS)[catalogue.department]
    items = {
        "item": np.arange(1, n_products + 1),
        "name": name_products(n_products),
        "aisle": aisles[catalogue.aisle],
        "department": departments[catalogue.aisle],
    }
    with (
        whole_file(path.with_name(ITEMS_NAME)) as listed,
        whole_file(path) as unfinished,
        pq.ParquetWriter(unfinished, schema, compression="zstd") as writer,
        progress_bar("generating baskets", n_users) as advance,
    ):
        pq.write_table(pa.table(items), listed, compression="zstd")
        for block in draw_blocks(catalogue, n_users, seed):
            lines = block.line_order
            gap = block.gap[lines]
            columns = [
                block.user[lines] + 1,
                block.number[lines],
                block.line_item + 1,
                block.dow[lines],
                block.hour[lines],
            ]
            arrays = [
                pa.array(each).cast(field.type)
                for each, field in zip(columns, schema, strict=False)
            ]
            arrays.append(pa.array(gap.astype(np.float32), mask=gap < 0))
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            advance(int(block.is_last.sum()))
    told = {"form": "baskets", "n_users": n_users, "n_products": n_products, "seed": seed}
    note_generated([path, path.with_name(ITEMS_NAME)], **told)
    return path
