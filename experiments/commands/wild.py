"""The study of models that were not made for this project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Data, Finished, Page, Results
from experiments.store import RESULTS
from oddslip.cli.options import Json
from oddslip.cli.outputs import check_folders, check_outputs, console, print_json, write_text


def wild(
    model: Annotated[
        list[str] | None,
        typer.Option(help="jamendo, chexnet, texts-balanced, texts-pos-weight. All four."),
    ] = None,
    mcgrad: Annotated[
        bool, typer.Option("--mcgrad", help="Measure MCGrad, which must be installed.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, max=20, help="Splits of each protocol.")] = 20,
    data: Data = None,
    results: Results = RESULTS,
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(".work"),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Does a repair help models that others published or that people train with class weights?

    Examples:

      python -m experiments wild --model jamendo

      python -m experiments wild --finished --page docs/paper/wild.md
    """
    from experiments.wild.measures import K
    from experiments.wild.models import MODELS
    from experiments.wild.page import TITLES, summarise, write_page
    from experiments.wild.study import reproduce_wild

    check_outputs(page)
    check_folders(results, work)
    names = model or list(MODELS)
    cells = reproduce_wild(
        models=names,
        mcgrad=mcgrad,
        repeats=repeats,
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

    for name in names:
        table = new_table(f"{name}, held-out half", f"MAP@{K}", "gain over raw", "95% interval")
        for contender, title in TITLES.items():
            found = summarise(cells, name, "half", contender)
            if found is not None:
                interval = f"{found.low:+.4f} to {found.high:+.4f}"
                table.add_row(title, f"{found.value:.4f}", f"{found.gain:+.4f}", interval)
        console().print(table)
    return None
