"""Options and arguments that several commands share, each declared once.

The parameters of a command are its options, so a command has many. Those that only go on to the
library are taken from the context by name (`pick`, `Inputs.of`), not written out a second time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
RepairKind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        help="What the scores are: probability or margin (log-odds). Default: what the repair was "
        "fitted on. Scores that look like the other kind are an error without this option.",
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
Seed = Annotated[int, typer.Option(help="Same seed, same intervals.")]
FoldSeed = Annotated[int, typer.Option(help="Same seed, same folds and intervals.")]
Repair = Annotated[Path, typer.Argument(help="A repair saved by `oddslip fit`.")]
TableFile = Annotated[Path, typer.Option("-o", "--output", help="Write .npy, .csv or .parquet.")]
Groups = Annotated[
    Path | None, typer.Option("--groups", help="Text file with the group of each row, one a line.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json-file", help="Also write the JSON to this file.")
]
Html = Annotated[
    Path | None, typer.Option(help="Also write a report: one HTML file, no network needed.")
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
