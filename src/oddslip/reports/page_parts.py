"""What the page's template shows, ready to print: nothing is computed in the template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oddslip.diagnosis.comparisons import best_repair
from oddslip.diagnosis.ladders import RUNGS
from oddslip.metrics.evaluations import NAMES
from oddslip.reports.numbers import (
    interval,
    is_open,
    lacks_regime,
    lacks_shifts,
    lacks_waterfall,
    level_name,
    percent,
    regime_of,
    score,
    signed,
    signed_interval,
    small_percent,
    times,
    value_text,
    waterfall_of,
)
from oddslip.reports.pictures import RegimePoint
from oddslip.reports.regimes import Regimes, count_regimes, tell_association
from oddslip.reports.svg_ladders import draw_ladder_scale, draw_rung, ladder_axis
from oddslip.reports.svg_regimes import draw_key, draw_regimes, shape_by_series
from oddslip.reports.svg_shifts import draw_shifts
from oddslip.reports.svg_waterfalls import draw_waterfall
from oddslip.reports.texts import printable

if TYPE_CHECKING:
    from oddslip.diagnosis.diagnoses import Diagnosis
    from oddslip.diagnosis.findings import Finding

INVERSION_CODES = ("OS303", "OS304", "OS305")
MARKS = {"critical": "alert", "warning": "alert", "info": "note"}


def waterfall_part(found: Diagnosis) -> dict[str, Any]:
    """The waterfall, or what it lacks."""
    shown = waterfall_of(found)
    return {"svg": shown and draw_waterfall(shown), "lacks": lacks_waterfall(found)}


def ladder_part(found: Diagnosis) -> dict[str, Any]:
    """Every rung with its picture, and all other metrics."""
    ladder = found.ladder
    axis = ladder_axis(ladder)
    best = best_repair(found)
    rows = [
        {
            "name": name,
            "what": RUNGS[name],
            "svg": draw_rung(rung, ladder, axis),
            "value": score(rung["map"].value),
            "interval": interval(rung["map"]),
            "apart": "" if name == "raw" else signed(rung.differences["map"].value),
            "apart_interval": "" if name == "raw" else signed_interval(rung.differences["map"]),
            "is_raw": name == "raw",
            "is_best": name == best,
        }
        for name, rung in ladder.rungs.items()
    ]
    others = [
        {
            "name": name,
            "cells": [
                (score(rung[metric].value), interval(rung[metric]))
                for metric in NAMES
                if metric != "map"
            ],
        }
        for name, rung in ladder.rungs.items()
    ]
    return {
        "rows": rows,
        "scale": draw_ladder_scale(axis),
        "level": level_name(ladder.level) if ladder.n_replicates else "",
        "others": others,
        "metrics": [f"{title}@{found.k}" for name, title in NAMES.items() if name != "map"],
    }


def shift_part(found: Diagnosis) -> dict[str, Any]:
    """The picture of the shifts, or what it lacks."""
    if lacks := lacks_shifts(found):
        return {"svg": None, "lacks": f"{lacks} Realized shifts stand in the table of labels."}
    return {"svg": draw_shifts(found.shifts), "lacks": ""}


def regime_part(found: Diagnosis, regimes: Regimes) -> dict[str, Any]:
    """This model among the reference points, as far as either is there."""
    here = regime_of(found)
    points = [*regimes.points, *([] if here is None else [here])]
    shapes = shape_by_series(regimes.points)
    return {
        "svg": draw_regimes(points) if points else None,
        "measured": measured_inversion(found),
        "association": tell_association(count_regimes(regimes.points)),
        "lacks": lacks_regime(found),
        "source": printable(regimes.source),
        "has_references": bool(regimes.points),
        "series": [(printable(name), draw_key(shape)) for name, shape in shapes.items()],
        "rows": [_regime_row(point) for point in points],
    }


def measured_inversion(found: Diagnosis) -> str:
    """What the ladder says of the inversion; empty without label-specific weights."""
    made = [finding for code in INVERSION_CODES if (finding := found.finding(code)) is not None]
    return printable(made[0].sentence) if made else ""


def _regime_row(point: RegimePoint) -> dict[str, Any]:
    return {
        "name": printable(point.name),
        "series": "" if point.here else printable(point.series),
        "ratio": times(point.ratio),
        "returned": percent(point.returned),
        "saturated": small_percent(point.saturated_share) if is_open(point) else "none",
        "here": point.here,
    }


def finding_part(finding: Finding) -> dict[str, Any]:
    """A finding as texts."""
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "icon": MARKS[finding.severity],
        "sentence": printable(finding.sentence),
        "advice": printable(finding.advice),
        "anchor": f"docs/{finding.anchor}",
        "evidence": [
            (printable(name.replace("_", " ")), show_value(value))
            for name, value in finding.evidence.items()
        ],
    }


def provenance_part(found: Diagnosis, provenance: Mapping[str, Any] | None) -> list[Any]:
    """What was told about the run, after what the diagnosis itself knows."""
    from oddslip import __version__

    ladder, bootstrap = found.ladder, "none"
    if ladder.n_replicates:
        bootstrap = f"{ladder.n_replicates:,} replicates, paired, seed {ladder.seed}"
    own = {
        "made by": f"oddslip {__version__}",
        "scores": f"{found.kind}, {found.dtype}",
        "seed": found.seed,
        "bootstrap": bootstrap,
        "prior": found.prior_source,
    }
    return nested({**own, **(provenance or {})})


def nested(told: Mapping[Any, Any]) -> list[Any]:
    """Names with their values, as text or, for a mapping, as a list of the same kind."""
    return [
        (
            printable(str(name).replace("_", " ")),
            nested(value) if isinstance(value, Mapping) else show_value(value),
        )
        for name, value in told.items()
    ]


def show_value(value: Any) -> str:
    """A value of evidence or provenance as text of one line."""
    return printable(value_text(value))
