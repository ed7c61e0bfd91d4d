"""What continuous integration reads: XML that parsers take, annotations that names cannot break."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import junitparser
import numpy as np
import pytest

import oddslip
from oddslip.diagnosis import Finding
from oddslip.reports.ci import annotation_lines, junit_xml

HOSTILE = "</failure>\x00\x1b[31m ]]>&\n::error ::x, \ud800 100%"


@pytest.fixture(scope="module")
def result():
    checked = oddslip.check(None, np.random.default_rng(0).random((50, 4)), k=2)
    findings = (
        Finding("OS501", "critical", f"Moved: {HOSTILE}.", {"n": 1}, f"Look at {HOSTILE}."),
        Finding("OS502", "warning", "Shown.", {"n": 1}, "See."),
        Finding("OS511", "info", f"None {HOSTILE}.", {"n": 1}, "Fit."),
    )
    looked_for = ("OS501", "OS502", "OS503")
    return replace(
        checked, passed=False, failed=("OS501",), findings=findings, looked_for=looked_for
    )


def test_a_real_parser_reads_the_cases_and_what_failed(result, tmp_path):
    path = tmp_path / "check.xml"
    path.write_text(junit_xml(result), encoding="utf-8")
    (suite,) = junitparser.JUnitXml.fromfile(str(path))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (4, 1, 0, 0)
    cases = {case.name.split()[0]: case for case in suite}
    assert sorted(cases) == ["OS501", "OS502", "OS503", "OS511"]
    assert [code for code, case in cases.items() if not case.is_passed] == ["OS501"]
    failure = cases["OS501"].result[0]
    assert failure.type == "critical"
    assert "</failure>" in failure.message
    assert "\\x1b" in failure.message


def test_the_xml_is_well_formed_and_holds_nothing_but_what_was_meant(result):
    tree = ElementTree.fromstring(junit_xml(result).encode())
    tags = {each.tag for each in tree.iter()}
    assert tags == {"testsuites", "testsuite", "testcase", "failure", "system-out"}


def test_a_check_that_passed_has_no_failure():
    quiet = oddslip.check(None, np.random.default_rng(0).random((50, 4)), k=2)
    tree = ElementTree.fromstring(junit_xml(quiet))
    assert tree.find("testsuite").get("failures") == "0"
    assert tree.findall(".//failure") == []


def test_annotations_are_one_line_each_and_no_name_begins_another(result):
    lines = list(annotation_lines(result))
    assert [re.match(r"::(\w+) ", line)[1] for line in lines] == ["error", "warning", "notice"]
    for line in lines:
        assert line.isprintable()
        assert line.startswith("::")
    head, message = lines[0].split("::", 2)[1:]
    assert head == "error title=OS501 scores moved"
    assert "100%25" in message
