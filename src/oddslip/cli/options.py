"""Arguments that several commands share, so that they are named and explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Scores = Annotated[
    Path, typer.Argument(help="Scores: .npy, .npz or .parquet, shape (rows, labels).")
]
Labels = Annotated[
    Path | None,
    typer.Argument(
        help="What was true: .npy or .npz of 0/1 cells, a scipy.sparse .npz, or .parquet. "
        "Leave out if the scores file holds it."
    ),
]
K = Annotated[int, typer.Option("-k", "--k", help="Labels shown per row.")]
KindOption = Annotated[
    str, typer.Option("--kind", help="What the scores are: probability or margin (log-odds).")
]
Names = Annotated[
    Path | None, typer.Option("--label-names", help="Text file with one label name per line.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Threads = Annotated[
    int | None, typer.Option("--threads", help="Threads; all cores unless given.", min=1)
]


def read_names(path: Path | None) -> list[str] | None:
    """Label names from a text file, one per line."""
    if path is None:
        return None
    from oddslip.errors import UnreadableFile

    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{path} cannot be read as a list of label names.") from error


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def console() -> Any:
    """Where people read: as wide as the terminal; piped, plain and 100 columns wide."""
    import sys

    from rich.console import Console

    width = None if sys.stdout.isatty() else 100
    return Console(highlight=False, markup=False, soft_wrap=False, width=width)


def read_numbers(path: Path | None) -> Any:
    """One number per label, from an .npy file or a text file with one number per line."""
    if path is None:
        return None
    import numpy as np

    from oddslip.errors import UnreadableFile

    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, ndmin=1)
    except (OSError, ValueError, EOFError) as error:
        raise UnreadableFile(
            f"{path} cannot be read as one number per label (.npy, or text with one a line)."
        ) from error
