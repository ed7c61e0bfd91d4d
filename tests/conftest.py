"""Where genuine data is, and rules for all tests: tiers, skips, and one process for Spark."""

import os
from fnmatch import fnmatch
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "shared" / "data"  # beside the checkout
HOW = "Point ODDSLIP_DATA at a folder that holds it, see docs/paper/data.md."


@pytest.fixture(scope="session")
def genuine():
    """The folder of a genuine data set by name: ``genuine("mulan")``.

    A test whose data is not there is skipped; in CI that is a failure, as below.
    """
    root = Path(os.environ.get("ODDSLIP_DATA") or BESIDE)

    def find(name):
        folder = root / name
        if not folder.is_dir():
            pytest.skip(f"needs genuine data in {folder}. {HOW}")
        return folder

    return find


# --- Two tiers: `make test` runs the fast one, `make test-all` both --------------------------------

# Pattern of a test's id below tests/ -> why it is slow. Tests of both tiers run if named by hand.
SLOW = {
    "attacks/*": "campaigns of thousands of inputs",
    "browser/*": "a browser that opens pages of 4,000 labels",
    "experiments/*": "studies of the paper",
    "journeys/*": "whole command lines, in processes of their own",
    "spark/*": "a Spark cluster",
    "diagnosis/test_memory.py::*": "panels large enough to measure memory",
    "diagnosis/test_verdict_simulation.py::*": "many simulated diagnoses",
    "serving/test_json.py::test_javascript*": "Node.js",
    "serving/test_sql.py::*postgres*": "a PostgreSQL server",
    "serving/test_sql.py::*spark*": "a Spark shell",
    "test_benchmarks.py::test_a_toy_run*": "every benchmark, in a process of its own",
    "test_tiers.py::test_every_test_that_is_written*": "collects all tests",
}


def pytest_collection_modifyitems(items):
    root = Path(__file__).parent
    for item in items:
        name = item.nodeid.partition("::")[2]
        test = f"{item.path.relative_to(root).as_posix()}::{name}"
        if any(fnmatch(test, pattern) for pattern in SLOW):
            item.add_marker("slow")


# --- In CI a skipped test is a failure -----------------------------------------------------------
# A test that is skipped proves nothing, and nobody reads the list of skipped tests.

# Beginning of a test's id -> why it cannot run in CI. Keep it empty if at all possible.
NEEDS_SCORES = (
    "tests/experiments/mulan/test_table.py::test_diagnose_and_the_study_agree_on_kept_scores"
)
MAY_BE_SKIPPED = {
    NEEDS_SCORES: "trains 374 and 983 boosters unless a run of the study kept them; the same law is held "
    "on flags and genbase, trained anew",
}


def in_ci():
    return os.environ.get("CI", "").lower() in {"true", "1"}


def skip_reason(report):
    """Why a test was skipped; pytest stores (file, line, reason)."""
    entry = report.longrepr
    return entry[2] if isinstance(entry, tuple) else str(entry)


def fail_if_skipped(report):
    """Turn the report of a skipped test or module into a failure that keeps the reason."""
    if not (in_ci() and report.skipped) or hasattr(report, "wasxfail"):
        return
    if report.nodeid.startswith(tuple(MAY_BE_SKIPPED)):
        return
    report.longrepr = f"{report.nodeid} must run where CI=true, but: {skip_reason(report)}"
    report.outcome = "failed"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    fail_if_skipped(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    outcome = yield
    fail_if_skipped(outcome.get_result())


# --- Spark is started by one process alone -------------------------------------------------------
# Two would start two clusters at a time. `xdist_group` does not do it: pytest-xdist 3.8 writes the
# group into the id of a test, where pytest 9.2 does not look (pytest-dev/pytest-xdist#1386).

TOGETHER = "spark/"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByFolder(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            folder = nodeid.partition("::")[0]
            return TOGETHER if TOGETHER in folder else super()._split_scope(nodeid)

    return ByFolder(config, log)
