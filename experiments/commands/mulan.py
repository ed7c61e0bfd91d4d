"""Section 4: the MULAN data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import Data, DataSets, Finished, Results, Work, make_table
from experiments.store import RESULTS
from oddslip.cli.options import Json
from oddslip.cli.outputs import check_folders, check_outputs, console, print_json


def mulan(
    dataset: DataSets = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(help="lightgbm, lightgbm-regularised, xgboost, logistic, mlp. All five."),
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="1, sqrt, r, 10r. All four.")] = None,
    protocol: Annotated[str, typer.Option(help="paper or clean.")] = "paper",
    data: Data = None,
    results: Results = RESULTS,
    work: Work = Path(".work/mulan"),
    choices: Annotated[bool, typer.Option(help="Also what the selection rules choose.")] = True,
    finished: Finished = False,
    page: Annotated[
        Path | None, typer.Option(help="Write the comparison with the paper as Markdown.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the dose-response figure (.png, .svg or .pdf).")
    ] = None,
    regimes: Annotated[
        Path | None, typer.Option(help="Write the reference points of the regime picture (JSON).")
    ] = None,
    json: Json = False,
) -> None:
    """Section 4: twelve MULAN data sets, five learners, four weights.

    Examples:

      python -m experiments mulan --dataset flags --dataset emotions --learner lightgbm

      python -m experiments mulan --learner lightgbm --weight 1 --weight r

      python -m experiments mulan --data ~/mulan
    """
    from experiments.mulan.arms import LEARNERS
    from experiments.mulan.study import DATASETS, reproduce_mulan
    from experiments.mulan.table import compare_table_2
    from experiments.store import WEIGHTS

    check_outputs(page, regimes, figure=figure)
    check_folders(results, work)
    cells = reproduce_mulan(
        datasets=dataset or DATASETS,
        learners=learner or tuple(LEARNERS),
        weights=weight or tuple(WEIGHTS),
        protocol=protocol,  # type: ignore[arg-type]
        data=data,
        results=results,
        work=work,
        choices=choices,
        finished=finished,
    )
    if page is not None or figure is not None:
        from experiments.mulan.page import publish
        from experiments.store import CellStore

        careful = CellStore(results, "mulan-clean").values()
        publish(cells, protocol, careful, results=results, page=page, figure=figure)
    if regimes is not None:
        from experiments.mulan.page import write_regimes

        write_regimes(cells, regimes)
    if json:
        return print_json(cells)
    from experiments.mulan.page import arms, described

    out, rungs = console(), ("raw", "isotonic", "pooled", "ceiling")
    lines = [
        [*arm, *(f"{cell['map'][rung]:.3f}" for rung in rungs), f"{cell['auc']:.3f}"]
        for *arm, cell in arms(cells, described(cells))
    ]
    out.print(make_table("data set", "learner", "w", *rungs, "AUC", rows=lines))
    entries = compare_table_2(cells)
    if entries:
        same = sum(entry.agrees for entry in entries)
        out.print(f"Table 2 of the paper: {same} of {len(entries)} printed entries agree.")
        for entry in entries:
            if not entry.agrees:
                out.print(f"  {entry.data}, {entry.column}: ours {entry.ours}, paper {entry.paper}")
    return None
