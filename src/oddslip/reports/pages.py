"""A diagnosis as one HTML file that needs no network: open it, send it, print it."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from oddslip.reports import page_parts, wordings
from oddslip.reports.label_tables import label_data, script_json
from oddslip.reports.regimes import read_regimes
from oddslip.reports.texts import printable
from oddslip.sources.sinks import whole_file

if TYPE_CHECKING:
    from oddslip.diagnosis.diagnoses import Diagnosis


def write_page(
    found: Diagnosis,
    path: str | os.PathLike[str],
    *,
    provenance: Mapping[str, Any] | None = None,
) -> None:
    """Write the page of a diagnosis, whole or not at all.

    Parameters
    ----------
    found : Diagnosis
    path : str or path
        Where the HTML file goes.
    provenance : mapping, optional
        What is known of the run: command, versions, hashes of the inputs. Mappings may be nested.

    Examples
    --------
    >>> write_page(found, "report.html")  # doctest: +SKIP
    """
    page = render_page(found, provenance=provenance)
    with whole_file(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")


def render_page(found: Diagnosis, *, provenance: Mapping[str, Any] | None = None) -> str:
    """The page of a diagnosis as text. The same diagnosis gives the same text.

    Parameters
    ----------
    found : Diagnosis
    provenance : mapping, optional
        See `write_page`.

    Examples
    --------
    >>> from oddslip import diagnose
    >>> from oddslip.datasets import synthetic_pair
    >>> pair = synthetic_pair(300, 9)
    >>> found = diagnose(pair.weighted, pair.labels, k=3, n_replicates=0)
    >>> render_page(found).startswith("<!DOCTYPE html>")
    True
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("oddslip.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _read_template("page.css"), _read_template("page.js")
    return environment.get_template("page.html").render(
        found=found,
        policy=content_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        # Pictures and data are made here and escaped where they are made.
        svg=Markup,
        data=Markup(script_json(label_data(found))),
        verdict=printable(found.verdict.sentence),
        look=wordings.look_of(found),
        facts=wordings.facts_of(found),
        waterfall=page_parts.waterfall_part(found),
        loss=wordings.tell_loss(found),
        ladder=page_parts.ladder_part(found),
        dead=wordings.tell_dead(found),
        shifts=page_parts.shift_part(found),
        shift_words=wordings.tell_shifts(found),
        tiles=wordings.tiles_of(found),
        ties=wordings.tell_ties(found),
        regime=page_parts.regime_part(found, read_regimes()),
        findings=[page_parts.finding_part(finding) for finding in found.findings],
        missing=found.missing,
        provenance=page_parts.provenance_part(found, provenance),
    )


def content_policy(style: str, script: str) -> str:
    """What the browser may do with the page: run this very style and script, and nothing else."""

    def allow(content: str) -> str:
        digest = hashlib.sha256(content.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"

    return (
        f"default-src 'none'; style-src {allow(style)}; script-src {allow(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _read_template(name: str) -> str:
    return resources.files("oddslip.reports").joinpath("templates", name).read_text("utf-8")
