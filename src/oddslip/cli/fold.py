"""`oddslip fold`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import oddslip
from oddslip.cli import options
from oddslip.cli.outputs import console, print_json


def fold(
    repair: options.Repair,
    models: Annotated[
        list[Path],
        typer.Argument(
            help="Saved models: LightGBM .txt, XGBoost .json or .ubj, ONNX .onnx. One file of all "
            "labels, or one a label: named after it, else in the order of the labels."
        ),
    ],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the folded models.")],
    json: options.Json = False,
) -> None:
    """Write a saved repair into saved models: same format, same predict call, no oddslip needed.

    The repair must be affine in the log-odds: fit it with `oddslip fit --foldable`.

    Examples:

      oddslip fold repair.oddslip models/*.txt -o folded/

      oddslip fold repair.oddslip model.json -o folded/
    """
    from oddslip.folding.files import fold_files

    paths = fold_files(oddslip.load_repair(repair), models, output)
    if json:
        return print_json({"schema": "oddslip.fold/1", "models": [str(path) for path in paths]})
    what = "model" if len(paths) == 1 else "models"
    console().print(f"Wrote {len(paths):,} {what} with the repair inside to {output}.")
    return None
