"""Every table and figure of a matched-pair study as numbers: flat records, all digits."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.pairs.arms import LEARNERS
from experiments.pairs.cells import RULES
from experiments.pairs.claims import find_claims
from experiments.pairs.pictures import cap_points, regime_points, waterfalls
from experiments.pairs.protocols import PROTOCOLS
from experiments.pairs.tables import (
    Cells,
    cap_rows,
    choice_cells,
    dose_rows,
    draw_rows,
    has_loss,
    split_rows,
    table_one,
    verdict_rows,
)
from oddslip.io.files import atomic_write

Records = list[dict[str, Any]]


def all_records(cells: Cells, study: str) -> dict[str, Records]:
    """Records by the name of their table; a table without cells is empty."""
    header, *splits = split_rows(cells) or [[]]
    return {
        "table-1": _by_row(table_one(cells)),
        "figure-1a": [asdict(each) for each in waterfalls(cells)],
        "figure-1b": [asdict(each) for each in cap_points(cells, study)],
        "figure-2": [asdict(each) for each in regime_points(cells)],
        "ladders": list(_ladders(cells)),
        "losses": list(_losses(cells)),
        "verdicts": verdict_rows(cells),
        "shifts": list(_shifts(cells)),
        "caps": [dict(row) for row in cap_rows(cells)],
        "doses": [
            {"learner": learner, **row} for learner in LEARNERS for row in dose_rows(cells, learner)
        ],
        "draws": [
            {"quantity": name, **row, "sd": row["sd"] if row["n"] > 1 else None}
            for name, row in draw_rows(cells).items()
        ],
        "splits": [dict(zip(header, row, strict=True)) for row in splits],
        "choices": list(_choices(cells)),
        "what-if": list(_measured(cells, "what_if")),
        "ties": list(_measured(cells, "reordered")),
        "direct": list(_measured(cells, "direct")),
        "labels": list(_labels(cells)),
        "again": [{"arm": key, **cell["again"]} for key, cell in cells.items() if "again" in cell],
        "dead": [
            {"data": key, **each}
            for key, cell in cells.items()
            for each in cell.get("dead_frequency", [])
        ],
        "claims": [each._asdict() for each in find_claims(cells)],
        "costs": list(_costs(cells)),
    }


def write_tables(cells: Cells, study: str, folder: Path) -> list[Path]:
    """All tables that have a record, as JSON and as CSV, and return what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, records in all_records(cells, study).items():
        if not records:
            continue
        texts = {
            "json": json.dumps(records, indent=1, allow_nan=False) + "\n",
            "csv": as_csv(records),
        }
        for ending, text in texts.items():
            paths.append(folder / f"{name}.{ending}")
            with atomic_write(paths[-1]) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
    return paths


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as CSV: all columns that any of them has; what is missing is empty.

    Examples
    --------
    >>> print(as_csv([{"rung": "raw", "map": 0.1}, {"rung": "offset", "share": None}]), end="")
    rung,map,share
    raw,0.1,
    offset,,
    """
    columns = list(dict.fromkeys(key for record in records for key in record))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def _by_row(columns: Mapping[str, Mapping[str, Any]]) -> Records:
    rows = next(iter(columns.values()), {})
    return [{"row": row, **{name: column[row] for name, column in columns.items()}} for row in rows]


def _diagnosed(cells: Cells) -> Iterator[tuple[str, Any]]:
    return ((key, cell) for key, cell in cells.items() if "test-split" in cell)


def _ladders(cells: Cells) -> Iterator[dict[str, Any]]:
    for key, cell in _diagnosed(cells):
        for protocol in PROTOCOLS:
            for name, rung in cell[protocol]["ladder"]["rungs"].items():
                less = rung["minus_raw"] or {}
                yield {
                    "arm": key,
                    "protocol": protocol,
                    "rung": name,
                    **{f"map {end}": rung["map"][end] for end in ("value", "low", "high")},
                    **{f"less raw {end}": less.get(end) for end in ("value", "low", "high")},
                }


def _losses(cells: Cells) -> Iterator[dict[str, Any]]:
    for key, cell in _diagnosed(cells):
        for protocol in PROTOCOLS:
            parts = cell[protocol].get("decomposition")
            if parts is None:
                continue
            record = {"arm": key, "protocol": protocol, "loss": parts["loss"]}
            record["surely a loss"] = has_loss(cell)
            record |= {f"share of {name}": share for name, share in parts["shares"].items()}
            record |= {f"{rung} returns": share for rung, share in parts["returned"].items()}
            if protocol == "deployment" and "reordered" in cell:
                record |= {
                    f"ties {by.replace('_', ' the ')}": cell["reordered"][by]["share"]
                    for by in ("by_twin", "by_oracle")
                }
            yield record


def _shifts(cells: Cells) -> Iterator[dict[str, Any]]:
    for key, cell in _diagnosed(cells):
        shifts = cell["deployment"]["shifts"]
        names = ("n_identified", "median_ratio", "median_direct_ratio", "largest_realized")
        record = {name: shifts.get(name) for name in (*names, "largest_intended", "budget")}
        yield {"arm": key, "saturated": cell["saturated_share"], "auc": cell["auc"], **record}


def _choices(cells: Cells) -> Iterator[dict[str, Any]]:
    for arm, cell in choice_cells(cells).items():
        for rule in RULES:
            choice = cell["choices"][rule]
            ends = {
                f"less raw {end}": choice["difference"][end] for end in ("value", "low", "high")
            }
            head = {"arm": arm, "raw": cell["choices"]["raw"], "rule": rule}
            yield {**head, "chosen": choice["chosen"], "map": choice["map"], **ends}


def _measured(cells: Cells, measure: str) -> Iterator[dict[str, Any]]:
    """A measure of the supplement; what it holds of more than one number, each under its name."""
    for key, cell in cells.items():
        measurement = cell.get(measure)
        if measurement is not None:
            flat = {"arm": key}
            for name, value in measurement.items():
                inner = value if isinstance(value, Mapping) else {"": value}
                flat |= {f"{name} {part}".strip(): each for part, each in inner.items()}
            yield flat


def _labels(cells: Cells) -> Iterator[dict[str, Any]]:
    for key, cell in cells.items():
        columns = cell.get("labels")
        if columns is not None:
            for row in zip(*columns.values(), strict=True):
                yield {"arm": key, **dict(zip(columns, row, strict=True))}


def _costs(cells: Cells) -> Iterator[dict[str, Any]]:
    for key, cell in cells.items():
        for stage, stage_record in cell["stages"].items():
            yield {"cell": key, "stage": stage, **stage_record}
