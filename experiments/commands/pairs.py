"""Studies of matched pairs: Ta-Feng, Instacart and its last baskets, Santander."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from experiments.commands.options import Finished, Results, as_command, make_table, read_parameters
from experiments.store import RESULTS
from oddslip.cli.options import Json
from oddslip.cli.outputs import check_folders, check_outputs, console, print_json
from oddslip.errors import InvalidInput
from oddslip.io.files import write_text


class Columns(StrEnum):
    """Which columns of Santander are features."""

    own = "own"
    paper = "paper"


class PairOptions(NamedTuple):
    """Options of every study of matched pairs: which arms, where they are kept, what is written."""

    part: Annotated[
        list[str] | None,
        typer.Option(
            help="ladder, caps, splits, choices, doses, draws, earlier, again, all-products. "
            "May be given several times."
        ),
    ] = None
    learner: Annotated[list[str] | None, typer.Option(help="lightgbm, mlp. Both.")] = None
    weight: Annotated[
        list[str] | None, typer.Option(help="1, sqrt, r, 10r. All that a part has.")
    ] = None
    cap: Annotated[
        list[str] | None, typer.Option(help="0.3, 0.7, 1, 2, 5, none. All that a part has.")
    ] = None
    draw: Annotated[
        list[int] | None, typer.Option(help="Draw of the training rows: 1, 2, 3; 0 for all rows.")
    ] = None
    data: Annotated[Path | None, typer.Option(help="Folder with the data.")] = None
    results: Results = RESULTS
    work: Annotated[Path | None, typer.Option(help="Where trained scores are kept.")] = None
    finished: Finished = False
    rediagnose: Annotated[
        bool,
        typer.Option("--rediagnose", help="Diagnose arms with kept scores again; train nothing."),
    ] = False
    page: Annotated[
        Path | None, typer.Option(help="Write the page of tables and claims (Markdown).")
    ] = None
    figures: Annotated[
        Path | None,
        typer.Option(help="Draw figures 1 and 2 and the supplement's into this folder."),
    ] = None
    tables: Annotated[
        Path | None,
        typer.Option(help="Write every table and figure as numbers (JSON, CSV) into this folder."),
    ] = None
    json: Json = False


def pair_command(study: Callable[..., None]) -> Callable[..., None]:
    """The command of a study of matched pairs: its own options, then `PairOptions`, as one."""
    own, shared = read_parameters(study), read_parameters(PairOptions)
    del own["options"]

    def command(**options: Any) -> None:
        pair_options = PairOptions(**{name: options.pop(name) for name in shared})
        study(pair_options, **options)

    return as_command(command, study, own | shared)


NLabels = Annotated[int, typer.Option("--labels", min=2, help="Most frequent products kept.")]


@pair_command
def tafeng(options: PairOptions, labels: NLabels = 1000) -> None:
    """Section 3 on Ta-Feng: next baskets of a grocery store.

    Examples:

      python -m experiments tafeng --part ladder --part caps

      python -m experiments tafeng --finished --page docs/paper/tafeng.md --figures docs/paper
    """

    from experiments.datasets.baskets.tafeng import read_tafeng

    _run_baskets("tafeng", read_tafeng, options, labels, in_paper=1000)


@pair_command
def instacart(options: PairOptions, labels: NLabels = 4000) -> None:
    """Section 3 on Instacart: Kaggle's files of 2017, or generated ones of the same form.

    Examples:

      python -m experiments instacart --data ~/instacart --part ladder

      python -m experiments instacart --data generated --labels 200 --part caps
    """

    from experiments.datasets.baskets.instacart import read_instacart

    _run_baskets("instacart", read_instacart, options, labels, in_paper=4000)


@pair_command
def instacart_baskets(options: PairOptions, labels: NLabels = 4000) -> None:
    """Section 3 on Instacart's last baskets: complete a cart of which half is known.

    Examples:

      python -m experiments instacart-baskets --learner mlp --part ladder

      python -m experiments instacart-baskets --labels 400
    """

    from experiments.datasets.baskets.completion import read_instacart_baskets

    _run_baskets("instacart-baskets", read_instacart_baskets, options, labels, in_paper=4000)


@pair_command
def santander(
    options: PairOptions,
    sample: Annotated[
        bool, typer.Option("--sample", help="The public sample of 12,373 rows instead.")
    ] = False,
    features: Annotated[
        Columns, typer.Option(help="Columns of our own, or those that the paper names.")
    ] = Columns.own,
) -> None:
    """Section 3 on Santander: products a bank's customers add in the following month.

    Examples:

      python -m experiments santander --data ~/santander --part ladder

      python -m experiments santander --data ~/santander --features paper

      python -m experiments santander --sample
    """

    def read(n_labels: int | None) -> Any:
        if sample:
            from experiments.datasets.santander.sample import read_santander_sample

            return read_santander_sample(options.data)
        from experiments.datasets.santander.reader import read_santander

        if options.data is None:
            raise InvalidInput("--data must name the folder with train_ver2.csv, got none.")
        return read_santander(options.data, features=features.value)

    name = "santander-sample" if sample else "santander"
    if features is Columns.own:
        return _run_pairs(name, read, options, study=name, labels=None)
    if sample:
        raise InvalidInput("features must be own with --sample, got paper: its columns are fixed.")
    words = "--features paper"
    return _run_pairs(name, read, options, study=f"{name}-paper", labels=None, words=words)


def _run_baskets(
    name: str, read: Callable[..., Any], options: PairOptions, labels: int, *, in_paper: int
) -> None:
    """Run or read a study of baskets; with other labels than the paper's, under another name."""
    study = name if labels == in_paper else f"{name}-{labels}"

    def read_labels(n_labels: int | None) -> Any:
        return read(options.data, n_labels=n_labels)

    _run_pairs(name, read_labels, options, study=study, labels=labels)


