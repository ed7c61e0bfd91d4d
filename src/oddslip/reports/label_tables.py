"""The table of labels as data that the page's script sorts, filters and shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oddslip.reports.numbers import label_columns
from oddslip.reports.texts import printable
from oddslip.results import plain

if TYPE_CHECKING:
    from oddslip.diagnosis.diagnoses import Diagnosis

DIGITS = 7  # of a number in the table; --json holds all of them


class Column(NamedTuple):
    """One column: its name among the label columns, its heading, and what the heading means."""

    key: str
    heading: str
    hint: str


COLUMNS = (
    Column("label", "Label", "Name of the label"),
    Column("evaluation_positives", "True, evaluated", "Evaluated rows in which it is true"),
    Column("calibration_positives", "True, calibration", "Calibration rows in which it is true"),
    Column("prior", "Prior", "Prevalence among the training rows, as far as known"),
    Column("weight", "Weight", "Positive weight it was trained with"),
    Column("intended_shift", "ln w", "Intended shift, nat"),
    Column("realized_shift", "Realized", "Realized shift, nat; empty where it can not be read"),
    Column("ratio", "Ratio", "Realized over intended shift"),
    Column("direct_shift", "Direct", "Median difference to the twin's log-odds, nat"),
    Column("over_correction", "Beyond budget", "Part of ln w beyond the step budget, nat"),
    Column("saturated_cells", "Cells at 1.0", "Saturated cells: stored as exactly 1.0"),
    Column("dead", "Dead", "No calibration row in which it is true"),
    Column("takeover_slots", "Slots if dead", "Rows that show it if dead labels keep raw scores"),
    Column("drifted", "Drifted", "Prevalence differs between calibration and evaluated rows"),
)


def label_data(found: Diagnosis) -> dict[str, Any]:
    """Headings and values of every label, in built-in types.

    Names are shown without control characters; ``raw`` keeps those that differ, by label, for the
    download.
    """
    told = label_columns(found)
    columns = [column for column in COLUMNS if column.key in told]
    names = found.label_names
    shown = [printable(name) for name in names]
    values = {column.key: _values(told[column.key]) for column in columns[1:]}
    return {
        "columns": [column._asdict() for column in columns],
        "values": {"label": shown} | values,
        "raw": {at: name for at, name in enumerate(names) if name != shown[at]},
    }


def _values(column: Any) -> list[Any]:
    values = np.asarray(column)
    if values.dtype.kind != "f":
        return list(plain(values))
    return [None if value is None else float(f"{value:.{DIGITS}g}") for value in plain(values)]


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it ends or opens one.

    Examples
    --------
    >>> script_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    told = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return told.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
