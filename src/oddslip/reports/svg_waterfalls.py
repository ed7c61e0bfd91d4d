"""The loss and what repairs return, step by step (the paper's figure 1A), one bar under another."""

from __future__ import annotations

from oddslip.reports.numbers import Step, percent, score, signed, waterfall_steps
from oddslip.reports.pictures import Waterfall
from oddslip.reports.svgs import Axis, picture, short, tag, text

STEP = 46  # pixels from one bar to the next
BAR = 14
NAMES = {
    "unweighted": "Unweighted twin",
    "odds shift": "Odds shift, ln w",
    "slippage": "Slippage, the rest",
    "weighted": "Weighted model",
    "inversion": "Subtracting ln w",
    "isotonic": "Per-label isotonic",
    "repaired": "Repaired model",
}


def draw_waterfall(shown: Waterfall) -> str:
    """The waterfall as SVG markup."""
    steps = waterfall_steps(shown)
    reach = max(shown.ceiling, *(max(step.start, step.stop) for step in steps))
    axis = Axis(0.0, reach if reach > 0 else 1.0, 0.0, 100.0)
    pieces = []
    for at, step in enumerate(steps):
        pieces += _draw_step(step, axis, at * STEP)
        if at + 1 < len(steps):
            pieces.append(_draw_joint(steps[at + 1], axis, at * STEP))
    pieces += _draw_ceiling(shown.ceiling, axis, (len(steps) - 1) * STEP)
    return picture(
        pieces,
        height=len(steps) * STEP + 18,
        id_="waterfall",
        title=f"Where the {shown.metric} went",
        description="; ".join(f"{NAMES[step.name]} {tell_step(step)}" for step in steps)
        + f"; ceiling of per-label maps {score(shown.ceiling)}.",
    )


def tell_step(step: Step) -> str:
    """What stands at the right of a bar."""
    if step.is_model:
        return score(step.stop)
    share = "" if step.share is None else f", {percent(step.share)}"
    return f"{signed(step.change)}{share}"


def look_of(step: Step) -> str:
    """The class of a bar, which sets its colour."""
    if step.is_model:
        return "bad" if step.name == "weighted" else "good"
    return "lost" if step.falls else "gain"


def _draw_step(step: Step, axis: Axis, top: float) -> list[str]:
    low, high = sorted((step.start, step.stop))
    # A bar of no width would not be seen, and it is there.
    width = max(axis(high) - axis(low), 0.3)
    base = top + 14
    return [
        text(NAMES[step.name], x="0", y=short(base), class_="name"),
        text(tell_step(step), x="100%", y=short(base), class_="value end"),
        tag(
            "rect", x=axis.percent(low), y=short(base + 7), width=f"{short(width)}%", height=BAR,
            class_=f"bar {look_of(step)}", rx=2,
        ),
    ]  # fmt: skip


def _draw_joint(following: Step, axis: Axis, top: float) -> str:
    """A thin line from one bar to the place where the next one starts."""
    x = axis.percent(following.joint)
    return tag("line", x1=x, x2=x, y1=short(top + 21), y2=short(top + STEP + 35), class_="joint")


def _draw_ceiling(ceiling: float, axis: Axis, top: float) -> list[str]:
    x, right = axis.percent(ceiling), axis(ceiling) > 50
    return [
        tag("line", x1=x, x2=x, y1=short(top + 17), y2=short(top + 39), class_="tick"),
        text(
            f"ceiling of per-label maps {score(ceiling)}",
            x=x, y=short(top + 54), class_="note end" if right else "note",
        ),
    ]  # fmt: skip
