"""Findings as text, JSON, and SARIF 2.1.0 for code scanning."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from oddslip import __version__
from oddslip.linting.rules import PAGE, PROJECT, RULES, Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def place(finding: Finding) -> str:
    """Where a finding is, as editors read it.

    Examples
    --------
    >>> place(Finding("a.ipynb", 3, 5, "OS901", "note", cell=2))
    'a.ipynb:cell 2:3:5'
    """
    cell = f"cell {finding.cell}:" if finding.cell else ""
    return f"{finding.path}:{cell}{finding.line}:{finding.column}"


def text_lines(findings: list[Finding]) -> Iterator[str]:
    """One line per finding."""
    for each in findings:
        yield (
            f"{place(each)}: {each.code} {each.severity}: {each.reason} "
            f"{RULES[each.code].advice} ({each.doc})"
        )


def as_sarif(findings: list[Finding]) -> dict[str, Any]:
    """A SARIF 2.1.0 log with one run."""
    codes = list(RULES)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "oddslip lint",
                        "version": __version__,
                        "informationUri": PROJECT,
                        "rules": [_sarif_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(each, codes.index(each.code)) for each in findings],
            }
        ],
    }


def _sarif_rule(code: str) -> dict[str, Any]:
    rule = RULES[code]
    return {
        "id": code,
        "shortDescription": {"text": rule.name},
        "fullDescription": {"text": rule.reason},
        "help": {"text": rule.advice},
        "helpUri": f"{PROJECT}/blob/main/{PAGE}#{code.lower()}",
        "defaultConfiguration": {"level": rule.severity},
    }


def _sarif_result(finding: Finding, rule_index: int) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.path)},
            "region": {"startLine": finding.line, "startColumn": finding.column},
        }
    }
    if finding.cell:  # the region is that of the cell, which SARIF cannot say
        location["logicalLocations"] = [{"name": f"cell {finding.cell}"}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": f"{finding.reason} {RULES[finding.code].advice}"},
        "locations": [location],
    }


def _uri(path: str) -> str:
    """The path as a URI: relative if the path is."""
    pure = PurePath(path)
    encoded = quote(os.fsencode(pure.as_posix()))
    return f"file://{encoded}" if pure.is_absolute() else encoded
