"""The supplement's tables, the schematic, and what goes beyond the paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.options import Data, Finished, Page, Results
from experiments.store import RESULTS
from oddslip.cli.options import Figure, Json
from oddslip.cli.outputs import check_folders, check_outputs, console, print_json, write_text


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
        from oddslip.io.files import atomic_write

        with atomic_write(figure) as unfinished:
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
    results: Results = RESULTS,
    finished: Finished = False,
    page: Page = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """Tables S8 and S9: saturation of single trees from their leaf counts, and of boosted trees.

    Examples:

      python -m experiments leaf --dataset scene --rows 200

      python -m experiments leaf --finished --page docs/paper/leaf.md --figure docs/paper/leaf.png
    """
    from experiments.leaf.page import draw, write_page
    from experiments.leaf.study import DATASETS, ROWS_IN_LEAF, WEIGHTS, reproduce_leaf

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
    results: Results = RESULTS,
    finished: Finished = False,
    page: Page = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """Table S10: a logistic truth with known marginals, five learners, weights r^e.

    Examples:

      python -m experiments synthetic --decades 1 --learner logistic --seed 0

      python -m experiments synthetic --finished --page docs/paper/synthetic.md
    """
    from experiments.synthetic.page import draw, write_page
    from experiments.synthetic.study import (
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
    results: Results = RESULTS,
    others: Annotated[
        Path, typer.Option(help="Results of the other studies, which judge.")
    ] = RESULTS,
    finished: Finished = False,
    page: Page = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """Can a collapse be told before training? Fitted on generated worlds, judged on other studies.

    Examples:

      python -m experiments boundary --worlds 256 --trees 12000

      python -m experiments boundary --finished --page docs/paper/boundary.md
    """
    from experiments.boundary.page import draw, score_study, write_page
    from experiments.boundary.study import reproduce_boundary

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


def row_rankers(
    dataset: Annotated[
        list[str] | None, typer.Option(help="A MULAN data set; may be given again. All six.")
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="1, r. Both.")] = None,
    data: Data = None,
    results: Results = RESULTS,
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

      python -m experiments row-rankers --dataset emotions --weight r

      python -m experiments row-rankers --finished --page docs/paper/row-rankers.md
    """
    from experiments.row_rankers.page import draw, write_page
    from experiments.row_rankers.ranker import RANKERS
    from experiments.row_rankers.study import DATASETS, WEIGHTS, reproduce_row_rankers

    check_outputs(page, figure=figure)
    check_folders(results, work)
    cells = reproduce_row_rankers(
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


def survey(
    results: Results = RESULTS,
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

      python -m experiments survey

      python -m experiments survey --finished --page docs/paper/survey.md
    """
    from experiments.survey.study import reproduce_survey

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_survey(results=results, work=work, finished=finished)
    if page is not None:
        from experiments.survey.page import write_page

        write_text(page, write_page(cells))
    if json:
        return print_json(cells)
    from oddslip.reports.text import new_table

    table = new_table("implementation", "version", "does")
    for name, cell in cells.items():
        table.add_row(name, cell["version"] or "-", cell["behaviour"])
    console().print(table)
    return None


def schematic(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The picture to draw (.png, .svg or .pdf).")
    ],
) -> None:
    """Figure 0: regimes, repairs and a dead label, computed by the library's own functions.

    Examples:

      python -m experiments schematic -o docs/paper/figure-zero.png
    """
    from experiments.figures.schematic import draw_schematic
    from experiments.schematic import make_schematic
    from oddslip.io.files import atomic_write

    check_outputs(output)
    with atomic_write(output) as unfinished:
        draw_schematic(make_schematic()).savefig(unfinished, format=output.suffix[1:] or "png")


def rounds(
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="scene, yeast, medical, enron, generated; may be given again. All."),
    ] = None,
    data: Data = None,
    results: Results = RESULTS,
    finished: Finished = False,
    page: Page = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """Weighted boosters by rounds, and what stopping by the raw metric costs.

    Examples:

      python -m experiments rounds --dataset yeast

      python -m experiments rounds --finished --page docs/paper/rounds.md
    """
    from experiments.rounds.page import draw, write_page
    from experiments.rounds.study import DATASETS, reproduce_rounds

    check_outputs(page, figure=figure)
    check_folders(results)
    cells = reproduce_rounds(
        datasets=dataset or DATASETS, data=data, results=results, finished=finished
    )
    _publish(cells, page, figure, write_page, draw)
    if json:
        return print_json(cells)
    lines = [
        [
            name,
            *(f"{cell[way]['rounds']}" for way in ("by_raw", "by_repaired")),
            *(f"{cell[way]['repaired']:.4f}" for way in ("by_raw", "by_repaired")),
        ]
        for name, cell in cells.items()
    ]
    columns = ("data set", "stop by raw", "by repaired", "repaired metric", "repaired metric")
    return _print_table(*columns, rows=lines)


def conventions(
    data: Data = None,
    results: Results = RESULTS,
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(".work"),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Clipped isotonic values, dead labels and bootstrap draws, beside the printed numbers.

    Examples:

      python -m experiments conventions

      python -m experiments conventions --finished --page docs/paper/conventions.md
    """
    from experiments.conventions import PRINTED_MAPS, reproduce_conventions, write_page

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_conventions(data=data, results=results, work=work, finished=finished)
    if page is not None:
        write_text(page, write_page(cells))
    if json:
        return print_json(cells)
    lines = [
        [key, f"{cell['plain']:.4f}", f"{cell['clipped']:.4f}", f"{PRINTED_MAPS[key]:.3f}"]
        for key, cell in cells.items()
        if key in PRINTED_MAPS
    ]
    return _print_table("arm", "no clip", "clipped", "printed", rows=lines)


def foldable(
    dataset: Annotated[
        list[str] | None, typer.Option(help="MULAN data set; may be given again. All twelve.")
    ] = None,
    data: Data = None,
    results: Results = RESULTS,
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(".work"),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """What a repair loses if it must be foldable into the model.

    Examples:

      python -m experiments foldable --dataset flags

      python -m experiments foldable --finished --page docs/paper/foldable.md
    """
    from experiments.foldable import DATASETS, reproduce_foldable, write_page

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_foldable(
        datasets=dataset or DATASETS, data=data, results=results, work=work, finished=finished
    )
    if page is not None:
        write_text(page, write_page(cells))
    if json:
        return print_json(cells)
    lines = [
        [
            key,
            cell["free"]["chosen"],
            f"{cell['free']['map']:.4f}",
            f"{cell['foldable']['map']:.4f}",
        ]
        for key, cell in cells.items()
    ]
    return _print_table("panel", "free choice", "MAP@K", "foldable MAP@K", rows=lines)


def screening(
    dataset: Annotated[
        list[str] | None, typer.Option(help="Data set; may be given again. All of them.")
    ] = None,
    data: Data = None,
    results: Results = RESULTS,
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(".work"),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Whether dropping candidates early changes what a repair chooses.

    Examples:

      python -m experiments screening --dataset flags

      python -m experiments screening --finished --page docs/paper/screening.md
    """
    from experiments.row_aware.panels import DATASETS
    from experiments.screening import reproduce_screening, write_page

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_screening(
        datasets=dataset or DATASETS, data=data, results=results, work=work, finished=finished
    )
    if page is not None:
        write_text(page, write_page(cells))
    if json:
        return print_json(cells)
    lines = [
        [key, cell["screened"]["chosen"], cell["whole"]["chosen"], f"{cell['screened']['dropped']}"]
        for key, cell in cells.items()
    ]
    return _print_table("panel", "with dropping", "without", "dropped", rows=lines)


def decisions(
    dataset: Annotated[
        list[str] | None, typer.Option(help="MULAN data set; may be given again. All seven.")
    ] = None,
    data: Data = None,
    results: Results = RESULTS,
    work: Annotated[Path, typer.Option(help="Where trained scores are kept.")] = Path(".work"),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Whether the guarantee of a decision holds, on drawn and on real rows.

    Examples:

      python -m experiments decisions --dataset emotions

      python -m experiments decisions --finished --page docs/paper/decisions.md
    """
    from experiments.decisions import DATASETS, reproduce_decisions, write_page

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_decisions(
        datasets=dataset or DATASETS, data=data, results=results, work=work, finished=finished
    )
    if page is not None:
        write_text(page, write_page(cells))
    if json:
        return print_json(cells)
    lines = [
        [key, name, f"{risk['risk']:.4f}", f"{risk['standard_error']:.4f}"]
        for key, cell in cells.items()
        for name, risk in cell["risks"].items()
    ]
    return _print_table("cell", "guarantee", "risk", "standard error", rows=lines)


def wgboost(
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="santander-sample, birds, medical, tafeng; may be given again. All."),
    ] = None,
    data: Data = None,
    results: Results = RESULTS,
    work: Annotated[Path, typer.Option(help="Where scores of labels are kept.")] = Path(
        ".work/wgboost"
    ),
    finished: Finished = False,
    page: Page = None,
    json: Json = False,
) -> None:
    """Table S1's third model, Wasserstein gradient boosting, on public data.

    Examples:

      python -m experiments wgboost --dataset birds

      python -m experiments wgboost --finished --page docs/paper/wgboost.md
    """
    from experiments.wgboost.page import value, write_page
    from experiments.wgboost.study import DATASETS, RUNGS, reproduce_wgboost

    check_outputs(page)
    check_folders(results, work)
    cells = reproduce_wgboost(
        datasets=dataset or DATASETS, data=data, results=results, work=work, finished=finished
    )
    if page is not None:
        write_text(page, write_page(cells))
    if json:
        return print_json(cells)
    lines = [
        [name, *(f"{value(cell, rung):.3f}" for rung in RUNGS)] for name, cell in cells.items()
    ]
    return _print_table("data set", *RUNGS, rows=lines)
