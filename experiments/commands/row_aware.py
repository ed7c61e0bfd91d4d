"""The study of second stages that see the row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import Mcgrad, Outcome, make_table, study_command

if TYPE_CHECKING:
    from rich.table import Table


@study_command()
def row_aware(
    shared: dict[str, Any],
    dataset: Annotated[
        list[str] | None, typer.Option(help="Data set; may be given several times. All.")
    ] = None,
    mcgrad: Mcgrad = False,
    built: Annotated[
        bool, typer.Option("--built", help="Measure the stage of the package.")
    ] = False,
) -> Outcome:
    """Does a second stage that sees the whole row earn its place behind the chosen repair?

    Examples:

      python -m experiments row-aware --dataset flags

      python -m experiments row-aware --finished --page docs/paper/row-aware.md
    """
    from experiments.row_aware.page import write_page
    from experiments.row_aware.panels import DATASETS
    from experiments.row_aware.study import reproduce_row_aware

    cells = reproduce_row_aware(datasets=dataset or DATASETS, mcgrad=mcgrad, built=built, **shared)
    return Outcome(cells, _tabulate_stages(cells), write_page)


def _tabulate_stages(cells: dict[str, Any]) -> Iterator[Table]:
    from experiments.row_aware.page import MEASURED, guard_stages, having
    from experiments.selection.page import summarise

    lines = []
    for name in MEASURED:
        measured = having(guard_stages(cells), name)
        if measured:
            gain = summarise(measured, name, against="auto").mean
            harmed = summarise(measured, name).harmed
            lines.append([name, f"{len(measured)}", f"{gain:+.4f}", f"{harmed}"])
    yield make_table("guarded stage", "cells", "less auto", "harmed", rows=lines)
