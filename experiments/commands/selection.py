"""The studies of selection rules and of their peers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import DataSets, Outcome, make_table, study_command

if TYPE_CHECKING:
    from rich.table import Table


@study_command()
def selection(
    shared: dict[str, Any],
    dataset: DataSets = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(help="lightgbm, lightgbm-regularised, xgboost, logistic, mlp. All five."),
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="1, r. Both.")] = None,
    seeds: Annotated[
        bool, typer.Option("--seeds", help="Also 20 draws of the folds: birds, medical, enron.")
    ] = False,
    tafeng: Annotated[bool, typer.Option("--tafeng", help="Also arms of Ta-Feng.")] = False,
    work: Annotated[
        Path, typer.Option(help="Where studies keep trained scores, each in its own folder.")
    ] = Path(".work"),
) -> Outcome:
    """Which rule chooses best: every candidate and rule on the arms of the other studies.

    Examples:

      python -m experiments selection --dataset flags --learner lightgbm

      python -m experiments selection --finished --page docs/paper/selection-study.md
    """
    from experiments.mulan.arms import LEARNERS
    from experiments.mulan.study import DATASETS
    from experiments.selection.cells import CONTENDERS
    from experiments.selection.page import split_cells, write_page
    from experiments.selection.study import WEIGHTS, reproduce_selection

    cells = reproduce_selection(
        datasets=dataset or DATASETS,
        learners=learner or tuple(LEARNERS),
        weights=weight or WEIGHTS,
        seeds=seeds,
        tafeng=tafeng,
        **shared,
    )
    tables = (
        _tabulate_gains(group, some, CONTENDERS)
        for group, some in split_cells(cells).items()
        if some
    )
    return Outcome(cells, tables, partial(write_page, results=shared["results"]))


@study_command()
def peers(
    shared: dict[str, Any],
    peer: Annotated[list[str] | None, typer.Option(help="quadratic, mcgrad. Both.")] = None,
    dataset: DataSets = None,
) -> Outcome:
    """Do MCGrad or quadratic scaling repair better than what `auto` chooses?

    Examples:

      python -m experiments peers --peer quadratic --dataset flags

      python -m experiments peers --finished --page docs/paper/peers.md
    """
    from experiments.mulan.study import DATASETS
    from experiments.selection.peers import PEERS, reproduce_peers
    from experiments.selection.peers_page import CONTENDERS, write_page

    cells = reproduce_peers(peers=peer or PEERS, datasets=dataset or DATASETS, **shared)
    tables = (_tabulate_gains(name, some, CONTENDERS[name]) for name, some in cells.items() if some)
    return Outcome(cells, tables, write_page)


def _tabulate_gains(title: str, cells: dict[str, Any], contenders: Iterable[str]) -> Table:
    from experiments.selection.page import summarise

    summaries = {name: summarise(cells, name) for name in contenders}
    lines = [
        [name, f"{summary.mean:+.4f}", f"{summary.harmed}", f"{summary.worst:+.4f}"]
        for name, summary in summaries.items()
    ]
    columns = (f"{title}, {len(cells)} cells", "gain over raw", "harmed", "worst")
    return make_table(*columns, rows=lines)
