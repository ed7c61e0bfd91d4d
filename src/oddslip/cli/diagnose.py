"""`oddslip diagnose` and `oddslip plan`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import oddslip
from oddslip.cli import options
from oddslip.cli.inputs import (
    Inputs,
    pick,
    propensities_file,
    read_names,
    read_numbers,
    read_propensities,
    read_weights,
    weights_file,
)
from oddslip.cli.outputs import check_outputs, console, print_json, write_figure, write_json
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from oddslip.core.types import ScoresLike
    from oddslip.diagnosis.result import Diagnosis
    from oddslip.diagnosis.summary import CommandFiles
    from oddslip.planning.plan import Plan

Metric = Annotated[
    str,
    typer.Option(help=f"What you deploy by, at K: {options.METRICS}. Everything is judged in it."),
]
TrainedWeights = Annotated[
    str | None,
    typer.Option(help=f"Weight each label was trained with: {options.WEIGHTS}. {options.RESOLVED}"),
]
Weights = Annotated[str, typer.Option(help=f"Weight of each label: {options.WEIGHTS}.")]
Unweighted = Annotated[
    Path | None, typer.Option(help="Scores of the unweighted model for the same rows.")
]
Calibration = Annotated[Path | None, typer.Option(help="Scores of held-out rows to calibrate on.")]
CalibrationLabels = Annotated[
    Path | None, typer.Option(help="What was true for the calibration rows.")
]
CalibrationExclude = Annotated[
    Path | None, typer.Option(help="As --exclude, for the calibration rows.")
]
BudgetRounds = Annotated[int | None, typer.Option(help="Boosting rounds, for the budget.")]
BudgetRate = Annotated[float | None, typer.Option(help="Learning rate, for the budget.")]
BudgetStep = Annotated[
    float | None, typer.Option(help="Cap of the leaf step, for the budget; 0 for none.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="All findings with their evidence, and the labels.")
]
TrainingLabels = Annotated[
    Path,
    typer.Argument(help="What is true for the training rows: .npy, .npz, .csv or .parquet."),
]
Rounds = Annotated[int, typer.Option(help="Boosting rounds.")]
LearningRate = Annotated[float, typer.Option(help="Learning rate.")]
MaxDeltaStep = Annotated[float, typer.Option(help="Cap of the leaf step; 0 for none.")]
NumLeaves = Annotated[int, typer.Option(help="Leaves of a tree.")]
RowsInLeaf = Annotated[int, typer.Option(help="Fewest rows of a leaf.")]
LossBootstrap = Annotated[
    int, typer.Option(help="Bootstrap replicates of the what-if loss; 0 for none.")
]


def diagnose(
    context: typer.Context,
    scores: options.Scores,
    labels: options.Labels = None,
    *,
    k: options.K = 7,
    metric: Metric = "map",
    propensities: options.Propensities = None,
    weights: TrainedWeights = None,
    unweighted: Unweighted = None,
    calibration: Calibration = None,
    calibration_labels: CalibrationLabels = None,
    prior: options.Prior = None,
    kind: options.KindOption = None,
    exclude: options.Exclude = None,
    calibration_exclude: CalibrationExclude = None,
    nan: options.Nan = "refuse",
    columns: options.Columns = None,
    rounds: BudgetRounds = None,
    learning_rate: BudgetRate = None,
    max_delta_step: BudgetStep = None,
    bootstrap: options.Bootstrap = 2000,
    seed: options.FoldSeed = oddslip.DEFAULT_SEED,
    label_names: options.Names = None,
    engine: options.EngineOption = "local",
    master: options.Master = "local[*]",
    row_id: options.RowId = None,
    threads: options.Threads = None,
    verbose: Verbose = False,
    html: options.Html = None,
    figure: options.Figure = None,
    json: options.Json = False,
    json_file: options.JsonFile = None,
) -> None:
    """Have class weights broken this ranker? How, by how much, and what repairs it?

    Give what you have: scores and labels alone will do. Without --calibration the rows calibrate
    one another, fold by fold (cross-fitted), which is optimistic for rows of a later period.

    Examples:

      oddslip diagnose scores.npy labels.npz -k 7

      oddslip diagnose scores.npy labels.npz -k 7 --weights w.npy --unweighted scores0.npy

      oddslip diagnose scores.npy labels.npz -k 10 --metric ndcg

      oddslip diagnose scores.npy labels.npz --metric psp --weights w.npy --propensities weights

      oddslip diagnose scores.npy labels.npz --calibration cal.npy --calibration-labels cal-y.npz

      oddslip diagnose scores.npy labels.npz --html report.html --json-file report.json

      oddslip diagnose table/ --engine spark --row-id customer --unweighted scores0

    With --engine spark, --unweighted names a column, and --calibration another folder.
    """
    from oddslip.reports.text import show_diagnosis

    check_outputs(html, json_file, figure=figure)
    inputs = Inputs.of(context)
    diagnosis = oddslip.diagnose(
        unweighted=_open_twin(inputs, unweighted),
        calibration=_open_calibration(inputs, calibration, calibration_labels, calibration_exclude),
        **inputs.arguments(),
        propensities=read_propensities(propensities),
        weights=read_weights(weights),
        prior=read_numbers(prior),
        n_replicates=bootstrap,
        **pick(context, "k", "metric", "rounds", "learning_rate", "max_delta_step"),
        **pick(context, "seed", "threads"),
    )
    files = _name_files(context.params)
    if html is not None:
        _write_page(diagnosis, html, context, files)
    pieces = show_diagnosis(diagnosis, verbose=verbose, files=files)
    _show(diagnosis, pieces, context)


def _open_twin(inputs: Inputs, path: Path | None) -> ScoresLike:
    """Scores of the unweighted model: a column of Spark's table, an open source, or a file."""
    if path is None:
        return None
    if inputs.columns is not None:
        others = replace(inputs, scores=path, labels=None, exclude=None)
        return others.arguments()["scores"]
    return str(path) if inputs.engine == "spark" else path


