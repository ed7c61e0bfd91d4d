"""`oddslip check` and `oddslip trend`: a check before deployment, and monitoring after it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from oddslip import DEFAULT_SEED
from oddslip.cli.options import (
    Columns,
    Exclude,
    Json,
    JsonFile,
    Labels,
    Names,
    Nan,
    Scores,
    Threads,
    check_outputs,
    console,
    print_json,
    read_names,
    with_columns,
    write_json,
)

NOT_PASSED = 3


def check(
    repair: Annotated[
        str, typer.Argument(help="A repair saved by `oddslip fit`; or raw, for scores as they are.")
    ],
    scores: Scores,
    labels: Labels = None,
    *,
    k: Annotated[
        int | None,
        typer.Option("-k", "--k", help="Labels shown per row: the repair's; needed for raw."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="JSON of an earlier diagnose, evaluate or check; or a repair, or scores of the "
            "same rows, to compare with row by row. Needs labels."
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            help="warning, critical, none, or codes such as OS201,OS406. Default: warning; "
            "critical for raw scores with labels."
        ),
    ] = None,
    max_drop: Annotated[
        float, typer.Option(help="A sure drop of the metric larger than this fails.")
    ] = 0.01,
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="What raw scores are: probability or margin (log-odds)."),
    ] = None,
    label_names: Names = None,
    exclude: Exclude = None,
    nan: Nan = "refuse",
    columns: Columns = None,
    bootstrap: Annotated[int, typer.Option(help="Bootstrap replicates of metrics.")] = 1000,
    seed: Annotated[int, typer.Option(help="Same seed, same intervals.")] = DEFAULT_SEED,
    threads: Threads = None,
    json: Json = False,
    json_file: JsonFile = None,
    junit: Annotated[Path | None, typer.Option(help="Also write JUnit XML to this file.")] = None,
    annotate: Annotated[
        bool, typer.Option("--annotate", help="Print findings as annotations of GitHub Actions.")
    ] = False,
    log: Annotated[
        Path | None, typer.Option(help="Append one line of JSON to this log; see `oddslip trend`.")
    ] = None,
    when: Annotated[
        str | None, typer.Option(help="The date of the log line; now by default.")
    ] = None,
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
    import oddslip
    from oddslip.errors import InvalidInput

    check_outputs(json_file, junit, log)
    if log is not None:
        from oddslip.serving.check_log import check_log

        check_log(log)
    if when is not None:
        from oddslip.serving.check_log import check_when

        check_when(when)
        if log is None:
            raise InvalidInput("--when needs --log, whose line it dates.")
    if json and annotate:
        raise InvalidInput("--json prints JSON alone; leave out --annotate.")
    inputs: dict[str, Any] = {
        "scores": scores,
        "labels": labels,
        "kind": kind,
        "label_names": read_names(label_names),
        "exclude": exclude,
        "nan": nan,
    }
    result = oddslip.check(
        None if repair == "raw" else Path(repair),
        **with_columns(inputs, columns),
        k=k,
        baseline=baseline,
        fail_on=fail_on,
        max_drop=max_drop,
        n_replicates=bootstrap,
        seed=seed,
        threads=threads,
    )
    if json_file is not None:
        write_json(json_file, result.to_dict())
    if junit is not None:
        from oddslip.io.files import atomic_write
        from oddslip.reports.ci import junit_xml

        with atomic_write(junit) as unfinished:
            unfinished.write_text(junit_xml(result), encoding="utf-8", newline="\n")
    if log is not None:
        from oddslip.serving.check_log import append_check

        files = {"repair": repair, "scores": str(scores), "labels": str(labels or "")}
        append_check(log, result, when=when, about=files)
    if json:
        print_json(result.to_dict())
    else:
        out = console()
        out.print(str(result), soft_wrap=True)
        if annotate:
            from oddslip.reports.ci import annotation_lines

            for line in annotation_lines(result):
                out.print(line, soft_wrap=True)
    if not result.passed:
        raise typer.Exit(NOT_PASSED)


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
