"""Output of commands: files written atomically, JSON, and the console."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from oddslip.spark.session import DataFrame

FIGURES = (".png", ".svg", ".pdf")


def check_outputs(*paths: Path | None, figure: Path | None = None) -> None:
    """Reject paths that cannot be written, before the work starts."""
    from oddslip.io.files import output_path

    for path in (*paths, figure):
        if path is not None:
            output_path(path)
    if figure is not None and figure.suffix.lower() not in FIGURES:
        raise InvalidInput(f"{figure} must end in {', '.join(FIGURES)} to be drawn.")


def check_folders(*paths: Path | None) -> None:
    """Reject paths that cannot be folders, before the work starts."""
    from oddslip.io.files import output_folder

    for path in paths:
        if path is not None:
            output_folder(path)


def write_json(path: Path, value: object) -> None:
    """Write a JSON document atomically."""
    from oddslip.io.files import write_text

    write_text(path, _as_json(value) + "\n")


def write_figure(path: Path, figure: Figure) -> None:
    """Write a matplotlib figure atomically."""
    from oddslip.io.files import atomic_write

    with atomic_write(path) as unfinished:
        figure.savefig(unfinished)


def write_table(table: DataFrame, output: Path | None) -> None:
    """Write a Spark table as a folder of Parquet files, in its tasks."""
    if output is None:
        raise InvalidInput("rows of Spark are written by its tasks. Pass -o and a folder.")
    if output.exists():
        raise InvalidInput(f"{output} must be a new folder, got one that exists.")
    table.write.parquet(str(output.resolve()))


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    print(_as_json(value))


def _as_json(value: object) -> str:
    return printable_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def printable_json(text: str) -> str:
    """The document with control and invisible characters as JSON escapes."""
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def console() -> Console:
    """Console for people: as wide as the terminal; 100 columns if piped."""
    from rich.console import Console

    from oddslip.reports.text import printable

    class PrintableConsole(Console):
        """Escapes names and paths in sentences; tables escape theirs."""

        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*(_lines(o) if isinstance(o, str) else o for o in objects), **options)

    def _lines(text: str) -> str:
        return "\n".join(printable(line) for line in text.split("\n"))

    width = None if sys.stdout.isatty() else 100
    return PrintableConsole(highlight=False, markup=False, soft_wrap=False, width=width)
