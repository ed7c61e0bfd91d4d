"""The checks of a log as one HTML file that needs no network: what moved, and since when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from oddslip.core.formatting import count_of, score, small_percent, value_text
from oddslip.core.types import FilePath
from oddslip.io.files import write_text
from oddslip.metrics.at_k import NAMES
from oddslip.reports.html.page import render_template
from oddslip.reports.html.svg import Axis, axis_over, draw_level, line, picture, short, tag, text
from oddslip.reports.text import printable

MAX_RUNS = 400  # drawn; older ones are left out
MAX_LINES = 100  # of the table
HEIGHT, TOP = 132, 10  # pixels of a plot, and above it
OTHERS = tuple(name for name in NAMES if name != "map")  # metrics that are folded away
NOTHING = "Nothing was found."
Record = dict[str, Any]


class Point(NamedTuple):
    """One run in a plot."""

    at: int
    value: float
    low: float | None
    high: float | None


class Series(NamedTuple):
    """A number over all runs, its value on the calibration rows, and its format."""

    key: str
    title: str
    points: list[Point]
    before: float | None
    write: Callable[[float], str]


def write_trend(records: Sequence[Record], path: FilePath) -> None:
    """Write the page of a log, atomically.

    Parameters
    ----------
    records : sequence of dict
        What `oddslip.serving.check_log.read_checks` gives.
    path : str or path
        Where the HTML file goes.

    Examples
    --------
    >>> write_trend(read_checks("log.jsonl"), "trend.html")  # doctest: +SKIP
    """
    write_text(path, render_trend(records))


def render_trend(records: Sequence[Record]) -> str:
    """The page as text. The same log gives the same text."""
    recent = list(records[-MAX_RUNS:])
    last = recent[-1]
    series = find_series(recent)
    n_failed = sum(not each["passed"] for each in recent)
    return render_template(
        "trend.html",
        good=last["passed"],
        word="Passed" if last["passed"] else "Not passed",
        sentence=tell_last(last),
        facts=[
            ("runs", f"{len(recent):,}"),
            ("not passed", f"{n_failed:,}"),
            ("first", printable(recent[0]["when"])),
            ("last", printable(last["when"])),
            ("rows, last", f"{last['n_rows']:,}"),
            ("labels", f"{last['n_labels']:,}"),
            ("K", str(last["k"])),
        ],
        strip=draw_strip(recent),
        plots=[_plot(each, recent) for each in series if each.key not in OTHERS],
        others=[_plot(each, recent) for each in series if each.key in OTHERS],
        left_out=len(records) - len(recent),
        rows=[_row(each) for each in reversed(recent[-MAX_LINES:])],
        older=max(0, len(recent) - MAX_LINES),
    )


def _plot(series: Series, records: Sequence[Record]) -> dict[str, str]:
    return {
        "title": series.title,
        "told": tell_series(series),
        "svg": draw_series(series, records),
    }


def tell_last(record: Record) -> str:
    """What the last run found, in one sentence."""
    findings = record["findings"]
    worst = [each for each in findings if each["code"] in record["failed"]]
    if worst:
        return printable(f"{worst[0]['code']}: {worst[0]['sentence']}")
    return f"{count_of(len(findings), 'finding')}, none of which fails." if findings else NOTHING


def find_series(records: Sequence[Record]) -> list[Series]:
    """Every number that at least one run has, metrics first."""
    k = records[-1]["k"]
    all_series = [
        Series(name, f"{title}@{k}", _points(records, "metrics", name, "value"), None, score)
        for name, title in NAMES.items()
    ]
    for name, title, write in (
        ("expected_precision", "Expected precision of the labels shown", score),
        ("drifted_labels", "Labels whose scores moved", value_text),
        ("tied_share", "Rows decided by ties", small_percent),
        ("saturated_share", "Cells at exactly 1.0", small_percent),
        ("distinct_scores", "Different scores of a label, median", value_text),
    ):
        points = _points(records, "measures", name, "now")
        before = [each["measures"].get(name, {}).get("before") for each in records]
        values = [float(each) for each in before if each is not None]
        all_series.append(Series(name, title, points, values[-1] if values else None, write))
    return [series for series in all_series if series.points]


def _points(records: Sequence[Record], part: str, name: str, key: str) -> list[Point]:
    points = []
    for at, record in enumerate(records):
        each = record[part].get(name)
        if each is not None and each[key] is not None:
            points.append(Point(at, float(each[key]), each.get("low"), each.get("high")))
    return points


def tell_series(series: Series) -> str:
    """The last number in words."""
    text = f"{series.write(series.points[-1].value)} in the last run"
    if series.before is not None:
        text += f", {series.write(series.before)} on the calibration rows"
    return f"{text}."


# ------------------------------------------------------------------------------------- the pictures


def place(at: int, n: int) -> str:
    """The position of a run, in percent of the width."""
    return f"{short(100 * (at + 0.5) / n)}%"


def draw_strip(records: Sequence[Record]) -> str:
    """A mark for each run: blue where it passed, orange and taller where not."""
    n = len(records)
    width = f"{short(100 / n * 0.7)}%"
    pieces = [
        tag(
            "rect",
            tag("title", f"{printable(each['when'])}: {'passed' if each['passed'] else 'failed'}"),
            x=f"{short(100 * (at + 0.15) / n)}%",
            width=width,
            y=12 if each["passed"] else 0,
            height=12 if each["passed"] else 24,
            class_=f"bar {'good' if each['passed'] else 'bad'}",
            rx=1,
        )
        for at, each in enumerate(records)
    ]
    failed = [printable(each["when"]) for each in records if not each["passed"]]
    return picture(
        pieces,
        height=26,
        id_="strip",
        title="Runs that passed and runs that did not",
        description=f"{len(failed)} of {n} runs did not pass"
        + (f": {', '.join(failed[:20])}." if failed else "."),
    )


def draw_series(series: Series, records: Sequence[Record]) -> str:
    """A number over the runs, with its intervals and its value on the calibration rows."""
    n = len(records)
    reach = [value for point in series.points for value in point[1:] if value is not None]
    reach += [] if series.before is None else [series.before]
    axis = axis_over(reach, TOP + HEIGHT, TOP, margin=0.08)
    if min(reach) >= 0 > axis.low:  # no number here is negative
        axis = Axis(0.0, axis.high, axis.start, axis.stop)
    pieces = [*_draw_grid(axis, series)]
    for first, second in zip(series.points, series.points[1:], strict=False):
        x = place(first.at, n), place(second.at, n)
        pieces.append(line(x, (axis(first.value), axis(second.value)), "reference"))
    for point in series.points:
        record, at = records[point.at], place(point.at, n)
        if point.low is not None and point.high is not None:
            pieces.append(line((at, at), (axis(point.low), axis(point.high)), "interval"))
        title = f"{record['when']}: {series.write(point.value)}"
        pieces.append(
            tag(
                "circle",
                tag("title", printable(title)),
                cx=at,
                cy=short(axis(point.value)),
                r=4,
                class_=f"dot {'good' if record['passed'] else 'bad'}",
            )
        )
    bottom = short(TOP + HEIGHT + 20)
    pieces.append(text(records[0]["when"][:10], x="0", y=bottom, class_="tick-text"))
    if n > 1:
        pieces.append(text(records[-1]["when"][:10], x="100%", y=bottom, class_="tick-text end"))
    return picture(
        pieces,
        height=TOP + HEIGHT + 28,
        id_=f"series-{series.key}",
        title=series.title,
        description=f"{series.title}: {tell_series(series)}",
    )


def _draw_grid(axis: Axis, series: Series) -> list[str]:
    pieces: list[str] = []
    for tick in axis.ticks(4):
        pieces += draw_level(tick, f"{tick:.4g}", axis)
    if series.before is not None:
        y = axis(series.before)
        pieces.append(line(("0", "100%"), (y, y), "diagonal"))
    return pieces


def _row(record: Record) -> dict[str, object]:
    failed, value = record["failed"], record["metrics"].get("map", {}).get("value")
    return {
        "when": printable(record["when"]),
        "passed": record["passed"],
        "rows": f"{record['n_rows']:,}",
        "map": "-" if value is None else score(value),
        "findings": [
            {
                "code": printable(each["code"]),
                "sentence": printable(each["sentence"]),
                "failed": each["code"] in failed,
            }
            for each in record["findings"]
        ],
    }
