"""Generate data in public forms; archive trained scores."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Work
from oddslip import DEFAULT_SEED
from oddslip.cli.options import Json
from oddslip.cli.outputs import check_folders, check_outputs, console, print_json


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

      python -m experiments generate santander --size 1360000 -o data

      python -m experiments generate instacart --size 19681 -o data
    """
    from experiments.datasets.generators import (
        generate_baskets,
        generate_instacart,
        generate_santander,
    )

    check_folders(output)
    if form is Form.santander:
        path = generate_santander(output, n_rows=size, seed=seed)
        summary = f"{size:,} rows in {path}."
    elif form is Form.instacart:
        path = generate_instacart(output, n_users=size, seed=seed)
        summary = f"Six files of {size:,} users in {path}."
    else:
        path = generate_baskets(output, n_users=size, seed=seed)
        summary = f"Baskets of {size:,} users in {path}; items beside it."
    console().print(summary)


def archive(
    work: Work = Path(".work"),
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The archive to write (.zip).")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(help="Read an archive and hold its files against their hashes.")
    ] = None,
    json: Json = False,
) -> None:
    """Write the scores of all trained arms as one archive with SHA-256 of each file, or check one.

    Examples:

      python -m experiments archive --work .work/tafeng -o tafeng-scores.zip

      python -m experiments archive --check tafeng-scores.zip
    """
    from experiments.archive import check_archive, write_archive
    from oddslip.errors import InvalidInput

    if (output is None) == (check is None):
        raise InvalidInput("either --output or --check must be given, and not both.")
    if output is not None:
        check_outputs(output)
        manifest = write_archive(work, output)
    else:
        assert check is not None
        manifest = check_archive(check)
    if json:
        return print_json(manifest)
    size = sum(each["bytes"] for each in manifest["files"])
    status = f"written to {output}" if output is not None else "as their hashes say"
    console().print(f"{manifest['n_files']:,} files, {size:,} bytes, {status}.")
    return None
