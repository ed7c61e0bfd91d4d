"""The study of selection rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Data, Finished, Page, Results
from experiments.store import RESULTS
from oddslip.cli.options import Json
from oddslip.cli.outputs import check_folders, check_outputs, console, print_json, write_text


def selection(
    dataset: Annotated[
        list[str] | None, typer.Option(help="Data set; may be given several times. All twelve.")
    ] = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(help="lightgbm, lightgbm-regularised, xgboost, logistic, mlp. All five."),
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="1, r. Both.")] = None,
    seeds: Annotated[
        bool, typer.Option("--seeds", help="Also 20 draws of the folds: birds, medical, enron.")
    ] = False,
    tafeng: Annotated[bool, typer.Option("--tafeng", help="Also arms of Ta-Feng.")] = False,
    data: Data = None,
    results: Results = RESULTS,
    work: Annotated[
        Path, typer.Option(help="Where studies keep trained scores, each in its own folder.")
    ] = Path(".work"),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Which rule chooses best: every candidate and rule on the arms of the other studies.

    Examples:

      python -m experiments selection --dataset flags --learner lightgbm

      python -m experiments selection --finished --page docs/paper/selection-study.md
    """
    from experiments.mulan.arms import LEARNERS
    from experiments.mulan.study import DATASETS
    from experiments.selection.cells import CONTENDERS
    from experiments.selection.page import split_cells, summarise, write_page
    from experiments.selection.study import WEIGHTS, reproduce_selection

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_selection(
        datasets=dataset or DATASETS,
        learners=learner or tuple(LEARNERS),
        weights=weight or WEIGHTS,
        seeds=seeds,
        tafeng=tafeng,
        data=data,
        results=results,
        work=work,
        finished=finished,
    )
    if page is not None:
        write_text(page, write_page(cells, results=results))
    if json:
        return print_json(cells)
    from oddslip.reports.text import new_table

    for group, some in split_cells(cells).items():
        if some:
            table = new_table(f"{group}, {len(some)} cells", "gain over raw", "harmed", "worst")
            for name in CONTENDERS:
                summary = summarise(some, name)
                table.add_row(
                    name, f"{summary.mean:+.4f}", f"{summary.harmed}", f"{summary.worst:+.4f}"
                )
            console().print(table)
    return None
