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
    "calibrators/logistic/test_hierarchy.py::test_fifty_thousand*": "50,000 labels",
    "cli/test_check.py::test_exit_codes*": "processes, one a case",
    "cli/test_help.py::test_an_interrupted_diagnosis*": "waits for diagnoses to be under way",
    "cli/test_interrupts.py::test_a_signal_ends_a_training*": "waits for trainings to be under way",
    "cli/test_streams.py::*": "processes, one a case",
    "contracts/test_matching.py::*RepairedClassifier*": "trains and repairs a model a case",
    "contracts/test_matching.py::*check*": "a diagnosis a case",
    "contracts/test_matching.py::*diagnose*": "a diagnosis a case",
    "contracts/test_one_way.py::test_spark*": "a Spark session",
    "core/test_sparse.py::test_a_broken_matrix*": "processes that may crash",
    "decisions/test_exports.py::test_a_hundred*": "100 exported decisions",
    "decisions/test_guarantee.py::test_check_tells*": "20 checks a case",
    "decisions/test_guarantee.py::test_the_expected_risk*": "500 draws a case",
    "decisions/test_guarantee.py::test_the_level_is_the_best*": "400 levels a case, by brute force",
    "decisions/test_thresholds.py::*brute_force*": "200 panels a case",
    "diagnosis/test_contradictions.py::test_a_planted_fault*": "20 diagnoses of each fault",
    "diagnosis/test_contradictions.py::test_genuine_panels*": "20 diagnoses",
    "diagnosis/test_decomposition.py::test_the_parts_add_up_in_every_scene*": "diagnoses every scene",
    "diagnosis/test_memory.py::*": "panels large enough to measure memory",
    "diagnosis/test_no_signal.py::test_keys_find_no_signal*": "many diagnoses of noise",
    "diagnosis/test_no_signal.py::test_scores_without_signal*": "many diagnoses of noise",
    "diagnosis/test_signal.py::test_the_interval_of_noise*": "24 diagnoses of noise",
    "diagnosis/test_verdict_simulation.py::*": "many simulated diagnoses",
    "folding/test_fold.py::*after_saving_and_loading*": "a model of another library a case",
    "io/test_files.py::test_a_file_that_may_not_grow*": "processes, one a case",
    "learners/backends/test_hist.py::test_margins_have_the_bits*": "trains by scikit-learn too",
    "learners/test_checkpoint.py::test_a_training_killed*": "kills processes",
    "learners/test_distributed_training.py::*": "trains in processes",
    "learners/test_model_validation.py::test_a_crafted_model*": "processes that may crash",
    "learners/test_presets.py::test_*_to_the_bit": "trains the same models by their libraries",
    "learners/test_scoring.py::test_a_scoring_killed*": "kills processes",
    "linting/test_command.py::test_the_action*": "processes, one a case",
    "linting/test_command.py::test_the_hooks*": "processes, one a hook",
    "serving/test_check_log.py::test_processes*": "processes that append at once",
    "serving/test_json.py::test_a_null*": "Node.js",
    "serving/test_json.py::test_javascript*": "Node.js",
    "serving/test_monitor.py::test_days_drawn*": "hundreds of simulated days",
    "serving/test_onnx.py::test_five_hundred_repairs*": "500 exported models",
    "serving/test_runtime.py::test_a_thousand_repairs*": "1,000 saved repairs",
    "serving/test_sql.py::*postgres*": "a PostgreSQL server",
    "serving/test_sql.py::*spark*": "a Spark shell",
    "test_benchmarks.py::test_a_toy_run*": "every benchmark, in a process of its own",
    "test_docs.py::test_the_first_block*spark*": "a Spark session",
    "test_examples.py::test_an_example_runs*": "every example, in a process of its own",
    "test_skips.py::*": "processes, one a case",
    "test_tiers.py::test_a_slow_test*": "processes of pytest",
    "test_tiers.py::test_every_test_that_is_written*": "collects all tests",
}


def is_slow(test):
    """Whether a test is in the slow tier, by its id below tests/."""
    return any(fnmatch(test, pattern) for pattern in SLOW)


def pytest_collection_modifyitems(items):
    root = Path(__file__).parent
    for item in items:
        path, name = item.path.relative_to(root).as_posix(), item.nodeid.partition("::")[2]
        if is_slow(f"{path}::{name}"):
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


# --- Which tests run in one process ---------------------------------------------------------------
# Tests of a file share its fixtures, which two processes would both make; tests of some folders share
# more. Other slow tests are dealt out one by one, so that no process ends long before the other.
# `xdist_group` does not do it: pytest-xdist 3.8 writes the group into the id of a test, where pytest
# 9.2 does not look (pytest-dev/pytest-xdist#1386).

SHARED = {"spark/": "a cluster", "browser/": "a browser", "diagnosis/": "diagnosed scenes"}
BY_FILE = ("spark/", "browser/", "experiments/")  # though slow


def find_group(nodeid):
    """Tests of one group run in one process."""
    path, _, name = nodeid.removeprefix("tests/").partition("::")
    if is_slow(f"{path}::{name}") and not path.startswith(BY_FILE):
        return nodeid
    return next((folder for folder in SHARED if path.startswith(folder)), path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByFixtures(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            return find_group(nodeid)

    return ByFixtures(config, log)
