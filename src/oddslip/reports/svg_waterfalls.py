"""The loss and what repairs return, step by step (the paper's figure 1A), one bar under another."""

from __future__ import annotations

from typing import NamedTuple

from oddslip.reports.pictures import Waterfall
from oddslip.reports.svgs import Axis, picture, short, tag, text

STEP = 46  # pixels from one bar to the next
BAR = 14


class Step(NamedTuple):
    """One bar from ``start`` to ``stop``; ``told`` stands at its right."""

    name: str
    start: float
    stop: float
    told: str
    look: str


def draw_waterfall(shown: Waterfall) -> str:
    """The waterfall as SVG markup."""
    steps = waterfall_steps(shown)
    reach = max(shown.ceiling, *(max(step.start, step.stop) for step in steps))
    axis = Axis(0.0, reach if reach > 0 else 1.0, 0.0, 100.0)
    pieces = []
    for at, step in enumerate(steps):
        pieces += _draw_step(step, axis, at * STEP)
        if at + 1 < len(steps):
            pieces.append(_draw_joint(steps[at + 1].start, axis, at * STEP, steps[at + 1]))
    pieces += _draw_ceiling(shown.ceiling, axis, (len(steps) - 1) * STEP)
    return picture(
        pieces,
        height=len(steps) * STEP + 18,
        id_="waterfall",
        title=f"Where the {shown.metric} went",
        description="; ".join(f"{step.name} {step.told}" for step in steps)
        + f"; ceiling of per-label maps {shown.ceiling:.4f}.",
    )


def waterfall_steps(shown: Waterfall) -> list[Step]:
    """The bars from the twin down to the weighted model and up to the repaired one."""
    loss = shown.unweighted - shown.weighted

    def told(change: float) -> str:
        share = f", {abs(change) / loss:.0%}" if loss > 0 else ""
        return f"{change:+.4f}{share}"

    def part(name: str, start: float, stop: float) -> Step:
        look = "gain" if stop > start else "lost"
        return Step(name, start, stop, told(stop - start), look)

    steps = [
        Step("Unweighted twin", 0.0, shown.unweighted, f"{shown.unweighted:.4f}", "good"),
        part("Odds shift, ln w", shown.unweighted, shown.what_if),
        part("Slippage, the rest", shown.what_if, shown.weighted),
        Step("Weighted model", 0.0, shown.weighted, f"{shown.weighted:.4f}", "bad"),
    ]
    if shown.inversion is not None:
        steps.append(part("Subtracting ln w", shown.weighted, shown.inversion))
    steps += [
        part("Per-label isotonic", shown.weighted, shown.repaired),
        Step("Repaired model", 0.0, shown.repaired, f"{shown.repaired:.4f}", "good"),
    ]
    return steps


def _draw_step(step: Step, axis: Axis, top: float) -> list[str]:
    low, high = sorted((step.start, step.stop))
    # A bar of no width would not be seen, and it is there.
    width = max(axis(high) - axis(low), 0.3)
    base = top + 14
    return [
        text(step.name, x="0", y=short(base), class_="name"),
        text(step.told, x="100%", y=short(base), class_="value end"),
        tag(
            "rect", x=axis.percent(low), y=short(base + 7), width=f"{short(width)}%", height=BAR,
            class_=f"bar {step.look}", rx=2,
        ),
    ]  # fmt: skip


def _draw_joint(value: float, axis: Axis, top: float, following: Step) -> str:
    """A thin line from one bar to the place where the next one starts."""
    if following.start == 0.0:
        value = following.stop
    x = axis.percent(value)
    return tag("line", x1=x, x2=x, y1=short(top + 21), y2=short(top + STEP + 35), class_="joint")


def _draw_ceiling(ceiling: float, axis: Axis, top: float) -> list[str]:
    x, right = axis.percent(ceiling), axis(ceiling) > 50
    return [
        tag("line", x1=x, x2=x, y1=short(top + 17), y2=short(top + 39), class_="tick"),
        text(
            f"ceiling of per-label maps {ceiling:.4f}",
            x=x, y=short(top + 54), class_="note end" if right else "note",
        ),
    ]  # fmt: skip
