"""`oddslip lint`: per-label weights in source code, found before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oddslip.cli.outputs import print_json
from oddslip.errors import InvalidInput

if TYPE_CHECKING:
    from oddslip.linting.rules import Finding

FINDINGS = 1
FORMATS = ("text", "json", "sarif")


def lint(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Python files, notebooks, or folders of them. Nothing is run."),
    ],
    *,
    format: Annotated[str, typer.Option("--format", help="text, json, or sarif (2.1.0).")] = "text",
    severity: Annotated[
        str,
        typer.Option(
            "--severity",
            help="The least severity that is shown and fails: warning (labels are ranked in the "
            "same file), or note (they may be ranked elsewhere).",
        ),
    ] = "warning",
) -> None:
    """Which code gives each label a class weight of its own, and then ranks labels?

    A comment `# oddslip: ignore[OS901]` on a line hides its findings.
    Exit codes: 0 no findings, 1 findings, 2 bad input.

    Examples:

      oddslip lint src notebooks

      oddslip lint train.py --severity note

      oddslip lint . --format sarif > lint.sarif
    """
    from oddslip.linting.formats import as_sarif
    from oddslip.linting.lint import lint as lint_paths
    from oddslip.linting.rules import SEVERITIES

    if format not in FORMATS:
        raise InvalidInput(f"--format must be text, json or sarif, got {format!r:.60}.")
    if severity not in SEVERITIES:
        raise InvalidInput(f"--severity must be note or warning, got {severity!r:.60}.")
    result = lint_paths(paths)
    findings = [each for each in result.findings if severity in ("note", each.severity)]
    n_hidden = len(result.findings) - len(findings)
    if format == "sarif":
        print_json(as_sarif(findings))
    elif format == "json":
        entries = [each.to_dict() for each in findings]
        print_json({"files": result.n_files, "hidden_notes": n_hidden, "findings": entries})
    else:
        _print_text(findings, result.n_files, n_hidden)
    if findings:
        raise typer.Exit(FINDINGS)


def _print_text(findings: list[Finding], n_files: int, n_hidden: int) -> None:
    """One line per finding and a summary; colours on a terminal alone."""
    import sys

    from oddslip.core.formatting import count_of
    from oddslip.linting.formats import text_lines
    from oddslip.reports.text import printable

    summary = f"{count_of(len(findings), 'finding')} in {count_of(n_files, 'file')}."
    if n_hidden:
        summary += f" --severity note shows {count_of(n_hidden, 'more note')}."
    lines = [printable(line) for line in (*text_lines(findings), summary)]
    if not sys.stdout.isatty():
        print("\n".join(lines))
        return
    from rich.text import Text

    from oddslip.cli.outputs import console

    out = console()
    for line in lines:
        styled = Text(line)
        styled.highlight_regex(r" OS9\d\d warning:", "bold yellow")
        styled.highlight_regex(r" OS9\d\d note:", "bold cyan")
        out.print(styled, soft_wrap=True)
