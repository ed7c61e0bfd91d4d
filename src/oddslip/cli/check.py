"""`oddslip check` and `oddslip trend`: a check before deployment, and monitoring after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import oddslip
from oddslip.cli import options
from oddslip.cli.inputs import Inputs, pick
from oddslip.cli.outputs import check_outputs, console, print_json, write_json
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from oddslip.serving.check import CheckResult

NOT_PASSED = 3
RepairOrRaw = Annotated[
    str,
    typer.Argument(help="Saved by `oddslip fit` or `decide`; or raw, for scores as they are."),
]
K = Annotated[
    int | None,
    typer.Option("-k", "--k", help="Labels shown per row: the repair's; needed for raw."),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        help="JSON of an earlier diagnose, evaluate or check; or a repair, or scores of the "
        "same rows, to compare with row by row. Needs labels."
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        help="warning, critical, none, or codes such as OS201,OS406. Default: warning; "
        "critical for raw scores with labels."
    ),
]
MaxDrop = Annotated[float, typer.Option(help="A sure drop of the metric larger than this fails.")]
Bootstrap = Annotated[int, typer.Option(help="Bootstrap replicates of metrics.")]
Junit = Annotated[Path | None, typer.Option(help="Also write JUnit XML to this file.")]
Annotate = Annotated[
    bool, typer.Option("--annotate", help="Print findings as annotations of GitHub Actions.")
]
Log = Annotated[
    Path | None, typer.Option(help="Append one line of JSON to this log; see `oddslip trend`.")
]
When = Annotated[str | None, typer.Option(help="The date of the log line; now by default.")]


def check(
    context: typer.Context,
    repair: RepairOrRaw,
    scores: options.Scores,
    labels: options.Labels = None,
    *,
    k: K = None,
    baseline: Baseline = None,
    fail_on: FailOn = None,
    max_drop: MaxDrop = 0.01,
    kind: options.RepairKind = None,
    label_names: options.Names = None,
    exclude: options.Exclude = None,
    nan: options.Nan = "refuse",
    columns: options.Columns = None,
    bootstrap: Bootstrap = 1000,
    seed: options.Seed = oddslip.DEFAULT_SEED,
    threads: options.Threads = None,
    json: options.Json = False,
    json_file: options.JsonFile = None,
    junit: Junit = None,
    annotate: Annotate = False,
    log: Log = None,
    when: When = None,
) -> None:
    """Is what is served still what was calibrated? Is this model safe to ship?

    Exit codes: 0 passed, 3 not passed, 2 bad input, 1 a fault of ours.

    Examples:

      oddslip check repair.oddslip scores.npy

      oddslip check repair.oddslip scores.npy labels.npz --baseline diagnosis.json --max-drop 0.01

      oddslip check repair.oddslip scores.npy --fail-on OS504,OS505 --junit check.xml --annotate

      oddslip check raw scores.npy labels.npz -k 7

      oddslip check repair.oddslip scores.npy --log log.jsonl --when 2026-05-01
    """
    check_outputs(json_file, junit, log)
    _check_log_options(log, when)
    if json and annotate:
        raise InvalidInput("--json prints JSON alone; leave out --annotate.")
    result = oddslip.check(
        None if repair == "raw" else Path(repair),
        **Inputs.of(context).arguments(),
        n_replicates=bootstrap,
        **pick(context, "k", "baseline", "fail_on", "max_drop", "seed", "threads"),
    )
    if json_file is not None:
        write_json(json_file, result.to_dict())
    if junit is not None:
        from oddslip.io.files import write_text
        from oddslip.reports.ci import junit_xml

        write_text(junit, junit_xml(result))
    if log is not None:
        from oddslip.serving.check_log import append_check

        files = {"repair": repair, "scores": str(scores), "labels": str(labels or "")}
        append_check(log, result, when=when, about=files)
    if json:
        print_json(result.to_dict())
    else:
        _print_check(result, annotate)
    if not result.passed:
        raise typer.Exit(NOT_PASSED)


def _check_log_options(log: Path | None, when: str | None) -> None:
    from oddslip.serving.check_log import check_log, check_when

    if log is not None:
        check_log(log)
    if when is not None:
        check_when(when)
        if log is None:
            raise InvalidInput("--when needs --log, whose line it dates.")


def _print_check(result: CheckResult, annotate: bool) -> None:
    from oddslip.reports.ci import annotation_lines

    out = console()
    for line in (str(result), *(annotation_lines(result) if annotate else ())):
        out.print(line, soft_wrap=True)


def trend(
    log: Annotated[Path, typer.Argument(help="A log that `oddslip check --log` wrote.")],
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The page: one HTML file, no network needed.")
    ],
) -> None:
    """All checks of a log on one page: what moved, and since when.

    Examples:

      oddslip trend log.jsonl -o trend.html
    """
    from oddslip.core.formatting import count_of
    from oddslip.reports.html.trend import write_trend
    from oddslip.serving.check_log import read_checks

    check_outputs(output)
    records = read_checks(log)
    write_trend(records, output)
    console().print(f"{count_of(len(records), 'run')} in {output}.", soft_wrap=True)
