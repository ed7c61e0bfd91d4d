"""The `oddslip` command. Errors raised on purpose become one line and exit code 2."""

from __future__ import annotations

import os
import signal
import sys

import typer

from oddslip.cli.demo import demo
from oddslip.cli.diagnose import diagnose, plan
from oddslip.cli.evaluate import evaluate, rank
from oddslip.cli.repair import apply, fit
from oddslip.cli.study import generate, reproduce
from oddslip.cli.train import score, train
from oddslip.errors import OddslipError

INTERRUPTED = 130
HELP = """Has a per-label class weight broken your top-K ranker? Find out, and repair it.

Exit codes: 0 done, 1 a fault of ours, 2 bad input or usage (one line), 130 Ctrl-C, 143 killed.
"""

app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, plan, evaluate, diagnose, fit, apply, rank, train, score, generate):
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
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        # Commands that write down where a result comes from find what was typed in their context.
        code = command.main(args=typed, obj=list(typed), prog_name="oddslip", standalone_mode=False)
    except OddslipError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as error:
        # The reader of our output went away, as `head` does. The parser calls that a failure.
        if isinstance(error.__context__, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        raise
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of the parser
            return _refuse(error.format_message())
        if type(error).__name__ == "Abort":
            return _interrupted()
        raise
    # The parser turns Ctrl-C into this code, and says nothing.
    return _interrupted() if code == INTERRUPTED else int(code or 0)


def _interrupted() -> int:
    sys.stderr.write("oddslip: interrupted\n")
    return INTERRUPTED


def _refuse(message: str) -> int:
    from oddslip.reports.text import printable

    sys.stderr.write(f"oddslip: {printable(' '.join(message.split()))}\n")
    return 2
