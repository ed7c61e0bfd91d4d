"""`oddslip reproduce` and `oddslip generate`: the paper's experiments, and data in public forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from oddslip import DEFAULT_SEED
from oddslip.cli.options import (
    Json,
    check_folders,
    check_outputs,
    console,
    print_json,
    write_text,
)


class Form(StrEnum):
    """What can be generated."""

    santander = "santander"
    instacart = "instacart"
    baskets = "baskets"


def generate(
    form: Annotated[Form, typer.Argument(help="Whose form the files have.")],
    *,
    size: Annotated[
        int, typer.Option(help="Rows of Santander; users of Instacart and of baskets.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder the files go to.")],
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = DEFAULT_SEED,
) -> None:
    """Write files of made-up data in the form of a public data set, quirks included.

    Examples:

      oddslip generate santander --size 1360000 -o data

      oddslip generate instacart --size 19681 -o data
    """
    from oddslip.datasets.generated import generate_baskets, generate_instacart, generate_santander

    check_folders(output)
    if form is Form.santander:
        path = generate_santander(output, n_rows=size, seed=seed)
        written = f"{size:,} rows in {path}."
    elif form is Form.instacart:
        path = generate_instacart(output, n_users=size, seed=seed)
        written = f"Six files of {size:,} users in {path}."
    else:
        path = generate_baskets(output, n_users=size, seed=seed)
        written = f"Baskets of {size:,} users in {path}; items beside it."
    console().print(written)


reproduce = typer.Typer(
    help="Redo the paper's experiments. A killed run continues where it was.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Finished = Annotated[
    bool, typer.Option("--finished", help="Only read finished cells; no data, no training.")
]


FirstSeed = Annotated[
    int, typer.Option(min=0, help="Seed of the first draw; thresholds were set below 1000.")
]
Page = Annotated[Path | None, typer.Option(help="Write the page (Markdown).")]


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
    results: Annotated[Path | None, typer.Option(help="Where finished cells are kept.")] = None
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
    own = get_type_hints(study, include_extras=True)
    shared = get_type_hints(PairOptions, include_extras=True)
    del own["options"], own["return"]
    hints = own | shared
    defaults = {name: signature(study).parameters[name].default for name in own}
    defaults |= PairOptions._field_defaults

    def command(**given: Any) -> None:
        study(
            PairOptions(**{name: given[name] for name in shared}),
            **{name: given[name] for name in own},
        )

    # The parser reads options off a function's signature.
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=hint)
        for name, hint in hints.items()
    ]
    command.__name__, command.__doc__ = study.__name__, study.__doc__
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = hints
    return reproduce.command()(command)


NLabels = Annotated[int, typer.Option("--labels", min=2, help="Most frequent products kept.")]


@pair_command
def tafeng(options: PairOptions, labels: NLabels = 1000) -> None:
    """Section 3 on Ta-Feng: next baskets of a grocery store.

    Examples:

      oddslip reproduce tafeng --part ladder --part caps

      oddslip reproduce tafeng --finished --page docs/tafeng.md --figures docs
    """

    def read(n_labels: int | None) -> Any:
        from oddslip.datasets.baskets.tafeng import read_tafeng

        return read_tafeng(options.data, n_labels=n_labels)

    study = "tafeng" if labels == 1000 else f"tafeng-{labels}"
    _run_pairs("tafeng", read, options, study=study, labels=labels)


@pair_command
def instacart(options: PairOptions, labels: NLabels = 4000) -> None:
    """Section 3 on Instacart: Kaggle's files of 2017, or generated ones of the same form.

    Examples:

      oddslip reproduce instacart --data ~/instacart --part ladder

      oddslip reproduce instacart --data generated --labels 200 --part caps
    """

    def read(n_labels: int | None) -> Any:
        from oddslip.datasets.baskets.instacart import read_instacart

        return read_instacart(options.data, n_labels=n_labels)

    study = "instacart" if labels == 4000 else f"instacart-{labels}"
    _run_pairs("instacart", read, options, study=study, labels=labels)


@pair_command
def santander(
    options: PairOptions,
    sample: Annotated[
        bool, typer.Option("--sample", help="The public sample of 12,373 rows instead.")
    ] = False,
) -> None:
    """Section 3 on Santander: products a bank's customers add in the following month.

    Examples:

      oddslip reproduce santander --data ~/santander --part ladder

      oddslip reproduce santander --sample
    """

    def read(n_labels: int | None) -> Any:
        if sample:
            from oddslip.datasets.santander.sample import read_santander_sample

            return read_santander_sample(options.data)
        from oddslip.datasets.santander.reader import read_santander

        return read_santander(_need_folder(options.data, "train_ver2.csv"))

    name = "santander-sample" if sample else "santander"
    _run_pairs(name, read, options, study=name, labels=None)


def _run_pairs(
    name: str,
    read: Callable[[int | None], Any],
    options: PairOptions,
    *,
    study: str,
    labels: int | None,
) -> None:
    """Run or read a study, write what was asked for, and print Table 1.

    ``labels`` is how many of the data's products are labels; None for all, as Santander has them.
    """
    from oddslip.studies.pairs.study import reproduce_pairs

    check_outputs(options.page)
    check_folders(options.results, options.work, options.figures, options.tables)

    cells = reproduce_pairs(
        study,
        read,
        command=f"oddslip reproduce {name.replace('-sample', ' --sample')}",
        n_labels=labels,
        results=options.results,
        work=options.work,
        finished=options.finished,
        rediagnose=options.rediagnose,
        **_select_arms(options, all_products=labels is not None),
    )
    if options.figures is not None:
        from oddslip.studies.pairs.pictures import write_pictures

        write_pictures(cells, name, options.figures)
    if options.tables is not None:
        from oddslip.studies.pairs.records import write_tables

        write_tables(cells, name, options.tables)
    if options.page is not None:
        from oddslip.studies.pairs.page import write_page

        folder = options.results or Path(f"results/{study}")
        write_text(options.page, write_page(cells, name, results=folder, tables=options.tables))
    if options.json:
        return print_json(cells)
    from oddslip.reports.text import new_table
    from oddslip.studies.pairs.tables import format_entry, table_one

    columns = table_one(cells)
    table = new_table("", *columns)
    for row in next(iter(columns.values()), {}):
        table.add_row(row, *(format_entry(row, column[row]) for column in columns.values()))
    console().print(table)
    if cells.get("data", {}).get("generated"):
        console().print("Generated data: the scores say nothing about people.")
    return None


def _select_arms(options: PairOptions, *, all_products: bool) -> dict[str, Any]:
    """Which arms, as `reproduce_pairs` wants them."""
    from oddslip.errors import InvalidInput
    from oddslip.studies.pairs.arms import PARTS

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
    from oddslip.errors import InvalidInput

    if text == "none":
        return None
    try:
        return float(text)
    except ValueError as error:
        raise InvalidInput(f"cap must be a number or none, got {text!r}.") from error


def _need_folder(data: Path | None, what: str) -> Path:
    """The folder that was named, or a line that says what it must hold."""
    from oddslip.errors import InvalidInput

    if data is None:
        raise InvalidInput(f"--data must name the folder with {what}, got none.")
    return data


@reproduce.command()
def archive(
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(".work"),
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The archive to write (.zip).")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(help="Read an archive and hold its files against their hashes.")
    ] = None,
    json: Json = False,
) -> None:
    """Write the scores of all trained arms as one archive with SHA-256 of each file, or check one.

    Examples:

      oddslip reproduce archive --work .work/tafeng -o tafeng-scores.zip

      oddslip reproduce archive --check tafeng-scores.zip
    """
    from oddslip.errors import InvalidInput
    from oddslip.studies.archive import check_archive, write_archive

    if (output is None) == (check is None):
        raise InvalidInput("either --output or --check must be given, and not both.")
    if output is not None:
        check_outputs(output)
        manifest = write_archive(work, output)
    else:
        assert check is not None
        manifest = check_archive(check)
    if json:
        return print_json(manifest)
    size = sum(each["bytes"] for each in manifest["files"])
    done = f"written to {output}" if output is not None else "as their hashes say"
    console().print(f"{manifest['n_files']:,} files, {size:,} bytes, {done}.")
    return None


@reproduce.command()
def schematic(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The picture to draw (.png, .svg or .pdf).")
    ],
) -> None:
    """Figure 0: regimes, repairs and a dead label, computed by the library's own functions.

    Examples:

      oddslip reproduce schematic -o docs/figure-zero.png
    """
    from oddslip.files import whole_file
    from oddslip.reports.figures.studies.schematic import draw_schematic
    from oddslip.studies.schematic import make_schematic

    check_outputs(output)
    with whole_file(output) as unfinished:
        draw_schematic(make_schematic()).savefig(unfinished, format=output.suffix[1:] or "png")


@reproduce.command()
def mulan(
    dataset: Annotated[
        list[str] | None, typer.Option(help="Data set; may be given several times. All twelve.")
    ] = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(help="lightgbm, lightgbm-regularised, xgboost, logistic, mlp. All five."),
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="1, sqrt, r, 10r. All four.")] = None,
    protocol: Annotated[str, typer.Option(help="paper or clean.")] = "paper",
    data: Annotated[Path | None, typer.Option(help="Folder with the data sets.")] = None,
    results: Annotated[Path, typer.Option(help="Where finished cells are kept.")] = Path(
        "results/mulan"
    ),
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(
        ".work/mulan"
    ),
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

      oddslip reproduce mulan --dataset flags --dataset emotions --learner lightgbm

      oddslip reproduce mulan --learner lightgbm --weight 1 --weight r

      oddslip reproduce mulan --data ~/mulan
    """
    from oddslip.studies.mulan.arms import LEARNERS
    from oddslip.studies.mulan.study import DATASETS, reproduce_mulan
    from oddslip.studies.mulan.table import compare_table_2
    from oddslip.studies.store import WEIGHTS

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
        from oddslip.studies.mulan.page import publish
        from oddslip.studies.mulan.table import read_cells

        careful = read_cells(results / "clean")
        publish(cells, protocol, careful, results=results, page=page, figure=figure)
    if regimes is not None:
        from oddslip.studies.mulan.page import write_regimes

        write_regimes(cells, regimes)
    if json:
        return print_json(cells)
    from oddslip.reports.text import new_table
    from oddslip.studies.mulan.page import arms, described

    out = console()
    table = new_table("data set", "learner", "w", "raw", "isotonic", "pooled", "ceiling", "AUC")
    for name, learned_by, w, cell in arms(cells, described(cells)):
        shown = [cell["map"][rung] for rung in ("raw", "isotonic", "pooled", "ceiling")]
        table.add_row(name, learned_by, w, *(f"{v:.3f}" for v in shown), f"{cell['auc']:.3f}")
    out.print(table)
    entries = compare_table_2(cells)
    if entries:
        same = sum(entry.agrees for entry in entries)
        out.print(f"Table 2 of the paper: {same} of {len(entries)} printed entries agree.")
        for entry in entries:
            if not entry.agrees:
                out.print(f"  {entry.data}, {entry.column}: ours {entry.ours}, paper {entry.paper}")
    return None