def _run_pairs(
    name: str,
    read: Callable[[int | None], Any],
    options: PairOptions,
    *,
    study: str,
    labels: int | None,
    words: str = "",
) -> None:
    """Run or read a study, write what was asked for, and print Table 1.

    ``labels`` is how many of the data's products are labels; None for all, as Santander has them.
    ``words`` are options of the study's own that its cells depend on.
    """
    from experiments.pairs.study import reproduce_pairs

    check_outputs(options.page)
    check_folders(options.results, options.work, options.figures, options.tables)

    cells = reproduce_pairs(
        study,
        read,
        command=f"python -m experiments {name.replace('-sample', ' --sample')} {words}".strip(),
        n_labels=labels,
        results=options.results,
        work=options.work,
        finished=options.finished,
        rediagnose=options.rediagnose,
        **_select_arms(options, all_products=labels is not None),
    )
    if options.figures is not None:
        from experiments.pairs.pictures import write_pictures

        write_pictures(cells, study, options.figures)
    if options.tables is not None:
        from experiments.pairs.records import write_tables

        write_tables(cells, name, options.tables)
    if options.page is not None:
        from experiments.pairs.page import write_page

        file = options.results / f"{study}.jsonl"
        write_text(options.page, write_page(cells, name, file=file, tables=options.tables))
    if options.json:
        return print_json(cells)
    from experiments.pairs.tables import format_entry, table_one

    columns = table_one(cells)
    rows = next(iter(columns.values()), {})
    lines = [
        [row, *(format_entry(row, column[row]) for column in columns.values())] for row in rows
    ]
    console().print(make_table("", *columns, rows=lines))
    if cells.get("data", {}).get("generated"):
        console().print("Generated data: the scores say nothing about people.")
    return None


def _select_arms(options: PairOptions, *, all_products: bool) -> dict[str, Any]:
    """Which arms, as `reproduce_pairs` wants them."""
    from experiments.pairs.arms import PARTS

    if not all_products and "all-products" in (options.part or ()):
        raise InvalidInput("part must not be all-products here: all products are labels already.")
    return {
        "parts": options.part or (PARTS if all_products else PARTS[:-1]),
        "learners": options.learner or None,
        "weights": options.weight or None,
        "caps": [_as_cap(each) for each in options.cap] if options.cap else None,
        "draws": options.draw or None,
    }


def _as_cap(text: str) -> float | None:
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError as error:
        raise InvalidInput(f"cap must be a number or none, got {text!r}.") from error
