"""The `oddslip` command. Errors raised on purpose become one line and exit code 2."""

from __future__ import annotations

import os
import signal
import sys

import typer

from oddslip.cli.demos import demo
from oddslip.cli.diagnoses import diagnose, plan
from oddslip.cli.evaluations import evaluate, rank
from oddslip.cli.repairs import apply, fit
from oddslip.cli.reproductions import reproduce
from oddslip.cli.trainings import score, train
from oddslip.errors import OddslipError

HELP = """Has a per-label class weight broken your top-K ranker? Find out, and repair it.

Exit codes: 0 done, 2 bad input or usage (one line on stderr), 130 interrupted, 143 killed.
"""

app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, plan, evaluate, diagnose, fit, apply, rank, train, score):
    app.command()(command)

app.add_typer(reproduce, name="reproduce")


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from oddslip import __version__

        print(__version__)
        raise typer.Exit()


def main(arguments: list[str] | None = None) -> None:
    """Entry point: never a traceback for what a user can get wrong."""
    # A polite kill unwinds like Ctrl-C does, so that no half-written file stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    command = typer.main.get_command(app)
    try:
        code = command.main(args=arguments, prog_name="oddslip", standalone_mode=False)
    except OddslipError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        sys.stderr.write("oddslip: interrupted\n")
        return 130
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of the parser
            return _refuse(error.format_message())
        if type(error).__name__ in ("Abort", "Exit"):
            return int(getattr(error, "exit_code", 130))
        raise
    return int(code or 0)


def _refuse(message: str) -> int:
    from oddslip.reports.texts import printable

    sys.stderr.write(f"oddslip: {printable(' '.join(message.split()))}\n")
    return 2
