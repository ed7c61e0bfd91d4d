"""What all studies share: weights, finished cells as JSON, what stages took, MAP@K of rows."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oddslip.documents import check_seal, read_json, sealed
from oddslip.errors import InvalidInput, UnreadableFile, first_line
from oddslip.files import locked, whole_file
from oddslip.labels import Positives
from oddslip.metrics.at_k import Column, metric_values
from oddslip.metrics.ranking import Rankings
from oddslip.provenance import commit, versions
from oddslip.results import plain

CELL_FORMAT = 2  # from 2 on a cell is sealed; earlier ones say no format
# Weights of the paper by the names that cells have, as `OneVsRest` wants them.
WEIGHTS = {"1": "none", "sqrt": "sqrt", "r": "balanced", "10r": "10x"}


def check_names(what: str, names: Sequence[Any], allowed: Collection[Any]) -> None:
    """Refuse a name that a study does not know."""
    for name in names:
        if name not in allowed:
            known = ", ".join(str(each) for each in allowed)
            raise InvalidInput(f"{what} must be among {known}, got {name!r}.")


def read_cell(path: Path) -> dict[str, Any]:
    """Configuration and values of a finished cell, once its seal agrees."""
    try:
        document = read_json(path)
        cell = check_seal(document, needed="format" in document)
        if cell.get("format", CELL_FORMAT) != CELL_FORMAT:
            raise ValueError(f"format {cell['format']}, this version reads {CELL_FORMAT}")
        return {part: dict(cell[part]) for part in ("configuration", "values")}
    except UnreadableFile:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(
            f"{path} is not a finished cell, or was altered ({first_line(error)}). "
            "Delete it to compute it again."
        ) from error


class CellStore:
    """A folder of finished cells."""

    def __init__(self, folder: Path, study: str) -> None:
        self.folder, self.study = folder, study

    def path(self, key: str) -> Path:
        """Where a cell is kept."""
        return self.folder / f"{key}.json"

    def read(self, key: str, configuration: dict[str, Any]) -> dict[str, Any] | None:
        """Values of a finished cell with just this configuration, or None."""
        kept = self._load(key)
        if kept is None or kept["configuration"] != plain(configuration):
            return None
        return dict(kept["values"])

    def read_values(self, key: str, **configuration: Any) -> dict[str, Any] | None:
        """Values of a finished cell with these parts of a configuration, or None."""
        kept = self._load(key)
        wanted = plain(configuration)
        if kept is None or {name: kept["configuration"].get(name) for name in wanted} != wanted:
            return None
        return dict(kept["values"])

    def read_configuration(self, key: str, part: str) -> dict[str, Any] | None:
        """A part of what a finished cell was computed with, or None without the cell."""
        kept = self._load(key)
        if kept is None:
            return None
        if not isinstance(kept["configuration"].get(part), dict):
            raise UnreadableFile(self._refusal(key))
        return dict(kept["configuration"][part])

    def _refusal(self, key: str) -> str:
        return f"{self.path(key)} is not a finished cell. Delete it to compute it again."

    def _load(self, key: str) -> dict[str, Any] | None:
        path = self.path(key)
        return read_cell(path) if path.exists() else None

    def find(
        self,
        key: str,
        configuration: dict[str, Any],
        compute: Callable[[], dict[str, Any]] | None,
        *,
        command: str,
        took: dict[str, float] | None = None,
        again: bool = False,
    ) -> dict[str, Any] | None:
        """A cell as it was kept, else computed and kept, else None; ``again`` computes anyway.

        ``took`` is what ``compute`` may fill with what parts of it took, kept beside the seconds
        of the whole: times are no values, since no two runs agree on them.
        """
        kept = None if again and compute is not None else self.read(key, configuration)
        if kept is None and compute is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(self.path(key)):  # two runs of one study would do the same work twice
                started = time.perf_counter()
                kept = compute()
                seconds = time.perf_counter() - started
                self.write(key, configuration, kept, seconds=seconds, command=command, took=took)
        return kept

    def write(
        self,
        key: str,
        configuration: dict[str, Any],
        values: dict[str, Any],
        *,
        seconds: float,
        command: str,
        took: dict[str, float] | None = None,
    ) -> None:
        """Keep a finished cell; ``command`` is the one that computes it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        cell = {
            "format": CELL_FORMAT,
            "study": self.study,
            "configuration": configuration,
            "values": values,
            "seconds": round(seconds, 2),
            **(took or {}),
            "versions": versions(),
            "commit": commit(),
            "command": command,
        }
        text = json.dumps(sealed(plain(cell)), indent=1, ensure_ascii=False, allow_nan=False)
        with whole_file(self.path(key)) as unfinished:
            unfinished.write_text(text + "\n", encoding="utf-8")


Stages = dict[str, dict[str, float]]


def peak_memory() -> int:
    """The most memory this process ever held, in bytes; 0 where the system does not say."""
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
    values = metric_values(Rankings.made(ranking, truth, n_labels))
    return np.asarray(values[:, Column.MAP])


def score_ranking(ranking: NDArray[np.int32], truth: Positives, n_labels: int) -> float:
    """MAP@K: the mean of `row_precisions`."""
    return float(row_precisions(ranking, truth, n_labels).mean())
