"""Whether files were made by `oddslip generate`: a note beside them says so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from oddslip.documents import read_json
from oddslip.files import whole_file

NOTE = "generated.json"
# Files made before there were notes, by SHA-256: those of the studies under results.
_EARLIER = {
    "d4bbb29db47909e767717e28ef17c000368fc13616cc3d752d3e5a4f220a1986",  # instacart, 19681 users
    "106ac6bec9c53b5c6a7cbd158e9c9380bdd6bf15c9153bbf4555e57864f48651",  # santander, a tenth
    "b63c455c824a04b8a87b26b067f7bce33a4aa3e4dcb5034b77e2e765afb5e42b",  # santander, full size
}


def note_generated(paths: Iterable[Path], **settings: Any) -> None:
    """Note beside files how they were made; notes of other files of the folder are kept."""
    for path in paths:
        notes = _read_notes(path.parent)
        notes[path.name] = {"bytes": path.stat().st_size, **settings}
        text = json.dumps(notes, indent=1, sort_keys=True)
        with whole_file(path.with_name(NOTE)) as unfinished:
            unfinished.write_text(text + "\n", encoding="utf-8")


def is_generated(paths: Iterable[Path], sha256: Mapping[str, str]) -> bool:
    """Whether any of these files is noted as generated, or is one of the earlier ones.

    A note counts as long as the file has the size it had: genuine files may take the place.
    """
    if were_generated(sha256):
        return True
    return any(
        note.get("bytes") == path.stat().st_size
        for path in paths
        if isinstance(note := _read_notes(path.parent).get(path.name), dict)
    )


def were_generated(sha256: Mapping[str, str]) -> bool:
    """Whether any of these hashes, by file name, is that of a file generated before notes."""
    return not _EARLIER.isdisjoint(sha256.values())


def _read_notes(folder: Path) -> dict[str, Any]:
    try:
        notes = read_json(folder / NOTE)
    except (OSError, ValueError):  # no note, or a file of that name that is none of ours
        return {}
    return notes if isinstance(notes, dict) else {}
