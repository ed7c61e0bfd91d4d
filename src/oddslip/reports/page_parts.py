"""What the page's template shows, ready to print: nothing is computed in the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oddslip.diagnosis.comparisons import best_repair
from oddslip.diagnosis.ladders import RUNGS
from oddslip.metrics.evaluations import NAMES
from oddslip.reports.pictured import lacks_regime, lacks_waterfall, regime_of, waterfall_of
from oddslip.reports.pictures import RegimePoint
from oddslip.reports.regimes import Regimes, count_regimes, tell_association
from oddslip.reports.svg_ladders import draw_ladder_scale, draw_rung, ladder_axis
from oddslip.reports.svg_regimes import draw_key, draw_regimes, is_open, shape_by_series
from oddslip.reports.svg_shifts import draw_shifts
from oddslip.reports.svg_waterfalls import draw_waterfall
from oddslip.reports.texts import interval, printable, signed_interval

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
            "value": f"{rung['map'].value:.4f}",
            "interval": interval(rung["map"]),
            "apart": "" if name == "raw" else f"{rung.differences['map'].value:+.4f}",
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
                (f"{rung[metric].value:.4f}", interval(rung[metric]))
                for metric in NAMES
                if metric != "map"
            ],
        }
        for name, rung in ladder.rungs.items()
    ]
    return {
        "rows": rows,
        "scale": draw_ladder_scale(axis),
        "level": f"{ladder.level:.0%}" if ladder.n_replicates else "",
        "others": others,
        "metrics": [f"{title}@{found.k}" for name, title in NAMES.items() if name != "map"],
    }


def shift_part(found: Diagnosis) -> dict[str, Any]:
    """The picture of the shifts, or what it lacks."""
    if found.shifts.intended is None:
        lacks = (
            "The weight of every label (weights=, --weights) would show how far its shift was "
            "realized. Realized shifts stand in the table of labels."
        )
        return {"svg": None, "lacks": lacks}
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
        "ratio": f"{point.ratio:.2f}",
        "returned": f"{point.returned:.0%}",
        "saturated": f"{point.saturated_share:.1%}" if is_open(point) else "none",
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
    """A value of evidence or provenance as text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return "-" if value != value else f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(key)}: {show_value(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(show_value(item) for item in value)
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return show_value(value.tolist())
    return printable(value)
