"""Bad inputs to every command and every verb, each with the line it gives: see ``refusals/``.

The transcripts there are read as they stand: a line that begins with ``$`` is a command, one with
``>>>`` an expression, and the line below is what must come out, ``...`` for what other packages
word. A command must end with exit code 2 and print that one line; an expression must raise that
error with that message. Neither may change a file, or an array that it was given.

``python -m attacks.inputs`` writes below each call what comes out now, to be read and committed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from attacks.child import Attempt, scratch, try_in_child
from attacks.outcome import Outcome

TITLE = "Bad inputs to all commands and verbs, each with its line"
TRANSCRIPTS = sorted((Path(__file__).parent / "refusals").glob("*.txt"))


class Call(NamedTuple):
    """What is typed, and the line that must come out."""

    typed: str
    line: str


def read_calls() -> list[Call]:
    """Every call of the transcripts, in their order."""
    calls = []
    for path in TRANSCRIPTS:
        lines = path.read_text(encoding="utf-8").splitlines()
        for at, line in enumerate(lines):
            if line.startswith(("$ ", ">>> ")):
                calls.append(Call(line, lines[at + 1] if at + 1 < len(lines) else ""))
    return calls


FULL = len(read_calls())
SLICE = 100


def attack(count: int, seed: int) -> Outcome:
    """Every call once; fewer are spread over the transcripts."""
    return try_in_child("attacks.inputs", min(count, FULL), seed, seconds=60.0)


def prepare(seed: int, folder: Path) -> Attempt:
    """Calls are made in a folder of good and bad files, whose bytes are compared after each."""
    from attacks.inputs_world import make_files, make_names

    calls = read_calls()
    work = folder / "work"
    work.mkdir(exist_ok=True)
    make_files(work)
    names = make_names(work)
    os.chdir(work)
    # Neighbours in a transcript are alike: a few tries should see all of it.
    order = sorted(range(len(calls)), key=lambda at: (at * 0.6180339887 + seed * 0.1) % 1)

    def attempt(number: int) -> str:
        call = calls[order[number]]
        files, arrays = _hash_files(work), _hash_arrays(names)
        said = _plain(make_call(call.typed, names))
        if not _matches(call.line, said):
            raise AssertionError(f"{call.typed} must give {call.line!r}, got {said!r}")
        if _hash_files(work) != files:
            raise AssertionError(f"{call.typed} changed {_difference(files, _hash_files(work))}")
        if _hash_arrays(names) != arrays:
            raise AssertionError(f"{call.typed} changed an array it was given")
        return "commands" if call.typed.startswith("$") else "expressions"

    return attempt


def make_call(typed: str, names: dict[str, Any]) -> str:
    """What comes out: the one line if all is well, else whatever it was."""
    if typed.startswith("$ "):
        return _run_command(typed.removeprefix("$ "))
    from sklearn.exceptions import NotFittedError

    from oddslip.errors import OddslipError

    try:
        value = eval(typed.removeprefix(">>> "), names)  # of our own transcripts
    except (OddslipError, NotFittedError) as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"not on purpose: {type(error).__name__}: {error}"
    return f"no error, but {value!r:.60}"


def _run_command(typed: str) -> str:
    program = "python -m experiments" if typed.startswith("python") else "oddslip"
    arguments = shlex.split(typed.removeprefix(program))
    if program == "oddslip":
        from oddslip.cli.app import main
    else:
        from experiments.app import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: Any = main(arguments)
        except SystemExit as error:
            code = f"SystemExit({error.code})"
    told = err.getvalue()
    if code == 2 and not out.getvalue() and told.endswith("\n") and told.count("\n") == 1:
        return told.rstrip("\n")
    return f"exit code {code}, {out.getvalue()[-80:]!r} and {told[-300:]!r}"


def _matches(wanted: str, said: str) -> bool:
    pieces = [re.escape(piece) for piece in wanted.split("...")]
    return re.fullmatch(".*".join(pieces), said) is not None


def _hash_files(folder: Path) -> dict[str, str]:
    return dict(_each_file(folder, folder))


def _each_file(root: Path, folder: Path) -> Iterator[tuple[str, str]]:
    for entry in os.scandir(folder):
        path = Path(entry.path)
        name = path.relative_to(root).as_posix()
        if entry.is_dir(follow_symlinks=False):
            yield name, "folder"
            yield from _each_file(root, path)
        elif entry.is_file(follow_symlinks=False):
            yield name, hashlib.md5(path.read_bytes()).hexdigest()
        else:
            yield name, "another"


def _difference(before: dict[str, str], after: dict[str, str]) -> str:
    changed = {name for name, _ in before.items() ^ after.items()}
    return ", ".join(sorted(changed)[:5])


def _hash_arrays(names: dict[str, Any]) -> dict[str, str]:
    import numpy as np

    hashes = {}
    for name, value in names.items():
        parts = {"": value}
        if hasattr(value, "tocsr"):
            parts = {
                part: getattr(value, part)
                for part in ("data", "indices", "indptr")
                if hasattr(value, part)
            }
        for part, array in parts.items():
            if isinstance(array, np.ndarray) and array.dtype != object:
                hashes[name + part] = hashlib.md5(array.tobytes()).hexdigest()
    return hashes


def _plain(text: str) -> str:
    """As one line of a text file."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown.encode("utf-8", "backslashreplace").decode()


def _fill() -> None:
    from attacks.inputs_world import make_files, make_names

    with scratch() as folder:
        make_files(Path(folder))
        names = make_names(Path(folder))
        home = Path.cwd()
        for path in TRANSCRIPTS:
            lines = [*path.read_text(encoding="utf-8").splitlines(), ""]
            filled: list[str] = []
            for at, line in enumerate(lines):
                if at and lines[at - 1].startswith(("$ ", ">>> ")):
                    os.chdir(folder)
                    said = _plain(make_call(lines[at - 1], names))
                    os.chdir(home)
                    filled.append(line if _matches(line, said) and line else said)
                    if not line and said:
                        filled.append("")
                else:
                    filled.append(line)
            path.write_text("\n".join(filled).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    _fill()
