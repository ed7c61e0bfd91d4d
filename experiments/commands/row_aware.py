"""The study of second stages that see the row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Data, Finished, Page, Results
from experiments.store import RESULTS
from oddslip.cli.options import Json
from oddslip.cli.outputs import check_folders, check_outputs, console, print_json, write_text


def row_aware(
    dataset: Annotated[
        list[str] | None, typer.Option(help="Data set; may be given several times. All.")
    ] = None,
    mcgrad: Annotated[
        bool, typer.Option("--mcgrad", help="Measure MCGrad, which must be installed.")
    ] = False,
    built: Annotated[
        bool, typer.Option("--built", help="Measure the stage of the package.")
    ] = False,
    data: Data = None,
    results: Results = RESULTS,
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(".work"),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Does a second stage that sees the whole row earn its place behind the chosen repair?

    Examples:

      python -m experiments row-aware --dataset flags

      python -m experiments row-aware --finished --page docs/paper/row-aware.md
    """
    from experiments.row_aware.page import MEASURED, guard_stages, having, write_page
    from experiments.row_aware.panels import DATASETS
    from experiments.row_aware.study import reproduce_row_aware
    from experiments.selection.page import summarise

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_row_aware(
        datasets=dataset or DATASETS,
        mcgrad=mcgrad,
        built=built,
        data=data,
        results=results,
        work=work,
        finished=finished,
    )
    if page is not None:
        write_text(page, write_page(cells))
    if json:
        return print_json(cells)
    from oddslip.reports.text import new_table

    table = new_table("guarded stage", "cells", "less auto", "harmed")
    for name in MEASURED:
        measured = having(guard_stages(cells), name)
        if measured:
            gain = summarise(measured, name, against="auto").mean
            harmed = summarise(measured, name).harmed
            table.add_row(name, f"{len(measured)}", f"{gain:+.4f}", f"{harmed}")
    console().print(table)
    return None
