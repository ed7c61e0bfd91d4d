"""Arguments and helpers that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

FIGURES = (".png", ".svg", ".pdf")
# Values of --weights, in every command.
WEIGHTS = (
    "none, balanced, sqrt, common, a multiple of balanced such as 10x, a number for all labels, "
    "or a file with one number per label (.npy, .npz, text with one a line; or by name: .csv or "
    ".parquet with columns label and weight)"
)
# For commands whose rows are not those of training.
RESOLVED = "A name is resolved on --prior, else it is the ratio on the rows given here."

Scores = Annotated[
    Path,
    typer.Argument(
        help="Scores: .npy, .npz, .csv or .parquet, shape (rows, labels); a folder of Parquet "
        "files; a quoted pattern such as 'scores-*.parquet' (files in the natural order of their "
        "names); Parquet at an address such as s3://bucket/scores.parquet."
    ),
]
Labels = Annotated[
    Path | None,
    typer.Argument(
        help="What was true: .npy or .npz of 0/1 cells, a scipy.sparse .npz, .csv or .parquet; "
        "folders, patterns and addresses as for scores. Leave out if the scores file holds it."
    ),
]
K = Annotated[int, typer.Option("-k", "--k", help="Labels shown per row.")]
KindOption = Annotated[
    str | None,
    typer.Option(
        "--kind",
        help="What the scores are: probability or margin (log-odds). Default: the kind stored in "
        "the file, else probability.",
    ),
]
Names = Annotated[
    Path | None, typer.Option("--label-names", help="Text file with one label name per line.")
]
Prior = Annotated[
    Path | None,
    typer.Option(
        help="Training prevalence of each label: .npy, .npz, text with one a line; or by name: "
        ".csv or .parquet with columns label and prior."
    ),
]
METRICS = "map, precision, recall, ndcg, psp or hit_rate"
Propensities = Annotated[
    str | None,
    typer.Option(
        help="For PSP: weights (propensities 1 / w of --weights, what weighted training "
        "approximates), or a file in the forms of --prior. By default from the counts of these "
        "labels."
    ),
]
SampleWeight = Annotated[
    Path | None,
    typer.Option("--sample-weight", help="How much each row counts: one number per row (a file)."),
]
Exclude = Annotated[
    Path | None,
    typer.Option(
        "--exclude",
        help="Labels of each row that may not be shown: a scipy.sparse .npz of the shape of the "
        "scores, .csv or .parquet of pairs (row_id, label), or .parquet of lists. They are "
        "ignored.",
    ),
]
Nan = Annotated[
    str,
    typer.Option(
        "--nan",
        help="What a missing score means: refuse, or absent (its label is no candidate; then a "
        "long table need not hold every label in every row).",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Columns of long tables (a line per cell) that have other names than row, label, "
        "score and true, or user_id, item_id, score and label: "
        "row=shopper,label=dish,score=p,true=bought. Other columns are ignored.",
    ),
]
Bootstrap = Annotated[int, typer.Option(help="Bootstrap replicates; 0 for none.")]
TableFile = Annotated[Path, typer.Option("-o", "--output", help="Write .npy, .csv or .parquet.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json-file", help="Also write the JSON to this file.")
]
Figure = Annotated[Path | None, typer.Option("--figure", help="Also draw it (.png, .svg or .pdf).")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", help="Threads to use; all available cores by default.", min=1),
]

EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        help="local, or spark: tasks read Parquet files with the columns scores (a list a row) "
        "and labels (the true ones).",
    ),
]
Master = Annotated[
    str,
    typer.Option(help="Of Spark: local[*], spark://host:7077, or a Connect URL such as sc://host."),
]
RowId = Annotated[
    str | None, typer.Option("--row-id", help="With --engine spark: the column that names rows.")
]


def check_engine(engine: str) -> None:
    """Reject an unknown engine."""
    from oddslip.errors import InvalidInput

    if engine not in ("local", "spark"):
        raise InvalidInput(f"--engine must be local or spark, got {engine!r:.60}.")


def start_engine(engine: str, master: str) -> Any:
    """A Spark session; None for the local engine."""
    check_engine(engine)
    if engine == "local":
        return None
    from oddslip.spark.session import start_session

    return start_session(master)


def opened(
    engine: str,
    master: str,
    path: Path,
    labels: Path | None,
    *,
    kind: str | None,
    names: list[str] | None,
    row_id: str | None,
    exclude: Path | None = None,
    nan: str = "refuse",
    columns: str | None = None,
    labelled: bool = True,
) -> dict[str, Any]:
    """Arguments of a verb: local files, or a table that Spark tasks read."""
    from oddslip.errors import InvalidInput

    if engine == "local":
        if row_id is not None:
            raise InvalidInput("--row-id names a column for --engine spark, got --engine local.")
        inputs: dict[str, Any] = {
            "scores": path,
            "labels": labels,
            "kind": kind,
            "label_names": names,
            "exclude": exclude,
            "nan": nan,
        }
        return with_columns(inputs, columns)
    check_engine(engine)
    if columns is not None:
        raise InvalidInput("--columns is for --engine local, got --engine spark.")
    if labels is not None:
        raise InvalidInput(
            f"with --engine spark labels are a column of {path}, got the file {labels}."
        )
    if exclude is not None or nan != "refuse":
        raise InvalidInput("--exclude and --nan are for --engine local, got --engine spark.")
    from oddslip.sources.open import is_parquet, open_source

    if not is_parquet(path):
        raise InvalidInput(f"with --engine spark scores must be Parquet files, got {path}.")
    table = open_source(
        path,
        "labels" if labelled else None,
        scores="scores",
        kind=kind,  # type: ignore[arg-type]
        label_names=names,
        row_id=row_id,
        engine=start_engine(engine, master),
    )
    return {"scores": table}


def with_columns(inputs: dict[str, Any], columns: str | None) -> dict[str, Any]:
    """Inputs of a verb; opened here if --columns names the columns of long tables."""
    if columns is None:
        return inputs
    from oddslip.errors import InvalidInput
    from oddslip.sources.open import open_source

    pairs = [part.partition("=")[::2] for part in columns.split(",")]
    roles = dict(pairs)
    if len(roles) < len(pairs) or not all(role and name for role, name in pairs):
        raise InvalidInput(
            f"--columns must be such as row=user_id,label=item_id, got {columns!r:.60}."
        )
    return {"scores": open_source(**inputs, columns=roles)}


def write_table(table: Any, output: Path | None) -> None:
    """Write a Spark table as a folder of Parquet files, in its tasks."""
    from oddslip.errors import InvalidInput

    if output is None:
        raise InvalidInput("rows of Spark are written by its tasks. Pass -o and a folder.")
    if output.exists():
        raise InvalidInput(f"{output} must be a new folder, got one that exists.")
    table.write.parquet(str(output.resolve()))


def read_names(path: Path | None) -> list[str] | None:
    """Label names from a text file, one per line."""
    if path is None:
        return None
    from oddslip.errors import UnreadableFile
    from oddslip.io.inputs import read_bytes

    try:
        return read_bytes(path).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} cannot be read as a list of label names.") from error


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    print(_as_json(value))


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document atomically."""
    from oddslip.io.files import atomic_write

    with atomic_write(path) as unfinished:
        unfinished.write_text(_as_json(value) + "\n", encoding="utf-8")


