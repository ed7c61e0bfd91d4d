"""Finished cells of a study, one JSON file each, with all that is needed to redo them.

A cell is kept if its configuration is the one asked for; a changed configuration is computed
again and nothing else is. Files are written whole, so a killed run continues where it was.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from oddslip import __version__
from oddslip.errors import UnreadableFile
from oddslip.results import plain
from oddslip.sources.sinks import whole_file

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "lightgbm", "xgboost", "torch")


def versions() -> dict[str, str]:
    """Versions of Python, of us, and of what the numbers depend on."""
    found = {"python": platform.python_version(), "oddslip": __version__}
    for name in (*PACKAGES, "xgboost-cpu"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


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
        try:
            told = json.loads(self.path(key).read_text(encoding="utf-8"))
            return {part: dict(told[part]) for part in ("configuration", "values")}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnreadableFile(self._refusal(key)) from error

    def find(
        self,
        key: str,
        configuration: dict[str, Any],
        compute: Callable[[], dict[str, Any]] | None,
        *,
        command: str,
    ) -> dict[str, Any] | None:
        """A cell as it was kept, else computed and kept, else None."""
        kept = self.read(key, configuration)
        if kept is None and compute is not None:
            started = time.perf_counter()
            kept = compute()
            seconds = time.perf_counter() - started
            self.write(key, configuration, kept, seconds=seconds, command=command)
        return kept

    def write(
        self,
        key: str,
        configuration: dict[str, Any],
        values: dict[str, Any],
        *,
        seconds: float,
        command: str,
    ) -> None:
        """Keep a finished cell; ``command`` is the one that computes it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        cell = {
            "study": self.study,
            "configuration": configuration,
            "values": values,
            "seconds": round(seconds, 2),
            "versions": versions(),
            "command": command,
        }
        text = json.dumps(plain(cell), indent=1, ensure_ascii=False, allow_nan=False)
        with whole_file(self.path(key)) as unfinished:
            unfinished.write_text(text + "\n", encoding="utf-8")