@reproduce.command()
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
    data: Annotated[Path | None, typer.Option(help="Folder with the data sets.")] = None,
    results: Annotated[Path, typer.Option(help="Where finished cells are kept.")] = Path(
        "results/selection"
    ),
    work: Annotated[
        Path, typer.Option(help="Where studies keep trained scores, each in its own folder.")
    ] = Path(".work"),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Which rule chooses best: every candidate and rule on the arms of the other studies.

    Examples:

      oddslip reproduce selection --dataset flags --learner lightgbm

      oddslip reproduce selection --finished --page docs/selection-study.md
    """
    from oddslip.studies.mulan.arms import LEARNERS
    from oddslip.studies.mulan.study import DATASETS
    from oddslip.studies.selection.cells import CONTENDERS
    from oddslip.studies.selection.page import split_cells, summarise, write_page
    from oddslip.studies.selection.study import WEIGHTS, reproduce_selection

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
                own = summarise(some, name)
                table.add_row(name, f"{own.mean:+.4f}", f"{own.harmed}", f"{own.worst:+.4f}")
            console().print(table)
    return None


@reproduce.command()
def scenes(
    scene: Annotated[
        list[str] | None, typer.Option(help="A scene by its name; may be given again. All.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of each scene.")] = 20,
    first_seed: FirstSeed = 1000,
    page: Page = None,
) -> None:
    """Scenes whose truth is known: how often the verdict of diagnose is right.

    Examples:

      oddslip reproduce scenes --page docs/scenes.md

      oddslip reproduce scenes --scene random --draws 3 --first-seed 0
    """
    from oddslip.studies.scenes import SCENES, check_scenes, tabulate, tell_page, try_scenes

    check_outputs(page)
    names = check_scenes(tuple(scene or SCENES))
    lines = tabulate(try_scenes(names, n_draws=draws, first_seed=first_seed))
    _tell_draws(lines, page, partial(tell_page, n_draws=draws, first_seed=first_seed))


@reproduce.command()
def months(
    month: Annotated[
        list[str] | None, typer.Option(help="A month by its name; may be given again. All.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Worlds that are drawn.")] = 10,
    first_seed: FirstSeed = 1000,
    page: Page = None,
) -> None:
    """Months of a served ranker, with one fault each or quiet: what `oddslip check` finds.

    Examples:

      oddslip reproduce months --page docs/months.md

      oddslip reproduce months --month quiet --draws 2 --first-seed 0
    """
    from oddslip.studies.months import FAULTS, QUIET, check_months, tabulate, tell_page, try_months

    check_outputs(page)
    names = check_months(tuple(month or (*FAULTS, QUIET)))
    lines = tabulate(try_months(names, n_draws=draws, first_seed=first_seed))
    _tell_draws(lines, page, partial(tell_page, n_draws=draws, first_seed=first_seed))


def _tell_draws(
    lines: Iterable[str], page: Path | None, tell_page: Callable[[list[str]], str]
) -> None:
    """Print each line of a table as soon as it is there; then write the page of all of them."""
    kept = []
    for line in lines:
        console().print(line, markup=False, highlight=False, soft_wrap=True)
        kept.append(line)
    if page is not None:
        write_text(page, tell_page(kept))


@reproduce.command()
def survey(
    results: Annotated[Path, typer.Option(help="Where finished cells are kept.")] = Path(
        "results/survey"
    ),
    work: Annotated[Path, typer.Option(help="Where the environments are made.")] = Path(
        ".work/survey"
    ),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Table S7: what other implementations do with a label that is never true.

    Each is installed into an environment of its own, from the package index.

    Examples:

      oddslip reproduce survey

      oddslip reproduce survey --finished --page docs/survey.md
    """
    from oddslip.studies.survey.study import reproduce_survey

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_survey(results=results, work=work, finished=finished)
    if page is not None:
        from oddslip.studies.survey.page import write_page

        write_text(page, write_page(cells))
    if json:
        return print_json(cells)
    from oddslip.reports.text import new_table

    table = new_table("implementation", "version", "does")
    for name, cell in cells.items():
        table.add_row(name, cell["version"] or "-", cell["behaviour"])
    console().print(table)
    return None
