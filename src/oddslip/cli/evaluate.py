"""`oddslip evaluate` and `oddslip rank`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oddslip
from oddslip.cli import options
from oddslip.cli.inputs import Inputs, pick, read_numbers, read_propensities, read_weights
from oddslip.cli.outputs import (
    check_outputs,
    console,
    print_json,
    printable_json,
    write_figure,
    write_table,
)

if TYPE_CHECKING:
    from oddslip.core.types import Array, JsonObject
    from oddslip.metrics.evaluation import Comparison, Evaluation
    from oddslip.metrics.reliability import Reliability as ReliabilityCurve
    from oddslip.sources.base import Source

Against = Annotated[
    Path | None, typer.Option(help="Other scores of the same rows, for paired differences.")
]
Metric = Annotated[str | None, typer.Option(help=f"Show this alone: {options.METRICS}.")]
Ties = Annotated[str, typer.Option(help="stable (by label index), expected, best or worst.")]
Denominator = Annotated[
    str, typer.Option(help="Of average precision: min(K, true), relevant, or hits.")
]
Rows = Annotated[str, typer.Option(help="Average over rows with_positives, or all.")]
Weights = Annotated[
    str | None,
    typer.Option(
        help="Weight each label was trained with: PSP then counts hits by it (propensities "
        f"1 / w). {options.WEIGHTS}."
    ),
]
Auc = Annotated[bool, typer.Option("--auc", help="Also the mean within-label AUC.")]
Level = Annotated[float, typer.Option(help="Level of the intervals.")]
Reliability = Annotated[
    bool,
    typer.Option(
        "--reliability", help="Also whether the probabilities of what is shown are right (ECE)."
    ),
]
ReliabilityFigure = Annotated[
    Path | None, typer.Option("--figure", help="Draw --reliability (.png, .svg or .pdf).")
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write .npy, .csv or .parquet.")
]
WithScores = Annotated[
    bool, typer.Option("--with-scores", help="Also the scores of what is shown.")
]


def evaluate(
    context: typer.Context,
    scores: options.Scores,
    labels: options.Labels = None,
    *,
    k: options.K,
    against: Against = None,
    metric: Metric = None,
    kind: options.KindOption = None,
    ties: Ties = "stable",
    denominator: Denominator = "min",
    rows: Rows = "with_positives",
    sample_weight: options.SampleWeight = None,
    exclude: options.Exclude = None,
    nan: options.Nan = "refuse",
    columns: options.Columns = None,
    weights: Weights = None,
    propensities: options.Propensities = None,
    auc: Auc = False,
    bootstrap: options.Bootstrap = 2000,
    level: Level = 0.95,
    seed: options.Seed = oddslip.DEFAULT_SEED,
    reliability: Reliability = False,
    figure: ReliabilityFigure = None,
    label_names: options.Names = None,
    engine: options.EngineOption = "local",
    master: options.Master = "local[*]",
    row_id: options.RowId = None,
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """MAP, precision, recall, nDCG, PSP and hit rate at K, with bootstrap intervals.

    Examples:

      oddslip evaluate scores.npy labels.npz -k 7

      oddslip evaluate weighted.npy labels.npz -k 7 --against unweighted.npy

      oddslip evaluate weighted.npy labels.npz -k 7 --against unweighted.npy --weights w.npy

      oddslip evaluate scores.npy labels.npz -k 10 --metric ndcg

      oddslip evaluate repaired.npy labels.npz -k 7 --reliability --figure shown.png

      oddslip evaluate scores.parquet labels.npz -k 7 --json > result.json

      oddslip evaluate scores.csv labels.csv -k 7

      oddslip evaluate 'scores-*.parquet' labels.parquet -k 7

      oddslip evaluate table/ -k 7 --engine spark --master spark://host:7077 --row-id customer
    """
    if metric is not None:
        from oddslip.metrics.at_k import NAMES, check_choice

        check_choice("metric", metric, NAMES)
    inputs = Inputs.of(context)
    arguments = _arguments(context)
    check_outputs(figure=figure)
    first = _evaluate(inputs, metric, arguments)
    curve = None
    if reliability or figure is not None:
        from oddslip.metrics import reliability_at_k

        files = replace(inputs, engine="local", row_id=None)
        curve = reliability_at_k(**files.arguments(), k=k, threads=threads)
        if figure is not None:
            write_figure(figure, curve.plot())
    second = None
    if against is not None:
        second = _evaluate(_with_scores(inputs, against), metric, arguments)
    comparison = None if second is None else first.compare(second, threads=threads)
    if json:
        parts = {"against": second, "difference": comparison, "reliability": curve}
        others = {name: part.to_dict() for name, part in parts.items() if part is not None}
        return print_json(first.to_dict() | others)
    _print_reliability(curve)
    if second is None or comparison is None or against is None:
        return _print_evaluation(first)
    return _print_comparison(first, second, comparison, (scores.name, against.name))


def _arguments(context: typer.Context) -> dict[str, Any]:
    """Arguments of the verb, apart from its rows."""
    values = context.params
    row_weights = read_numbers(values["sample_weight"], "row")
    weights = read_weights(values["weights"])
    propensities = read_propensities(values["propensities"])
    if isinstance(propensities, str) and weights is not None:
        propensities = None  # --weights alone means the same here
    names = ("k", "ties", "denominator", "rows", "auc", "level", "seed", "threads")
    return pick(context, *names) | {
        "sample_weight": row_weights,
        "weights": weights,
        "propensities": propensities,
        "n_replicates": values["bootstrap"],
    }


def _evaluate(inputs: Inputs, metric: str | None, arguments: dict[str, Any]) -> Evaluation:
    evaluation = oddslip.evaluate(**inputs.arguments(), **arguments)
    if metric is None:
        return evaluation
    return replace(evaluation, metrics={metric: evaluation[metric]})


def _with_scores(inputs: Inputs, path: Path) -> Inputs:
    """The inputs with other scores. Labels are in the same file as before, or in the new one."""
    others = replace(inputs, scores=path)
    if inputs.labels is None and not others.open().has_labels:
        return replace(others, labels=inputs.scores)
    return others


def _print_reliability(curve: ReliabilityCurve | None) -> None:
    if curve is not None:
        console().print(
            f"Of {curve.n_shown.sum():,} slots shown, probabilities are off by {curve.ece:.4f} on "
            f"average (ECE@{curve.k}); their mean is {curve.bias:+.4f} from the share that is true."
        )


def _print_evaluation(evaluation: Evaluation) -> None:
    from oddslip.reports.text import show_evaluation

    out = console()
    for piece in show_evaluation(evaluation):
        out.print(piece)


def _print_comparison(
    first: Evaluation, second: Evaluation, comparison: Comparison, names: tuple[str, str]
) -> None:
    from oddslip.reports import text

    out = console()
    out.print(text.comparison_table(first, second, comparison, names))
    out.print(text.rows_sentence(first))
    for evaluation, name in zip((first, second), names, strict=True):
        out.print(text.ties_sentence(evaluation, text.printable(name)))


def rank(
    context: typer.Context,
    scores: options.Scores,
    *,
    k: options.K,
    output: Output = None,
    kind: options.KindOption = None,
    exclude: options.Exclude = None,
    nan: options.Nan = "refuse",
    columns: options.Columns = None,
    with_scores: WithScores = False,
    label_names: options.Names = None,
    engine: options.EngineOption = "local",
    master: options.Master = "local[*]",
    row_id: options.RowId = None,
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """The K highest labels of every row. Ties go to the lower label index.

    Without -o the first rows are shown; with --json every row, one JSON object a line. On Spark
    -o is a folder of Parquet files, with the row id and a list of (label, score) a row.

    Examples:

      oddslip rank scores.npy -k 7 -o ranked.parquet

      oddslip rank scores.csv -k 7 --with-scores -o ranked.csv

      oddslip rank scores.npy -k 7 --exclude bought.npz --with-scores -o ranked.parquet

      oddslip rank scores.parquet -k 3 --json | head
    """
    if engine == "local":
        check_outputs(output)
    inputs = Inputs.of(context)
    if engine == "spark":
        return write_table(oddslip.rank(**inputs.arguments(labelled=False), k=k), output)
    source = inputs.open()
    if output is not None:
        from oddslip.writers import write_ranking

        def blocks() -> Iterator[Any]:  # so that a bad output path fails first
            ranked = oddslip.rank(source, k=k, with_scores=with_scores, threads=threads)
            yield (0, *ranked) if with_scores else (0, ranked)

        write_ranking(
            output,
            blocks(),
            n_rows=source.n_rows,
            k=k,
            scores_dtype=source.dtype if with_scores else None,
            label_names=source.label_names,
            row_ids=source.row_ids(),
        )
        return console().print(f"Top {k} of {source.n_rows:,} rows in {output}.")
    ranking, top_scores = oddslip.rank(source, k=k, with_scores=True, threads=threads)
    show = _print_lines if json else _print_table
    return show(source, ranking, top_scores if with_scores else None)


def _named_rows(source: Source, ranking: Array) -> Iterator[tuple[str, list[str] | list[int]]]:
    """Name and labels of each row; labels by index where they have no names."""
    names, row_ids = source.label_names, source.row_ids()
    for row, places in enumerate(ranking):
        labels = places[places >= 0].tolist()
        name = str(row if row_ids is None else row_ids[row])
        yield name, [names[label] for label in labels] if names else labels


def _print_lines(source: Source, ranking: Array, scores: Array | None) -> None:
    """One JSON object a row."""
    from json import dumps

    for row, (name, labels) in enumerate(_named_rows(source, ranking)):
        line: JsonObject = {"row": name, "labels": labels}
        if scores is not None:
            line["scores"] = scores[row, : len(labels)].tolist()
        print(printable_json(dumps(line, ensure_ascii=False)))


def _print_table(source: Source, ranking: Array, scores: Array | None) -> None:
    """The first ten rows."""
    from oddslip.reports.text import new_table, printable

    n_rows, k = ranking.shape
    n_printed = min(10, n_rows)
    table = new_table("row", *(str(place + 1) for place in range(k)))
    for row, (name, labels) in enumerate(_named_rows(source, ranking[:n_printed])):
        cells = [str(label) for label in labels]
        if scores is not None:
            cells = [f"{c} {s:.4g}" for c, s in zip(cells, scores[row], strict=False)]
        cells += [""] * (k - len(cells))
        table.add_row(printable(name), *map(printable, cells))
    out = console()
    out.print(table)
    out.print(f"{n_printed} of {n_rows:,} rows shown. Write all of them with -o ranked.parquet.")
