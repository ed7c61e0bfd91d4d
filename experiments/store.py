"""Shared by all studies: weights, the store of finished cells, timing of stages, MAP@K."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.core.labels import Positives
from oddslip.core.provenance import commit, versions
from oddslip.core.results import plain
from oddslip.errors import InvalidInput, UnreadableFile, first_line
from oddslip.io.files import atomic_write, lock
from oddslip.io.inputs import read_bytes
from oddslip.io.json import parse_json, with_checksum
from oddslip.io.json import verify_checksum as verify_checksum
from oddslip.metrics.at_k import Column, metric_values
from oddslip.metrics.ranking import Rankings

CELL_FORMAT = 3  # a line of the study's file; the cells of versions before 0.3 were files
RESULTS = Path("experiments/results")
# Weights of the paper by the names that cells have, as `OneVsRest` wants them.
WEIGHTS = {"1": "none", "sqrt": "sqrt", "r": "balanced", "10r": "10x"}


def check_names(what: str, names: Sequence[Any], allowed: Collection[Any]) -> None:
    """Reject a name that is not allowed."""
    for name in names:
        if name not in allowed:
            choices = ", ".join(str(each) for each in allowed)
            raise InvalidInput(f"{what} must be among {choices}, got {name!r}.")


class CellStore:
    """Finished cells of a study: one file, one line of JSON per cell.

    Each line has the key of its cell, what it was computed with and by, and a checksum.
    """

    def __init__(self, folder: str | os.PathLike[str], study: str) -> None:
        self.study, self.path = study, Path(folder) / f"{study}.jsonl"
        self._cells: dict[str, dict[str, Any]] = {}
        self._state: tuple[int, int] | None = None  # of the file when it was read

    def cells(self) -> dict[str, dict[str, Any]]:
        """All finished cells by key. Empty without a file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return {}
        state = status.st_mtime_ns, status.st_size
        if state != self._state:
            lines = read_bytes(self.path).splitlines()
            parsed = (self._parse(number, line) for number, line in enumerate(lines, 1))
            self._cells = {cell["key"]: cell for cell in parsed}
            self._state = state
        return self._cells

    def _parse(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            cell = verify_checksum(parse_json(line))
            if cell["format"] != CELL_FORMAT:
                raise ValueError(f"format {cell['format']}, this version reads {CELL_FORMAT}")
            types = [type(cell[part]) for part in ("key", "configuration", "values")]
            if types != [str, dict, dict]:
                raise ValueError("key, configuration and values are missing")
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableFile(
                f"line {number} of {self.path} is not a finished cell, or was altered "
                f"({first_line(error)}). Delete the line to compute the cell again."
            ) from error
        return cell

    def values(self) -> dict[str, dict[str, Any]]:
        """Values of all finished cells by key."""
        return {key: dict(cell["values"]) for key, cell in sorted(self.cells().items())}

    def require(self, cells: dict[str, Any]) -> dict[str, Any]:
        """The same cells; an error where there are none."""
        if not cells:
            raise InvalidInput(f"{self.path} must hold finished cells, got none. Run the study.")
        return cells

    def cpu_seconds(self, key: str) -> dict[str, float]:
        """CPU seconds of the parts of a finished cell, stored as timings named ``cpu_*``."""
        prefix = "cpu_"
        line = self.cells()[key]
        return {name.removeprefix(prefix): line[name] for name in line if name.startswith(prefix)}

    def read(self, key: str, configuration: dict[str, Any]) -> dict[str, Any] | None:
        """Values of a finished cell with exactly this configuration, or None."""
        cell = self.cells().get(key)
        if cell is None or cell["configuration"] != plain(configuration):
            return None
        return dict(cell["values"])

    def read_values(self, key: str, **configuration: Any) -> dict[str, Any] | None:
        """Values of a finished cell with these parts of a configuration, or None."""
        cell = self.cells().get(key)
        expected = plain(configuration)
        if cell is None or {part: cell["configuration"].get(part) for part in expected} != expected:
            return None
        return dict(cell["values"])

    def read_configuration(self, key: str, part: str) -> dict[str, Any] | None:
        """A part of what a finished cell was computed with, or None without the cell."""
        cell = self.cells().get(key)
        if cell is None:
            return None
        if not isinstance(cell["configuration"].get(part), dict):
            raise UnreadableFile(
                f"{self.path}: the configuration of cell {key!r} has no {part!r}. "
                "Delete its line to compute the cell again."
            )
        return dict(cell["configuration"][part])

    def find(
        self,
        key: str,
        configuration: dict[str, Any],
        compute: Callable[[], dict[str, Any]] | None,
        *,
        command: str,
        timings: dict[str, float] | None = None,
        again: bool = False,
    ) -> dict[str, Any] | None:
        """Values of a finished cell, else computed and stored, else None; ``again`` recomputes.

        ``timings`` may be filled by ``compute``. They are stored beside the total seconds, not
        among the values, because they differ between runs.
        """
        values = None if again and compute is not None else self.read(key, configuration)
        if values is None and compute is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Two runs of a study may compute different cells at a time, but not the same one.
            with lock(self.path.with_name(f"{self.path.name}, {key}")):
                start = time.perf_counter()
                values = compute()
                seconds = time.perf_counter() - start
                self.write(
                    key, configuration, values, seconds=seconds, command=command, timings=timings
                )
        return values

    def write(
        self,
        key: str,
        configuration: dict[str, Any],
        values: dict[str, Any],
        *,
        seconds: float,
        command: str,
        timings: dict[str, float] | None = None,
    ) -> None:
        """Store a finished cell; ``command`` is the one that computes it."""
        cell = {
            "key": key,
            "format": CELL_FORMAT,
            "study": self.study,
            "configuration": configuration,
            "values": values,
            "seconds": round(seconds, 2),
            **(timings or {}),
            "versions": versions(),
            "commit": commit(),
            "command": command,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with lock(self.path, wait=True):
            self._write_lines(self.cells() | {key: plain(cell)})

    def _write_lines(self, cells: dict[str, dict[str, Any]]) -> None:
        with atomic_write(self.path) as unfinished, unfinished.open("w", encoding="utf-8") as file:
            for _, cell in sorted(cells.items()):
                line = json.dumps(with_checksum(cell), ensure_ascii=False, allow_nan=False)
                file.write(line + "\n")


Stages = dict[str, dict[str, float]]


def peak_memory() -> int:
    """Peak memory of this process in bytes; 0 where the system does not report it."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def stage(log: Stages, name: str) -> Iterator[None]:
    """Add to ``log`` what the block takes. A stage entered twice adds up.

    Peak memory is that of the process until the end of the stage, earlier stages included.

    Examples
    --------
    >>> log = {}
    >>> with stage(log, "read"):
    ...     pass
    >>> sorted(log["read"])
    ['cpu_seconds', 'peak_memory_mb', 'seconds']
    """
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield
    finally:
        before = log.get(name, {"seconds": 0.0, "cpu_seconds": 0.0})
        log[name] = {
            "seconds": round(before["seconds"] + time.perf_counter() - wall, 2),
            "cpu_seconds": round(before["cpu_seconds"] + time.process_time() - cpu, 2),
            "peak_memory_mb": round(peak_memory() / 2**20, 1),
        }


def row_precisions(
    ranking: NDArray[np.int32], truth: Positives, n_labels: int
) -> NDArray[np.float64]:
    """Average precision at K of every row with a true label."""
    values = metric_values(Rankings.of(ranking, truth, n_labels))
    return np.asarray(values[:, Column.MAP])


def score_ranking(ranking: NDArray[np.int32], truth: Positives, n_labels: int) -> float:
    """MAP@K: the mean of `row_precisions`."""
    return float(row_precisions(ranking, truth, n_labels).mean())
