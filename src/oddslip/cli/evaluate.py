"""`oddslip evaluate` and `oddslip rank`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from oddslip import DEFAULT_SEED
from oddslip.cli.options import (
    Bootstrap,
    EngineOption,
    Json,
    K,
    KindOption,
    Labels,
    Master,
    Names,
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
    kind: KindOption = "probability",
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
    auc: Annotated[bool, typer.Option("--auc", help="Also the mean within-label AUC.")] = False,
    bootstrap: Bootstrap = 2000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Same seed, same intervals.")] = DEFAULT_SEED,
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

      oddslip evaluate scores.parquet labels.npz -k 7 --json > result.json

      oddslip evaluate table/ -k 7 --engine spark --master spark://host:7077 --row-id customer
    """
    import oddslip
    from oddslip.reports import text

    names = read_names(label_names)
    times = read_numbers(sample_weight, "row")

    def evaluated(path: Path) -> oddslip.Evaluation:
        rows_of = opened(engine, master, path, labels, kind=kind, names=names, row_id=row_id)
        return oddslip.evaluate(
            **rows_of,
            k=k,
            ties=ties,  # type: ignore[arg-type]
            denominator=denominator,  # type: ignore[arg-type]
            rows=rows,  # type: ignore[arg-type]
            sample_weight=times,
            auc=auc,
            n_replicates=bootstrap,
            level=level,
            seed=seed,
            threads=threads,
        )

    first = evaluated(scores)
    second = None if against is None else evaluated(against)
    comparison = None if second is None else first.compare(second, threads=threads)
    if json:
        document = first.to_dict()
        if second is not None and comparison is not None:
            document["against"] = second.to_dict()
            document["difference"] = comparison.to_dict()
        return print_json(document)
    out = console()
    if second is not None and comparison is not None and against is not None:
        names_shown = (scores.name, against.name)
        out.print(text.comparison_table(first, second, comparison, names_shown))
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
        Path | None, typer.Option("-o", "--output", help="Write .npy or .parquet.")
    ] = None,
    kind: KindOption = "probability",
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

      oddslip rank scores.parquet -k 3 --json | head
    """
    import oddslip
    from oddslip.reports.text import new_table, printable

    if engine == "local":
        check_outputs(output)
    told = opened(
        engine, master, scores, None, kind=kind, names=read_names(label_names), row_id=row_id,
        labelled=False,
    )  # fmt: skip
    source = told["scores"]
    if engine == "spark":
        return write_table(oddslip.rank(source, k=k), output)
    source = oddslip.open_source(**told)
    if output is not None:
        from oddslip.sources.sinks import write_ranking

        def blocks() -> Iterator[tuple[int, Any]]:  # so that a bad output path fails first
            yield 0, oddslip.rank(source, k=k, threads=threads)

        write_ranking(
            output,
            blocks(),
            n_rows=source.n_rows,
            k=k,
            label_names=source.label_names,
            row_ids=source.row_ids(),
        )
        console().print(f"Top {k} of {source.n_rows:,} rows in {output}.")
        return None
    ranking = oddslip.rank(source, k=k, threads=threads)
    row_ids = source.row_ids()

    def named(row: int) -> list[str]:
        names = source.label_names
        return [names[j] if names else str(j) for j in ranking[row]]

    def row_name(row: int) -> str:
        return str(row if row_ids is None else row_ids[row])

    if json:
        import json as jsons

        for row in range(len(ranking)):
            labels = named(row) if source.label_names else ranking[row].tolist()
            line = {"row": row_name(row), "labels": labels}
            print(printable_json(jsons.dumps(line, ensure_ascii=False)))
        return None
    table = new_table("row", *(str(place + 1) for place in range(ranking.shape[1])))
    shown = min(10, len(ranking))
    for row in range(shown):
        table.add_row(printable(row_name(row)), *map(printable, named(row)))
    out = console()
    out.print(table)
    out.print(f"{shown} of {len(ranking):,} rows shown. Write all of them with -o ranked.parquet.")
    return None
