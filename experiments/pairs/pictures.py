"""Figures 1 and 2 of the paper and pictures of the supplement's tables, from finished cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.figures.numbers import CapPoint, Series, SeriesPanel
from experiments.pairs.arms import DRAWN_SHARE, LEARNERS, Arm, distinct_arms
from experiments.pairs.cells import HARM, RULES, rung_values
from experiments.pairs.protocols import PROTOCOLS
from experiments.pairs.tables import (
    Cells,
    cap_rows,
    choice_cells,
    dose_rows,
    draw_values,
    has_loss,
    split_rows,
)
from oddslip.io.files import atomic_write
from oddslip.reports.numbers import RegimePoint, Waterfall

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLES = {"lightgbm": "LightGBM", "mlp": "MLP"}
_TONES = {"r": "raw", "1": "repair"}  # colours: orange for the weighted arm, blue for its twin
_DOSES = {
    "raw": ("raw", False),
    "inversion": ("raw", True),
    "isotonic": ("repair", False),
    "ceiling": ("reference", False),
}


def supplements(cells: Cells) -> dict[str, Callable[[], Figure]]:
    """What can be drawn of these cells, by the name of the picture."""
    from experiments.figures.labels import draw_labels
    from experiments.figures.series import draw_intervals, draw_lines

    unit = next((f"MAP@{cell['k']}" for cell in cells.values() if "test-split" in cell), "MAP@K")
    ladders, doses, splits = ladder_panels(cells), dose_panels(cells), split_panels(cells)
    choices, draws = choice_panels(cells), draw_panels(cells)
    figures: dict[str, Callable[[], Figure]] = {}
    if ladders:
        figures["ladders"] = lambda: draw_intervals(ladders, f"{unit}, 95% intervals")
    if doses:
        figures["doses"] = lambda: draw_lines(doses, "weight of the positives", unit)
    if draws:
        figures["draws"] = lambda: draw_intervals(draws, unit)
    if splits:
        share = "test rows that calibrate"
        figures["splits"] = lambda: draw_lines(splits, share, f"{unit} of isotonic")
    if choices:
        axis = f"{unit} of the choice less raw, 95% intervals; dashed: 0, and harm ({HARM})"
        figures["choices"] = lambda: draw_intervals(choices, axis, marks=(0.0, -HARM))
    tables = {
        TITLES[learner]: cells[Arm(learner, "r").key]["labels"]
        for learner in LEARNERS
        if "labels" in cells.get(Arm(learner, "r").key, {})
    }
    if tables:
        figures["labels"] = lambda: draw_labels(tables)
    return figures


def ladder_panels(cells: Cells) -> list[SeriesPanel]:
    """Table 1 and its twin under the deployment protocol, every rung."""
    panels = []
    for learner in LEARNERS:
        arm = Arm(learner, "r")
        series = [
            Series(
                f"w = {each.weight}, {protocol}",
                {
                    name: _estimate(rung["map"])
                    for name, rung in cells[each.key][protocol]["ladder"]["rungs"].items()
                    if name != "unweighted"  # the twin's raw scores, which stand there
                },
                _TONES[each.weight],
                hollow=protocol == "deployment",
            )
            for each in (arm, arm.twin)
            if each.key in cells
            for protocol in PROTOCOLS
        ]
        if series:
            panels.append(SeriesPanel(TITLES[learner], series))
    return panels


def dose_panels(cells: Cells) -> list[SeriesPanel]:
    """Raw, inversion, isotonic and ceiling by weight; only if there is more than one weight."""
    panels = []
    for learner in LEARNERS:
        rows = dose_rows(cells, learner)
        if len(rows) > 2:
            series = [
                Series(
                    rung, {row["weight"]: _alone(row[rung]) for row in rows if rung in row}, *how
                )
                for rung, how in _DOSES.items()
            ]
            panels.append(SeriesPanel(TITLES[learner], series))
    return panels


def split_panels(cells: Cells) -> list[SeriesPanel]:
    """Isotonic by the share of the test rows that calibrates."""
    table = split_rows(cells)
    if not table:
        return []
    header, *rows = table
    panels = []
    for learner in LEARNERS:
        series = [
            Series(
                f"w = {weight}",
                {
                    f"{100 * row[0]:g}%": _alone(row[header.index(Arm(learner, weight).key)])
                    for row in rows
                },
                _TONES[weight],
            )
            for weight in ("r", "1")
            if Arm(learner, weight).key in header
        ]
        if series:
            panels.append(SeriesPanel(TITLES[learner], series))
    return panels


def choice_panels(cells: Cells) -> list[SeriesPanel]:
    """What each selection rule gains over raw, arm by arm."""
    arms = choice_cells(cells)
    series = [
        Series(
            f"rule {rule}",
            {arm: _estimate(cell["choices"][rule]["difference"]) for arm, cell in arms.items()},
            "repair" if rule == "auto" else "reference",
            hollow=rule != "auto",
        )
        for rule in RULES
    ]
    return [SeriesPanel("", series)] if arms else []


def draw_panels(cells: Cells) -> list[SeriesPanel]:
    """Each draw of the training rows, and the arms on all rows."""
    by_draw, whole = draw_values(cells), draw_values(cells, draws=(0,))
    rungs = [name for name in by_draw if name != "odds share"]  # which is no MAP
    if not rungs:
        return []
    draw_name = f"a draw of {DRAWN_SHARE:.0%} of the training rows"
    series = [
        Series(
            draw_name, {name: _alone(by_draw[name][at]) for name in rungs}, "reference", hollow=True
        )
        for at in range(len(by_draw[rungs[0]]))
    ]
    if whole:
        series.append(Series("all training rows", {name: _alone(*whole[name]) for name in rungs}))
    return [SeriesPanel("LightGBM", series)]


def _estimate(estimate: Mapping[str, Any]) -> tuple[float, float | None, float | None]:
    return estimate["value"], estimate["low"], estimate["high"]


def _alone(value: float) -> tuple[float, float | None, float | None]:
    return value, None, None


def waterfalls(cells: Cells) -> list[Waterfall]:
    """Figure 1A: one for each learner whose pair is finished and has a loss to explain."""
    lines = []
    for learner in LEARNERS:
        arm = Arm(learner, "r")
        if arm.twin.key in cells and has_loss(cells.get(arm.key, {})):
            cell = cells[arm.key]
            values = rung_values(cell, "test-split")
            lines.append(
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
    return lines


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
    name = f"w = {arm.weight}" if arm.cap is None else f"c = {arm.cap:g}"
    return f"{name}, all products" if arm.all_products else name


def write_pictures(cells: Cells, study: str, folder: Path) -> list[Path]:
    """Draw what the cells allow into the folder: figures 1 and 2, and the supplement's."""
    from experiments.figures.caps import draw_caps
    from experiments.figures.figure_one import draw_figure_one
    from oddslip.reports.figures.regime import draw_regimes
    from oddslip.reports.figures.waterfall import draw_waterfalls

    folder.mkdir(parents=True, exist_ok=True)
    count = study.rpartition("-")[2]
    series = f"{count} labels" if count.isdigit() else study
    falls, caps, regimes = waterfalls(cells), cap_points(cells, series), regime_points(cells)
    figures: dict[str, Callable[[], Any]] = {}
    if falls and caps:
        figures["figure-1"] = lambda: draw_figure_one(falls, caps)
    elif falls:
        figures["figure-1"] = lambda: draw_waterfalls(falls)
    elif caps:
        figures["figure-1"] = lambda: draw_caps(caps)
    if regimes:
        figures["figure-2"] = lambda: draw_regimes(regimes)
    paths = []
    for name, draw in (figures | supplements(cells)).items():
        paths.append(folder / f"{study}-{name}.png")
        with atomic_write(paths[-1]) as unfinished:
            draw().savefig(unfinished)
    return paths
