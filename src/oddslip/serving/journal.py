"""The log of checks: one line of JSON for each, appended whole or not at all."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oddslip.arguments import check_path
from oddslip.documents import parse_json
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.files import flush, locked, no_room, output_path
from oddslip.inputs import read_bytes
from oddslip.serving.check import CheckResult

PATIENCE = 10.0  # seconds to wait for another who appends
_WHEN = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?")


def append_check(
    path: Any, result: CheckResult, *, when: str | None = None, about: Mapping[str, str] = {}
) -> None:
    """Append a check to a log: what it found, when, and of what.

    Parameters
    ----------
    path : str or path
        The log; made if it is not there.
    result : CheckResult
    when : str, optional
        The day or time it stands for, as 2026-05-01 or 2026-05-01T06:00:00Z; now unless told.
    about : mapping of str to str
        What else is to be known of the run, such as the names of its files.

    Examples
    --------
    >>> append_check("log.jsonl", result, when="2026-05-01")  # doctest: +SKIP
    """
    when = datetime.now(UTC).isoformat(timespec="seconds") if when is None else check_when(when)
    record = {"when": when, "about": dict(about), **result.to_dict()}
    line = json.dumps(record, ensure_ascii=True, allow_nan=False).encode() + b"\n"
    target = output_path(path)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            with locked(target):
                return _append(target, line)
        except InvalidInput:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _append(path: Path, line: bytes) -> None:
    """Write a line in one piece; what a killed process left of one is cut off first."""
    try:
        with path.open("ab+") as file, no_room(path):
            end = file.seek(0, os.SEEK_END)
            whole = _end_of_lines(file, end)
            if whole < end:
                file.truncate(whole)
            try:
                file.write(line)
                file.flush()
            except BaseException:
                file.truncate(whole)
                raise
        flush(path)
    except OSError as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(f"{path} can not be written ({error.strerror}).") from error


def _end_of_lines(file: Any, end: int) -> int:
    """Where the last whole line ends."""
    at = end
    while at:
        start = max(0, at - 65536)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return int(start + found + 1)
        at = start
    return 0


def read_checks(path: Any) -> list[dict[str, Any]]:
    """All checks of a log, in its order. A last line that was cut off is left out.

    Parameters
    ----------
    path : str or path
        A log that `append_check` wrote.

    Examples
    --------
    >>> [each["passed"] for each in read_checks("log.jsonl")]  # doctest: +SKIP
    [True, False]
    """
    path = check_path("a log", path)
    lines = read_bytes(path).split(b"\n")[:-1]
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = parse_json(line)
            _check_record(record)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise UnreadableFile(
                f"{path} must hold one check per line, and line {number} is none. "
                "Write it with `oddslip check --log`."
            ) from error
        records.append(record)
    if not records:
        raise UnreadableFile(f"{path} holds no check. Write one with `oddslip check --log`.")
    return records


def check_when(text: Any) -> str:
    """A day or a time in the form of ISO 8601."""
    if not isinstance(text, str) or not _WHEN.fullmatch(text):
        raise InvalidInput(
            f"when must be a day or a time such as 2026-05-01 or 2026-05-01T06:00:00Z, got "
            f"{text!r:.40}."
        )
    return text


def _check_record(record: Any) -> None:
    """What the page of trends relies on."""

    def number(value: Any, optional: bool = True) -> None:
        if not (optional and value is None) and type(value) not in (int, float):
            raise ValueError("no number")

    if record["schema"] != "oddslip.check/1":
        raise ValueError("another schema")
    check_when(record["when"])
    if type(record["passed"]) is not bool:
        raise ValueError("passed must be true or false")
    for name in ("k", "n_rows", "n_labels"):
        if type(record[name]) is not int:
            raise ValueError("no count")
    for finding in record["findings"]:
        if not all(isinstance(finding[part], str) for part in ("code", "severity", "sentence")):
            raise ValueError("no finding")
    if not all(isinstance(code, str) for code in record["failed"]):
        raise ValueError("no code")
    for part, needed in (("measures", ("before", "now")), ("metrics", ("value", "low", "high"))):
        for name, each in record[part].items():
            if not isinstance(name, str):
                raise ValueError("no name")
            for key in needed:
                number(each[key])
            for key in ("low", "high"):
                number(each.get(key))
