"""The public face: its names, and what importing it costs."""

import subprocess
import sys

import oddslip

HEAVY = {
    "numba", "lightgbm", "xgboost", "torch", "pyspark", "matplotlib", "pandas", "polars",
    "pyarrow", "sklearn", "scipy", "rich", "typer", "jinja2",
}  # fmt: skip


def loaded_by(code):
    script = f"import sys\n{code}\nprint(*{{m.split('.')[0] for m in sys.modules}})"
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(told.stdout.split())


def test_the_public_names_are_these():
    assert sorted(oddslip.__all__) == oddslip.__all__
    assert oddslip.__all__ == [
        "Comparison",
        "Diagnosis",
        "Estimate",
        "Evaluation",
        "FittedRepair",
        "InvalidInput",
        "MatchedPair",
        "MissingDependency",
        "OddslipError",
        "OneVsRest",
        "Panel",
        "Plan",
        "Repair",
        "UnreadableFile",
        "diagnose",
        "evaluate",
        "load_repair",
        "open_source",
        "panel_from",
        "plan",
        "rank",
    ]


def test_each_public_name_can_be_had_and_is_listed():
    for name in oddslip.__all__:
        assert getattr(oddslip, name).__name__ == name
        assert name in dir(oddslip)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(oddslip, "no_such_name")


def test_importing_oddslip_loads_no_heavy_module():
    assert not loaded_by("import oddslip") & HEAVY


def test_help_loads_neither_numpy_nor_kernels():
    code = (
        "from oddslip.cli.app import _run\n"
        "import io, contextlib\n"
        "with contextlib.redirect_stdout(io.StringIO()): _run(['--help'])"
    )
    assert not loaded_by(code) & (HEAVY - {"typer", "rich"} | {"numpy"})
