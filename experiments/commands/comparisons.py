"""Studies that compare repairs: selection rules, peers, second stages, and models of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.commands.options import DataSets, Outcome, make_table, study_command

if TYPE_CHECKING:
    from rich.table import Table

Mcgrad = Annotated[bool, typer.Option("--mcgrad", help="Measure MCGrad, which must be installed.")]


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