def write_figure(path: Path, figure: Any) -> None:
    """Write a matplotlib figure atomically."""
    from oddslip.io.files import atomic_write

    with atomic_write(path) as unfinished:
        figure.savefig(unfinished)


def check_outputs(*paths: Path | None, figure: Path | None = None) -> None:
    """Reject paths that cannot be written, before the work starts."""
    from oddslip.errors import InvalidInput
    from oddslip.io.files import output_path

    for path in (*paths, figure):
        if path is not None:
            output_path(path)
    if figure is not None and figure.suffix.lower() not in FIGURES:
        raise InvalidInput(f"{figure} must end in {', '.join(FIGURES)} to be drawn.")


def check_folders(*paths: Path | None) -> None:
    """Reject paths that cannot be folders, before the work starts."""
    from oddslip.io.files import output_folder

    for path in paths:
        if path is not None:
            output_folder(path)


def write_text(path: Path, text: str) -> None:
    """Write a page atomically."""
    from oddslip.io.files import atomic_write

    with atomic_write(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def _as_json(value: Any) -> str:
    import json

    return printable_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def printable_json(text: str) -> str:
    """The document with control and invisible characters as JSON escapes."""
    import json

    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def console() -> Any:
    """Console for people: as wide as the terminal; 100 columns if piped."""
    import sys

    from rich.console import Console

    from oddslip.reports.text import printable

    class PrintableConsole(Console):
        """Escapes names and paths in sentences; tables escape theirs."""

        def print(self, *objects: Any, **options: Any) -> None:
            printable_objects = [
                _lines(each) if isinstance(each, str) else each for each in objects
            ]
            super().print(*printable_objects, **options)

    def _lines(text: str) -> str:
        return "\n".join(printable(line) for line in text.split("\n"))

    width = None if sys.stdout.isatty() else 100
    return PrintableConsole(highlight=False, markup=False, soft_wrap=False, width=width)


def read_numbers(path: Path | None, each: str = "label") -> Any:
    """One number per label or row, from a file where there is one."""
    from oddslip.core.weights import read_numbers as read

    return None if path is None else read(path, each)


def read_weights(text: str | None) -> Any:
    """Value of --weights: a name or a multiple, a number, or the numbers of a file."""
    if text is None:
        return None
    path = weights_file(text)
    if path is not None:
        return read_numbers(path)
    from oddslip.core.weights import is_weight_name

    return text if is_weight_name(text) else float(text)


def read_propensities(text: str | None) -> Any:
    """Value of --propensities: weights, or the numbers of a file."""
    return read_numbers(propensities_file(text)) if text != "weights" else text


def propensities_file(text: str | None) -> Path | None:
    """The file that --propensities names."""
    return None if text in (None, "weights") else Path(text)


def weights_file(text: str | None) -> Path | None:
    """The file that --weights names; None for a name or a number."""
    from oddslip.core.weights import is_weight_name
    from oddslip.errors import InvalidInput

    if text is None or is_weight_name(text) or _is_number(text):
        return None
    path = Path(text)
    if not path.exists():
        raise InvalidInput(f"weights must be {WEIGHTS}, got {text!r}, and there is no such file.")
    return path


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
