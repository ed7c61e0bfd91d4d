"""A decision as one HTML file that needs no network: how many labels are shown, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from oddslip import __version__
from oddslip.core.formatting import count_of, has_interval, interval, score
from oddslip.core.results import html_text
from oddslip.core.types import FilePath
from oddslip.decisions.fitted_decision import FittedDecision
from oddslip.io.files import write_text
from oddslip.reports.decision_text import describe_decision, describe_lists, describe_unmet
from oddslip.reports.html.page import nested, render_template
from oddslip.reports.html.pictures import draw_dot_key
from oddslip.reports.html.svg import Axis, draw_level, line, picture, short, tag, text
from oddslip.reports.text import printable

if TYPE_CHECKING:
    from oddslip.decisions.decision import Decision
    from oddslip.decisions.length_table import LengthTable

MAX_LABELS, MAX_FOLDED = 30, 1000  # labels in the table, and behind it
MAX_LENGTHS = 60  # drawn
HEIGHT, TOP = 180, 10  # pixels of a plot, and above it
LOOKS = {"raw": "raw", "repaired": "good"}
COLUMNS = ("Label", "By probabilities alone", "By true labels", "Used", "Positives")


def write_page(
    decision: Decision | FittedDecision,
    path: FilePath,
    *,
    provenance: Mapping[str, object] | None = None,
) -> None:
    """Write the page of a decision, atomically.

    Parameters
    ----------
    decision : Decision or FittedDecision
        A `Decision` of the rule "length" also has the picture of all lengths.
    path : str or path
        Where the HTML file goes.
    provenance : mapping, optional
        What is known of the run: command, versions, hashes of the inputs. Mappings may be nested.

    Examples
    --------
    >>> write_page(load_decision("decision.oddslip"), "decision.html")  # doctest: +SKIP
    """
    write_text(path, render_page(decision, provenance=provenance))


def render_page(
    decision: Decision | FittedDecision, *, provenance: Mapping[str, object] | None = None
) -> str:
    """The page of a decision as text. The same decision gives the same text."""
    from markupsafe import Markup

    fitted: FittedDecision
    tables: dict[str, LengthTable] = {}
    if isinstance(decision, FittedDecision):
        fitted = decision
    else:
        fitted = decision.fitted_
        if hasattr(decision, "table_"):
            tables = {"raw": decision.raw_table_, "repaired": decision.table_}
    chosen = int(fitted.rule.levels[0]) if tables else 0
    unmet, rows = describe_unmet(fitted), threshold_rows(fitted)
    return render_template(
        "decision.html",
        good=not unmet,
        word=unmet or "How many to show",
        sentences=[Markup(html_text(printable(each))) for each in describe_decision(fitted)],
        facts=facts_of(fitted),
        lists=list(describe_lists(fitted)),
        chosen=chosen,
        series=[(name, draw_dot_key(look)) for name, look in LOOKS.items()],
        plots=[
            (metric, draw_lengths(tables, metric, chosen))
            for metric in ("precision", "recall")
            if tables
        ],
        columns=COLUMNS,
        rows=rows[:MAX_LABELS],
        folded=rows[MAX_LABELS:MAX_FOLDED],
        left_out=max(0, len(rows) - MAX_FOLDED),
        provenance=nested({"made by": f"oddslip {__version__}", **(provenance or {})}),
    )


def facts_of(decision: FittedDecision) -> list[tuple[str, str]]:
    """What was asked for, and of which rows: name and value."""
    rule, repair = decision.rule, decision.repair
    facts = [("goal", decision.goal.replace("_", " "))]
    if decision.target is not None:
        facts.append(("target", f"{decision.target:g}"))
    return [
        *facts,
        ("rows of the fit", f"{decision.summary['n_rows']:,}"),
        ("labels", f"{repair.maps.n_labels:,}"),
        ("shown at most", f"{rule.k_max:,}"),
        ("groups", "none" if rule.groups is None else f"{len(rule.groups):,}"),
        ("repair", printable(repair.parameters.get("chosen", repair.calibrator))),
    ]


def threshold_rows(decision: FittedDecision) -> list[list[str]]:
    """Thresholds and positives of each label as texts, those with the most positives first.

    One row stands for all labels where they share their thresholds.
    """
    table = decision.thresholds
    if table is None:
        return []
    values = np.stack([table.plug_in, table.fitted, table.used])
    n_labels, positives = values.shape[1], table.n_positives
    names = decision.repair.label_names or tuple(map(str, range(n_labels)))
    order = np.argsort(-positives, kind="stable").tolist()
    if n_labels > 1 and np.array_equal(values, values[:, [0] * n_labels], equal_nan=True):
        names, order, positives = ("all labels",), [0], positives.sum(keepdims=True)
    return [
        [printable(names[at]), *map(_level, values[:, at].tolist()), f"{positives[at]:,}"]
        for at in order
    ]


def _level(threshold: float) -> str:
    if np.isnan(threshold):
        return "no positives"
    return f"{threshold:.4g}" if np.isfinite(threshold) else "never shown"


def draw_lengths(tables: Mapping[str, LengthTable], metric: str, chosen: int) -> str:
    """A metric of lists of every length with its intervals, a series for each table."""
    n = len(next(iter(tables.values())).metrics[metric])
    lengths = sorted({chosen, *np.linspace(1, n, min(n, MAX_LENGTHS)).round().astype(int).tolist()})
    x_axis, y_axis = Axis(0.5, n + 0.5, 0.0, 100.0), Axis(0.0, 1.0, TOP + HEIGHT, TOP)
    bottom, middle = TOP + HEIGHT + 20, x_axis.percent(chosen)
    pieces = [line((middle, middle), (TOP, TOP + HEIGHT), "diagonal")]
    for tick in y_axis.ticks():
        pieces += draw_level(tick, f"{tick:.4g}", y_axis)
    for length in (mark for mark in x_axis.ticks() if mark == round(mark)):
        x = x_axis.percent(length)
        pieces.append(text(f"{length:g}", x=x, y=bottom, class_="tick-text middle"))
    pieces.append(text("labels shown", x="50%", y=bottom + 20, class_="axis-text middle"))
    for name, table in tables.items():
        points = [(k, x_axis.percent(k), table.metrics[metric][k - 1]) for k in lengths]
        pieces += _draw_series(name, points, y_axis)
    ends = "; ".join(
        f"{name} {score(table.metrics[metric][chosen - 1].value)}" for name, table in tables.items()
    )
    return picture(
        pieces,
        height=bottom + 28,
        id_=f"lengths-{metric}",
        title=f"{metric} by the length of lists",
        description=f"At {count_of(chosen, 'label')}: {ends}.",
    )


def _draw_series(name: str, points: Sequence[Any], y_axis: Axis) -> list[str]:
    pieces = []
    for (_, x, one), (_, next_x, other) in pairwise(points):
        pieces.append(line((x, next_x), (y_axis(one.value), y_axis(other.value)), "reference"))
    for length, x, estimate in points:
        if has_interval(estimate):
            ends = y_axis(estimate.low), y_axis(estimate.high)
            pieces.append(line((x, x), ends, "interval"))
        description = f"{name}, {count_of(length, 'label')}: {score(estimate.value)}"
        title = tag("title", f"{description}, {interval(estimate)}")
        y = short(y_axis(estimate.value))
        pieces.append(tag("circle", title, cx=x, cy=y, r=3.5, class_=f"dot {LOOKS[name]}"))
    return pieces
