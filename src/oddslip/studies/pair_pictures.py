"""Figures 1 and 2 of the paper from finished cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from oddslip.reports.pictures import CapPoint, RegimePoint, Waterfall
from oddslip.sources.sinks import whole_file
from oddslip.studies.pair_arms import LEARNERS, Arm, distinct_arms
from oddslip.studies.pair_cells import rung_values
from oddslip.studies.pair_supplements import TITLES, supplements
from oddslip.studies.pair_tables import Cells, cap_rows, has_loss


def waterfalls(cells: Cells) -> list[Waterfall]:
    """Figure 1A: one for each learner whose pair is finished and has a loss to explain."""
    found = []
    for learner in LEARNERS:
        arm = Arm(learner, "r")
        if arm.twin.key in cells and has_loss(cells.get(arm.key, {})):
            cell = cells[arm.key]
            values = rung_values(cell, "test-split")
            found.append(
                Waterfall(
                    name=TITLES[learner],
                    metric=f"MAP@{cell['k']}",
                    unweighted=values["unweighted"],
                    what_if=values["what-if"],
                    weighted=values["raw"],
                    inversion=values["inversion"],
                    repaired=values["isotonic"],
                    ceiling=values["ceiling"],
                    unweighted_repaired=rung_values(cells[arm.twin.key], "test-split")["isotonic"],
                )
            )
    return found


def cap_points(cells: Cells, series: str) -> list[CapPoint]:
    """Figure 1B: the cap sweep."""
    return [
        CapPoint(
            series=series,
            cap=row["cap"],
            budget=row["budget"] if row["cap"] is not None else None,
            largest_shift=row["largest shift"],
            saturated_share=row["saturated"] or 0.0,
        )
        for row in cap_rows(cells)
    ]


def regime_points(cells: Cells) -> list[RegimePoint]:
    """Figure 2: every weighted model that lost something and whose shift can be read."""
    points = []
    for arm in distinct_arms():
        cell = cells.get(arm.key, {})
        if not has_loss(cell) or arm.draw:
            continue
        parts = cell["test-split"]["decomposition"]
        ratio = cell["deployment"]["shifts"]["median_ratio"]
        if ratio is None:
            continue
        points.append(
            RegimePoint(
                name=_short(arm),
                series=TITLES[arm.learner],
                ratio=ratio,
                returned=parts["returned"]["inversion"],
                saturated_share=cell["saturated_share"],
            )
        )
    return points


def _short(arm: Arm) -> str:
    """What tells this model from the others of its learner."""
    said = f"w = {arm.weight}" if arm.cap is None else f"c = {arm.cap:g}"
    return f"{said}, all products" if arm.all_products else said


def write_pictures(cells: Cells, study: str, folder: Path) -> list[Path]:
    """Draw what the cells allow into the folder: figures 1 and 2, and the supplement's."""
    from oddslip.reports.cap_figures import draw_caps
    from oddslip.reports.regime_figures import draw_regimes
    from oddslip.reports.waterfall_figures import draw_figure_one, draw_waterfalls

    folder.mkdir(parents=True, exist_ok=True)
    falls, caps, regimes = waterfalls(cells), cap_points(cells, study), regime_points(cells)
    drawn: dict[str, Callable[[], Any]] = {}
    if falls and caps:
        drawn["figure-1"] = lambda: draw_figure_one(falls, caps)
    elif falls:
        drawn["figure-1"] = lambda: draw_waterfalls(falls)
    elif caps:
        drawn["figure-1"] = lambda: draw_caps(caps)
    if regimes:
        drawn["figure-2"] = lambda: draw_regimes(regimes)
    paths = []
    for name, draw in (drawn | supplements(cells)).items():
        paths.append(folder / f"{study}-{name}.png")
        with whole_file(paths[-1]) as unfinished:
            draw().savefig(unfinished)
    return paths
