"""Options that several studies share, and commands made of own and shared options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from experiments.store import RESULTS
from oddslip.cli.options import Figure, Json
from oddslip.cli.outputs import (
    check_folders,
    check_outputs,
    console,
    print_json,
    write_figure,
)
from oddslip.io.files import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing
    from rich.table import Table

Finished = Annotated[
    bool, typer.Option("--finished", help="Only read finished cells; no data, no training.")
]
Data = Annotated[Path | None, typer.Option(help="Folder with the data sets.")]
Results = Annotated[Path, typer.Option(help="Folder of finished cells.")]
Work = Annotated[Path, typer.Option(help="Where trained scores are kept.")]
DataSets = Annotated[
    list[str] | None, typer.Option(help="Data set; may be given several times. All twelve.")
]
FirstSeed = Annotated[
    int, typer.Option(min=0, help="Seed of the first draw; thresholds were set below 1000.")
]
Page = Annotated[Path | None, typer.Option(help="Write the page (Markdown).")]


class StudyOptions(NamedTuple):
    """Options of most studies: where cells come from, and what is written."""

    data: Data = None
    results: Results = RESULTS
    work: Work = Path(".work")
    finished: Finished = False
    page: Page = None
    figure: Figure = None
    json: Json = False


class Outcome(NamedTuple):
    """What the command of a study prints and writes: ``cells`` as JSON, or else ``tables``."""

    cells: Any
    tables: Iterable[Table]
    write_page: Callable[[Any], str]
    draw: Callable[[Any], Drawing] | None = None


def study_command(*names: str) -> Callable[[Callable[..., Outcome]], Callable[..., None]]:
    """The command of a study: its own options, then those of ``names``.

    A name is one of `StudyOptions`, unless the study has an option of that name itself. The study
    gets the shared options that its cells depend on as one dict, ``shared``.
    """
    names = names or ("data", "results", "work", "finished", "page", "json")

    def decorate(study: Callable[..., Outcome]) -> Callable[..., None]:
        own, options_of_studies = read_parameters(study), read_parameters(StudyOptions)
        del own["shared"]
        parameters = {name: each for name, each in own.items() if name not in names}
        parameters |= {name: own.get(name) or options_of_studies[name] for name in names}

        def command(
            *, page: Path | None, figure: Path | None = None, json: bool, **options: Any
        ) -> None:
            check_outputs(page, figure=figure)
            check_folders(options["results"], options.get("work"))
            own_options = {name: options.pop(name) for name in own}
            outcome = study(options, **own_options)
            if page is not None:
                write_text(page, outcome.write_page(outcome.cells))
            if figure is not None and outcome.draw is not None:
                write_figure(figure, outcome.draw(outcome.cells))
            if json:
                return print_json(outcome.cells)
            for table in outcome.tables:
                console().print(table)
            return None

        return as_command(command, study, parameters)

    return decorate


def read_parameters(options: Callable[..., Any]) -> dict[str, Parameter]:
    """Options by name, as the parser reads them off a function's signature."""
    hints = get_type_hints(options, include_extras=True)
    return {
        name: Parameter(name, Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[name])
        for name, each in signature(options).parameters.items()
    }


def as_command(
    command: Callable[..., None], study: Callable[..., Any], parameters: dict[str, Parameter]
) -> Callable[..., None]:
    """A command with the name and the help of a study, and these options."""
    command.__name__, command.__doc__ = study.__name__, study.__doc__
    command.__signature__ = Signature([*parameters.values()])  # type: ignore[attr-defined]
    command.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    return command


def make_table(*columns: str, rows: Iterable[Iterable[str]]) -> Table:
    """A table to print."""
    from oddslip.reports.text import new_table

    table = new_table(*columns)
    for row in rows:
        table.add_row(*row)
    return table
