"""Records of benchmark runs as JSON, and the table of the README made of them."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from oddslip.core.provenance import commit, versions

RESULTS = Path(__file__).parent / "results"


class Ratio(NamedTuple):
    """Lines of a record that give one number of the README: regular expressions."""

    title: str
    line: str
    clock: str = "cpu"


class Row(NamedTuple):
    """A row of the README's table. ``{0}`` stands for the first group of the first title."""

    job: str
    peer: str
    benchmark: str
    ratios: tuple[Ratio, ...]


SHAPE = r"([\d,]+ x [\d,]+)"
TOP = rf"top 7 of {SHAPE} float32, uniform$"
WIDE = rf"Wide sparse counts: {SHAPE}, (\d+) labels"
ROWS = (
    Row(
        "top 7 of {0}",
        "NumPy `argsort` / `argpartition`",
        "ranking",
        (Ratio(TOP, "numpy argsort"), Ratio(TOP, "numpy argpartition")),
    ),
    Row(
        "MAP@7, from scores to mean",
        "`argsort`, `take`, `cumsum`",
        "ranking",
        (Ratio("MAP@7 from scores to mean, uniform$", "numpy argsort"),),
    ),
    Row(
        "per-label isotonic fit, {0}",
        "a loop of scikit-learn's",
        "isotonic",
        # Titles of rare labels; those of common ones say the share of positives.
        (Ratio(rf"isotonic fits, {SHAPE} float32, (?!.*positives)", "scikit-learn"),),
    ),
    Row(
        "calibrate and rank, {0}",
        "transform, then `argsort`",
        "fused",
        (
            Ratio(
                rf"calibrate and rank {SHAPE} float32, isotonic", "transform, then stable argsort"
            ),
        ),
    ),
    Row(
        "realized shift of {0}",
        "60 bisection steps",
        "shifts",
        (Ratio(rf"realized shift of {SHAPE}", "60 bisection steps"),),
    ),
    Row(
        "choose among 7 calibrators by 5 folds, {0}",
        "the same with scikit-learn, fits shared",
        "selection",
        (Ratio(rf"choosing among seven by 5 folds, {SHAPE}", "scikit-learn, shared fits"),),
    ),
    Row(
        "{1} LightGBM models on {0} sparse (wall time)",
        "`MultiOutputClassifier` / `OneVsRestClassifier`",
        "training",
        (Ratio(WIDE, "MultiOutput", "wall"), Ratio(WIDE, "OneVsRestClassifier", "wall")),
    ),
    Row(
        "score {0} by {1} LightGBM models, sparse / dense",
        "LightGBM's `predict` of the same trees",
        "scoring",
        (
            Ratio(rf"Sparse counts: {SHAPE}, (\d+) labels", "LightGBM's predict"),
            Ratio("Dense: ", "LightGBM's predict"),
        ),
    ),
)


def describe_run() -> dict[str, Any]:
    """Command, date, commit, machine and versions; call it before any record is written."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": describe_machine(),
        "versions": versions(),
    }


def write_record(folder: Path, record: dict[str, Any]) -> Path:
    """Write the record of a benchmark to a JSON file of its name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['benchmark']}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory and load, as far as the system tells them."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "system": platform.platform(),
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load": os.getloadavg()[0],  # of the last minute: how quiet it was
    }


def make_table(folder: Path = RESULTS) -> str:
    """The README's table of ratios, in Markdown, from the records in a folder."""
    rows = [format_row(row, folder) for row in ROWS]
    return "\n".join(["| job | peer | ratio |", "|---|---|---|", *rows])


def format_row(row: Row, folder: Path) -> str:
    """One row of that table."""
    path = folder / f"{row.benchmark}.json"
    if not path.exists():
        raise SystemExit(f"{path} must exist. Run: python -m benchmarks {row.benchmark}")
    tables = json.loads(path.read_text())["tables"]
    cells = " / ".join(_format_range(_find_ratios(ratio, tables)) for ratio in row.ratios)
    titles = (re.match(row.ratios[0].title, table["title"]) for table in tables)
    groups = next(match.groups() for match in titles if match)
    return f"| {row.job.format(*groups)} | {row.peer} | {cells} |"


def _find_ratios(wanted: Ratio, tables: list[dict[str, Any]]) -> list[float]:
    """Ratios of every line that fits in every table that fits; at least one."""
    ratios = [
        line[f"{wanted.clock}_ratio"]
        for table in tables
        if re.match(wanted.title, table["title"])
        for line in table["lines"]
        if re.match(wanted.line, line["name"])
    ]
    if not ratios:
        raise SystemExit(f"no line {wanted.line!r} in a table {wanted.title!r} of the record.")
    return ratios


def _format_range(ratios: list[float]) -> str:
    low, high = (
        f"{end:.0f}x" if end >= 10 else f"{end:.1f}x" for end in (min(ratios), max(ratios))
    )
    return low if low == high else f"{low} to {high}"
