"""`oddslip diagnose` and `oddslip plan`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oddslip import DEFAULT_SEED
from oddslip.cli.options import (
    METRICS,
    RESOLVED,
    WEIGHTS,
    Bootstrap,
    Columns,
    EngineOption,
    Exclude,
    Figure,
    Json,
    JsonFile,
    K,
    KindOption,
    Labels,
    Master,
    Names,
    Nan,
    Prior,
    Propensities,
    RowId,
    Scores,
    Threads,
    check_outputs,
    console,
    opened,
    print_json,
    propensities_file,
    read_names,
    read_numbers,
    read_propensities,
    read_weights,
    weights_file,
    write_figure,
    write_json,
)

if TYPE_CHECKING:
    from oddslip.diagnosis.summary import InputFiles

Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="All findings with their evidence, and the labels.")
]
Unweighted = Annotated[
    Path | None, typer.Option(help="Scores of the unweighted model for the same rows.")
]


def diagnose(
    context: typer.Context,
    scores: Scores,
    labels: Labels = None,
    *,
    k: K = 7,
    metric: Annotated[
        str,
        typer.Option(help=f"What you deploy by, at K: {METRICS}. Everything is judged in it."),
    ] = "map",
    propensities: Propensities = None,
    weights: Annotated[
        str | None,
        typer.Option(help=f"Weight each label was trained with: {WEIGHTS}. {RESOLVED}"),
    ] = None,
    unweighted: Unweighted = None,
    calibration: Annotated[
        Path | None, typer.Option(help="Scores of held-out rows to calibrate on.")
    ] = None,
    calibration_labels: Annotated[
        Path | None, typer.Option(help="What was true for the calibration rows.")
    ] = None,
    prior: Prior = None,
    kind: KindOption = None,
    exclude: Exclude = None,
    calibration_exclude: Annotated[
        Path | None, typer.Option(help="As --exclude, for the calibration rows.")
    ] = None,
    nan: Nan = "refuse",
    columns: Columns = None,
    rounds: Annotated[int | None, typer.Option(help="Boosting rounds, for the budget.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Learning rate, for the budget.")
    ] = None,
    max_delta_step: Annotated[
        float | None, typer.Option(help="Cap of the leaf step, for the budget; 0 for none.")
    ] = None,
    bootstrap: Bootstrap = 2000,
    seed: Annotated[int, typer.Option(help="Same seed, same folds and intervals.")] = DEFAULT_SEED,
    label_names: Names = None,
    engine: EngineOption = "local",
    master: Master = "local[*]",
    row_id: RowId = None,
    threads: Threads = None,
    verbose: Verbose = False,
    html: Annotated[
        Path | None, typer.Option(help="Also write a report: one HTML file, no network needed.")
    ] = None,
    figure: Figure = None,
    json: Json = False,
    json_file: JsonFile = None,
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
    import oddslip

    check_outputs(html, json_file, figure=figure)
    names = read_names(label_names)
    layout: dict[str, Any] = {
        "kind": kind,
        "names": names,
        "row_id": row_id,
        "nan": nan,
        "columns": columns,
    }
    held_out: Any = None
    twin: Any = str(unweighted) if engine == "spark" and unweighted else unweighted
    if unweighted is not None and columns is not None:
        twin = opened(engine, master, unweighted, None, **layout)["scores"]
    if calibration is not None:
        rows = opened(
            engine, master, calibration, calibration_labels, exclude=calibration_exclude, **layout
        )
        held_out = rows["scores"]
        if engine == "local" and columns is None:
            held_out = (calibration, calibration_labels, calibration_exclude)
    elif calibration_labels is not None:
        from oddslip.errors import InvalidInput

        raise InvalidInput("--calibration-labels needs --calibration, the scores of those rows.")
    diagnosis = oddslip.diagnose(
        **opened(engine, master, scores, labels, exclude=exclude, **layout),
        k=k,
        metric=metric,
        propensities=read_propensities(propensities),
        weights=read_weights(weights),
        unweighted=twin,
        calibration=held_out,
        prior=read_numbers(prior),
        rounds=rounds,
        learning_rate=learning_rate,
        max_delta_step=max_delta_step,
        seed=seed,
        n_replicates=bootstrap,
        threads=threads,
    )
    files = _name_files(context.params)
    if html is not None:
        from oddslip.core.provenance import describe_run
        from oddslip.reports.html.page import write_page

        inputs = {
            "scores": scores,
            "labels": labels,
            "weights": weights_file(weights),
            "propensities": propensities_file(propensities),
            "unweighted": None if engine == "spark" else unweighted,
            "calibration": calibration,
            "calibration labels": calibration_labels,
            "excluded": exclude,
            "excluded in calibration": calibration_exclude,
            "prior": prior,
            "label names": label_names,
        }
        write_page(
            diagnosis,
            html,
            provenance=describe_run(context.obj, inputs, seed=seed),
            files=files,
        )
    _write(diagnosis, figure, json_file)
    if json:
        return print_json(diagnosis.to_dict())
    from oddslip.reports.text import show_diagnosis

    out = console()
    for piece in show_diagnosis(diagnosis, verbose=verbose, files=files):
        out.print(piece, crop=False)
    _print_outputs(out, html, figure, json_file)
    return None


def plan(
    labels: Annotated[
        Path,
        typer.Argument(help="What is true for the training rows: .npy, .npz, .csv or .parquet."),
    ],
    *,
    rounds: Annotated[int, typer.Option(help="Boosting rounds.")],
    learning_rate: Annotated[float, typer.Option(help="Learning rate.")],
    max_delta_step: Annotated[float, typer.Option(help="Cap of the leaf step; 0 for none.")] = 0.0,
    weights: Annotated[str, typer.Option(help=f"Weight of each label: {WEIGHTS}.")] = "balanced",
    unweighted: Unweighted = None,
    k: K = 7,
    kind: KindOption = None,
    rows_in_leaf: Annotated[int, typer.Option(help="Fewest rows of a leaf.")] = 20,
    bootstrap: Annotated[
        int, typer.Option(help="Bootstrap replicates of the what-if loss; 0 for none.")
    ] = 2000,
    seed: Annotated[int, typer.Option(help="Same seed, same intervals.")] = DEFAULT_SEED,
    label_names: Names = None,
    threads: Threads = None,
    verbose: Verbose = False,
    figure: Figure = None,
    json: Json = False,
    json_file: JsonFile = None,
) -> None:
    """Before training: what will this weight do, and which cap would hold it?

    Examples:

      oddslip plan training-labels.npz --rounds 60 --learning-rate 0.05

      oddslip plan training-labels.npz --rounds 60 --learning-rate 0.05 --max-delta-step 0.7

      oddslip plan training-labels.npz --rounds 60 --learning-rate 0.05 --unweighted X0.npy -k 7

      oddslip plan training-labels.npz --rounds 60 --learning-rate 0.05 --figure plan.png
    """
    import oddslip

    check_outputs(json_file, figure=figure)
    planned = oddslip.plan(
        labels,
        rounds=rounds,
        learning_rate=learning_rate,
        max_delta_step=max_delta_step,
        weights=read_weights(weights),
        unweighted=unweighted,
        k=k,
        kind=kind,  # type: ignore[arg-type]
        rows_in_leaf=rows_in_leaf,
        label_names=read_names(label_names),
        n_replicates=bootstrap,
        seed=seed,
        threads=threads,
    )
    _write(planned, figure, json_file)
    if json:
        return print_json(planned.to_dict())
    from oddslip.reports.text import show_plan

    out = console()
    for piece in show_plan(planned, verbose=verbose):
        out.print(piece, crop=False)
    _print_outputs(out, figure, json_file)
    return None


def _name_files(parameters: Mapping[str, Any]) -> InputFiles:
    """What the command that comes next has to repeat of this one."""
    from oddslip.diagnosis.summary import InputFiles

    named = {name: str(value) for name, value in parameters.items() if value is not None}
    defaults = {"nan": "refuse", "engine": "local", "metric": "map"}
    if named["engine"] == "local":
        del named["master"]
    if "calibration" in named:
        named["exclude"] = named.get("calibration_exclude", "")
    repeated = (
        *("kind", "nan", "columns", "label_names", "engine", "master", "row_id"),
        *("metric", "propensities", "prior", "exclude"),
    )
    return InputFiles(
        scores=named["scores"],
        labels=named.get("labels"),
        calibration=tuple(
            named[name] for name in ("calibration", "calibration_labels") if name in named
        ),
        weights=named.get("weights", "weights.npy"),
        unweighted=named.get("unweighted", "unweighted-scores.npy"),
        options={
            f"--{name.replace('_', '-')}": named[name]
            for name in repeated
            if named.get(name, "") not in ("", defaults.get(name))
        },
    )


def _write(result: Any, figure: Path | None, json_file: Path | None) -> None:
    if figure is not None:
        write_figure(figure, result.plot())
    if json_file is not None:
        write_json(json_file, result.to_dict())


def _print_outputs(out: Any, *paths: Path | None) -> None:
    from oddslip.reports.text import printable

    names = [printable(path) for path in paths if path is not None]
    if names:
        out.print(f"\nWritten: {', '.join(names)}.", soft_wrap=True)
