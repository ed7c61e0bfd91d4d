"""Commands of `oddslip reproduce` for the supplement's tables, and for what lies beyond them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from oddslip.cli.options import (
    Figure,
    Json,
    check_folders,
    check_outputs,
    console,
    print_json,
    write_text,
)
from oddslip.cli.study import Finished, Page

Data = Annotated[Path | None, typer.Option(help="Folder with the data sets.")]


def _publish(
    cells: Any,
    page: Path | None,
    figure: Path | None,
    write_page: Callable[[Any], str],
    draw: Callable[[Any], Any],
) -> None:
    """Write the page and draw the figure that were asked for."""
    if page is not None:
        write_text(page, write_page(cells))
    if figure is not None:
        from oddslip.files import whole_file

        with whole_file(figure) as unfinished:
            draw(cells).savefig(unfinished)


def _print_table(*columns: str, rows: list[list[str]]) -> None:
    from oddslip.reports.text import new_table

    table = new_table(*columns)
    for row in rows:
        table.add_row(*row)
    console().print(table)


def leaf(
    dataset: Annotated[
        list[str] | None, typer.Option(help="enron, medical, scene; may be given again. All.")
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="1, r, 10r, 100r. All four.")] = None,
    rows: Annotated[
        list[int] | None, typer.Option(min=1, help="Rows per leaf, boosted: 5, 20, 50, 200. All.")
    ] = None,
    data: Data = None,
    results: Annotated[Path, typer.Option(help="Where finished cells are kept.")] = Path(
        "results/leaf"
    ),
    finished: Finished = False,
    page: Page = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """Tables S8 and S9: saturation of single trees from their leaf counts, and of boosted trees.

    Examples:

      oddslip reproduce leaf --dataset scene --rows 200

      oddslip reproduce leaf --finished --page docs/leaf.md --figure docs/leaf.png
    """
    from oddslip.studies.leaf.page import draw, write_page
    from oddslip.studies.leaf.study import DATASETS, ROWS_IN_LEAF, WEIGHTS, reproduce_leaf

    check_outputs(page, figure=figure)
    check_folders(results)
    cells = reproduce_leaf(
        datasets=dataset or DATASETS,
        weights=weight or tuple(WEIGHTS),
        rows_in_leaf=rows or ROWS_IN_LEAF,
        data=data,
        results=results,
        finished=finished,
    )
    _publish(cells, page, figure, write_page, draw)
    if json:
        return print_json(cells)
    lines = [
        [key, f"{cell['saturated_share']:.2%}", f"{cell['raw']:.3f}", f"{cell['ceiling']:.3f}"]
        for key, cell in cells.items()
    ]
    return _print_table("cell", "saturated", "raw", "ceiling", rows=lines)


def synthetic(
    decades: Annotated[
        list[int] | None, typer.Option(help="Decades the prevalences span: 1, 2, 3. All.")
    ] = None,
    exponent: Annotated[
        list[float] | None, typer.Option(help="e of the weights r^e: 0, 0.5, 1, 1.5. All.")
    ] = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(help="logistic, lightgbm-30x4, lightgbm-300x31, xgboost, mlp. All."),
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(min=0, help="0, 1, 2. All.")] = None,
    results: Annotated[Path, typer.Option(help="Where finished cells are kept.")] = Path(
        "results/synthetic"
    ),
    finished: Finished = False,
    page: Page = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """Table S10: a logistic truth with known marginals, five learners, weights r^e.

    Examples:

      oddslip reproduce synthetic --decades 1 --learner logistic --seed 0

      oddslip reproduce synthetic --finished --page docs/synthetic.md --figure docs/synthetic.png
    """
    from oddslip.studies.synthetic.page import draw, write_page
    from oddslip.studies.synthetic.study import (
        DECADES,
        EXPONENTS,
        LEARNERS,
        SEEDS,
        reproduce_synthetic,
    )

    check_outputs(page, figure=figure)
    check_folders(results)
    cells = reproduce_synthetic(
        decades=decades or DECADES,
        exponents=exponent or EXPONENTS,
        learners=learner or tuple(LEARNERS),
        seeds=seed or SEEDS,
        results=results,
        finished=finished,
    )
    _publish(cells, page, figure, write_page, draw)
    if json:
        return print_json(cells)
    rungs = ("truth", "raw", "inversion", "ceiling")
    lines = [[key, *(f"{cell[rung]:.3f}" for rung in rungs)] for key, cell in cells.items()]
    return _print_table("cell", *rungs, rows=lines)


def boundary(
    worlds: Annotated[int, typer.Option(min=1, help="Generated worlds.")] = 128,
    trees: Annotated[
        int, typer.Option(min=1, help="Most trees of all labels of an arm; rounds give way.")
    ] = 1500,
    data: Data = None,
    results: Annotated[Path, typer.Option(help="Where finished worlds are kept.")] = Path(
        "results/boundary"
    ),
    others: Annotated[Path, typer.Option(help="Results of the other studies, which judge.")] = Path(
        "results"
    ),
    finished: Finished = False,
    page: Page = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """Can a collapse be told before training? Fitted on generated worlds, judged on other studies.

    Examples:

      oddslip reproduce boundary --worlds 256 --trees 12000

      oddslip reproduce boundary --finished --page docs/boundary.md --figure docs/boundary.png
    """
    from oddslip.studies.boundary.page import draw, score_study, write_page
    from oddslip.studies.boundary.study import reproduce_boundary

    check_outputs(page, figure=figure)
    check_folders(results)
    study = reproduce_boundary(
        n_worlds=worlds,
        most_trees=trees,
        data=data,
        results=results,
        others=others,
        finished=finished,
    )
    _publish(study, page, figure, write_page, draw)
    scores = score_study(study)[1]
    if json:
        return print_json(scores)
    lines = [
        [name, str(score["n"]), str(score["n_collapsed"]), f"{score['error']:.3f}"]
        + ["-" if score[what] is None else f"{score[what]:.3f}" for what in ("auc", "r2")]
        for name, score in scores.items()
    ]
    return _print_table("cells", "n", "collapsed", "mean error", "AUC", "R2", rows=lines)


def beyond(
    dataset: Annotated[
        list[str] | None, typer.Option(help="A MULAN data set; may be given again. All six.")
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="1, r. Both.")] = None,
    data: Data = None,
    results: Annotated[Path, typer.Option(help="Where finished cells are kept.")] = Path(
        "results/beyond"
    ),
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(
        ".work/mulan"
    ),
    finished: Finished = False,
    page: Page = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """What a ranker that sees the row adds to the chosen repair, and to the per-label ceiling.

    Examples:

      oddslip reproduce beyond --dataset emotions --weight r

      oddslip reproduce beyond --finished --page docs/beyond.md --figure docs/beyond.png
    """
    from oddslip.studies.beyond.page import draw, write_page
    from oddslip.studies.beyond.ranker import RANKERS
    from oddslip.studies.beyond.study import DATASETS, WEIGHTS, reproduce_beyond

    check_outputs(page, figure=figure)
    check_folders(results, work)
    cells = reproduce_beyond(
        datasets=dataset or DATASETS,
        weights=weight or WEIGHTS,
        data=data,
        results=results,
        work=work,
        finished=finished,
    )
    _publish(cells, page, figure, write_page, draw)
    if json:
        return print_json(cells)
    lines = [
        [key, *(f"{cell[rung]:.3f}" for rung in ("raw", "repaired"))]
        + [f"{cell['rankers'][name]['map']:.3f}" for name in RANKERS]
        + [f"{cell['ceiling']:.3f}"]
        for key, cell in cells.items()
    ]
    return _print_table("cell", "raw", "repaired", *RANKERS, "ceiling", rows=lines)


COMMANDS = (leaf, synthetic, boundary, beyond)
