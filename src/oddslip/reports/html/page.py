"""A diagnosis as one HTML file that needs no network: open it, send it, print it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oddslip.core.formatting import (
    interval,
    level_name,
    percent,
    score,
    signed,
    signed_interval,
    small_percent,
    times,
    value_text,
)
from oddslip.core.results import html_text, plain
from oddslip.core.types import FilePath
from oddslip.diagnosis.ladder import RUNGS
from oddslip.diagnosis.summary import summarize
from oddslip.io.files import write_text
from oddslip.metrics.at_k import NAMES, metric_name
from oddslip.reports.html import report_text
from oddslip.reports.html.pictures import (
    SHOWN_LOOKS,
    draw_dot_key,
    draw_key,
    draw_ladder_scale,
    draw_regimes,
    draw_rung,
    draw_shifts,
    draw_shown,
    draw_waterfall,
    ladder_axis,
    shape_by_series,
)
from oddslip.reports.numbers import (
    RegimePoint,
    Regimes,
    count_regimes,
    is_open,
    label_columns,
    lacks_regime,
    lacks_shifts,
    lacks_waterfall,
    main_rungs,
    read_regimes,
    regime_of,
    repair_of,
    tell_association,
    tell_shown,
    tell_signal,
    waterfall_of,
)
from oddslip.reports.text import MAX_FINDINGS, printable

if TYPE_CHECKING:
    from oddslip.diagnosis.findings import Finding
    from oddslip.diagnosis.result import Diagnosis
    from oddslip.diagnosis.summary import CommandFiles


def write_page(
    diagnosis: Diagnosis,
    path: FilePath,
    *,
    provenance: Mapping[str, object] | None = None,
    files: CommandFiles | None = None,
) -> None:
    """Write the page of a diagnosis, atomically.

    Parameters
    ----------
    diagnosis : Diagnosis
    path : str or path
        Where the HTML file goes.
    provenance : mapping, optional
        What is known of the run: command, versions, hashes of the inputs. Mappings may be nested.
    files : CommandFiles, optional
        The files that the next command is to name.

    Examples
    --------
    >>> write_page(diagnosis, "report.html")  # doctest: +SKIP
    """
    write_text(path, render_page(diagnosis, provenance=provenance, files=files))


def render_page(
    diagnosis: Diagnosis,
    *,
    provenance: Mapping[str, object] | None = None,
    files: CommandFiles | None = None,
) -> str:
    """The page of a diagnosis as text. The same diagnosis gives the same text.

    Parameters
    ----------
    diagnosis : Diagnosis
    provenance, files : optional
        See `write_page`.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> diagnosis = diagnose(pair.weighted, pair.labels, k=3, n_replicates=0)
    >>> render_page(diagnosis).startswith("<!DOCTYPE html>")
    True
    """
    from markupsafe import Markup

    script = read_template("page.js")
    return render_template(
        "page.html",
        script,
        diagnosis=diagnosis,
        script=Markup(script),
        data=Markup(script_json(label_data(diagnosis))),
        verdict=printable(diagnosis.verdict.sentence),
        summary={
            name: printable(text) for name, text in summarize(diagnosis, files)._asdict().items()
        },
        glossary=report_text.GLOSSARY,
        look=report_text.look_of(diagnosis),
        facts=report_text.facts_of(diagnosis),
        waterfall=waterfall_part(diagnosis),
        loss=report_text.tell_loss(diagnosis),
        ladder=ladder_part(diagnosis),
        dead=report_text.tell_dead(diagnosis),
        signal=tell_signal(diagnosis),
        shown=shown_part(diagnosis),
        shifts=shift_part(diagnosis),
        shift_words=report_text.tell_shifts(diagnosis),
        tiles=report_text.tiles_of(diagnosis),
        ties=report_text.tell_ties(diagnosis),
        regime=regime_part(diagnosis, read_regimes()),
        findings=findings_part(diagnosis),
        missing=diagnosis.missing,
        provenance=provenance_part(diagnosis, provenance),
    )


def render_template(name: str, code: str = "", **parts: object) -> str:
    """A page from its template, with the style of all pages, and ``code`` as its only script."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("oddslip.reports.html", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = read_template("page.css")
    return environment.get_template(name).render(
        policy=content_policy(style, code),
        style=Markup(style),
        svg=Markup,  # pictures are escaped where they are created
        **parts,
    )


