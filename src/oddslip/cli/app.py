"""The commands of `oddslip`."""

from __future__ import annotations

import typer

from oddslip.cli.check import check, trend
from oddslip.cli.decide import decide
from oddslip.cli.demo import demo
from oddslip.cli.diagnose import diagnose, plan
from oddslip.cli.evaluate import evaluate, rank
from oddslip.cli.export import export, fold
from oddslip.cli.lint import lint
from oddslip.cli.repair import apply, fit
from oddslip.cli.run import new_app, run
from oddslip.cli.train import score, train
from oddslip.errors import InvalidInput

HELP = """Has a per-label class weight broken your top-K ranker? Find out, and repair it.

Exit codes: 0 done, 1 a fault of ours (of lint: findings), 2 bad input or usage (one line), 3 a
check did not pass, 130 Ctrl-C, 143 killed.
"""

app = new_app(HELP)
DIAGNOSE = (demo, lint, plan, evaluate, diagnose)
REPAIR = (fit, decide, apply, rank, export, fold, check, trend)
for command in (*DIAGNOSE, *REPAIR, train, score):
    app.command()(command)


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    debug: bool = typer.Option(  # removed by `run`, wherever it stands
        False, "--debug", help="Show where an error came from. Also: ODDSLIP_DEBUG=1."
    ),
) -> None:
    if version:
        from oddslip import __version__

        print(__version__)
        raise typer.Exit()


MOVED = {"ignore_unknown_options": True, "allow_extra_args": True}


@app.command("reproduce", hidden=True, context_settings=MOVED, add_help_option=False)
@app.command("generate", hidden=True, context_settings=MOVED, add_help_option=False)
def _moved(context: typer.Context) -> None:
    raise InvalidInput(
        f"`oddslip {context.info_name}` has moved. Run `python -m experiments` in a clone of the "
        "repository."
    )


def main(arguments: list[str] | None = None) -> int:
    """Run a command, by default that of ``sys.argv``; return its exit code."""
    return run(app, arguments, name="oddslip")
