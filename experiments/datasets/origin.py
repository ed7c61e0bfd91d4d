"""Whether files were made by `python -m experiments generate`: a note beside them says so."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oddslip.io.files import atomic_write
from oddslip.io.json import read_json

NOTE = "generated.json"


def note_generated(paths: Iterable[Path], **settings: Any) -> None:
    """Note beside files how they were made; notes of other files of the folder are kept."""
    for path in paths:
        notes = _read_notes(path.parent)
        notes[path.name] = {"bytes": path.stat().st_size, **settings}
        text = json.dumps(notes, indent=1, sort_keys=True)
        with atomic_write(path.with_name(NOTE)) as unfinished:
            unfinished.write_text(text + "\n", encoding="utf-8")


def is_generated(paths: Iterable[Path]) -> bool:
    """Whether any of these files is noted as generated.

    A note counts as long as the file has the size it had: genuine files may take the place.
    """
    return any(
        note.get("bytes") == path.stat().st_size
        for path in paths
        if isinstance(note := _read_notes(path.parent).get(path.name), dict)
    )


def _read_notes(folder: Path) -> dict[str, Any]:
    try:
        notes = read_json(folder / NOTE)
    except (OSError, ValueError):  # no note, or a file of that name that is none of ours
        return {}
    return notes if isinstance(notes, dict) else {}
