"""`oddslip evaluate` and `oddslip rank`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from oddslip import DEFAULT_SEED
from oddslip.cli.options import (
    METRICS,
    WEIGHTS,
    Bootstrap,
    Columns,
    EngineOption,
    Exclude,
    Json,
    K,
    KindOption,
    Labels,
    Master,
    Names,
    Nan,
    Propensities,
    RowId,
    SampleWeight,
    Scores,
    Threads,
    check_outputs,
    console,
    opened,
    print_json,
    printable_json,
    read_names,
    read_numbers,
    read_propensities,
    read_weights,
    with_columns,
    write_figure,
    write_table,
)


def evaluate(
    scores: Scores,
    labels: Labels = None,
    *,
    k: K,
    against: Annotated[
        Path | None, typer.Option(help="Other scores of the same rows, for paired differences.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help=f"Show this alone: {METRICS}.")] = None,
    kind: KindOption = None,
    ties: Annotated[
        str, typer.Option(help="stable (by label index), expected, best or worst.")
    ] = "stable",
    denominator: Annotated[
        str, typer.Option(help="Of average precision: min(K, true), relevant, or hits.")
    ] = "min",
    rows: Annotated[
        str, typer.Option(help="Average over rows with_positives, or all.")
    ] = "with_positives",
    sample_weight: SampleWeight = None,
    exclude: Exclude = None,
    nan: Nan = "refuse",
    columns: Columns = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="Weight each label was trained with: PSP then counts hits by it (propensities "
            f"1 / w). {WEIGHTS}."
        ),
    ] = None,
    propensities: Propensities = None,
    auc: Annotated[bool, typer.Option("--auc", help="Also the mean within-label AUC.")] = False,
    bootstrap: Bootstrap = 2000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Same seed, same intervals.")] = DEFAULT_SEED,
    reliability: Annotated[
        bool,
        typer.Option(
            "--reliability", help="Also whether the probabilities of what is shown are right (ECE)."
        ),
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw --reliability (.png, .svg or .pdf)."),
    ] = None,
    label_names: Names = None,
    engine: EngineOption = "local",
    master: Master = "local[*]",
    row_id: RowId = None,
    threads: Threads = None,
    json: Json = False,
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
    from dataclasses import replace

    import oddslip
    from oddslip.metrics.at_k import NAMES, check_choice
    from oddslip.reports import text

    if metric is not None:
        check_choice("metric", metric, NAMES)
    names = read_names(label_names)
    row_weights = read_numbers(sample_weight, "row")
    label_weights, propensity_values = read_weights(weights), read_propensities(propensities)
    if propensity_values == "weights" and label_weights is not None:
        propensity_values = None  # --weights alone means the same here

    def evaluate_file(path: Path) -> oddslip.Evaluation:
        options: dict[str, Any] = {
            "kind": kind,
            "names": names,
            "row_id": row_id,
            "exclude": exclude,
            "nan": nan,
            "columns": columns,
        }
        inputs = opened(engine, master, path, labels, **options)
        if path == against and labels is None and not oddslip.open_source(**inputs).has_labels:
            inputs = opened(engine, master, path, scores, **options)
        whole = oddslip.evaluate(
            **inputs,
            k=k,
            ties=ties,  # type: ignore[arg-type]
            denominator=denominator,  # type: ignore[arg-type]
            rows=rows,  # type: ignore[arg-type]
            sample_weight=row_weights,
            weights=label_weights,
            propensities=propensity_values,
            auc=auc,
            n_replicates=bootstrap,
            level=level,
            seed=seed,
            threads=threads,
        )
        return whole if metric is None else replace(whole, metrics={metric: whole[metric]})

    check_outputs(figure=figure)
    first = evaluate_file(scores)
    curve = None
    if reliability or figure is not None:
        from oddslip.metrics import reliability_at_k

        inputs: dict[str, Any] = {
            "scores": scores,
            "labels": labels,
            "kind": kind,
            "label_names": names,
            "exclude": exclude,
            "nan": nan,
        }
        curve = reliability_at_k(**with_columns(inputs, columns), k=k, threads=threads)
    if figure is not None and curve is not None:
        write_figure(figure, curve.plot())
    second = None if against is None else evaluate_file(against)
    comparison = None if second is None else first.compare(second, threads=threads)
    if json:
        document = first.to_dict()
        if second is not None and comparison is not None:
            document["against"] = second.to_dict()
            document["difference"] = comparison.to_dict()
        if curve is not None:
            document["reliability"] = curve.to_dict()
        return print_json(document)
    out = console()
    if curve is not None:
        out.print(
            f"Of {curve.n_shown.sum():,} slots shown, probabilities are off by {curve.ece:.4f} on "
            f"average (ECE@{curve.k}); their mean is {curve.bias:+.4f} from the share that is true."
        )
    if second is not None and comparison is not None and against is not None:
        file_names = (scores.name, against.name)
        out.print(text.comparison_table(first, second, comparison, file_names))
        out.print(text.rows_sentence(first))
        out.print(text.ties_sentence(first, text.printable(scores.name)))
        out.print(text.ties_sentence(second, text.printable(against.name)))
        return None
    out.print(text.evaluation_table(first))
    out.print(text.rows_sentence(first))
    out.print(text.ties_sentence(first))
    return None


def rank(
    scores: Scores,
    *,
    k: K,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write .npy, .csv or .parquet.")
    ] = None,
    kind: KindOption = None,
    exclude: Exclude = None,
    nan: Nan = "refuse",
    columns: Columns = None,
    with_scores: Annotated[
        bool, typer.Option("--with-scores", help="Also the scores of what is shown.")
    ] = False,
    label_names: Names = None,
    engine: EngineOption = "local",
    master: Master = "local[*]",
    row_id: RowId = None,
    threads: Threads = None,
    json: Json = False,
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
    import oddslip
    from oddslip.reports.text import new_table, printable

    if engine == "local":
        check_outputs(output)
    inputs = opened(
        engine,
        master,
        scores,
        None,
        kind=kind,
        names=read_names(label_names),
        row_id=row_id,
        exclude=exclude,
        nan=nan,
        columns=columns,
        labelled=False,
    )
    if engine == "spark":
        return write_table(oddslip.rank(inputs["scores"], k=k), output)
    source = oddslip.open_source(**inputs)
    if output is not None:
        from oddslip.sources.writers import write_ranking

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
        console().print(f"Top {k} of {source.n_rows:,} rows in {output}.")
        return None
    ranking, shown_scores = oddslip.rank(source, k=k, with_scores=True, threads=threads)
    row_ids = source.row_ids()

    def labels_of(row: int) -> list[Any]:
        names = source.label_names
        return [names[j] if names else int(j) for j in ranking[row] if j >= 0]

    def row_name(row: int) -> str:
        return str(row if row_ids is None else row_ids[row])

    if json:
        import json as jsons

        for row in range(len(ranking)):
            line = {"row": row_name(row), "labels": labels_of(row)}
            if with_scores:
                line["scores"] = shown_scores[row, : len(line["labels"])].tolist()
            print(printable_json(jsons.dumps(line, ensure_ascii=False)))
        return None
    table = new_table("row", *(str(place + 1) for place in range(ranking.shape[1])))
    n_printed = min(10, len(ranking))
    for row in range(n_printed):
        cells = [str(label) for label in labels_of(row)]
        if with_scores:
            cells = [f"{c} {s:.4g}" for c, s in zip(cells, shown_scores[row], strict=False)]
        cells += [""] * (ranking.shape[1] - len(cells))
        table.add_row(printable(row_name(row)), *map(printable, cells))
    out = console()
    out.print(table)
    out.print(
        f"{n_printed} of {len(ranking):,} rows shown. Write all of them with -o ranked.parquet."
    )
    return None
