"""Finished cells as they were kept, and the paper's Table 2 from them, beside what it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oddslip.errors import UnreadableFile
from oddslip.studies.mulan_paper import COLUMNS, TABLE_2

Cells = Mapping[str, Mapping[str, Any]]


def read_cells(folder: Path) -> dict[str, dict[str, Any]]:
    """Values of all finished cells in a folder, by key; needs no data set. Empty without one."""
    cells = {}
    for path in sorted(folder.glob("*.json")):
        try:
            cells[path.stem] = dict(json.loads(path.read_text(encoding="utf-8"))["values"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnreadableFile(
                f"{path} is not a finished cell. Delete it to compute it again."
            ) from error
    return cells


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of a table: ours, as it would be printed, and as the paper prints it."""

    data: str
    column: str
    value: float
    ours: str
    paper: str

    @property
    def agrees(self) -> bool:
        """Whether the printed digits are equal."""
        return self.ours == self.paper


def table_values(cells: Cells, data: str, learner: str = "lightgbm") -> dict[str, float] | None:
    """The row of Table 2 for a data set, or None where a cell is missing."""
    about = cells.get(data)
    plain, weighted = (cells.get(f"{data}-{learner}-{weight}") for weight in ("1", "r"))
    if about is None or plain is None or weighted is None:
        return None
    values: dict[str, float] = {}
    for column in COLUMNS:
        arm, _, rung = column.partition(" ")
        cell = {"w=1": plain, "w=r": weighted}.get(arm)
        if cell is None:
            values[column] = about[column]
        else:
            values[column] = cell["distinct"] if rung == "distinct" else cell["map"][rung]
    return values


def compare_table_2(cells: Cells) -> list[Entry]:
    """Every entry of Table 2 whose cells are finished."""
    entries = []
    for data, printed in TABLE_2.items():
        values = table_values(cells, data)
        for column, form in COLUMNS.items() if values is not None else ():
            value = values[column]  # type: ignore[index]
            # The paper rounds half to even, as Python does.
            ours = format(round(value), "d") if form == "d" else format(value, form)
            entries.append(Entry(data, column, value, ours, printed[column]))
    return entries


def format_table_2(cells: Cells) -> str:
    """Table 2 as Markdown."""
    lines = [
        "| data set | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for data in TABLE_2:
        entries = [entry for entry in compare_table_2(cells) if entry.data == data]
        if entries:
            shown = (e.ours if e.agrees else f"**{e.ours}** ({e.paper})" for e in entries)
            lines.append(f"| {data} | " + " | ".join(shown) + " |")
    return "\n".join(lines)
