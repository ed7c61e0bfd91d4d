"""`oddslip reproduce`: the paper's experiments, cell by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oddslip.cli import pair_reproductions
from oddslip.cli.options import Json, console, print_json

reproduce = typer.Typer(
    help="Redo the paper's experiments. A killed run continues where it was.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for study in (
    pair_reproductions.tafeng,
    pair_reproductions.instacart,
    pair_reproductions.santander,
):
    reproduce.command()(study)


@reproduce.command()
def mulan(
    dataset: Annotated[
        list[str] | None, typer.Option(help="Data set; may be given several times. All eleven.")
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
    finished: Annotated[
        bool, typer.Option("--finished", help="Only read finished cells; train nothing.")
    ] = False,
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
    """Section 4: eleven MULAN data sets, five learners, four weights.

    Examples:

      oddslip reproduce mulan --dataset flags --dataset emotions --learner lightgbm

      oddslip reproduce mulan --learner lightgbm --weight 1 --weight r

      oddslip reproduce mulan --data ~/mulan
    """
    from oddslip.studies.mulan_arms import LEARNERS, WEIGHTS
    from oddslip.studies.mulan_tables import compare_table_2
    from oddslip.studies.mulans import DATASETS, reproduce_mulan

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
        from oddslip.studies.mulan_pages import publish
        from oddslip.studies.mulan_tables import read_cells

        careful = read_cells(results / "clean")
        publish(cells, protocol, careful, results=results, page=page, figure=figure)
    if regimes is not None:
        from oddslip.studies.mulan_regimes import write_regimes

        write_regimes(cells, regimes)
    if json:
        return print_json(cells)
    from oddslip.reports.texts import new_table
    from oddslip.studies.mulan_grids import arms, described

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
