"""The supplement's tables, the schematic, and what goes beyond the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.commands.options import Outcome, Work, make_table, study_command
from experiments.store import RESULTS
from oddslip.cli.outputs import check_outputs


@study_command("data", "results", "finished", "page", "figure", "json")
def leaf(
    shared: dict[str, Any],
    dataset: Annotated[
        list[str] | None, typer.Option(help="enron, medical, scene; may be given again. All.")
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="1, r, 10r, 100r. All four.")] = None,
    rows: Annotated[
        list[int] | None, typer.Option(min=1, help="Rows per leaf, boosted: 5, 20, 50, 200. All.")
    ] = None,
) -> Outcome:
    """Tables S8 and S9: saturation of single trees from their leaf counts, and of boosted trees.

    Examples:

      python -m experiments leaf --dataset scene --rows 200

      python -m experiments leaf --finished --page docs/paper/leaf.md --figure docs/paper/leaf.png
    """
    from experiments.leaf.page import draw, write_page
    from experiments.leaf.study import DATASETS, ROWS_IN_LEAF, WEIGHTS, reproduce_leaf

    cells = reproduce_leaf(
        datasets=dataset or DATASETS,
        weights=weight or tuple(WEIGHTS),
        rows_in_leaf=rows or ROWS_IN_LEAF,
        **shared,
    )
    lines = [
        [key, f"{cell['saturated_share']:.2%}", f"{cell['raw']:.3f}", f"{cell['ceiling']:.3f}"]
        for key, cell in cells.items()
    ]
    table = make_table("cell", "saturated", "raw", "ceiling", rows=lines)
    return Outcome(cells, [table], write_page, draw)


@study_command("results", "finished", "page", "figure", "json")
def synthetic(
    shared: dict[str, Any],
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
) -> Outcome:
    """Table S10: a logistic truth with known marginals, five learners, weights r^e.

    Examples:

      python -m experiments synthetic --decades 1 --learner logistic --seed 0

      python -m experiments synthetic --finished --page docs/paper/synthetic.md
    """
    from experiments.synthetic import study
    from experiments.synthetic.page import draw, write_page

    cells = study.reproduce_synthetic(
        decades=decades or study.DECADES,
        exponents=exponent or study.EXPONENTS,
        learners=learner or tuple(study.LEARNERS),
        seeds=seed or study.SEEDS,
        **shared,
    )
    rungs = ("truth", "raw", "inversion", "ceiling")
    lines = [[key, *(f"{cell[rung]:.3f}" for rung in rungs)] for key, cell in cells.items()]
    return Outcome(cells, [make_table("cell", *rungs, rows=lines)], write_page, draw)


@study_command("data", "results", "others", "finished", "page", "figure", "json")
def boundary(
    shared: dict[str, Any],
    worlds: Annotated[int, typer.Option(min=1, help="Generated worlds.")] = 128,
    trees: Annotated[
        int, typer.Option(min=1, help="Most trees of all labels of an arm; rounds give way.")
    ] = 1500,
    others: Annotated[
        Path, typer.Option(help="Results of the other studies, which judge.")
    ] = RESULTS,
) -> Outcome:
    """Can a collapse be told before training? Fitted on generated worlds, judged on other studies.

    Examples:

      python -m experiments boundary --worlds 256 --trees 12000

      python -m experiments boundary --finished --page docs/paper/boundary.md
    """
    from experiments.boundary.page import draw, score_study, write_page
    from experiments.boundary.study import reproduce_boundary

    study = reproduce_boundary(n_worlds=worlds, most_trees=trees, others=others, **shared)
    scores = score_study(study)[1]
    lines = [
        [name, str(score["n"]), str(score["n_collapsed"]), f"{score['error']:.3f}"]
        + ["-" if score[what] is None else f"{score[what]:.3f}" for what in ("auc", "r2")]
        for name, score in scores.items()
    ]
    table = make_table("cells", "n", "collapsed", "mean error", "AUC", "R2", rows=lines)
    return Outcome(scores, [table], lambda _: write_page(study), lambda _: draw(study))


@study_command("data", "results", "work", "finished", "page", "figure", "json")
def row_rankers(
    shared: dict[str, Any],
    work: Work = Path(".work/mulan"),
    dataset: Annotated[
        list[str] | None, typer.Option(help="A MULAN data set; may be given again. All six.")
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="1, r. Both.")] = None,
) -> Outcome:
    """What a ranker that sees the row adds to the chosen repair, and to the per-label ceiling.

    Examples:

      python -m experiments row-rankers --dataset emotions --weight r

      python -m experiments row-rankers --finished --page docs/paper/row-rankers.md
    """
    from experiments.row_rankers.page import draw, write_page
    from experiments.row_rankers.ranker import RANKERS
    from experiments.row_rankers.study import DATASETS, WEIGHTS, reproduce_row_rankers

    cells = reproduce_row_rankers(
        datasets=dataset or DATASETS, weights=weight or WEIGHTS, work=work, **shared
    )
    lines = [
        [key, *(f"{cell[rung]:.3f}" for rung in ("raw", "repaired"))]
        + [f"{cell['rankers'][name]['map']:.3f}" for name in RANKERS]
        + [f"{cell['ceiling']:.3f}"]
        for key, cell in cells.items()
    ]
    table = make_table("cell", "raw", "repaired", *RANKERS, "ceiling", rows=lines)
    return Outcome(cells, [table], write_page, draw)


@study_command("results", "work", "finished", "page", "json")
def survey(
    shared: dict[str, Any],
    work: Annotated[Path, typer.Option(help="Where the environments are made.")] = Path(
        ".work/survey"
    ),
) -> Outcome:
    """Table S7: what other implementations do with a label that is never true.

    Each is installed into an environment of its own, from the package index.

    Examples:

      python -m experiments survey

      python -m experiments survey --finished --page docs/paper/survey.md
    """
    from experiments.survey.page import write_page
    from experiments.survey.study import reproduce_survey

    cells = reproduce_survey(work=work, **shared)
    lines = [[name, cell["version"] or "-", cell["behaviour"]] for name, cell in cells.items()]
    table = make_table("implementation", "version", "does", rows=lines)
    return Outcome(cells, [table], write_page)


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


@study_command("data", "results", "finished", "page", "figure", "json")
def rounds(
    shared: dict[str, Any],
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="scene, yeast, medical, enron, generated; may be given again. All."),
    ] = None,
) -> Outcome:
    """Weighted boosters by rounds, and what stopping by the raw metric costs.

    Examples:

      python -m experiments rounds --dataset yeast

      python -m experiments rounds --finished --page docs/paper/rounds.md
    """
    from experiments.rounds.page import draw, write_page
    from experiments.rounds.study import DATASETS, reproduce_rounds

    cells = reproduce_rounds(datasets=dataset or DATASETS, **shared)
    lines = [
        [
            name,
            *(f"{cell[way]['rounds']}" for way in ("by_raw", "by_repaired")),
            *(f"{cell[way]['repaired']:.4f}" for way in ("by_raw", "by_repaired")),
        ]
        for name, cell in cells.items()
    ]
    columns = ("data set", "stop by raw", "by repaired", "repaired metric", "repaired metric")
    return Outcome(cells, [make_table(*columns, rows=lines)], write_page, draw)


@study_command()
def conventions(shared: dict[str, Any]) -> Outcome:
    """Clipped isotonic values, dead labels and bootstrap draws, beside the printed numbers.

    Examples:

      python -m experiments conventions

      python -m experiments conventions --finished --page docs/paper/conventions.md
    """
    from experiments.conventions import PRINTED_MAPS, reproduce_conventions, write_page

    cells = reproduce_conventions(**shared)
    lines = [
        [key, f"{cell['plain']:.4f}", f"{cell['clipped']:.4f}", f"{PRINTED_MAPS[key]:.3f}"]
        for key, cell in cells.items()
        if key in PRINTED_MAPS
    ]
    table = make_table("arm", "no clip", "clipped", "printed", rows=lines)
    return Outcome(cells, [table], write_page)


@study_command()
def foldable(
    shared: dict[str, Any],
    dataset: Annotated[
        list[str] | None, typer.Option(help="MULAN data set; may be given again. All twelve.")
    ] = None,
) -> Outcome:
    """What a repair loses if it must be foldable into the model.

    Examples:

      python -m experiments foldable --dataset flags

      python -m experiments foldable --finished --page docs/paper/foldable.md
    """
    from experiments.foldable import DATASETS, reproduce_foldable, write_page

    cells = reproduce_foldable(datasets=dataset or DATASETS, **shared)
    lines = [
        [
            key,
            cell["free"]["chosen"],
            f"{cell['free']['map']:.4f}",
            f"{cell['foldable']['map']:.4f}",
        ]
        for key, cell in cells.items()
    ]
    table = make_table("panel", "free choice", "MAP@K", "foldable MAP@K", rows=lines)
    return Outcome(cells, [table], write_page)


@study_command()
def screening(
    shared: dict[str, Any],
    dataset: Annotated[
        list[str] | None, typer.Option(help="Data set; may be given again. All of them.")
    ] = None,
) -> Outcome:
    """Whether dropping candidates early changes what a repair chooses.

    Examples:

      python -m experiments screening --dataset flags

      python -m experiments screening --finished --page docs/paper/screening.md
    """
    from experiments.row_aware.panels import DATASETS
    from experiments.screening import reproduce_screening, write_page

    cells = reproduce_screening(datasets=dataset or DATASETS, **shared)
    lines = [
        [key, cell["screened"]["chosen"], cell["whole"]["chosen"], f"{cell['screened']['dropped']}"]
        for key, cell in cells.items()
    ]
    table = make_table("panel", "with dropping", "without", "dropped", rows=lines)
    return Outcome(cells, [table], write_page)


@study_command()
def decisions(
    shared: dict[str, Any],
    dataset: Annotated[
        list[str] | None, typer.Option(help="MULAN data set; may be given again. All seven.")
    ] = None,
) -> Outcome:
    """Whether the guarantee of a decision holds, on drawn and on real rows.

    Examples:

      python -m experiments decisions --dataset emotions

      python -m experiments decisions --finished --page docs/paper/decisions.md
    """
    from experiments.decisions import DATASETS, reproduce_decisions, write_page

    cells = reproduce_decisions(datasets=dataset or DATASETS, **shared)
    lines = [
        [key, name, f"{risk['risk']:.4f}", f"{risk['standard_error']:.4f}"]
        for key, cell in cells.items()
        for name, risk in cell["risks"].items()
    ]
    table = make_table("cell", "guarantee", "risk", "standard error", rows=lines)
    return Outcome(cells, [table], write_page)


@study_command()
def wgboost(
    shared: dict[str, Any],
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="santander-sample, birds, medical, tafeng; may be given again. All."),
    ] = None,
    work: Annotated[Path, typer.Option(help="Where scores of labels are kept.")] = Path(
        ".work/wgboost"
    ),
) -> Outcome:
    """Table S1's third model, Wasserstein gradient boosting, on public data.

    Examples:

      python -m experiments wgboost --dataset birds

      python -m experiments wgboost --finished --page docs/paper/wgboost.md
    """
    from experiments.wgboost.page import value, write_page
    from experiments.wgboost.study import DATASETS, RUNGS, reproduce_wgboost

    cells = reproduce_wgboost(datasets=dataset or DATASETS, work=work, **shared)
    lines = [
        [name, *(f"{value(cell, rung):.3f}" for rung in RUNGS)] for name, cell in cells.items()
    ]
    return Outcome(cells, [make_table("data set", *RUNGS, rows=lines)], write_page)
