"""What campaigns came to, as a table in the terminal and as a page of the docs."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attacks.child import ROOT
from attacks.frame import Result

_PACKAGES = ("numpy", "scipy", "pyarrow", "lightgbm", "xgboost", "torch", "hypothesis")
_PAGE = """# Attacks

`make attack` tries to break oddslip: bad inputs over all commands and verbs, changed files with and
without a right checksum, kills, signals, full disks, two writers, hostile names, forks. Each campaign
is a file in `attacks/`; a short slice of each runs with the tests. What is promised about a
stranger's file is in `SECURITY.md`. This page is written by the run itself:

    {command}

Seed {seed}, commit {commit}, {versions}, {cores} cores.

{table}

A try is a failure if the process dies of a signal, hangs, raises anything but the errors that are
raised on purpose, prints more than one line, changes an input, or lets a file through that then
gives an answer that is no answer.
"""


def print_table(results: list[Result]) -> None:
    """Campaign, tries, failures, seconds."""
    print(f"\n{'campaign':16}{'tried':>12}{'failures':>10}{'seconds':>10}  what was seen")
    for result in results:
        outcome = result.outcome
        print(f"{result.run.name:16}{outcome.tried:>12,}{len(outcome.failures):>10}"
              f"{result.seconds:>10.0f}  {outcome.notes}")  # fmt: skip
    tried = sum(result.outcome.tried for result in results)
    failed = sum(len(result.outcome.failures) for result in results)
    print(f"{'all':16}{tried:>12,}{failed:>10}")


def write_table(path: Path, results: list[Result], command: str, seed: int) -> None:
    """The page with the table; fuzzers that an earlier page holds stay if they were not run now."""
    head = "| campaign | | tried | failures | seconds | what was seen |\n|---|---|--:|--:|--:|---|"
    lines = [
        f"| {each.run.name} | {each.run.title} | {each.outcome.tried:,} | "
        f"{len(each.outcome.failures)} | {each.seconds:.0f} | {each.outcome.notes} |"
        for each in results
    ]
    page = _PAGE.format(
        command=command, seed=seed, commit=_commit(), versions=_versions(),
        cores=os.cpu_count(), table="\n".join([head, *lines]),
    )  # fmt: skip
    path.write_text(page, encoding="utf-8")


def _commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return told.stdout.strip() or "unknown"


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
