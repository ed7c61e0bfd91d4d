"""`oddslip train` and `oddslip score`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from oddslip import DEFAULT_SEED
from oddslip.cli.options import (
    WEIGHTS,
    Master,
    Names,
    Threads,
    check_folders,
    check_outputs,
    console,
    read_names,
    read_weights,
    start_engine,
)

Features = Annotated[
    Path, typer.Argument(help="Features: .npy, .npz or a scipy.sparse .npz, (rows, features).")
]


def train(
    features: Features,
    labels: Annotated[
        Path, typer.Argument(help="What was true: 0/1 cells, .npy, .npz or a scipy.sparse .npz.")
    ],
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where the model goes: .oddmodel.")
    ],
    learner: Annotated[
        str | None,
        typer.Option(help="lightgbm (default), xgboost, hist (scikit-learn's), logistic or mlp."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="A configuration of the paper, such as paper-default.")
    ] = None,
    weights: Annotated[str, typer.Option(help=f"Weight of each label: {WEIGHTS}.")] = "none",
    max_delta_step: Annotated[
        float, typer.Option(help="Cap of a leaf's step, for boosters; 0 for none.")
    ] = 0.0,
    mode: Annotated[
        str, typer.Option(help="grouped, or exact: label by label, the same trees.")
    ] = "grouped",
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", help="name=value for the learner; may be repeated."),
    ] = None,
    early_stopping: Annotated[
        int | None,
        typer.Option(help="Keep the rounds up to the best MAP at K, after so many without a gain."),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="Labels shown per row, to stop by.")] = 7,
    validation: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Features and labels of the rows to stop by."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder that keeps finished labels, to continue from.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same model.")] = DEFAULT_SEED,
    label_names: Names = None,
    engine: Annotated[
        str,
        typer.Option(
            help="local, or spark: groups of labels are tasks; --checkpoint is then a folder that "
            "every executor sees."
        ),
    ] = "local",
    master: Master = "local[*]",
    threads: Threads = None,
) -> None:
    """Train one model per label, with a weight per label, and save them in one file.

    Examples:

      oddslip train X.npz training-labels.npz -o model.oddmodel --weights balanced

      oddslip train X.npz training-labels.npz -o m.oddmodel --preset paper-booster -p num_leaves=15

      oddslip train X.npz y.npz -o m.oddmodel --early-stopping 20 --validation X1.npz y1.npz

      oddslip train X.npz y.npz -o m.oddmodel --engine spark --master spark://host:7077
    """
    import warnings

    from oddslip.adapters.features import as_whole, read_features
    from oddslip.learners import OneVsRest
    from oddslip.learners.backends.base import preset_learner
    from oddslip.sources.open import open_labels

    check_outputs(output)
    check_folders(checkpoint)
    if (early_stopping is None) != (validation is None):
        from oddslip.errors import InvalidInput

        raise InvalidInput(
            "--early-stopping and --validation must be given together, such as "
            "--early-stopping 20 --validation X.npz labels.npz."
        )
    model = OneVsRest(
        ("lightgbm" if preset is None else preset_learner(preset)) if learner is None else learner,
        weights=read_weights(weights),
        max_delta_step=max_delta_step,
        preset=preset,
        mode=mode,
        seed=seed,
        threads=threads,
        checkpoint=checkpoint,
        early_stopping=early_stopping,
        k=k,
        parameters=dict(map(_read_parameter, parameter or [])),
        engine=start_engine(engine, master),
    )
    rows, truth = as_whole(read_features(features)), open_labels(labels)
    validation_rows = None
    if validation is not None:
        validation_rows = (as_whole(read_features(validation[0])), open_labels(validation[1]))
    with without_banners():
        model.fit(rows, truth, validation=validation_rows, label_names=read_names(label_names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # a note below, in the words of a command
        model.save(output)
    summary = f"{model.n_labels:,} labels trained on {model.n_rows_:,} rows; saved as {output}."
    if (seen := model.validation_map_) is not None and seen.size:
        summary += f" Kept {int(seen.argmax()) + 1} rounds: MAP@{k} {seen.max():.4f} on other rows."
    if model.constant_.any():
        summary += (
            f" {int(model.constant_.sum()):,} of them are constant and predict their prevalence."
        )
    if output.suffix == ".oddslip":
        summary += " Note: end its name in .oddmodel; .oddslip is for repairs."
    console().print(summary)


def score(
    model: Annotated[Path, typer.Argument(help="What `oddslip train` saved.")],
    features: Features,
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where scores go: .npy, .csv or .parquet.")
    ],
    kind: Annotated[
        str, typer.Option(help="probability (float32), margin (log-odds), or both.")
    ] = "probability",
    threads: Threads = None,
) -> None:
    """Score rows into a file, block by block. A killed run continues when started again.

    Examples:

      oddslip score model.oddmodel X.npz -o scores.npy

      oddslip score model.oddmodel X.npz -o scores.parquet --kind both
    """
    from oddslip.adapters.features import read_features
    from oddslip.cli.guard import check_apart
    from oddslip.learners import OneVsRest, score_to_file
    from oddslip.learners.scoring import margin_path

    check_outputs(output)
    if kind == "both":
        margins = {"margins": margin_path(output)}
        check_apart(margins, {"model": model, "features": features})
    with without_banners():
        trained = OneVsRest.load(model)
    rows = read_features(features)
    with without_banners():
        written = score_to_file(trained, rows, output, kind=kind, threads=threads)
    for path in written:
        console().print(f"{rows.shape[0]:,} rows x {trained.n_labels:,} labels in {path}.")


@contextmanager
def without_banners() -> Iterator[None]:
    """Keep what LightGBM writes to stderr past Python from the reader: its error says the same.

    Other lines that the process itself writes there are passed on at the end. Our own progress
    and warnings go to the same place as ever.
    """
    import os
    import sys
    import tempfile
    import warnings

    shown, ours = sys.stderr, os.dup(2)
    with tempfile.TemporaryFile() as caught, open(ours, "w", buffering=1) as direct:
        if _writes_to_stderr(shown):
            shown.flush()
            sys.stderr = direct
        os.dup2(caught.fileno(), 2)
        said = ""
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", module="lightgbm|xgboost")
                yield
        except Exception as error:
            said = " ".join(str(error).split())
            raise
        finally:
            os.dup2(ours, 2)
            sys.stderr = shown
            caught.seek(0)
            for line in caught.read().splitlines(keepends=True):
                text = " ".join(line.decode("utf-8", "replace").split()).rstrip(".")
                if text and not text.startswith("[LightGBM]") and text not in said:
                    os.write(2, line)


def _writes_to_stderr(stream: Any) -> bool:
    try:
        return bool(stream.fileno() == 2)
    except (AttributeError, OSError, ValueError):  # a stream in memory, or none
        return False


def _read_parameter(text: str) -> tuple[str, Any]:
    """A number, true, false or null where the value reads as one; else the text itself."""
    from oddslip.errors import InvalidInput
    from oddslip.io.json import parse_json

    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InvalidInput(f"a parameter must be name=value, got {text!r}.")
    try:
        return name, parse_json(value)
    except ValueError:
        return name, value
