"""Run a command-line app. Expected errors become one line and exit code 2."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from typing import Any, TypeGuard

import typer

from oddslip.cli import interrupts, streams
from oddslip.cli.guard import guard
from oddslip.errors import OddslipError

INTERNAL_ERROR = 1
INTERRUPTED = 130


def new_app(text: str) -> typer.Typer:
    """An app without commands yet, with this help."""
    return typer.Typer(
        help=text,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def run(app: typer.Typer, arguments: list[str] | None, *, name: str) -> int:
    """Run a command and return its exit code; user errors show no traceback."""
    typed = sys.argv[1:] if arguments is None else arguments
    command = typer.main.get_command(app)
    guard(command)
    try:
        return _call(command, typed, name)
    except (Exception, KeyboardInterrupt) as error:
        if _is_debugging(typed):
            traceback.print_exception(error)
        return _explain(error, command, typed)


def _call(command: Any, typed: list[str], name: str) -> int:
    show_warning = warnings.showwarning
    notes: dict[str, None] = {}  # each once; not printed if the command fails

    def note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if category is not UserWarning:
            return show_warning(message, category, *place, **more)
        notes[" ".join(str(message).split())] = None
        return None

    with warnings.catch_warnings():
        warnings.showwarning = note  # one line, without a file name and line number
        code = _call_command(command, typed, name)
    if notes:
        from oddslip.reports.text import printable

        sys.stderr.writelines(f"oddslip: note: {printable(each)}\n" for each in notes)
    return code


def _call_command(command: Any, typed: list[str], name: str) -> int:
    try:
        # Commands that record the origin of a result find the arguments in their context.
        code = command.main(
            args=_without_debug(typed), obj=list(typed), prog_name=name, standalone_mode=False
        )
        sys.stdout.flush()  # here, so that its errors are explained
    except (SystemExit, BrokenPipeError) as error:
        # The reader of the output is gone, as with `head`. The parser calls that a failure.
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            streams.silence(sys.stdout)
            return 0
        raise
    # The parser turns Ctrl-C into this code without a message.
    return interrupts.print_signal() if code == INTERRUPTED else int(code or 0)


def _without_debug(typed: list[str]) -> list[str]:
    """The arguments without --debug, which may be anywhere before a bare --."""
    end = typed.index("--") if "--" in typed else len(typed)
    return [each for each in typed[:end] if each != "--debug"] + typed[end:]


def _is_debugging(typed: list[str]) -> bool:
    from_environment = os.environ.get("ODDSLIP_DEBUG", "") not in ("", "0")
    return from_environment or len(_without_debug(typed)) < len(typed)


def _explain(error: BaseException, command: Any, typed: list[str]) -> int:
    """Print one line for an error, and return its exit code."""
    if (
        interrupts.is_stopping()
        or isinstance(error, KeyboardInterrupt)
        or type(error).__name__ == "Abort"
    ):
        return interrupts.print_signal()
    if isinstance(error, OddslipError):
        from oddslip.cli.messages import in_options, options_of

        return _fail(in_options(str(error), options_of(command, typed)))
    if type(error).__name__ == "NoArgsIsHelpError":
        streams.print_error(f"{error.format_message()}\n")  # type: ignore[attr-defined]
        return 2
    if hasattr(error, "format_message"):  # a usage error of the parser
        return _fail(error.format_message())
    if streams.is_of_stdout(error):
        streams.silence(sys.stdout)
        return _fail(f"stdout cannot be written ({error.strerror}).")
    if isinstance(error, OSError) and error.strerror:  # a full disk, no permission
        about = f"{os.fsdecode(error.filename)}: " if _is_name(error.filename) else ""
        return _fail(f"{about}{error.strerror}.")
    if isinstance(error, MemoryError):
        return _fail(f"memory must hold the work, and does not. {error}", INTERNAL_ERROR)
    description = f"{type(error).__name__}: {error}".rstrip(".: ")
    return _fail(
        f"something of ours went wrong: {description}. Please report it; --debug shows where.",
        INTERNAL_ERROR,
    )


def _is_name(filename: object) -> TypeGuard[str | bytes]:
    return isinstance(filename, str | bytes)


def _fail(message: str, code: int = 2) -> int:
    from oddslip.reports.text import printable

    streams.print_error(f"oddslip: {printable(' '.join(message.split()))}\n")
    return code
