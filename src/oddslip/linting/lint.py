"""Lint files: parse each, apply the rules, and leave out what a comment ignores."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from oddslip.linting.calibration import Branch, find_raw_fallbacks
from oddslip.linting.labels import LabelRegions
from oddslip.linting.ranking import find_ranking
from oddslip.linting.rules import RULES, Finding, Severity
from oddslip.linting.sources import Block, Source, find_sources, parse_source
from oddslip.linting.syntax import Module
from oddslip.linting.weights import Place, find_weights

_IGNORE = re.compile(r"#\s*oddslip:\s*ignore(?:\[([^\]]*)\])?")


class LintResult(NamedTuple):
    """Findings of all files, and how many files were read."""

    findings: list[Finding]
    n_files: int


def lint(paths: Iterable[str | Path]) -> LintResult:
    """Find per-label weights in Python files and notebooks, without running them.

    Parameters
    ----------
    paths : iterable of paths
        Files, or folders that are searched for ``.py`` and ``.ipynb`` files.

    Returns
    -------
    LintResult
        Findings in the order of files and lines.

    Examples
    --------
    >>> lint([__file__])
    LintResult(findings=[], n_files=1)
    """
    findings, n_files = [], 0
    for path in find_sources(map(Path, paths)):
        findings += lint_source(parse_source(path))
        n_files += 1
    return LintResult(findings, n_files)


def lint_source(source: Source) -> list[Finding]:
    """Findings of one file, by line."""
    module = Module(source.tree)
    ranking = find_ranking(module)
    rank_line = _place(source, ranking.lineno)[1] if ranking else ""
    findings = [
        _finding(source, "OS900", each.line, each.column - 1, None, each.detail)
        for each in source.problems
    ]
    for code, node in sorted(set(_apply(module)), key=lambda pair: pair[0]):
        detail = f"{rank_line} ranks labels by scores." if ranking and code != "OS905" else ""
        severity: Severity | None = "warning" if ranking else None
        findings.append(_finding(source, code, node.lineno, node.col_offset, severity, detail))
    return sorted(
        (each for each in findings if each is not None),
        key=lambda each: (each.cell or 0, each.line, each.column, each.code),
    )


def _apply(module: Module) -> Iterator[tuple[str, Place | Branch]]:
    regions = LabelRegions(module)
    yield from find_weights(module, regions)
    for branch in find_raw_fallbacks(module, regions):
        yield "OS905", branch


def _place(source: Source, line: int) -> tuple[Block, str]:
    """The block of a line of the joined source, and the line's name in a sentence."""
    block = source.blocks[bisect_right(source.blocks, line, key=lambda each: each.first_line) - 1]
    cell = f" of cell {block.cell}" if block.cell else ""
    return block, f"Line {line - block.first_line + 1}{cell}"


def _finding(
    source: Source, code: str, line: int, offset: int, severity: Severity | None, detail: str
) -> Finding | None:
    """A finding; None if a comment on its line ignores it."""
    block, _ = _place(source, line)
    within = line - block.first_line
    text = block.lines[within] if within < len(block.lines) else ""
    ignore = _IGNORE.search(text)
    if ignore and (ignore[1] is None or code in re.split(r"[\s,]+", ignore[1].strip())):
        return None
    column = offset
    if code != "OS900":  # a syntax tree counts bytes
        column = len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace"))
    severity = severity or RULES[code].severity
    return Finding(source.path, within + 1, column + 1, code, severity, detail, block.cell)
