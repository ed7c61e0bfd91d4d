"""Simulations of verdicts and of monitoring."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.options import FirstSeed, Page
from oddslip.cli.outputs import check_outputs, console
from oddslip.io.files import write_text


def verdict_simulation(
    scene: Annotated[
        list[str] | None, typer.Option(help="A scene by its name; may be given again. All.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of each scene.")] = 20,
    first_seed: FirstSeed = 1000,
    page: Page = None,
) -> None:
    """Scenes whose truth is known: how often the verdict of diagnose is right.

    Examples:

      python -m experiments verdict-simulation --page docs/paper/verdict-simulation.md

      python -m experiments verdict-simulation --scene random --draws 3 --first-seed 0
    """
    from experiments import verdict_simulation as study

    check_outputs(page)
    drawn: Any = {"n_draws": draws, "first_seed": first_seed}
    names = study.check_scenes(tuple(scene or study.SCENES))
    lines = study.tabulate(study.try_scenes(names, **drawn))
    _format_draws(lines, page, partial(study.format_page, **drawn))


def monitor_simulation(
    month: Annotated[
        list[str] | None, typer.Option(help="A month by its name; may be given again. All.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Worlds that are drawn.")] = 10,
    first_seed: FirstSeed = 1000,
    page: Page = None,
) -> None:
    """Months of a served ranker, with one fault each or quiet: what `oddslip check` finds.

    Examples:

      python -m experiments monitor-simulation --page docs/paper/monitor-simulation.md

      python -m experiments monitor-simulation --month quiet --draws 2 --first-seed 0
    """
    from experiments import monitor_simulation as study

    check_outputs(page)
    drawn: Any = {"n_draws": draws, "first_seed": first_seed}
    names = study.check_months(tuple(month or (*study.FAULTS, study.QUIET)))
    lines = study.tabulate(study.try_months(names, **drawn))
    _format_draws(lines, page, partial(study.format_page, **drawn))


def _format_draws(
    lines: Iterable[str], page: Path | None, format_page: Callable[[list[str]], str]
) -> None:
    """Print each line of a table as soon as it is there; then write the page of all of them."""
    rows = []
    for line in lines:
        console().print(line, markup=False, highlight=False, soft_wrap=True)
        rows.append(line)
    if page is not None:
        write_text(page, format_page(rows))
