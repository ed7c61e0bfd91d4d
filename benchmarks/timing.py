"""CPU time, wall time and peak memory of calls, and the tables that set them beside a peer's."""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

FOLDER = Path(".bench")
T = TypeVar("T")
TABLES: list[dict[str, Any]] = []  # everything printed by `title` and `line`, for the record


class Times(NamedTuple):
    """Seconds of a call, CPU time of child processes included."""

    cpu: float
    wall: float


class Stage(NamedTuple):
    """A step of a job, and the largest memory the process has held until its end."""

    name: str
    times: Times
    peak_bytes: int


def cpu_seconds() -> float:
    """Of this process and of its children, those that have ended and those at work."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    at_work = sum(map(_child_seconds, list_children()))
    return time.process_time() + ended.ru_utime + ended.ru_stime + at_work


def list_children() -> list[str]:
    """Ids of the processes that any thread of this one has started."""
    tasks = Path("/proc/self/task")
    # Not a glob: it looks at every thread once more, and fails if one has ended since.
    paths = [tasks / thread / "children" for thread in os.listdir(tasks)]
    return [child for path in paths for child in _read_process(path).split()]


def _read_process(path: Path) -> str:
    """Contents of a file of a thread or process; empty if that has ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _child_seconds(number: str) -> float:
    # After the name, which may hold anything: state is the third field, user time the fourteenth.
    fields = _read_process(Path(f"/proc/{number}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def take_time(call: Callable[[], T]) -> tuple[T, Times]:
    """What a call gives, and its time."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    outcome = call()
    wall = time.perf_counter() - wall
    return outcome, Times(cpu_seconds() - cpu, wall)


def measure(call: Callable[[], Any], repeats: int = 5, scale: float = 1.0) -> Times:
    """Best CPU and best wall time of a few calls. ``scale`` extrapolates a part to the whole."""
    times = [take_time(call)[1] for _ in range(repeats)]
    return scaled(Times(*map(min, zip(*times, strict=True))), scale)


def scaled(times: Times, scale: float) -> Times:
    """What a whole would take of which this is a part."""
    return Times(times.cpu * scale, times.wall * scale)


class Stages:
    """The steps of one job, timed one after the other in the process they are made in."""

    def __init__(self) -> None:
        self.held = forget_peak()
        self.done: list[Stage] = []

    def __call__(self, name: str, call: Callable[[], T]) -> T:
        outcome, times = take_time(call)
        self.done.append(Stage(name, times, read_status("VmHWM") - self.held))
        return outcome


def total(stages: list[Stage]) -> Times:
    """Of all stages together."""
    return Times(*map(sum, zip(*(stage.times for stage in stages), strict=True)))


def read_status(name: str) -> int:
    """Bytes of a field of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def forget_peak() -> int:
    """Start the peak of memory anew; what is held now."""
    Path("/proc/self/clear_refs").write_text("5")
    return read_status("VmRSS")


def alone(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function of a module in a new process, so that the peak of memory is its alone."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        outcome, lines = pool.submit(_call_alone, function, arguments).result()
    if TABLES:
        TABLES[-1]["lines"].extend(lines)
    return outcome


def _call_alone(
    function: Callable[..., T], arguments: tuple[Any, ...]
) -> tuple[T, list[dict[str, Any]]]:
    """Outcome of the call, and the lines it printed below the last title of the other process."""
    TABLES.append({"title": "", "lines": []})
    return function(*arguments), TABLES[0]["lines"]


@contextmanager
def work_folder() -> Iterator[Path]:
    """A folder in ``.bench``, on the disk of this project, gone afterwards."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        yield Path(folder)
    with suppress(OSError):  # another run is at work in it
        FOLDER.rmdir()


def agree(what: str, ours: Any, theirs: Any, tolerance: float = 0.0) -> None:
    """Refuse to compare the speed of two answers that are not the same."""
    gap = np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)).max()
    if not gap <= tolerance:
        raise AssertionError(
            f"{what} must be the peer's to within {tolerance:g}, got a difference of {gap:g}."
        )
    print(f"  {what}: the peer's, largest difference {gap:.0e} (at most {tolerance:.0e})")


def title(text: str) -> None:
    """Begin a table."""
    TABLES.append({"title": text, "lines": []})
    print(f"\n{text}")
    print(
        f"  {'':50} {'CPU s':>9} {'wall s':>9} {'CPU ratio':>10} {'wall ratio':>10} {'peak MB':>8}",
        flush=True,
    )


def line(
    name: str,
    times: Times,
    ours: Times | None = None,
    note: str = "",
    *,
    peak_bytes: int | None = None,
) -> None:
    """One job of a table; with ``ours`` a peer's, and how many times slower than ours it is."""
    record: dict[str, Any] = {"name": name.strip(), "cpu": times.cpu, "wall": times.wall}
    ratios = ["", ""]
    if ours is not None:
        record |= {"cpu_ratio": times.cpu / ours.cpu, "wall_ratio": times.wall / ours.wall}
        ratios = [_format_ratio(record["cpu_ratio"]), _format_ratio(record["wall_ratio"])]
    if peak_bytes is not None:
        record["peak_bytes"] = peak_bytes
    TABLES[-1]["lines"].append(record | ({"note": note} if note else {}))
    peak = "" if peak_bytes is None else f"{peak_bytes / 1e6:.0f}"
    columns = f"{times.cpu:9.4g} {times.wall:9.4g} {ratios[0]:>10} {ratios[1]:>10} {peak:>8}"
    print(f"  {name:50} {columns}   {note}".rstrip(), flush=True)


def lines(stages: list[Stage], prefix: str = "") -> None:
    """One line for each stage."""
    for stage in stages:
        line(f"{prefix}{stage.name}", stage.times, peak_bytes=stage.peak_bytes)


def _format_ratio(ratio: float) -> str:
    """Three digits, or all before the point."""
    return f"{ratio:.0f}x" if ratio >= 100 else f"{ratio:.3g}x"
