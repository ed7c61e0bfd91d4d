"""The pictures of a diagnosis by name, and all of them on one page."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from oddslip.errors import InvalidInput
from oddslip.reports.figures.ladder import draw_ladder, put_ladder
from oddslip.reports.figures.notes import Note, place_notes
from oddslip.reports.figures.regime import draw_regimes, put_regimes
from oddslip.reports.figures.shifts import draw_shifts, put_shifts
from oddslip.reports.figures.style import (
    GREY,
    INK,
    TEXT,
    TITLE,
    WIDTH,
    drawable,
    finish,
    new_figure,
)
from oddslip.reports.figures.waterfall import draw_waterfalls, put_waterfalls
from oddslip.reports.numbers import (
    RegimePoint,
    Waterfall,
    lacks_regime,
    lacks_shifts,
    lacks_waterfall,
    read_regimes,
    regime_of,
    waterfall_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oddslip.diagnosis.result import Diagnosis

ON_A_LINE, IN_A_PANEL = 90, 46  # characters at full and at half width
ALONE = 130.0  # mm, of a page that holds one picture


class Drawing(NamedTuple):
    """How a picture is drawn, alone or on a page, and the reason if it cannot be drawn."""

    title: str
    draw: Callable[[Any], Figure]
    put: Callable[[Any, Any], list[Note] | None]
    lacks: Callable[[Any], str]


DRAWINGS = {
    "waterfall": Drawing(
        "The loss, and what returns it",
        lambda diagnosis: draw_waterfalls(_waterfalls(diagnosis)),
        lambda panel, diagnosis: put_waterfalls(panel, _waterfalls(diagnosis)),
        lacks_waterfall,
    ),
    "ladder": Drawing("Repair ladder", draw_ladder, put_ladder, lambda diagnosis: ""),
    "shifts": Drawing("Realized shift", draw_shifts, put_shifts, lacks_shifts),
    "regime": Drawing(
        "When the inversion pays",
        lambda diagnosis: draw_regimes(_regimes(diagnosis)),
        lambda panel, diagnosis: put_regimes(panel, _regimes(diagnosis), columns=2),
        lacks_regime,
    ),
}


def _waterfalls(diagnosis: Diagnosis) -> list[Waterfall]:
    waterfall = waterfall_of(diagnosis)
    return [] if waterfall is None else [replace(waterfall, name="")]


def _regimes(diagnosis: Diagnosis) -> list[RegimePoint]:
    """Draw this model among the reference models of the package."""
    here = regime_of(diagnosis)
    return [] if here is None else [*read_regimes().points, here]


def draw_diagnosis(diagnosis: Diagnosis, what: str = "overview") -> Figure:
    """Draw the picture of this name; `Diagnosis.plot` calls this.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> diagnosis = diagnose(pair.weighted, pair.labels, k=3, n_replicates=0, weights=pair.weights)
    >>> len(draw_diagnosis(diagnosis).axes)
    2
    """
    if what == "overview":
        return draw_overview(diagnosis)
    if what not in DRAWINGS:
        raise InvalidInput(f"what must be one of overview, {', '.join(DRAWINGS)}, got {what!r}.")
    drawing = DRAWINGS[what]
    if reason := drawing.lacks(diagnosis):
        raise InvalidInput(f'plot("{what}") cannot be drawn from this diagnosis. {reason}')
    return drawing.draw(diagnosis)


def draw_overview(diagnosis: Diagnosis) -> Figure:
    """Draw all pictures that this diagnosis allows, below its verdict."""
    drawings = [drawing for drawing in DRAWINGS.values() if not drawing.lacks(diagnosis)]
    n_columns = min(2, len(drawings))
    n_rows = -(-len(drawings) // n_columns)
    figure = new_figure(74.0 * n_rows + 10, ALONE if n_columns == 1 else WIDTH)
    verdict = drawable(diagnosis.verdict.sentence, 4 * ON_A_LINE)
    figure.suptitle(textwrap.fill(verdict, ON_A_LINE), fontsize=TITLE, color=INK, x=0.01, ha="left")
    panels = figure.subfigures(n_rows, n_columns, squeeze=False, wspace=0.02, hspace=0.02).ravel()
    notes: list[Note] = []
    for panel, drawing in zip(panels, drawings, strict=False):
        panel.suptitle(drawing.title, fontsize=TITLE, color=INK, x=0.01, ha="left", weight="bold")
        notes += drawing.put(panel, diagnosis) or []
    if len(drawings) == 3:  # the empty corner contains the reason
        title, reason = next(
            (d.title, d.lacks(diagnosis)) for d in DRAWINGS.values() if d.lacks(diagnosis)
        )
        panels[3].suptitle(title, fontsize=TITLE, color=GREY, x=0.01, ha="left", weight="bold")
        reason_lines = textwrap.fill(f"Not drawn. {reason}", IN_A_PANEL)
        panels[3].text(0.01, 0.85, reason_lines, fontsize=TEXT, color=GREY, va="top")
    place_notes(figure, notes)
    return finish(figure)
