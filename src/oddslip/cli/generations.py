"""`oddslip generate`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from oddslip import DEFAULT_SEED
from oddslip.cli.options import console


class Form(StrEnum):
    """What can be generated."""

    santander = "santander"
    instacart = "instacart"
    baskets = "baskets"


def generate(
    form: Annotated[Form, typer.Argument(help="Whose form the files have.")],
    *,
    size: Annotated[
        int, typer.Option(help="Rows of Santander; users of Instacart and of baskets.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder the files go to.")],
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = DEFAULT_SEED,
) -> None:
    """Write files of made-up data in the form of a public data set, quirks included.

    Examples:

      oddslip generate santander --size 1360000 -o data

      oddslip generate instacart --size 19681 -o data
    """
    from oddslip.datasets.generated import (
        generate_baskets,
        generate_instacart,
        generate_santander,
    )

    if form is Form.santander:
        path = generate_santander(output, n_rows=size, seed=seed)
        told = f"{size:,} rows in {path}."
    elif form is Form.instacart:
        path = generate_instacart(output, n_users=size, seed=seed)
        told = f"Six files of {size:,} users in {path}."
    else:
        path = generate_baskets(output, n_users=size, seed=seed)
        told = f"Baskets of {size:,} users in {path}; items beside it."
    console().print(told)
