"""Pictures of the supplement's tables: both protocols, doses, split sizes, choices, draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from oddslip.reports.pictures import Series, SeriesPanel
from oddslip.studies.pair_arms import DRAWN_SHARE, LEARNERS, Arm
from oddslip.studies.pair_choices import HARM, RULES
from oddslip.studies.pair_protocols import PROTOCOLS
from oddslip.studies.pair_tables import Cells, choice_cells, dose_rows, draw_values, split_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"lightgbm": "LightGBM", "mlp": "MLP"}
_TONES = {"r": "raw", "1": "repair"}  # colours: orange for the weighted arm, blue for its twin
_DOSES = {"raw": ("raw", False), "inversion": ("raw", True), "isotonic": ("repair", False),
          "ceiling": ("reference", False)}  # fmt: skip


def supplements(cells: Cells) -> dict[str, Callable[[], Figure]]:
    """What can be drawn of these cells, by the name of the picture."""
    from oddslip.reports.series_figures import draw_intervals, draw_lines

    unit = next((f"MAP@{cell['k']}" for cell in cells.values() if "test-split" in cell), "MAP@K")
    ladders, doses, splits = ladder_panels(cells), dose_panels(cells), split_panels(cells)
    choices, draws = choice_panels(cells), draw_panels(cells)
    drawn: dict[str, Callable[[], Figure]] = {}
    if ladders:
        drawn["ladders"] = lambda: draw_intervals(ladders, f"{unit}, 95% intervals")
    if doses:
        drawn["doses"] = lambda: draw_lines(doses, "weight of the positives", unit)
    if draws:
        drawn["draws"] = lambda: draw_intervals(draws, unit)
    if splits:
        share = "test rows that calibrate"
        drawn["splits"] = lambda: draw_lines(splits, share, f"{unit} of isotonic")
    if choices:
        told = f"{unit} of the choice less raw, 95% intervals; dashed: 0, and harm ({HARM})"
        drawn["choices"] = lambda: draw_intervals(choices, told, marks=(0.0, -HARM))
    return drawn


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
                    f"{row[0]:.0%}": _alone(row[header.index(Arm(learner, weight).key)])
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
    found = choice_cells(cells)
    series = [
        Series(
            f"rule {rule}",
            {arm: _estimate(cell["choices"][rule]["difference"]) for arm, cell in found.items()},
            "repair" if rule == "auto" else "reference",
            hollow=rule != "auto",
        )
        for rule in RULES
    ]
    return [SeriesPanel("", series)] if found else []


def draw_panels(cells: Cells) -> list[SeriesPanel]:
    """Each draw of the training rows, and the arms on all rows."""
    drawn, whole = draw_values(cells), draw_values(cells, draws=(0,))
    rungs = [name for name in drawn if name != "odds share"]  # which is no MAP
    if not rungs:
        return []
    named = f"a draw of {DRAWN_SHARE:.0%} of the training rows"
    series = [
        Series(named, {name: _alone(drawn[name][at]) for name in rungs}, "reference", hollow=True)
        for at in range(len(drawn[rungs[0]]))
    ]
    if whole:
        series.append(Series("all training rows", {name: _alone(*whole[name]) for name in rungs}))
    return [SeriesPanel("LightGBM", series)]


def _estimate(told: Mapping[str, Any]) -> tuple[float, float | None, float | None]:
    return told["value"], told["low"], told["high"]


def _alone(value: float) -> tuple[float, float | None, float | None]:
    return value, None, None
