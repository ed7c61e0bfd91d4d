"""`oddslip reproduce tafeng`, `instacart` and `santander`: section 3, matched pairs at scale."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oddslip.cli.options import Json
from oddslip.cli.pair_runs import Wanted, need_folder, run_study, select_arms

Part = Annotated[
    list[str] | None,
    typer.Option(
        help="ladder, caps, splits, choices, doses, draws, all-products. May be given again."
    ),
]
Learner = Annotated[list[str] | None, typer.Option(help="lightgbm, mlp. Both.")]
Weight = Annotated[list[str] | None, typer.Option(help="1, sqrt, r, 10r. All that a part has.")]
Cap = Annotated[
    list[str] | None, typer.Option(help="0.3, 0.7, 1, 2, 5, none. All that a part has.")
]
Draw = Annotated[
    list[int] | None, typer.Option(help="Draw of the training rows: 1, 2, 3; 0 for all rows.")
]
Data = Annotated[Path | None, typer.Option(help="Folder with the data.")]
Results = Annotated[Path | None, typer.Option(help="Where finished cells are kept.")]
Work = Annotated[Path | None, typer.Option(help="Where trained scores are kept.")]
Finished = Annotated[
    bool, typer.Option("--finished", help="Only read finished cells; no data, no training.")
]
Page = Annotated[Path | None, typer.Option(help="Write the page of tables and claims (Markdown).")]
Figures = Annotated[
    Path | None, typer.Option(help="Draw figures 1 and 2 and the supplement's into this folder.")
]
Tables = Annotated[
    Path | None,
    typer.Option(help="Write every table and figure as numbers (JSON, CSV) into this folder."),
]
NLabels = Annotated[int, typer.Option("--labels", min=2, help="Most frequent products kept.")]


def tafeng(
    part: Part = None,
    learner: Learner = None,
    weight: Weight = None,
    cap: Cap = None,
    draw: Draw = None,
    data: Data = None,
    labels: NLabels = 1000,
    results: Results = None,
    work: Work = None,
    finished: Finished = False,
    page: Page = None,
    figures: Figures = None,
    tables: Tables = None,
    json: Json = False,
) -> None:
    """Section 3 on Ta-Feng: next baskets of a grocery store.

    Examples:

      oddslip reproduce tafeng --part ladder --part caps

      oddslip reproduce tafeng --finished --page docs/tafeng.md --figures docs
    """

    def read(n_labels: int | None) -> Any:
        from oddslip.datasets.tafengs import read_tafeng

        return read_tafeng(data, n_labels=n_labels)

    study = "tafeng" if labels == 1000 else f"tafeng-{labels}"
    selection = select_arms(part, learner, weight, cap, draw)
    wanted = Wanted(results, work, finished, page, figures, tables, json)
    run_study("tafeng", study, read, labels, selection, wanted)


def instacart(
    part: Part = None,
    learner: Learner = None,
    weight: Weight = None,
    cap: Cap = None,
    draw: Draw = None,
    data: Data = None,
    labels: NLabels = 4000,
    results: Results = None,
    work: Work = None,
    finished: Finished = False,
    page: Page = None,
    figures: Figures = None,
    tables: Tables = None,
    json: Json = False,
) -> None:
    """Section 3 on Instacart: Kaggle's files of 2017, or generated ones of the same form.

    Examples:

      oddslip reproduce instacart --data ~/instacart --part ladder

      oddslip reproduce instacart --data generated --labels 200 --part caps
    """

    def read(n_labels: int | None) -> Any:
        from oddslip.datasets.instacarts import read_instacart

        return read_instacart(data, n_labels=n_labels)

    study = "instacart" if labels == 4000 else f"instacart-{labels}"
    selection = select_arms(part, learner, weight, cap, draw)
    wanted = Wanted(results, work, finished, page, figures, tables, json)
    run_study("instacart", study, read, labels, selection, wanted)


def santander(
    part: Part = None,
    learner: Learner = None,
    weight: Weight = None,
    cap: Cap = None,
    draw: Draw = None,
    data: Data = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="The public sample of 12,373 rows instead.")
    ] = False,
    results: Results = None,
    work: Work = None,
    finished: Finished = False,
    page: Page = None,
    figures: Figures = None,
    tables: Tables = None,
    json: Json = False,
) -> None:
    """Section 3 on Santander: products a bank's customers add in the following month.

    Examples:

      oddslip reproduce santander --data ~/santander --part ladder

      oddslip reproduce santander --sample
    """

    def read(n_labels: int | None) -> Any:
        if sample:
            from oddslip.datasets.santander_samples import read_santander_sample

            return read_santander_sample(data)
        from oddslip.datasets.santanders import read_santander

        return read_santander(need_folder(data, "train_ver2.csv"))

    study = "santander-sample" if sample else "santander"
    selection = select_arms(part, learner, weight, cap, draw, all_products=False)
    wanted = Wanted(results, work, finished, page, figures, tables, json)
    run_study(study, study, read, None, selection, wanted)
