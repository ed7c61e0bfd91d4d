"""CPU and wall time of a call, best of a few, and the lines that compare them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Times(NamedTuple):
    cpu: float
    wall: float


def measure(call: Callable[[], Any], repeats: int = 5, scale: float = 1.0) -> Times:
    """Best CPU and best wall time of a few calls. ``scale`` extrapolates a part to the whole."""
    cpu = wall = float("inf")
    for _ in range(repeats):
        started = time.process_time(), time.perf_counter()
        call()
        cpu = min(cpu, time.process_time() - started[0])
        wall = min(wall, time.perf_counter() - started[1])
    return Times(cpu * scale, wall * scale)


def title(text: str) -> None:
    print(f"\n{text}")
    print(f"  {'':44} {'CPU s':>9} {'wall s':>9} {'CPU ratio':>10} {'wall ratio':>10}")


def line(name: str, times: Times, ours: Times | None = None, target: str = "") -> None:
    """One line; with ``ours``, how many times slower than ours it is."""
    text = f"  {name:44} {times.cpu:9.4f} {times.wall:9.4f}"
    if ours is not None:
        text += f" {times.cpu / ours.cpu:9.1f}x {times.wall / ours.wall:9.1f}x"
    print(f"{text}   {target}".rstrip())
