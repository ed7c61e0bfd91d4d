"""What campaigns came to, as a table in the terminal and as a page of the docs."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attacks import ONLY_IF_NAMED
from attacks.child import ROOT
from attacks.frame import Result

_PACKAGES = ("numpy", "scipy", "pyarrow", "lightgbm", "xgboost", "torch")
_PAGE = """# Attacks

What has been tried to break oddslip? `make attack` runs campaigns: bad inputs to all commands and
verbs, changed files with and without a valid checksum, kills, signals, full disks, two writers,
hostile names, forks. Each is a file in `attacks/`; a short slice of each runs with the tests.
`SECURITY.md` says what is promised about an untrusted file. The runs write this page; a run of
some campaigns (`python -m attacks kills forks --table docs/attacks.md`) replaces their lines and
prints what each came to.

A try fails if the process dies of a signal, hangs, raises an error that is not raised on purpose,
prints more than one line, changes an input, or accepts a file and then gives a wrong answer.
`python -m attacks.child attacks.repairs 0 1234` repeats one try, number 1234 of seed 0.

"""
_HEAD = "| campaign | | tried | failures | commit |\n|---|---|--:|--:|---|"

_LINE = re.compile(r"^(\| (?!campaign )([a-z-]+) \| .*)$", re.MULTILINE)


def print_table(results: list[Result]) -> None:
    """Campaign, tries, failures, seconds."""
    print(f"\n{'campaign':16}{'tried':>12}{'failures':>10}{'seconds':>10}  what was seen")
    for result in results:
        outcome = result.outcome
        print(
            f"{result.run.name:16}{outcome.tried:>12,}{len(outcome.failures):>10}"
            f"{result.seconds:>10.0f}  {outcome.notes}"
        )
    tried = sum(result.outcome.tried for result in results)
    failed = sum(len(result.outcome.failures) for result in results)
    print(f"{'all':16}{tried:>12,}{failed:>10}")


def write_table(path: Path, results: list[Result], command: str, seed: int) -> None:
    """Write the lines of this run; those of campaigns that were not run stay as they are."""
    fuzzed = all(result.run.name in ONLY_IF_NAMED for result in results)
    title = "The long fuzzers" if fuzzed else "The campaigns"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    sections = {
        kept.partition("\n")[0].removeprefix("## "): kept.rstrip("\n") + "\n"
        for kept in re.findall(r"^## .*?(?=^## |\Z)", old, re.MULTILINE | re.DOTALL)
    }
    lines = {name: line for line, name in _LINE.findall(sections.get(title, ""))}
    for each in results:
        lines[each.run.name] = (
            f"| {each.run.name} | {each.run.title} | {each.outcome.tried:,} | "
            f"{len(each.outcome.failures)} | {_commit()} |"
        )
    sections[title] = "\n".join(
        [
            f"## {title}\n",
            f"    {command}\n",
            f"Seed {seed}, {_versions()}, {os.cpu_count()} cores.\n",
            _HEAD,
            *(lines[name] for name in sorted(lines)),
            "",
        ]
    )
    path.write_text(_PAGE + "\n".join(sections[key] for key in sorted(sections)), encoding="utf-8")


def _commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or "unknown"


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        for name in (package, f"{package}-cpu"):
            try:
                found.append(f"{package} {version(name)}")
            except PackageNotFoundError:
                continue
            break
    return ", ".join(found)