def content_policy(style: str, script: str) -> str:
    """The content security policy: the browser may only use this style and this script."""

    def allow(content: str) -> str:
        digest = hashlib.sha256(content.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

    return (
        f"default-src 'none'; style-src {allow(style)}; script-src {allow(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def read_template(name: str) -> str:
    """The text of a template."""
    return resources.files("oddslip.reports.html").joinpath("templates", name).read_text("utf-8")


# ---------------------------------------------------------------------------- the parts of the page


INVERSION_CODES = ("OS303", "OS304", "OS305")
MARKS = {"critical": "alert", "warning": "alert", "info": "note"}


def waterfall_part(diagnosis: Diagnosis) -> dict[str, object]:
    """The waterfall, or why there is none."""
    waterfall = waterfall_of(diagnosis)
    return {"svg": waterfall and draw_waterfall(waterfall), "lacks": lacks_waterfall(diagnosis)}


def ladder_part(diagnosis: Diagnosis) -> dict[str, object]:
    """Every rung with its picture, and all other metrics."""
    ladder = diagnosis.ladder
    axis = ladder_axis(ladder)
    chosen, repair = diagnosis.chosen, repair_of(diagnosis)
    rows = [
        {
            "name": name,
            "what": RUNGS[name],
            "svg": draw_rung(name, ladder, axis),
            "value": score(ladder.value(name)),
            "interval": interval(ladder.estimate(name)),
            "apart": "" if name == "raw" else signed(ladder.gain(name).value),
            "apart_interval": "" if name == "raw" else signed_interval(ladder.gain(name)),
            "is_raw": name == "raw",
            "is_repair": repair is not None and name == repair.rung,
            "chosen": printable(chosen.name) if chosen and name == "chosen" else "",
        }
        for name in ladder
    ]
    main = main_rungs(diagnosis)
    other_metrics = [metric for metric in NAMES if metric != ladder.metric]
    others = [
        {
            "name": name,
            "cells": [
                (score(rung[metric].value), interval(rung[metric])) for metric in other_metrics
            ],
        }
        for name, rung in ladder.rungs.items()
    ]
    return {
        "blocks": [
            [row for row in rows if row["name"] in main],
            [row for row in rows if row["name"] not in main],
        ],
        "scale": draw_ladder_scale(axis),
        "level": level_name(ladder.level) if ladder.n_replicates else "",
        "others": others,
        "metrics": [metric_name(metric, ladder.k) for metric in other_metrics],
    }


def shown_part(diagnosis: Diagnosis) -> dict[str, object]:
    """Whether the probabilities of the labels shown are right, in words and as a picture."""
    names = {"raw": "as they are", "chosen": "chosen by Repair"}
    if diagnosis.chosen is not None:
        names["chosen"] = f"{printable(diagnosis.chosen.name)}, chosen by Repair"
    return {
        "words": tell_shown(diagnosis),
        "svg": draw_shown(diagnosis.shown),
        "series": [(names[name], draw_dot_key(SHOWN_LOOKS[name])) for name in diagnosis.shown],
    }


def shift_part(diagnosis: Diagnosis) -> dict[str, object]:
    """The picture of the shifts, or why there is none."""
    if lacks := lacks_shifts(diagnosis):
        return {"svg": None, "lacks": f"{lacks} Realized shifts stand in the table of labels."}
    return {"svg": draw_shifts(diagnosis.shifts), "lacks": ""}


def regime_part(diagnosis: Diagnosis, regimes: Regimes) -> dict[str, object]:
    """This model among the reference points, as far as either exists."""
    here = regime_of(diagnosis)
    points = [*regimes.points, *([] if here is None else [here])]
    shapes = shape_by_series(regimes.points)
    return {
        "svg": draw_regimes(points) if points else None,
        "measured": measured_inversion(diagnosis),
        "association": tell_association(count_regimes(regimes.points), diagnosis),
        "lacks": lacks_regime(diagnosis),
        "source": printable(regimes.source),
        "has_references": bool(regimes.points),
        "series": [(printable(name), draw_key(shape)) for name, shape in shapes.items()],
        "rows": [_regime_row(point) for point in points],
    }


def measured_inversion(diagnosis: Diagnosis) -> str:
    """The result of the inversion on the ladder; empty without label-specific weights."""
    findings = [finding for finding in diagnosis.findings if finding.code in INVERSION_CODES]
    return printable(findings[0].sentence) if findings else ""


def _regime_row(point: RegimePoint) -> dict[str, object]:
    return {
        "name": printable(point.name),
        "series": "" if point.here else printable(point.series),
        "ratio": times(point.ratio),
        "returned": percent(point.returned),
        "saturated": small_percent(point.saturated_share) if is_open(point) else "none",
        "here": point.here,
    }


def findings_part(diagnosis: Diagnosis) -> list[list[dict[str, object]]]:
    """The most severe findings, and the others, which the page collapses."""
    parts = [finding_part(finding) for finding in diagnosis.findings]
    return [parts[:MAX_FINDINGS], parts[MAX_FINDINGS:]]


def finding_part(finding: Finding) -> dict[str, object]:
    """A finding as texts."""
    from markupsafe import Markup

    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "icon": MARKS[finding.severity],
        "sentence": Markup(html_text(printable(finding.sentence))),
        "advice": Markup(html_text(printable(finding.advice))),
        "anchor": f"docs/{finding.anchor}",
        "evidence": [
            (printable(name.replace("_", " ")), show_value(value))
            for name, value in finding.evidence.items()
        ],
    }


def provenance_part(diagnosis: Diagnosis, provenance: Mapping[str, object] | None) -> list[Any]:
    """The provenance of the run: first what the diagnosis stores, then the rest."""
    from oddslip import __version__

    ladder, bootstrap = diagnosis.ladder, "none"
    if ladder.n_replicates:
        bootstrap = f"{ladder.n_replicates:,} replicates, paired, seed {ladder.seed}"
    run = {
        "made by": f"oddslip {__version__}",
        "scores": f"{diagnosis.kind}, {diagnosis.dtype}",
        "seed": diagnosis.seed,
        "bootstrap": bootstrap,
        "prior": diagnosis.prior_source,
    }
    return nested({**run, **(provenance or {})})


def nested(values: Mapping[str, object]) -> list[Any]:
    """Names with their values, as text or, for a mapping, as a list of the same kind."""
    return [
        (
            printable(str(name).replace("_", " ")),
            nested(value) if isinstance(value, Mapping) else show_value(value),
        )
        for name, value in values.items()
    ]


def show_value(value: object) -> str:
    """A value of evidence or provenance as text of one line."""
    return printable(value_text(value))


# ------------------------------------------------------------------------------ the table of labels


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
    Column("realized_shift", "Realized", "Realized shift, nat; empty where it cannot be read"),
    Column("ratio", "Ratio", "Realized over intended shift"),
    Column("direct_shift", "Direct", "Median difference to the twin's log-odds, nat"),
    Column("residual", "Residual", "Mean difference to the twin's log-odds less ln w, nat"),
    Column("over_correction", "Beyond budget", "Part of ln w beyond the step budget, nat"),
    Column("auc", "AUC", "Chance that a row in which it is true scores above one in which not"),
    Column("saturated_cells", "Cells at 1.0", "Saturated cells: stored as exactly 1.0"),
    Column("dead", "Dead", "No calibration row in which it is true"),
    Column("takeover_slots", "Slots if dead", "Rows that show it if dead labels keep raw scores"),
    Column("drifted", "Drifted", "Prevalence differs between calibration and evaluated rows"),
)


def label_data(diagnosis: Diagnosis) -> dict[str, object]:
    """Headings and values of every label, in built-in types.

    Names have no control characters; ``raw`` holds the original names that differ, for the
    download.
    """
    by_name = label_columns(diagnosis)
    columns = [column for column in COLUMNS if column.key in by_name]
    names = diagnosis.label_names
    printed = [printable(name) for name in names]
    values = {column.key: _values(by_name[column.key]) for column in columns[1:]}
    return {
        "columns": [column._asdict() for column in columns],
        "values": {"label": printed} | values,
        "raw": {at: name for at, name in enumerate(names) if name != printed[at]},
    }


def _values(column: Any) -> list[Any]:
    values = np.asarray(column)
    if values.dtype.kind != "f":
        return list(plain(values))
    return [None if value is None else float(f"{value:.{DIGITS}g}") for value in plain(values)]


def script_json(value: object) -> str:
    """JSON for a script element: nothing in it can end the element or open another.

    Examples
    --------
    >>> script_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
