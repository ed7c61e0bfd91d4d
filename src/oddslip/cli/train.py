"""`oddslip train` and `oddslip score`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

import oddslip
from oddslip.cli import options
from oddslip.cli.inputs import pick, read_names, read_weights, start_engine
from oddslip.cli.outputs import check_folders, check_outputs, console
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from oddslip.learners import OneVsRest

Features = Annotated[
    Path, typer.Argument(help="Features: .npy, .npz or a scipy.sparse .npz, (rows, features).")
]
Labels = Annotated[
    Path, typer.Argument(help="What was true: 0/1 cells, .npy, .npz or a scipy.sparse .npz.")
]
ModelFile = Annotated[Path, typer.Option("-o", "--output", help="Where the model goes: .oddmodel.")]
Learner = Annotated[
    str | None,
    typer.Option(help="lightgbm (default), xgboost, hist (scikit-learn's), logistic or mlp."),
]
Preset = Annotated[
    str | None, typer.Option(help="A configuration of the paper, such as paper-default.")
]
Weights = Annotated[str, typer.Option(help=f"Weight of each label: {options.WEIGHTS}.")]
MaxDeltaStep = Annotated[
    float, typer.Option(help="Cap of a leaf's step, for boosters; 0 for none.")
]
Mode = Annotated[str, typer.Option(help="grouped, or exact: label by label, the same trees.")]
Parameter = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", help="name=value for the learner; may be repeated."),
]
EarlyStopping = Annotated[
    int | None,
    typer.Option(help="Keep the rounds up to the best MAP at K, after so many without a gain."),
]
K = Annotated[int, typer.Option("-k", "--k", help="Labels shown per row, to stop by.")]
Validation = Annotated[
    tuple[Path, Path] | None, typer.Option(help="Features and labels of the rows to stop by.")
]
Checkpoint = Annotated[
    Path | None, typer.Option(help="Folder that keeps finished labels, to continue from.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same model.")]
EngineOption = Annotated[
    str,
    typer.Option(
        help="local, or spark: groups of labels are tasks; --checkpoint is then a folder that "
        "every executor sees."
    ),
]
Model = Annotated[Path, typer.Argument(help="What `oddslip train` saved.")]
ScoresFile = Annotated[
    Path, typer.Option("-o", "--output", help="Where scores go: .npy, .csv or .parquet.")
]
Kind = Annotated[str, typer.Option(help="probability (float32), margin (log-odds), or both.")]


def train(
    context: typer.Context,
    features: Features,
    labels: Labels,
    *,
    output: ModelFile,
    learner: Learner = None,
    preset: Preset = None,
    weights: Weights = "none",
    max_delta_step: MaxDeltaStep = 0.0,
    mode: Mode = "grouped",
    parameter: Parameter = None,
    early_stopping: EarlyStopping = None,
    k: K = 7,
    validation: Validation = None,
    checkpoint: Checkpoint = None,
    seed: Seed = oddslip.DEFAULT_SEED,
    label_names: options.Names = None,
    engine: EngineOption = "local",
    master: options.Master = "local[*]",
    threads: options.Threads = None,
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
    from oddslip.sources.open import open_labels

    check_outputs(output)
    check_folders(checkpoint)
    if (early_stopping is None) != (validation is None):
        raise InvalidInput(
            "--early-stopping and --validation must be given together, such as "
            "--early-stopping 20 --validation X.npz labels.npz."
        )
    model = _build(context)
    rows, truth = as_whole(read_features(features)), open_labels(labels)
    other_rows = None
    if validation is not None:
        other_rows = (as_whole(read_features(validation[0])), open_labels(validation[1]))
    with without_banners():
        model.fit(rows, truth, validation=other_rows, label_names=read_names(label_names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the summary has a note for it
        model.save(output)
    console().print(_summarize(model, output))


def _build(context: typer.Context) -> OneVsRest:
    """The learner that the options describe, not yet trained."""
    from oddslip.learners import OneVsRest
    from oddslip.learners.backends.base import preset_learner

    values = context.params
    learner, preset = values["learner"], values["preset"]
    if learner is None:
        learner = "lightgbm" if preset is None else preset_learner(preset)
    return OneVsRest(
        learner,
        weights=read_weights(values["weights"]),
        parameters=dict(map(_read_parameter, values["parameter"] or [])),
        engine=start_engine(values["engine"], values["master"]),
        **pick(context, "max_delta_step", "preset", "mode", "seed", "threads"),
        **pick(context, "checkpoint", "early_stopping", "k"),
    )


def _summarize(model: OneVsRest, output: Path) -> str:
    summary = f"{model.n_labels:,} labels trained on {model.n_rows_:,} rows; saved as {output}."
    values = model.validation_map_
    if values is not None and values.size:
        summary += (
            f" Kept {int(values.argmax()) + 1} rounds: MAP@{model.k} {values.max():.4f} on other "
            "rows."
        )
    if model.constant_.any():
        summary += (
            f" {int(model.constant_.sum()):,} of them are constant and predict their prevalence."
        )
    if output.suffix == ".oddslip":
        summary += " Note: end its name in .oddmodel; .oddslip is for repairs."
    return summary


def score(
    model: Model,
    features: Features,
    *,
    output: ScoresFile,
    kind: Kind = "probability",
    threads: options.Threads = None,
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
        learner = OneVsRest.load(model)
    rows = read_features(features)
    with without_banners():
        paths = score_to_file(learner, rows, output, kind=kind, threads=threads)
    for path in paths:
        console().print(f"{rows.shape[0]:,} rows x {learner.n_labels:,} labels in {path}.")


@contextmanager
def without_banners() -> Iterator[None]:
    """Hide what LightGBM writes to the stderr of the process; its error says the same.

    Other lines that the process writes there are passed on at the end. Progress and warnings of
    Python still go to stderr at once.
    """
    import os
    import sys
    import tempfile
    import warnings

    stderr, descriptor = sys.stderr, os.dup(2)
    with tempfile.TemporaryFile() as lines, open(descriptor, "w", buffering=1) as direct:
        if _is_stderr(stderr):
            stderr.flush()
            sys.stderr = direct
        os.dup2(lines.fileno(), 2)
        message = ""
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", module="lightgbm|xgboost")
                yield
        except Exception as error:
            message = " ".join(str(error).split())
            raise
        finally:
            os.dup2(descriptor, 2)
            sys.stderr = stderr
            lines.seek(0)
            for line in lines.read().splitlines(keepends=True):
                text = " ".join(line.decode("utf-8", "replace").split()).rstrip(".")
                if text and not text.startswith("[LightGBM]") and text not in message:
                    os.write(2, line)


def _is_stderr(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 2
    except (AttributeError, OSError, ValueError):  # a stream in memory, or none
        return False


def _read_parameter(text: str) -> tuple[str, object]:
    """A number, true, false or null where the value reads as one; else the text itself."""
    from oddslip.io.json import parse_json

    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InvalidInput(f"a parameter must be name=value, got {text!r}.")
    try:
        return name, parse_json(value)
    except ValueError:
        return name, value
