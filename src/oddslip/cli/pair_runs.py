"""What the three commands of section 3 share: which arms, the run, and what it writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from oddslip.cli.options import console, print_json


class Wanted(NamedTuple):
    """Where a study is kept, and what is to be made of it."""

    results: Path | None
    work: Path | None
    finished: bool
    page: Path | None
    figures: Path | None
    tables: Path | None
    json: bool


def select_arms(
    part: Any, learner: Any, weight: Any, cap: Any, draw: Any, all_products: bool = True
) -> dict[str, Any]:
    """Which arms, as `reproduce_pairs` wants them."""
    from oddslip.errors import InvalidInput
    from oddslip.studies.pair_arms import PARTS

    parts = PARTS if all_products else PARTS[:-1]
    if not all_products and "all-products" in (part or ()):
        raise InvalidInput("part must not be all-products here: all products are labels already.")
    return {
        "parts": part or parts,
        "learners": learner or None,
        "weights": weight or None,
        "caps": [_as_cap(each) for each in cap] if cap else None,
        "draws": draw or None,
    }


def _as_cap(text: str) -> float | None:
    from oddslip.errors import InvalidInput

    if text == "none":
        return None
    try:
        return float(text)
    except ValueError as error:
        raise InvalidInput(f"cap must be a number or none, got {text!r}.") from error


def need_folder(data: Path | None, what: str) -> Path:
    """The folder that was named, or a line that says what it must hold."""
    from oddslip.errors import InvalidInput

    if data is None:
        raise InvalidInput(f"--data must name the folder with {what}, got none.")
    return data


def run_study(
    name: str,
    study: str,
    read: Callable[[int | None], Any],
    labels: int | None,
    selection: dict[str, Any],
    wanted: Wanted,
) -> None:
    """Run or read a study, write what was asked for, and print Table 1."""
    from oddslip.studies.pair_studies import reproduce_pairs

    cells = reproduce_pairs(
        study,
        read,
        command=f"oddslip reproduce {name.replace('-sample', ' --sample')}",
        n_labels=labels,
        results=wanted.results,
        work=wanted.work,
        finished=wanted.finished,
        **selection,
    )
    if wanted.figures is not None:
        from oddslip.studies.pair_pictures import write_pictures

        write_pictures(cells, name, wanted.figures)
    if wanted.tables is not None:
        from oddslip.studies.pair_records import write_tables

        write_tables(cells, name, wanted.tables)
    if wanted.page is not None:
        from oddslip.sources.sinks import whole_file
        from oddslip.studies.pair_pages import write_page

        with whole_file(wanted.page) as unfinished:
            folder = wanted.results or Path(f"results/{study}")
            text = write_page(cells, name, results=folder, tables=wanted.tables)
            unfinished.write_text(text, encoding="utf-8")
    if wanted.json:
        return print_json(cells)
    from oddslip.reports.texts import new_table
    from oddslip.studies.pair_tables import format_entry, table_one

    columns = table_one(cells)
    table = new_table("", *columns)
    for row in next(iter(columns.values()), {}):
        table.add_row(row, *(format_entry(row, column[row]) for column in columns.values()))
    console().print(table)
    if cells.get("data", {}).get("generated"):
        console().print("Generated data: the scores say nothing about people.")
    return None
