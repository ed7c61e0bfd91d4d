"""A check for continuous integration: JUnit XML, and annotations for GitHub Actions.

Names of labels and files are untrusted text, and are escaped for each format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from oddslip.diagnosis.findings import CODES
from oddslip.reports.text import printable

if TYPE_CHECKING:
    from oddslip.serving.check import CheckResult

LEVELS = {"critical": "warning", "warning": "warning", "info": "notice"}  # of what did not fail


def junit_xml(result: CheckResult) -> str:
    """One test case for each code that was checked; a failed one contains the reason.

    Examples
    --------
    >>> junit_xml(result)  # doctest: +SKIP
    """
    by_code = {finding.code: finding for finding in result.findings}
    codes = sorted({*result.looked_for, *by_code})
    suites = Element("testsuites", name="oddslip check")
    suite = SubElement(
        suites,
        "testsuite",
        name="oddslip check",
        tests=str(len(codes)),
        failures=str(len(result.failed)),
        errors="0",
        skipped="0",
    )
    for code in codes:
        case = SubElement(
            suite, "testcase", classname="oddslip.check", name=f"{code} {CODES[code]}"
        )
        if code in result.failed:
            finding = by_code[code]
            failure = SubElement(
                case, "failure", type=finding.severity, message=printable(finding.sentence)
            )
            failure.text = printable(f"{finding.sentence} {finding.advice}")
        elif code in by_code:
            SubElement(case, "system-out").text = printable(by_code[code].sentence)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, "unicode") + "\n"


def annotation_lines(result: CheckResult) -> Iterator[str]:
    """A workflow command for each finding: an error if it failed, else by its severity.

    Examples
    --------
    >>> list(annotation_lines(result))  # doctest: +SKIP
    ['::error title=OS501 scores moved::The scores of 1 label moved. ...']
    """
    for finding in result.findings:
        level = "error" if finding.code in result.failed else LEVELS[finding.severity]
        message = _message(f"{finding.sentence} {finding.advice}")
        yield f"::{level} title={finding.code} {finding.name}::{message}"


def _message(text: str) -> str:
    """Escape characters that would end the command or start another."""
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
