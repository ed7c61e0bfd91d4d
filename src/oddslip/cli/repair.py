"""`oddslip fit` and `oddslip apply`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oddslip
from oddslip.calibrators.catalogue import CANDIDATES, NAMES, build_calibrator
from oddslip.cli import options
from oddslip.cli.inputs import (
    Inputs,
    pick,
    read_names,
    read_numbers,
    read_propensities,
    read_weights,
)
from oddslip.cli.outputs import check_outputs, console, print_json, write_table
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from oddslip.calibrators.base import Calibrator
    from oddslip.selection.repair import Repair

Output = Annotated[Path, typer.Option("-o", "--output", help="Where the repair is saved.")]
K = Annotated[
    int | None, typer.Option("-k", "--k", help="Labels shown per row: choose by --metric at K.")
]
Metric = Annotated[str, typer.Option(help=f"What to choose by, at K: {options.METRICS}.")]
Rule = Annotated[
    str, typer.Option(help=f"How to choose: auto, paper, or one of {', '.join(CANDIDATES)}.")
]
CalibratorName = Annotated[
    str | None,
    typer.Option(help=f"Do not choose, take one of {', '.join(NAMES)}."),
]
Dead = Annotated[str, typer.Option(help="What a dead label gets: prior, identity or exclude.")]
Tau = Annotated[
    int, typer.Option(help="Labels with at most this many calibration positives are dead.")
]
Weights = Annotated[
    str | None,
    typer.Option(
        help=f"Weight each label was trained with, for inversion: {options.WEIGHTS}. "
        f"{options.RESOLVED}"
    ),
]
Foldable = Annotated[
    bool, typer.Option("--foldable", help="Choose among repairs that `oddslip fold` can use.")
]
Interpolation = Annotated[str, typer.Option(help="Of isotonic maps: linear or step.")]
TopK = Annotated[
    int | None, typer.Option("--top-k", "-k", help="Write the top K instead of all scores.")
]
Lists = Annotated[
    bool, typer.Option("--lists", help="Write the lists of the decision saved with the repair.")
]


def fit(
    context: typer.Context,
    scores: options.Scores,
    labels: options.Labels = None,
    *,
    output: Output,
    k: K = None,
    metric: Metric = "map",
    propensities: options.Propensities = None,
    rule: Rule = "auto",
    calibrator: CalibratorName = None,
    foldable: Foldable = False,
    dead: Dead = "prior",
    tau: Tau = 0,
    prior: options.Prior = None,
    weights: Weights = None,
    sample_weight: options.SampleWeight = None,
    exclude: options.Exclude = None,
    nan: options.Nan = "refuse",
    columns: options.Columns = None,
    interpolation: Interpolation = "linear",
    kind: options.KindOption = None,
    seed: options.FoldSeed = oddslip.DEFAULT_SEED,
    label_names: options.Names = None,
    engine: options.EngineOption = "local",
    master: options.Master = "local[*]",
    row_id: options.RowId = None,
    threads: options.Threads = None,
    json: options.Json = False,
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
    from oddslip.reports.text import repair_table, selection_table

    check_outputs(output)
    source = Inputs.of(context).open()
    repair = _build(context, source.kind)
    row_weights = read_numbers(sample_weight, "row")
    fitted = repair.fit(source, sample_weight=row_weights, threads=threads).fitted_
    fitted.save(output)
    table = getattr(repair, "table_", None)
    if json:
        selection = {} if table is None else {"selection": table.to_dict()}
        return print_json(fitted.to_dict() | selection)
    out = console()
    if table is not None:
        out.print(selection_table(table))
        out.print(f"{table.why}\n")
    out.print(repair_table(fitted))
    out.print(
        f"Saved to {output}. Apply it: oddslip apply {output} scores.npy --top-k 7 -o top.parquet"
    )
    return None


def _build(context: typer.Context, kind: str) -> Calibrator | Repair:
    """The calibrator of --calibrator, or a choice by the metric at K; not yet fitted."""
    values = context.params
    arguments = pick(context, "dead") | {
        "prior": read_numbers(values["prior"]),
        "weights": read_weights(values["weights"]),
        "kind": kind,
    }
    if values["calibrator"] is not None:
        arguments |= pick(context, "tau", "interpolation")
        return build_calibrator(values["calibrator"], **arguments)
    if values["k"] is None:
        raise InvalidInput(
            "fit chooses by the top K you deploy. Pass -k, or take a calibrator as it is "
            "with --calibrator isotonic."
        )
    arguments |= pick(context, "k", "rule", "metric", "seed", "foldable")
    return oddslip.Repair(**arguments, propensities=read_propensities(values["propensities"]))


def apply(
    context: typer.Context,
    repair: options.Repair,
    scores: options.Scores,
    *,
    output: options.TableFile,
    top_k: TopK = None,
    lists: Lists = False,
    groups: options.Groups = None,
    kind: options.RepairKind = None,
    exclude: options.Exclude = None,
    nan: options.Nan = "refuse",
    columns: options.Columns = None,
    label_names: options.Names = None,
    engine: options.EngineOption = "local",
    master: options.Master = "local[*]",
    row_id: options.RowId = None,
    threads: options.Threads = None,
) -> None:
    """Apply a saved repair: repaired scores, the top K, or the lists of a decision.

    Both ways the file is read and written in blocks, so it may be larger than memory. On Spark
    -o is a folder of Parquet files, written by the tasks.

    Examples:

      oddslip apply repair.oddslip scores.npy --top-k 7 -o ranked.parquet

      oddslip apply repair.oddslip scores.parquet -o repaired.npy

      oddslip apply repair.oddslip scores.csv -o repaired.csv

      oddslip apply decision.oddslip scores.npy --lists -o lists.parquet
    """
    from oddslip.core.panel import check_k
    from oddslip.writers import write_ranking, write_scores

    if engine == "local":
        check_outputs(output)
    fitted = oddslip.load_repair(repair)
    source = Inputs.of(context).open_for(fitted, labelled=False)
    if engine == "spark":
        rows: Any
        if lists:
            rows = oddslip.load_decision(repair).lists(source, groups=read_names(groups))
        else:
            rows = fitted.transform(source) if top_k is None else fitted.rank(source, k=top_k)
        return write_table(rows, output)
    n_rows, n_labels = source.n_rows, source.n_labels
    table: dict[str, Any] = {
        "n_rows": n_rows,
        "label_names": source.label_names,
        "row_ids": source.row_ids(),
    }
    if lists:
        decision = oddslip.load_decision(repair)
        blocks_of_lists = decision.list_blocks(source, groups=read_names(groups), threads=threads)
        write_ranking(output, blocks_of_lists, k=decision.rule.k_max, **table)
        return console().print(f"Lists of {n_rows:,} rows in {output}.")
    if top_k is not None:
        ranked = fitted.rank_blocks(source, k=top_k, threads=threads)
        write_ranking(output, ranked, k=check_k(top_k, n_labels), **table)
        return console().print(f"Top {top_k} of {n_rows:,} rows, repaired, in {output}.")
    blocks = fitted.transform_blocks(source, threads=threads)
    table |= {"n_labels": n_labels, "dtype": source.dtype}
    write_scores(output, blocks, kind="probability", **table)
    cells = f"{n_rows:,} rows x {n_labels:,} labels"
    return console().print(f"Repaired probabilities of {cells} in {output}.")
