"""The `oddslip` command. Errors raised on purpose become one line and exit code 2."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from typing import Any, TypeGuard

import typer

from oddslip.cli import stopping, streams
from oddslip.cli.check import check, trend
from oddslip.cli.demo import demo
from oddslip.cli.diagnose import diagnose, plan
from oddslip.cli.evaluate import evaluate, rank
from oddslip.cli.export import export
from oddslip.cli.guard import guard
from oddslip.cli.repair import apply, fit
from oddslip.cli.study import generate, reproduce
from oddslip.cli.supplement import COMMANDS
from oddslip.cli.train import score, train
from oddslip.errors import OddslipError

OUR_FAULT = 1
INTERRUPTED = 130
HELP = """Has a per-label class weight broken your top-K ranker? Find out, and repair it.

Exit codes: 0 done, 1 a fault of ours, 2 bad input or usage (one line), 3 a check did not pass,
130 Ctrl-C, 143 killed.
"""

app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo, plan, evaluate, diagnose, fit, apply, rank, export, check, trend, train, score, generate,
):  # fmt: skip
    app.command()(command)

for study in COMMANDS:
    reproduce.command()(study)

app.add_typer(reproduce, name="reproduce")


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    debug: bool = typer.Option(  # taken out by `_run`, wherever it stands
        False, "--debug", help="Show where an error came from. Also: ODDSLIP_DEBUG=1."
    ),
) -> None:
    if version:
        from oddslip import __version__

        print(__version__)
        raise typer.Exit()


def _run(arguments: list[str] | None) -> int:
    """Never a traceback for what a user can get wrong."""
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        return _call(typed)
    except (Exception, KeyboardInterrupt) as error:
        if _is_debugging(typed):
            traceback.print_exception(error)
        return _explain(error, typed)


def _call(typed: list[str]) -> int:
    show_warning = warnings.showwarning
    notes: dict[str, None] = {}  # each once, and none beside an error, which is one line

    def note(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if category is not UserWarning:
            return show_warning(message, category, *place, **more)
        notes[" ".join(str(message).split())] = None
        return None

    with warnings.catch_warnings():
        warnings.showwarning = note  # a line, without the place in our code
        code = _call_command(typed)
    if notes:
        from oddslip.reports.text import printable

        sys.stderr.writelines(f"oddslip: note: {printable(each)}\n" for each in notes)
    return code


def _call_command(typed: list[str]) -> int:
    command = typer.main.get_command(app)
    guard(command)
    try:
        # Commands that write down where a result comes from find what was typed in their context.
        code = command.main(
            args=_without_debug(typed), obj=list(typed), prog_name="oddslip", standalone_mode=False
        )
        sys.stdout.flush()  # here, where what can go wrong is explained
    except (SystemExit, BrokenPipeError) as error:
        # The reader of our output went away, as `head` does. The parser calls that a failure.
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            streams.silence(sys.stdout)
            return 0
        raise
    # The parser turns Ctrl-C into this code, and says nothing.
    return stopping.say() if code == INTERRUPTED else int(code or 0)


def _without_debug(typed: list[str]) -> list[str]:
    """What was typed, less --debug: it may stand anywhere before a bare --."""
    end = typed.index("--") if "--" in typed else len(typed)
    return [each for each in typed[:end] if each != "--debug"] + typed[end:]


def _is_debugging(typed: list[str]) -> bool:
    asked = os.environ.get("ODDSLIP_DEBUG", "") not in ("", "0")
    return asked or len(_without_debug(typed)) < len(typed)


def _explain(error: BaseException, typed: list[str]) -> int:
    """One line for whatever went wrong, and the exit code that says whose fault it is."""
    if (
        stopping.is_stopping()
        or isinstance(error, KeyboardInterrupt)
        or type(error).__name__ == "Abort"
    ):
        return stopping.say()
    if isinstance(error, OddslipError):
        from oddslip.cli.phrasing import in_options, options_of

        return _refuse(in_options(str(error), options_of(typer.main.get_command(app), typed)))
    if type(error).__name__ == "NoArgsIsHelpError":
        streams.say(f"{error.format_message()}\n")  # type: ignore[attr-defined]
        return 2
    if hasattr(error, "format_message"):  # a usage error of the parser
        return _refuse(error.format_message())
    if streams.is_of_stdout(error):
        streams.silence(sys.stdout)
        return _refuse(f"stdout can not be written ({error.strerror}).")
    if isinstance(error, OSError) and error.strerror:  # of the machine: a full disk, no permission
        about = f"{os.fsdecode(error.filename)}: " if _is_name(error.filename) else ""
        return _refuse(f"{about}{error.strerror}.")
    if isinstance(error, MemoryError):
        return _refuse(f"memory must hold the work, and does not. {error}", OUR_FAULT)
    said = f"{type(error).__name__}: {error}".rstrip(".: ")
    return _refuse(
        f"something of ours went wrong: {said}. Please report it; --debug shows where.", OUR_FAULT
    )


def _is_name(filename: object) -> TypeGuard[str | bytes]:
    return isinstance(filename, str | bytes)


def _refuse(message: str, code: int = 2) -> int:
    from oddslip.reports.text import printable

    streams.say(f"oddslip: {printable(' '.join(message.split()))}\n")
    return code
