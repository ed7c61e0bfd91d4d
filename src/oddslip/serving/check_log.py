"""The log of checks: one line of JSON each, appended atomically."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from oddslip.core.types import FilePath, JsonObject
from oddslip.errors import InvalidInput, UnreadableFile
from oddslip.io.files import disk_full_message, flush, hold_file, lock, output_path
from oddslip.io.inputs import input_path, read_bytes
from oddslip.io.json import parse_json
from oddslip.io.paths import check_path
from oddslip.serving.check import CheckResult

PATIENCE = 10.0  # seconds to wait for another process that appends
MAX_LINE_BYTES = 64 << 20  # a check of 100,000 labels takes less than a tenth of it
_BEGINNING = b'{"when": "'  # of every line that `append_check` writes
_WHEN = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?")


def append_check(
    path: FilePath, result: CheckResult, *, when: str | None = None, about: Mapping[str, str] = {}
) -> None:
    """Append a check to a log.

    Parameters
    ----------
    path : str or path
        The log, which is created if missing.
    result : CheckResult
    when : str, optional
        Its day or time, such as 2026-05-01 or 2026-05-01T06:00:00Z; default: now.
    about : mapping of str to str
        Further information about the run, such as the names of its files.

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
            with lock(target):
                return _append(target, line)
        except InvalidInput:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _append(path: Path, line: bytes) -> None:
    """Write a line atomically, after removing an incomplete line of a killed process."""
    try:
        with path.open("ab+") as file, disk_full_message(path):
            hold_file(file, path)
            end, glue = _check_log(file, path)
            try:
                file.truncate(end)
                file.write(glue + line)
                file.flush()
            except BaseException:
                file.truncate(end)
                raise
        flush(path)
    except OSError as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(f"{path} cannot be written ({error.strerror}).") from error


def check_log(path: FilePath) -> None:
    """Raise if a file exists and is no log of checks.

    Parameters
    ----------
    path : str or path
        A log that `append_check` wrote, an empty file, or a missing one.

    Examples
    --------
    >>> check_log("log.jsonl")
    """
    path = output_path(path)
    if path.exists():
        with input_path(path).open("rb") as file:
            _check_log(file, path)


def _check_log(file: IO[bytes], path: Path) -> tuple[int, bytes]:
    """The end of the last record of a log, and the separator before the next one.

    Raises for a line that is no record, except for the beginning of one that a killed process
    left. A last record without a newline gets one.
    """
    file.seek(0)
    end, number, separator = 0, 0, b""
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        complete = line.endswith(b"\n")
        if _is_record(line):
            end += len(line)
            separator = b"" if complete else b"\n"
        elif complete or file.read(1) or not _is_incomplete(line):
            raise UnreadableFile(
                f"{path} must be a log of checks to append to, and its line {number} is no check. "
                "Pass another file."
            )
    return end, separator


def _is_record(line: bytes) -> bool:
    try:
        _check_record(parse_json(line))
    except (ValueError, LookupError, TypeError, AttributeError):
        return False
    return True


def _is_incomplete(line: bytes) -> bool:
    """Whether this is the beginning of a record, and not valid JSON."""
    if not (line.startswith(_BEGINNING) or _BEGINNING.startswith(line)):
        return False
    try:
        parse_json(line)
    except ValueError:
        return True
    return False


def read_checks(path: FilePath) -> list[JsonObject]:
    """All checks of a log, in order. An incomplete last line is ignored.

    Parameters
    ----------
    path : str or path
        A log that `append_check` wrote.

    Returns
    -------
    list of dict
        As `CheckResult.to_dict`, with ``when`` and ``about``.

    Examples
    --------
    >>> [each["passed"] for each in read_checks("log.jsonl")]  # doctest: +SKIP
    [True, False]
    """
    path = check_path("a log", path)
    lines = read_bytes(path).split(b"\n")[:-1]
    records = []
    for number, line in enumerate(lines, 1):
        if not _is_record(line):
            raise UnreadableFile(
                f"{path} must hold one check per line, and line {number} is none. "
                "Write it with `oddslip check --log`."
            )
        records.append(parse_json(line))
    if not records:
        raise UnreadableFile(f"{path} holds no check. Write one with `oddslip check --log`.")
    return records


def check_when(text: object) -> str:
    """The text, if it is a day or a time in ISO 8601."""
    if not isinstance(text, str) or not _WHEN.fullmatch(text):
        raise InvalidInput(
            f"when must be a day or a time such as 2026-05-01 or 2026-05-01T06:00:00Z, got "
            f"{text!r:.40}."
        )
    return text


def _check_record(record: JsonObject) -> None:
    """Raise ValueError unless a record has the fields of the trend page."""

    def number(value: object, optional: bool = True) -> None:
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
    for part, keys in (("measures", ("before", "now")), ("metrics", ("value", "low", "high"))):
        for name, each in record[part].items():
            if not isinstance(name, str):
                raise ValueError("no name")
            for key in keys:
                number(each[key])
            for key in ("low", "high"):
                number(each.get(key))