def _open_calibration(
    inputs: Inputs, scores: Path | None, labels: Path | None, exclude: Path | None
) -> ScoresLike:
    """Held-out rows: an open source, or their files."""
    if scores is None:
        if labels is not None:
            raise InvalidInput(
                "--calibration-labels needs --calibration, the scores of those rows."
            )
        return None
    rows = replace(inputs, scores=scores, labels=labels, exclude=exclude).arguments()
    if inputs.engine == "local" and inputs.columns is None:
        return (scores, labels, exclude)
    return rows["scores"]


def _write_page(
    diagnosis: Diagnosis, path: Path, context: typer.Context, files: CommandFiles
) -> None:
    from oddslip.core.provenance import describe_run
    from oddslip.reports.html.page import write_page

    values = context.params
    inputs = {
        "scores": values["scores"],
        "labels": values["labels"],
        "weights": weights_file(values["weights"]),
        "propensities": propensities_file(values["propensities"]),
        "unweighted": None if values["engine"] == "spark" else values["unweighted"],
        "calibration": values["calibration"],
        "calibration labels": values["calibration_labels"],
        "excluded": values["exclude"],
        "excluded in calibration": values["calibration_exclude"],
        "prior": values["prior"],
        "label names": values["label_names"],
    }
    provenance = describe_run(context.obj, inputs, seed=values["seed"])
    write_page(diagnosis, path, provenance=provenance, files=files)


def plan(
    context: typer.Context,
    labels: TrainingLabels,
    *,
    rounds: Rounds,
    learning_rate: LearningRate,
    max_delta_step: MaxDeltaStep = 0.0,
    weights: Weights = "balanced",
    unweighted: Unweighted = None,
    k: options.K = 7,
    kind: options.KindOption = None,
    rows_in_leaf: RowsInLeaf = 20,
    num_leaves: NumLeaves = 31,
    bootstrap: LossBootstrap = 2000,
    seed: options.Seed = oddslip.DEFAULT_SEED,
    label_names: options.Names = None,
    threads: options.Threads = None,
    verbose: Verbose = False,
    figure: options.Figure = None,
    json: options.Json = False,
    json_file: options.JsonFile = None,
) -> None:
    """Before training: what will this weight do, and which cap would hold it?

    Examples:

      oddslip plan training-labels.npz --rounds 60 --learning-rate 0.05

      oddslip plan training-labels.npz --rounds 60 --learning-rate 0.05 --max-delta-step 0.7

      oddslip plan training-labels.npz --rounds 60 --learning-rate 0.05 --unweighted X0.npy -k 7

      oddslip plan training-labels.npz --rounds 60 --learning-rate 0.05 --figure plan.png
    """
    from oddslip.reports.text import show_plan

    check_outputs(json_file, figure=figure)
    result = oddslip.plan(
        labels,
        weights=read_weights(weights),
        label_names=read_names(label_names),
        n_replicates=bootstrap,
        **pick(context, "rounds", "learning_rate", "max_delta_step", "rows_in_leaf", "num_leaves"),
        **pick(context, "unweighted", "k", "kind", "seed", "threads"),
    )
    _show(result, show_plan(result, verbose=verbose), context)


def _name_files(parameters: Mapping[str, object]) -> CommandFiles:
    """What the command that comes next has to repeat of this one."""
    from oddslip.diagnosis.summary import CommandFiles

    named = {name: str(value) for name, value in parameters.items() if value is not None}
    defaults = {"nan": "refuse", "engine": "local", "metric": "map"}
    if named["engine"] == "local":
        del named["master"]
    repeated = (
        *("kind", "nan", "columns", "label_names", "engine", "master", "row_id"),
        *("metric", "propensities", "prior", "exclude"),
    )
    return CommandFiles(
        scores=named["scores"],
        labels=named.get("labels"),
        calibration=tuple(
            named[name] for name in ("calibration", "calibration_labels") if name in named
        ),
        calibration_exclude=named.get("calibration_exclude"),
        weights=named.get("weights", "weights.npy"),
        unweighted=named.get("unweighted", "unweighted-scores.npy"),
        options={
            f"--{name.replace('_', '-')}": named[name]
            for name in repeated
            if named.get(name, "") not in ("", defaults.get(name))
        },
    )


def _show(
    result: Diagnosis | Plan, pieces: Iterable[RenderableType], context: typer.Context
) -> None:
    """Write the files that were named, and print the result."""
    from oddslip.reports.text import printable

    figure, json_file = context.params["figure"], context.params["json_file"]
    if figure is not None:
        write_figure(figure, result.plot())
    if json_file is not None:
        write_json(json_file, result.to_dict())
    if context.params["json"]:
        return print_json(result.to_dict())
    out = console()
    for piece in pieces:
        out.print(piece, crop=False)
    paths = (context.params.get("html"), figure, json_file)
    names = [printable(path) for path in paths if path is not None]
    if names:
        out.print(f"\nWritten: {', '.join(names)}.", soft_wrap=True)
    return None
