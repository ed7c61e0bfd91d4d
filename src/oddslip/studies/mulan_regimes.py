"""Reference points of the regime picture (the paper's figure 2) from cells of the MULAN study.

The reports carry them in ``reports/regimes.json``, which is written again when cells change:
``write_regimes(read_cells(Path("results/mulan/paper")), Path("src/oddslip/reports/regimes.json"))``
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oddslip.reports.pictures import RegimePoint
from oddslip.sources.sinks import whole_file
from oddslip.studies.mulan_regularities import pairs

SMALLEST_LOSS = 0.02  # below this, the share of the loss that a repair returns is mostly noise
FEWEST_LABELS = 3  # whose shift is identified, for a median to say something
DECIMALS = 6
SOURCE = (
    "Our cells of the MULAN study, protocol `paper`, at w = r: those that lost more than "
    f"{SMALLEST_LOSS} MAP@K and have at least {FEWEST_LABELS} labels with an identified shift."
)

Cells = Mapping[str, Mapping[str, Any]]


def regime_points(cells: Cells) -> list[RegimePoint]:
    """One point per weighted model that clearly lost, in the order of the paper's Table 2.

    Parameters
    ----------
    cells : mapping
        Finished cells by key, as `reproduce_mulan` or `read_cells` give them. A point needs the
        cells at w = 1 and w = r.

    Examples
    --------
    >>> told = {"auc": 0.8, "saturated_share": 0.1, "n_identified": 5, "median_realized": 0.7}
    >>> cells = {
    ...     "yeast-mlp-1": {"map": {"raw": 0.6}},
    ...     "yeast-mlp-r": {"map": {"raw": 0.2, "inversion": 0.3}, **told},
    ... }
    >>> point = regime_points(cells)[0]
    >>> point.name, point.ratio, point.returned
    ('yeast, mlp', 0.7, 0.25)
    """
    points = []
    for data, learner, plain, weighted in pairs(cells):
        rungs, ratio = weighted["map"], weighted.get("median_realized")
        loss = plain["map"]["raw"] - rungs["raw"]
        if loss <= SMALLEST_LOSS or ratio is None or weighted["n_identified"] < FEWEST_LABELS:
            continue
        points.append(
            RegimePoint(
                name=f"{data}, {learner}",
                series=learner,
                ratio=round(ratio, DECIMALS),
                returned=round((rungs["inversion"] - rungs["raw"]) / loss, DECIMALS),
                saturated_share=round(weighted["saturated_share"], DECIMALS),
            )
        )
    return points


def tell_regimes(cells: Cells) -> dict[str, Any]:
    """The points and where they come from, in built-in types."""
    points = [asdict(point) for point in regime_points(cells)]
    for point in points:
        point.pop("here")  # none of these is the model a report is about
    return {"source": SOURCE, "points": points}


def write_regimes(cells: Cells, path: Path) -> None:
    """Write the points as JSON, whole or not at all."""
    text = json.dumps(tell_regimes(cells), indent=1, allow_nan=False)
    with whole_file(path) as unfinished:
        unfinished.write_text(text + "\n", encoding="utf-8")
