"""`oddslip export` and `oddslip fold`: a saved repair for other systems and inside models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oddslip
from oddslip.cli import options
from oddslip.cli.outputs import check_outputs, console, print_json
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from oddslip.serving.export import Export


def export(
    repair: options.Repair,
    *,
    to: Annotated[str, typer.Option("--to", help="What to write: onnx, sql or json.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.")],
    k: Annotated[
        int | None, typer.Option("-k", "--k", help="Labels shown per row (onnx, sql).")
    ] = None,
    scores: Annotated[
        str, typer.Option(help="Type of the scores that come in: float64 or float32 (onnx).")
    ] = "float64",
    precision: Annotated[
        str, typer.Option(help="What the graph computes in: float64 or float32 (onnx).")
    ] = "float64",
    dialect: Annotated[
        str | None, typer.Option(help="SQL dialect: duckdb, postgres or spark.")
    ] = None,
    name: Annotated[
        str, typer.Option(help="Prefix of the names of the table and of the view (sql).")
    ] = "oddslip",
    table: Annotated[str, typer.Option(help="Table that holds the scores (sql).")] = "scores",
    row_column: Annotated[str, typer.Option(help="Its column of rows (sql).")] = "row",
    label_column: Annotated[str, typer.Option(help="Its column of labels (sql).")] = "label",
    score_column: Annotated[str, typer.Option(help="Its column of scores (sql).")] = "score",
    lists: Annotated[
        bool, typer.Option("--lists", help="With the decision that was saved with the repair.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Write a saved repair for systems without Python: ONNX, SQL or JSON.

    All forms use the same sums and comparisons, so isotonic maps give the same bits.

    Examples:

      oddslip export repair.oddslip --to onnx -k 7 --scores float32 -o repair.onnx

      oddslip export repair.oddslip --to sql --dialect postgres -k 7 -o repair.sql

      oddslip export repair.oddslip --to json -o repair.json

      oddslip export decision.oddslip --to sql --dialect duckdb --lists -o lists.sql
    """
    check_outputs(output)
    if to not in ("onnx", "sql", "json"):
        raise InvalidInput(f"--to must be onnx, sql or json, got {to!r:.60}.")
    if to == "sql" and dialect is None:
        raise InvalidInput("--to sql needs --dialect: duckdb, postgres or spark.")
    if lists and k is not None:
        raise InvalidInput("-k goes with the ranking of a repair; --lists have their own lengths.")
    fitted: Any = oddslip.load_decision(repair) if lists else oddslip.load_repair(repair)
    slots = {} if lists else {"k": k}
    result: Export
    if to == "onnx":
        result = fitted.to_onnx(output, scores=scores, precision=precision, **slots)
    elif to == "sql":
        columns = (row_column, label_column, score_column)
        result = fitted.to_sql(
            output, dialect=str(dialect), name=name, table=table, columns=columns, **slots
        )
    else:
        result = fitted.to_json(output)
    if json:
        return print_json(result.to_dict())
    out = console()
    out.print(f"Wrote {result.form} to {result.path}, {result.n_bytes:,} bytes.")
    if result.largest_deviation:
        out.print(
            f"Computed in float32, a probability differs from float64 by up to "
            f"{result.largest_deviation:.2g}. Labels whose values are closer than that can tie "
            "or swap."
        )
    return None


def fold(
    repair: options.Repair,
    models: Annotated[
        list[Path],
        typer.Argument(
            help="Saved models: LightGBM .txt, XGBoost .json or .ubj, ONNX .onnx. One file of all "
            "labels, or one a label: named after it, else in the order of the labels."
        ),
    ],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the folded models.")],
    json: options.Json = False,
) -> None:
    """Write a saved repair into saved models: same format, same predict call, no oddslip needed.

    The repair must be affine in the log-odds: fit it with `oddslip fit --foldable`.

    Examples:

      oddslip fold repair.oddslip models/*.txt -o folded/

      oddslip fold repair.oddslip model.json -o folded/
    """
    from oddslip.folding.files import fold_files

    paths = fold_files(oddslip.load_repair(repair), models, output)
    if json:
        return print_json({"schema": "oddslip.fold/1", "models": [str(path) for path in paths]})
    what = "model" if len(paths) == 1 else "models"
    console().print(f"Wrote {len(paths):,} {what} with the repair inside to {output}.")
    return None
