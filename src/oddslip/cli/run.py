"""Run a command-line app. Errors raised on purpose become one line and exit code 2."""

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

OUR_FAULT = 1
INTERRUPTED = 130


def run(app: typer.Typer, arguments: list[str] | None, *, name: str) -> int:
    """Run a command and return its exit code; no traceback for what a user can get wrong."""
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
    notes: dict[str, None] = {}  # each once, and none beside an error, which is one line

    def note(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if category is not UserWarning:
            return show_warning(message, category, *place, **more)
        notes[" ".join(str(message).split())] = None
        return None

    with warnings.catch_warnings():
        warnings.showwarning = note  # a line, without the place in our code
        code = _call_command(command, typed, name)
    if notes:
        from oddslip.reports.text import printable

        sys.stderr.writelines(f"oddslip: note: {printable(each)}\n" for each in notes)
    return code


def _call_command(command: Any, typed: list[str], name: str) -> int:
    try:
        # Commands that write down where a result comes from find what was typed in their context.
        code = command.main(
            args=_without_debug(typed), obj=list(typed), prog_name=name, standalone_mode=False
        )
        sys.stdout.flush()  # here, where what can go wrong is explained
    except (SystemExit, BrokenPipeError) as error:
        # The reader of our output went away, as `head` does. The parser calls that a failure.
        if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
            streams.silence(sys.stdout)
            return 0
        raise
    # The parser turns Ctrl-C into this code, and says nothing.
    return interrupts.say() if code == INTERRUPTED else int(code or 0)


def _without_debug(typed: list[str]) -> list[str]:
    """What was typed, less --debug: it may stand anywhere before a bare --."""
    end = typed.index("--") if "--" in typed else len(typed)
    return [each for each in typed[:end] if each != "--debug"] + typed[end:]


def _is_debugging(typed: list[str]) -> bool:
    asked = os.environ.get("ODDSLIP_DEBUG", "") not in ("", "0")
    return asked or len(_without_debug(typed)) < len(typed)


def _explain(error: BaseException, command: Any, typed: list[str]) -> int:
    """One line for whatever went wrong, and the exit code that says whose fault it is."""
    if (
        interrupts.is_stopping()
        or isinstance(error, KeyboardInterrupt)
        or type(error).__name__ == "Abort"
    ):
        return interrupts.say()
    if isinstance(error, OddslipError):
        from oddslip.cli.messages import in_options, options_of

        return _refuse(in_options(str(error), options_of(command, typed)))
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
