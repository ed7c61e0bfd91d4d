"""Finished cells of a study, changed: by bytes, or under a right checksum."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from attacks.child import Attempt, refused, try_in_child
from attacks.mutation import draw, mutate_bytes, mutate_json, nest
from attacks.outcome import Outcome

TITLE = "Result cells of studies, changed and resealed"
SLICE = 1_000
FULL = 20_000
CONFIGURATION = {"dataset": "flags", "weight": "r", "protocol": "paper", "seed": 42, "cap": None}
VALUES = {"map": 0.5625, "auc": [0.5, 0.75], "positives": [3, 0, 12], "name": "flags", "dead": 1}


def attack(count: int, seed: int) -> Outcome:
    """Read what was changed; it is refused in one line, or the values are those that were kept."""
    return try_in_child("attacks.cells", count, seed)


def seal(content: Any) -> Any:
    """A table with the checksum that an attacker can compute as well as we can."""
    if not isinstance(content, dict):
        return content
    content = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def prepare(seed: int, folder: Path) -> Attempt:
    """Every second try leaves the checksum as it was."""
    from experiments.store import CellStore

    store = CellStore(folder, "attacked")
    store.write("cell", CONFIGURATION, VALUES, seconds=1.5, command="-")
    path = store.path
    raw = path.read_bytes()

    def read() -> Any:
        found: list[Any] = []
        told = refused(lambda: found.append(store.read("cell", CONFIGURATION)))
        return "refused" if told else found[0]

    def attempt(number: int) -> str:
        dice = draw(seed, number)
        if number % 2 == 0:
            path.write_bytes(mutate_bytes(raw, dice))
            values = read()
            if values not in ("refused", VALUES):  # white space is in no checksum
                raise AssertionError(f"a cell whose checksum is wrong gave {values}")
            return "refused unsealed" if values == "refused" else "unsealed, same values"
        changed = seal(mutate_json(json.loads(raw), dice))
        text = json.dumps(changed).encode()
        path.write_bytes(nest(text, dice) if dice.random() < 0.005 else text)
        values = read()
        if values == "refused":
            return values
        if values is None:
            return "of another configuration"
        json.dumps(values, allow_nan=False)
        return "valid"

    return attempt
