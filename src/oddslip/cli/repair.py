"""`oddslip fit` and `oddslip apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oddslip import DEFAULT_SEED
from oddslip.calibrators.catalogue import CANDIDATES, NAMES, build_calibrator
from oddslip.cli.options import (
    METRICS,
    RESOLVED,
    WEIGHTS,
    Columns,
    EngineOption,
    Exclude,
    Json,
    KindOption,
    Labels,
    Master,
    Names,
    Nan,
    Prior,
    Propensities,
    RowId,
    SampleWeight,
    Scores,
    TableFile,
    Threads,
    check_outputs,
    console,
    opened,
    print_json,
    read_names,
    read_numbers,
    read_propensities,
    read_weights,
    write_table,
)


def fit(
    scores: Scores,
    labels: Labels = None,
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the repair is saved.")],
    k: Annotated[
        int | None,
        typer.Option("-k", "--k", help="Labels shown per row: choose by --metric at K."),
    ] = None,
    metric: Annotated[str, typer.Option(help=f"What to choose by, at K: {METRICS}.")] = "map",
    propensities: Propensities = None,
    rule: Annotated[
        str,
        typer.Option(help=f"How to choose: auto, paper, or one of {', '.join(CANDIDATES)}."),
    ] = "auto",
    calibrator: Annotated[
        str | None,
        typer.Option(help=f"Do not choose, take one of {', '.join(NAMES)}."),
    ] = None,
    dead: Annotated[
        str, typer.Option(help="What a dead label gets: prior, identity or exclude.")
    ] = "prior",
    tau: Annotated[
        int, typer.Option(help="Labels with at most this many calibration positives are dead.")
    ] = 0,
    prior: Prior = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help=f"Weight each label was trained with, for inversion: {WEIGHTS}. {RESOLVED}"
        ),
    ] = None,
    sample_weight: SampleWeight = None,
    exclude: Exclude = None,
    nan: Nan = "refuse",
    columns: Columns = None,
    interpolation: Annotated[
        str, typer.Option(help="Of isotonic maps: linear or step.")
    ] = "linear",
    kind: KindOption = None,
    seed: Annotated[int, typer.Option(help="Same seed, same folds and intervals.")] = DEFAULT_SEED,
    label_names: Names = None,
    engine: EngineOption = "local",
    master: Master = "local[*]",
    row_id: RowId = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Choose a calibrator by the metric you deploy, fit it on calibration rows, and save it.

    Use rows that were held out from training, and not those you evaluate on. With --calibrator
    nothing is chosen.

    Examples:

      oddslip fit cal-scores.npy cal-labels.npz -k 7 --prior prevalence.npy -o repair.oddslip

      oddslip fit cal-scores.npy cal-labels.npz -k 10 --metric ndcg -o repair.oddslip

      oddslip fit cal-scores.npy cal-labels.npz --calibrator isotonic --tau 5 -o repair.oddslip

      oddslip fit cal-scores.npy cal-labels.npz --calibrator inversion --weights w.npy -o r.oddslip

      oddslip fit table/ -k 7 --engine spark --row-id customer -o repair.oddslip
    """
    check_outputs(output)
    import oddslip

    prevalence = read_numbers(prior)
    names = read_names(label_names)
    told = opened(
        engine, master, scores, labels, kind=kind, names=names, row_id=row_id, exclude=exclude,
        nan=nan, columns=columns,
    )  # fmt: skip
    source = oddslip.open_source(**told)
    kind = source.kind
    chosen: Any
    if calibrator is not None:
        chosen = build_calibrator(
            calibrator,
            dead=dead,
            tau=tau,
            prior=prevalence,
            weights=read_weights(weights),
            interpolation=interpolation,
            kind=kind,
        )
    elif k is not None:
        from oddslip.selection import Repair

        chosen = Repair(
            k=k, rule=rule, metric=metric, propensities=read_propensities(propensities),
            prior=prevalence, weights=read_weights(weights),
            dead=dead, kind=kind, seed=seed,  # type: ignore[arg-type]
        )  # fmt: skip
    else:
        from oddslip.errors import InvalidInput

        raise InvalidInput(
            "fit chooses by the top K you deploy. Pass -k, or take a calibrator as it is "
            "with --calibrator isotonic."
        )
    times = read_numbers(sample_weight, "row")
    fitted = chosen.fit(source, sample_weight=times, threads=threads).fitted_
    fitted.save(output)
    table = getattr(chosen, "table_", None)
    if json:
        selection = {} if table is None else {"selection": table.to_dict()}
        return print_json(fitted.to_dict() | selection)
    from oddslip.reports.text import repair_table, selection_table

    out = console()
    if table is not None:
        out.print(selection_table(table))
        out.print(f"{table.why}\n")
    out.print(repair_table(fitted))
    out.print(
        f"Saved to {output}. Apply it: oddslip apply {output} scores.npy --top-k 7 -o top.parquet"
    )
    return None


def apply(
    repair: Annotated[Path, typer.Argument(help="A repair saved by `oddslip fit`.")],
    scores: Scores,
    *,
    output: TableFile,
    top_k: Annotated[
        int | None, typer.Option("--top-k", "-k", help="Write the top K instead of all scores.")
    ] = None,
    exclude: Exclude = None,
    nan: Nan = "refuse",
    columns: Columns = None,
    label_names: Names = None,
    engine: EngineOption = "local",
    master: Master = "local[*]",
    row_id: RowId = None,
    threads: Threads = None,
) -> None:
    """Apply a saved repair: repaired scores, or straight to the top K.

    Both ways the file is read and written in blocks, so it may be larger than memory. On Spark
    -o is a folder of Parquet files, written by the tasks.

    Examples:

      oddslip apply repair.oddslip scores.npy --top-k 7 -o ranked.parquet

      oddslip apply repair.oddslip scores.parquet -o repaired.npy

      oddslip apply repair.oddslip scores.csv -o repaired.csv
    """
    import oddslip
    from oddslip.calibrators.fitted_repair import check_kind
    from oddslip.core.panel import check_k
    from oddslip.sources.writers import write_ranking, write_scores

    if engine == "local":
        check_outputs(output)
    fitted = oddslip.load_repair(repair)
    told = opened(
        engine, master, scores, None, kind=fitted.maps.kind, names=read_names(label_names),
        row_id=row_id, exclude=exclude, nan=nan, columns=columns, labelled=False,
    )  # fmt: skip
    if engine == "spark":
        table = told["scores"]
        made = fitted.transform(table) if top_k is None else fitted.rank(table, k=top_k)
        return write_table(made, output)
    source = oddslip.open_source(**told)
    check_kind(fitted, source)
    named: dict[str, Any] = {"label_names": source.label_names, "row_ids": source.row_ids()}
    if top_k is not None:
        write_ranking(
            output,
            fitted.rank_blocks(source, k=top_k, threads=threads),
            n_rows=source.n_rows,
            k=check_k(top_k, source.n_labels),
            **named,
        )
        console().print(f"Top {top_k} of {source.n_rows:,} rows, repaired, in {output}.")
        return None
    write_scores(
        output,
        fitted.transform_blocks(source, threads=threads),
        n_rows=source.n_rows,
        n_labels=source.n_labels,
        dtype=source.dtype,
        kind="probability",
        **named,
    )
    cells = f"{source.n_rows:,} rows x {source.n_labels:,} labels"
    console().print(f"Repaired probabilities of {cells} in {output}.")
    return None
