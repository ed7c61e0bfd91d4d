"""The study of models that were not made for this project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import Mcgrad, Outcome, make_table, study_command

if TYPE_CHECKING:
    from rich.table import Table


@study_command()
def wild(
    shared: dict[str, Any],
    model: Annotated[
        list[str] | None,
        typer.Option(help="jamendo, chexnet, texts-balanced, texts-pos-weight. All four."),
    ] = None,
    mcgrad: Mcgrad = False,
    repeats: Annotated[int, typer.Option(min=1, max=20, help="Splits of each protocol.")] = 20,
) -> Outcome:
    """Does a repair help models that others published or that people train with class weights?

    Examples:

      python -m experiments wild --model jamendo

      python -m experiments wild --finished --page docs/paper/wild.md
    """
    from experiments.wild.models import MODELS
    from experiments.wild.page import write_page
    from experiments.wild.study import reproduce_wild

    names = model or list(MODELS)
    cells = reproduce_wild(models=names, mcgrad=mcgrad, repeats=repeats, **shared)
    return Outcome(cells, (_tabulate_model(cells, name) for name in names), write_page)


def _tabulate_model(cells: dict[str, Any], name: str) -> Table:
    from experiments.wild.measures import K
    from experiments.wild.page import TITLES, summarise

    lines = []
    for contender, title in TITLES.items():
        summary = summarise(cells, name, "half", contender)
        if summary is not None:
            interval = f"{summary.low:+.4f} to {summary.high:+.4f}"
            lines.append([title, f"{summary.value:.4f}", f"{summary.gain:+.4f}", interval])
    columns = (f"{name}, held-out half", f"MAP@{K}", "gain over raw", "95% interval")
    return make_table(*columns, rows=lines)
