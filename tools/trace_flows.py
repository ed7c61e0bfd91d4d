"""Write the modules that four calls enter, in order, into docs/architecture.md.

Run it after moving code:  python tools/trace_flows.py
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import oddslip
from oddslip.datasets import synthetic_pair

ROOT = Path(oddslip.__file__).parent
PAGE = Path(__file__).parents[1] / "docs/architecture.md"
START, END = "<!-- flows: tools/trace_flows.py -->", "<!-- end of flows -->"


def flows() -> dict[str, Callable[[], object]]:
    """The calls to trace, on a small panel and one thread."""
    pair = synthetic_pair(600, 12, noise=0.3, realized=0.6, seed=1)
    scores, labels = pair.weighted, pair.labels
    small: dict[str, Any] = {"n_replicates": 20, "threads": 1}
    twin: dict[str, Any] = {"weights": pair.weights, "unweighted": pair.unweighted}
    return {
        "oddslip.evaluate(scores, labels, k=3)": lambda: oddslip.evaluate(
            scores, labels, k=3, **small
        ),
        "oddslip.calibrators.Isotonic().fit(scores, labels)": lambda: oddslip.calibrators.Isotonic(
            prior=pair.prior
        ).fit(scores, labels, threads=1),
        "oddslip.Repair(k=3).fit(scores, labels)": lambda: oddslip.Repair(k=3).fit(
            scores, labels, threads=1
        ),
        "oddslip.diagnose(scores, labels, k=3, weights=w, unweighted=u)": lambda: oddslip.diagnose(
            scores, labels, k=3, **twin, **small
        ),
    }


def trace(call: Callable[[], object]) -> list[str]:
    """Run a call twice; the modules that the second run enters, in the order of entry.

    The first run imports, so that the second shows only the work.
    """
    call()
    modules: dict[str, None] = {}

    def tracer(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT) and path.suffix == ".py":
            modules.setdefault(path.relative_to(ROOT).with_suffix("").as_posix())

    threading.settrace(tracer)
    sys.settrace(tracer)
    try:
        call()
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
    return list(modules)


def trace_all() -> dict[str, list[str]]:
    """Every flow with its modules."""
    return {name: trace(call) for name, call in flows().items()}


def read_page(text: str) -> dict[str, list[str]]:
    """The flows as the page has them."""
    section = text.split(START)[1].split(END)[0]
    names, modules = section.split("`")[1::2], section.split("\n\n")[2::2]
    return {
        name: [module.strip() for module in block.replace("\n", " ").split("→")]
        for name, block in zip(names, modules, strict=True)
    }


def write_page(text: str, traced: dict[str, list[str]]) -> str:
    """The page with these flows in place of its own."""
    from textwrap import fill

    before, rest = text.split(START)
    after = rest.split(END)[1]
    parts = [
        f"`{name}` enters {len(modules)} modules:\n\n"
        + fill(" → ".join(modules), 100, break_long_words=False, break_on_hyphens=False)
        for name, modules in traced.items()
    ]
    return f"{before}{START}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(write_page(PAGE.read_text("utf-8"), trace_all()), encoding="utf-8")
