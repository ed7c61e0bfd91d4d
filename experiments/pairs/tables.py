"""Tables of the matched-pair study from finished cells: Table 1, caps, doses, draws, splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.pairs.arms import DRAWS, LEARNERS, Arm, distinct_arms
from experiments.pairs.cells import rung_values
from experiments.pairs.paper import ROWS
from experiments.pairs.protocols import PROTOCOLS
from experiments.pairs.supplement.measures import SPLITS
from experiments.store import WEIGHTS
from oddslip.learners.pairs import CAPS

Cells = Mapping[str, Mapping[str, Any]]
Value = float | None
_RUNGS = {
    "raw score": "raw",
    "analytic inversion": "inversion",
    "per-label isotonic, prior": "isotonic",
    "pooled isotonic": "pooled",
    "popularity": "popularity",
}


# Verdicts that name a repair.
REPAIRED = ("repairable_by_inversion", "repairable_by_calibration", "dead_labels", "keep_margins")


def has_loss(cell: Mapping[str, Any]) -> bool:
    """Whether a weighted arm surely lost against its twin; shares of no loss say nothing."""
    unweighted = cell.get("test-split", {}).get("ladder", {}).get("rungs", {}).get("unweighted")
    return unweighted is not None and unweighted["minus_raw"]["low"] > 0


def table_one(cells: Cells) -> dict[str, dict[str, Value]]:
    """Table 1: column -> row -> number. The test-split protocol; the ceiling of all test rows."""
    columns: dict[str, dict[str, Value]] = {}
    for learner in LEARNERS:
        for weight in ("r", "1"):
            cell = cells.get(Arm(learner, weight).key)
            if cell is not None:
                columns[f"{learner} w={weight}"] = _column(cell)
    return columns


def _column(cell: Mapping[str, Any]) -> dict[str, Value]:
    values = rung_values(cell, "test-split")
    rest = {
        "ceiling": rung_values(cell, "deployment")["ceiling"],
        "mean within-label AUC": cell["auc"],
        "cells at 1.0 (%)": 100 * cell["saturated_share"],
        "labels without calibration positives": cell["test-split"]["calibration_positives"][
            "n_dead"
        ],
    }
    return {row: values.get(_RUNGS[row]) if row in _RUNGS else rest[row] for row in ROWS}


def format_entry(row: str, value: Value) -> str:
    """A number of Table 1 as the paper prints it."""
    return "--" if value is None else format(value, ROWS[row])


def format_table_one(cells: Cells, printed: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """Table 1 as Markdown; with what the paper prints, its digits and the difference beside."""
    columns = table_one(cells)

    def entry(row: str, column: str) -> str:
        value = columns[column][row]
        ours = format_entry(row, value)
        paper = (printed or {}).get(row, {}).get(column)
        if paper is None or value is None:
            return ours
        return f"{ours} ({paper}, {value - float(paper):+.3f})"

    return markdown(
        ["", *columns], [[row, *(entry(row, column) for column in columns)] for row in ROWS]
    )


def verdict_rows(cells: Cells) -> list[dict[str, Any]]:
    """What a diagnosis says of every arm under each protocol.

    ``returned`` is the share of the loss that the repair of the verdict returns, None where it
    names none or no twin tells a sure loss; ``twin_follows`` is None without a twin. ``current``
    says whether the cell was diagnosed with the list by calibration prevalence among the rungs.
    """
    rows = []
    for arm in distinct_arms():
        for protocol in PROTOCOLS:
            diagnosis = cells.get(arm.key, {}).get(protocol)
            if diagnosis is None:
                continue
            code, parts = diagnosis["verdict"]["code"], diagnosis["decomposition"]
            rung = "inversion" if code == "repairable_by_inversion" else "chosen"
            difference = (
                diagnosis["ladder"]["rungs"].get("unweighted", {}).get("minus_raw", {"low": 0})
            )
            is_known = code in REPAIRED and parts is not None and difference["low"] > 0
            rows.append(
                {
                    "arm": arm.key,
                    "protocol": protocol,
                    "verdict": code,
                    "returned": parts["returned"].get(rung) if is_known else None,
                    "current": "popularity, calibration" in diagnosis["ladder"]["rungs"],
                    "twin_follows": None if parts is None else "OS206" not in diagnosis["findings"],
                }
            )
    return rows


def cap_rows(cells: Cells) -> list[dict[str, Value]]:
    """The cap sweep, one row for each cap whose pair is finished; None is no cap."""
    rows = []
    for cap in CAPS:
        arm = Arm("lightgbm", "r", cap=cap)
        cell, twin = cells.get(arm.key), cells.get(arm.twin.key)
        if cell is None or twin is None:
            continue
        values, shifts = rung_values(cell, "test-split"), cell["deployment"]["shifts"]
        other = rung_values(twin, "test-split")
        over = cell["deployment"]["label_quantiles"]["over_inverted"]
        rows.append(
            {
                "cap": cap,
                "budget": shifts["budget"],
                "largest shift": shifts["largest_realized"],
                "identified": shifts["n_identified"],
                "median ratio": shifts["median_ratio"],
                "over-inverted": None if over is None else over["0.5"],
                "saturated": cell["saturated_share"],
                "raw": values["raw"],
                "inversion": values["inversion"],
                "pooled": values["pooled"],
                "isotonic": values["isotonic"],
                "twin raw": other["raw"],
                "twin isotonic": other["isotonic"],
                "ceiling": rung_values(cell, "deployment")["ceiling"],
                "auc": cell["auc"],
                "capped what-if": cell.get("capped_what_if"),
                "largest direct": cell.get("direct", {}).get("largest"),
                "2 T eta c": cell.get("direct", {}).get("bound"),
                "direct ratio": cell.get("direct", {}).get("median_ratio"),
            }
        )
    return rows


def dose_rows(cells: Cells, learner: str) -> list[dict[str, Any]]:
    """Weights from none to ten times r, one row each."""
    weighted = [(weight, cells.get(Arm(learner, weight).key)) for weight in WEIGHTS]
    return [
        {"weight": weight, "saturated": cell["saturated_share"], "auc": cell["auc"]}
        | rung_values(cell, "test-split")
        for weight, cell in weighted
        if cell is not None
    ]


def draw_values(cells: Cells, draws: Sequence[int] = DRAWS[1:]) -> dict[str, list[float]]:
    """A number for each draw of the training rows whose pair is finished, by quantity."""
    by_name: dict[str, list[float]] = {}
    for draw in draws:
        arm = Arm("lightgbm", "r", draw=draw)
        cell, twin = cells.get(arm.key), cells.get(arm.twin.key)
        if cell is None or twin is None:
            continue
        values, other = rung_values(cell, "test-split"), rung_values(twin, "test-split")
        share = cell["test-split"]["decomposition"]["shares"]["odds"]
        by_rung = {
            f"w=r {rung}": values[rung] for rung in ("raw", "inversion", "isotonic", "ceiling")
        }
        by_rung |= {f"w=1 {rung}": other[rung] for rung in ("raw", "isotonic")}
        by_rung |= {} if share is None else {"odds share": share}
        for name, value in by_rung.items():
            by_name.setdefault(name, []).append(value)
    return by_name


def draw_rows(cells: Cells) -> dict[str, dict[str, float]]:
    """Mean, standard deviation and number over the draws of the training rows, by quantity."""
    return {
        name: {
            "mean": float(np.mean(values)),
            "sd": float(np.std(values, ddof=1)) if len(values) > 1 else float("nan"),
            "n": len(values),
        }
        for name, values in draw_values(cells).items()
    }


def choice_cells(cells: Cells) -> dict[str, Mapping[str, Any]]:
    """What the selection rules chose, by the arm they chose for."""
    start = "choices-"
    return {key.removeprefix(start): cell for key, cell in cells.items() if key.startswith(start)}


def split_rows(cells: Cells) -> list[list[Any]]:
    """One row for each share of the test rows: dead labels, then isotonic, pooled and raw MAP.

    Means over the seeds, on the rows that a split left.
    """
    keys = [Arm(learner, weight).key for learner in LEARNERS for weight in ("r", "1")]
    there = {key: cells[f"splits-{key}"] for key in keys if f"splits-{key}" in cells}
    if not there:
        return []
    columns = {"": "map", ", pooled": "pooled", ", raw": "raw"}
    names = [f"{key}{suffix}" for key in there for suffix in columns]
    rows: list[list[Any]] = [["share", "rows", "dead labels", "median positives", *names]]
    for at, share in enumerate(SPLITS):
        splits = [cell["splits"][at] for cell in there.values()]
        first = splits[0]
        counts = [first["n_rows"], first["n_dead"], first["median_positives"]]
        rows.append([share, *counts, *(each[name] for each in splits for name in columns.values())])
    return rows


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
